//! Recordings: what happened, as text.

use std::collections::HashMap;

use crate::callback_args::{GcReason, JitCache, MovedRange, RootFlags, RootKind, SuspendReason, TransitionReason};
use crate::{
    AppDomainId, AssemblyId, CallerSp, ClassId, ClauseKind, EventPipeProviderId, FunctionId, GcHandleId, HResult,
    ModuleId, ReJitId, ThreadId,
};

use super::event::{Event, FakeObject};
use super::running::Step;
use super::world::{assembly_id, class_id, module_id, thread_id};
use super::{FakeRuntime, NOTHING};

pub(super) type Parsed<T> = Result<T, String>;

/// Reads a recording from its beginning: names are explained before, or at the latest after, they are used.
pub(super) fn read(text: &str) -> Parsed<(FakeRuntime, Vec<Step>)> {
    let mut reader = Reader { runtime: FakeRuntime::new(), meanings: HashMap::new(), known: HashMap::new() };
    reader.meanings.extend(text.lines().filter_map(|line| line.split_once(" = ")));
    let mut steps = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.contains(" = ") {
            continue;
        }
        let step = reader.step(line).map_err(|what| format!("line {}: {what}", number + 1))?;
        steps.push(step);
    }
    // What was explained and never named in an event belongs to the program too.
    let mut unused: Vec<&str> = reader.meanings.keys().copied().filter(|word| word.starts_with('f')).collect();
    unused.sort_unstable();
    for word in unused {
        reader.function(word)?;
    }
    Ok((reader.runtime, steps))
}

/// State of a recording read so far.
pub(super) struct Reader<'t> {
    runtime: FakeRuntime,
    /// Meaning of each word.
    meanings: HashMap<&'t str, &'t str>,
    /// The identifier a word was given here.
    known: HashMap<&'t str, usize>,
}

impl<'t> Reader<'t> {
    fn step(&mut self, line: &'t str) -> Parsed<Step> {
        let mut words = line.split('\t');
        let thread = words.next().and_then(|word| word.parse().ok()).ok_or("begins with the number of a thread")?;
        let name = words.next().ok_or("names no event")?;
        let event = Event::read(name, self, &mut words)?;
        match words.next() {
            Some(more) => Err(format!("{name} has no value {more}")),
            None => Ok(Step { thread, event }),
        }
    }

    /// The identifier of a word, made at its first use from what it stands for.
    fn identify(&mut self, word: &'t str, make: impl FnOnce(&mut Self, &str) -> Parsed<usize>) -> Parsed<usize> {
        if let Some(id) = self.known.get(word) {
            return Ok(*id);
        }
        // A word that nobody explains stands for itself: what was not named before it was gone.
        let meaning = self.meanings.get(word).copied().unwrap_or(word);
        let id = make(self, meaning)?;
        self.known.insert(word, id);
        Ok(id)
    }

    fn module_index(&mut self, word: &'t str) -> Parsed<usize> {
        self.identify(word, |reader, name| {
            let named = reader.runtime.world.modules.iter().position(|module| module.name == name);
            Ok(named.unwrap_or_else(|| reader.runtime.world.add_module(name)))
        })
    }

    fn module(&mut self, word: &'t str) -> Parsed<ModuleId> {
        self.module_index(word).map(module_id)
    }

    /// Assemblies have one module, of the same name.
    fn assembly(&mut self, word: &'t str) -> Parsed<AssemblyId> {
        self.module_index(word).map(assembly_id)
    }

    /// The module of a meaning `Module!Rest`.
    fn place<'m>(&mut self, meaning: &'m str) -> (usize, &'m str) {
        let (module, rest) = meaning.split_once('!').unwrap_or(("", meaning));
        let known = self.runtime.world.modules.iter().position(|known| known.name == module);
        (known.unwrap_or_else(|| self.runtime.world.add_module(module)), rest)
    }

    fn class(&mut self, word: &'t str) -> Parsed<ClassId> {
        let index = self.identify(word, |reader, meaning| {
            let (module, name) = reader.place(meaning);
            Ok(reader.runtime.world.add_class(module, name))
        })?;
        Ok(class_id(index))
    }

    fn function(&mut self, word: &'t str) -> Parsed<FunctionId> {
        let id = self.identify(word, |reader, meaning| {
            let (module, name) = reader.place(meaning);
            let (class, method) = name.rsplit_once("::").unwrap_or(("", name));
            let class = reader.runtime.world.add_class(module, class);
            Ok(reader.runtime.world.add_function(class, method, NOTHING).0)
        })?;
        Ok(FunctionId(id))
    }

    fn object(&mut self, word: &'t str) -> Parsed<FakeObject> {
        let id = self.identify(word, |reader, class| {
            let (module, name) = reader.place(class);
            reader.runtime.world.add_class(module, name);
            Ok(reader.runtime.object(name, 24).0)
        })?;
        Ok(FakeObject(id))
    }

    fn thread(&mut self, word: &str) -> Parsed<ThreadId> {
        let number = word.strip_prefix('t').and_then(|number| number.parse().ok());
        number.map(thread_id).ok_or_else(|| format!("{word} is no thread"))
    }
}

