//! Reads values of events from the words of a recording.

use std::collections::HashMap;

use clr_profiler::callback_args::{
    GcReason, JitCache, MovedRange, RootFlags, RootKind, SuspendReason, TransitionReason,
};
use clr_profiler::{
    AppDomainId, AssemblyId, CallerSp, ClassId, ClauseKind, EventPipeProviderId, FunctionId, GcHandleId, HResult,
    ModuleId, ReJitId, ThreadId,
};

use super::heap::FakeObject;
use super::world::{assembly_id, class_id, module_id, thread_id};
use super::{FakeRuntime, NOTHING};
use crate::ids;

pub(super) type Parsed<T> = Result<T, String>;

/// State of reading a recording.
pub(super) struct Reader<'t> {
    runtime: FakeRuntime,
    /// Meaning of each word.
    meanings: HashMap<&'t str, &'t str>,
    /// The identifier assigned to each word.
    known: HashMap<&'t str, usize>,
}

impl<'t> Reader<'t> {
    /// Creates a reader. Finds the definitions of words, which contain ` = `.
    pub(super) fn new(text: &'t str) -> Self {
        let meanings = text.lines().filter_map(|line| line.split_once(" = ")).collect();
        Self { runtime: FakeRuntime::new(), meanings, known: HashMap::new() }
    }

    /// Creates the definitions that no event uses: they also belong to the program.
    pub(super) fn finish(mut self) -> Parsed<FakeRuntime> {
        let mut unused: Vec<&str> = self.meanings.keys().copied().filter(|word| word.starts_with('f')).collect();
        unused.sort_unstable();
        for word in unused {
            self.function(word)?;
        }
        Ok(self.runtime)
    }

    /// Returns the identifier of a word. The first use creates it from the word's definition.
    fn identify(&mut self, word: &'t str, make: impl FnOnce(&mut Self, &str) -> Parsed<usize>) -> Parsed<usize> {
        if let Some(id) = self.known.get(word) {
            return Ok(*id);
        }
        // A word without a definition stands for itself: the recorder could not query its name
        // before its end.
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

    /// Returns an assembly. Each assembly has one module, with the same name.
    fn assembly(&mut self, word: &'t str) -> Parsed<AssemblyId> {
        self.module_index(word).map(assembly_id)
    }

    /// Splits the module off a meaning `Module!Rest`.
    fn split_module<'m>(&mut self, meaning: &'m str) -> (usize, &'m str) {
        let (module, rest) = meaning.split_once('!').unwrap_or(("", meaning));
        let known = self.runtime.world.modules.iter().position(|known| known.name == module);
        (known.unwrap_or_else(|| self.runtime.world.add_module(module)), rest)
    }

    fn class(&mut self, word: &'t str) -> Parsed<ClassId> {
        let index = self.identify(word, |reader, meaning| {
            let (module, name) = reader.split_module(meaning);
            Ok(reader.runtime.world.add_class(module, name))
        })?;
        Ok(class_id(index))
    }

    fn function(&mut self, word: &'t str) -> Parsed<FunctionId> {
        let id = self.identify(word, |reader, meaning| {
            let (module, name) = reader.split_module(meaning);
            let (class, method) = name.rsplit_once("::").unwrap_or(("", name));
            let class = reader.runtime.world.add_class(module, class);
            Ok(reader.runtime.world.add_function(class, method, NOTHING).as_raw())
        })?;
        Ok(ids::function(id))
    }

    fn object(&mut self, word: &'t str) -> Parsed<FakeObject> {
        let id = self.identify(word, |reader, class| {
            let (module, name) = reader.split_module(class);
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

/// Implements `Word` for types by one expression each.
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
    AppDomainId: |reader, word| Word::read(reader, word).map(ids::app_domain);
    GcHandleId: |reader, word| Word::read(reader, word).map(ids::gc_handle);
    ReJitId: |reader, word| Word::read(reader, word).map(ids::rejit);
    EventPipeProviderId: |reader, word| Word::read(reader, word).map(ids::provider);
    CallerSp: |reader, word| Word::read(reader, word).map(Self::new);
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

/// Error for values that recordings don't contain: only hand-written tests use them.
fn no_word<T>(what: &str, word: &str) -> Parsed<T> {
    Err(format!("{word}: recordings have no {what}"))
}