/// A value of an event, read from its word in a recording.
pub(super) trait Word: Sized {
    fn read<'t>(reader: &mut Reader<'t>, word: &'t str) -> Parsed<Self>;
}

/// Values that one expression reads.
macro_rules! words {
    ($($type:ty: |$reader:pat_param, $word:ident| $read:expr;)*) => {
        $(impl Word for $type {
            fn read<'t>($reader: &mut Reader<'t>, $word: &'t str) -> Parsed<Self> {
                $read
            }
        })*
    };
}

words! {
    ModuleId: |reader, word| reader.module(word);
    AssemblyId: |reader, word| reader.assembly(word);
    ClassId: |reader, word| reader.class(word);
    FunctionId: |reader, word| reader.function(word);
    ThreadId: |reader, word| reader.thread(word);
    FakeObject: |reader, word| reader.object(word);
    String: |_, word| Ok(word.to_owned());
    u32: |_, word| word.parse().map_err(|_| format!("{word} is no number"));
    usize: |_, word| usize::from_str_radix(word, 16).map_err(|_| format!("{word} is no address"));
    u128: |_, word| u128::from_str_radix(word, 16).map_err(|_| format!("{word} is no identifier"));
    HResult: |_, word| {
        let code = u32::from_str_radix(word, 16).map_err(|_| format!("{word} is no result code"))?;
        Ok(Self(code as i32))
    };
    AppDomainId: |reader, word| Word::read(reader, word).map(Self);
    GcHandleId: |reader, word| Word::read(reader, word).map(Self);
    ReJitId: |reader, word| Word::read(reader, word).map(Self);
    EventPipeProviderId: |reader, word| Word::read(reader, word).map(Self);
    CallerSp: |reader, word| Word::read(reader, word).map(Self);
    SuspendReason: |reader, word| Word::read(reader, word).map(Self::from_raw);
    TransitionReason: |reader, word| Word::read(reader, word).map(Self::from_raw);
    GcReason: |reader, word| Word::read(reader, word).map(Self::from_raw);
    JitCache: |reader, word| Word::read(reader, word).map(Self::from_raw);
    // The digits of the generations collected.
    Vec<usize>: |_, word| {
        let digit = |digit: char| digit.to_digit(10).map(|generation| generation as usize);
        word.chars().map(digit).collect::<Option<_>>().ok_or_else(|| format!("{word} are no generations"))
    };
    ClauseKind: |_, word| match word {
        "filter" => Ok(Self::Filter),
        "catch" => Ok(Self::Catch),
        "finally" => Ok(Self::Finally),
        _ => Err(format!("{word} is no kind of block")),
    };
    Vec<u8>: |_, word| no_word("bytes", word);
    Vec<FakeObject>: |_, word| no_word("objects", word);
    Vec<MovedRange>: |_, word| no_word("ranges", word);
    Vec<(usize, usize)>: |_, word| no_word("ranges", word);
    Vec<(ClassId, u32)>: |_, word| no_word("counts", word);
    Vec<(FakeObject, RootKind, RootFlags, usize)>: |_, word| no_word("roots", word);
    Vec<(FakeObject, FakeObject, GcHandleId)>: |_, word| no_word("elements", word);
}

/// Values that only hand-written tests give.
fn no_word<T>(what: &str, word: &str) -> Parsed<T> {
    Err(format!("{word}: recordings have no {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_things_are_called_is_explained_anywhere() {
        let text = "1\tModuleLoadFinished\tm1\t0\nm1 = Shop\nf1 = Shop!Shop.Cart+Line::Add\n2\tEnterAt\tf1\tff40\n";
        let (runtime, steps) = read(text).unwrap();
        assert_eq!(steps[0].event, Event::ModuleLoadFinished(runtime.module_id("Shop"), HResult::OK));
        let add = runtime.function("Shop.Cart+Line::Add");
        assert_eq!(steps[1], Step { thread: 2, event: Event::EnterAt(add, CallerSp(0xff40)) });
    }

    #[test]
    fn what_can_not_be_read_is_named_with_its_line() {
        let error = |text: &str| read(text).err().unwrap_or_default();
        assert_eq!(error("1\tShutdown\n1\tShutUp\n"), "line 2: there is no event ShutUp in recordings");
        assert_eq!(error("x\tShutdown\n"), "line 1: begins with the number of a thread");
        assert_eq!(error("1\tThreadCreated\n"), "line 1: ThreadCreated lacks a value");
        assert_eq!(error("1\tShutdown\tnow\n"), "line 1: Shutdown has no value now");
        assert_eq!(error("1\tEnterAt\tf1\tnowhere\n"), "line 1: nowhere is no address");
    }
}
