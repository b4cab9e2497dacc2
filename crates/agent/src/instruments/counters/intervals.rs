//! Makes our interval of event counters give way to the intervals of all other listeners.
//!
//! A process has one interval for all counters of an event source: the shortest that any listener
//! has asked for. The end of one session ends the interval for all (`CounterGroup` of
//! System.Private.CoreLib). So two methods of `CounterGroup` are recompiled. Then our interval
//! applies only as long as no other was asked for, and the last session that ends leaves the
//! interval of the program's own listeners in place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::il::element::I4;
use clr_profiler::il::{Code, Edits, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::{BodyWriter, BodyWriters, Error, MethodToWrite, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::helper::Task;
use clrscope_contract::async_code::CORE_LIBRARY;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::providers::INTERVAL_S;
use crate::services::changed_methods::{Belongs, change_methods};
use crate::services::context::Context;
use crate::services::kept_code::{self, Method};
use crate::services::own_code;
use crate::services::stop_of_threads::StopOfThreads;

/// Names of the types and members that are changed or used here.
const GROUP: &str = "System.Diagnostics.Tracing.CounterGroup";
const ENABLE: &str = "EnableTimer";
const DISABLE: &str = "DisableTimer";
const INTERVAL: &str = "_pollingIntervalInMilliseconds";
const SOURCE_FIELD: &str = "_eventSource";
const ENABLED: &str = "s_counterGroupEnabledList";
const ADD: &str = "Add";
const SOURCE: &str = "System.Diagnostics.Tracing.EventSource";
const IS_ENABLED: &str = "IsEnabled";
/// Signatures (ECMA-335, II.23.2.1): `bool ()` and `void (float)` of an object.
const ASKS: &[u8] = &[0x20, 0, 0x02];
const TAKES_SECONDS: &[u8] = &[0x20, 1, 0x01, 0x0C];

/// Table of members of other types (ECMA-335, II.22.25).
const MEMBER_REF: u32 = 0x0A;
const NOT_AS_KNOWN: &str = "this version of the runtime has unknown code there";
/// Seconds that no interval has.
const ENDLESS: f32 = 1e9;

/// Tokens, in the core library, of the members that inserted code names.
#[derive(Debug, Clone, Copy)]
struct Tokens {
    enable: Token,
    disable: Token,
    interval: u32,
    source: u32,
    enabled: u32,
    is_enabled: u32,
}

impl Tokens {
    fn find(metadata: &MetadataImport) -> Option<Self> {
        let ty = |name| metadata.find_type_def(name, None).ok().flatten();
        let (group, source) = (ty(GROUP)?, ty(SOURCE)?);
        let method = |ty, name, suits: &dyn Fn(&[u8]) -> bool| {
            let found = metadata.methods_named(ty, name).ok()?;
            found.into_iter().find(|one| metadata.method(*one).is_ok_and(|about| suits(&about.signature)))
        };
        let field = |name| metadata.fields_named(group, name).ok()?.first().map(|token| token.as_raw());
        Some(Self {
            enable: method(group, ENABLE, &|signature| signature == TAKES_SECONDS)?,
            disable: method(group, DISABLE, &|signature| signature.get(1) == Some(&0))?,
            interval: field(INTERVAL)?,
            source: field(SOURCE_FIELD)?,
            enabled: field(ENABLED)?,
            is_enabled: method(source, IS_ENABLED, &|signature| signature == ASKS)?.as_raw(),
        })
    }

    /// Inserted in front of `EnableTimer(seconds)`, which accepts an interval that is shorter than
    /// the present one. If we ask while an interval is set, ours counts as endless. If another
    /// listener asks while ours is set, ours counts as unset.
    fn enable_edits(self) -> Edits {
        let mut edits = Edits::new();
        let (seconds, milliseconds) = ours();
        let float = |code: Code, number: f32| code.with(Opcode::LdcR4, Operand::Float(number.to_bits()));
        let mut code = Code::new();
        let [others, behind] = [(); 2].map(|()| code.new_mark());
        let code = float(code.plain(Opcode::Ldarg1), seconds);
        let code = self.interval(code.branch(Opcode::BneUn, others)).branch(Opcode::Brfalse, behind);
        let code = float(code, ENDLESS).with(Opcode::StargS, Operand::Byte(1)).branch(Opcode::Br, behind);
        let code = self.interval(code.mark(others)).with(Opcode::LdcI4, Operand::Int(milliseconds));
        let code = code.branch(Opcode::BneUn, behind).plain(Opcode::Ldarg0).plain(Opcode::LdcI4_0);
        edits.at_entry(code.with(Opcode::Stfld, Operand::Token(self.interval)).mark(behind));
        edits
    }

    /// Inserted around `DisableTimer()`: where the source still has a listener, the previous state
    /// is restored. Both methods run under the lock of counters. `add` is the token with which the
    /// other method adds to the list of enabled counters.
    fn disable_edits(self, add: u32) -> Edits {
        let mut edits = Edits::new();
        let kept = edits.new_local(&[I4]);
        let mut code = Code::new();
        let behind = code.new_mark();
        let code = code.plain(Opcode::LdcI4_0).store(kept);
        let code = code.plain(Opcode::Ldarg0).with(Opcode::Ldfld, Operand::Token(self.source));
        let code = code.call(Opcode::Callvirt, self.is_enabled, 1, 1).branch(Opcode::Brfalse, behind);
        edits.at_entry(self.interval(code).store(kept).mark(behind));

        let mut code = Code::new();
        let behind = code.new_mark();
        let list = |code: Code| code.with(Opcode::Ldsfld, Operand::Token(self.enabled));
        let code = list(code.load(kept).branch(Opcode::Brfalse, behind)).branch(Opcode::Brfalse, behind);
        let code = code.plain(Opcode::Ldarg0).load(kept).with(Opcode::Stfld, Operand::Token(self.interval));
        let code = list(code).plain(Opcode::Ldarg0).call(Opcode::Callvirt, add, 2, 0);
        edits.at_returns(code.mark(behind));
        edits
    }

    fn interval(self, code: Code) -> Code {
        code.plain(Opcode::Ldarg0).with(Opcode::Ldfld, Operand::Token(self.interval))
    }
}

/// Our interval: seconds as the runtime reads them, and milliseconds as it keeps them.
fn ours() -> (f32, i32) {
    let seconds: f32 = INTERVAL_S.parse().unwrap_or(1.0);
    (seconds, (seconds * 1000.0) as i32)
}

/// Author of the code.
#[derive(Default)]
struct Author(Mutex<Option<Known>>);

#[derive(Debug, Clone, Copy)]
struct Known {
    module: ModuleId,
    tokens: Tokens,
    /// The token with which the first method adds to the list of enabled counters, once it was
    /// seen.
    add: Option<u32>,
}

/// The token of the method `Add` of another type that code calls.
fn called_add(method: &MethodToWrite<'_>) -> Option<u32> {
    let is_add = |token: &u32| method.metadata.member_ref(Token::new(*token)).is_ok_and(|member| member.name == ADD);
    let called = method.body.instructions().iter().filter(|instruction| instruction.opcode() == Opcode::Callvirt);
    let tokens = called.filter_map(|instruction| match instruction.operand() {
        Operand::Token(token) if token >> 24 == MEMBER_REF => Some(*token),
        _ => None,
    });
    tokens.into_iter().find(is_add)
}

impl BodyWriter for Author {
    fn edits(&self, method: &MethodToWrite<'_>) -> clr_profiler::Result<Edits> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.as_mut().filter(|known| known.module == method.module) else {
            return Ok(Edits::new());
        };
        Ok(match (method.token, known.tokens, known.add) {
            (token, tokens, _) if token == tokens.enable => {
                known.add = called_add(method);
                tokens.enable_edits()
            }
            (token, tokens, add) if token == tokens.disable => {
                tokens.disable_edits(add.ok_or_else(|| Error::refused("counters", NOT_AS_KNOWN))?)
            }
            _ => Edits::new(),
        })
    }
}

/// The changes that are made to the core library.
pub(super) struct Intervals {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    author: Arc<Author>,
    writers: BodyWriters,
    is_begun: AtomicBool,
    changed: Arc<Mutex<Vec<Method>>>,
}

impl Intervals {
    pub(super) fn new(context: &Context) -> Self {
        let author: Arc<Author> = Arc::default();
        Self {
            info: context.info.clone(),
            writer: context.writer,
            writers: context.code_authors.for_recompilation(&context.info, Arc::clone(&author) as Arc<dyn BodyWriter>),
            author,
            is_begun: AtomicBool::new(false),
            changed: Arc::default(),
        }
    }

    /// Recompiles the two methods, once. Call it when the first module other than the core library
    /// is loaded. The runtime is ready then, and no counter has been enabled.
    pub(super) fn give_way(&self, names: &clr_profiler::NameCache) {
        if self.is_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let outcome = self.change(names);
        if let Err(error) = outcome {
            let text = format!(
                "counters: the program's own listeners to event counters may get values each second, whatever interval \
                 they requested ({error})"
            );
            self.writer.note(monotonic_ns(), &text);
        }
    }

    fn change(&self, names: &clr_profiler::NameCache) -> clr_profiler::Result<()> {
        let refused = |why| Error::refused("counters", why);
        let is_core = |module: &ModuleId| names.assembly(&self.info, *module).is_ok_and(|name| &*name == CORE_LIBRARY);
        let module =
            self.info.modules()?.into_iter().find(is_core).ok_or_else(|| refused("the library is not there"))?;
        let metadata = names.metadata(&self.info, module)?;
        let tokens = Tokens::find(&metadata).ok_or_else(|| refused(NOT_AS_KNOWN))?;
        *self.author.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Known { module, tokens, add: None });
        let methods = (vec![tokens.enable, tokens.disable], Belongs::Together);
        let outcome = change_methods(&self.info, &self.writers, module, methods)?;
        if let Some((_, error)) = outcome.refused.into_iter().next() {
            return Err(error);
        }
        let count = outcome.changed.len();
        log(Level::Info, || format!("counters: {count} methods keep the intervals of others"));
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).extend(outcome.changed);
        Ok(())
    }

    /// Task that restores the methods' own code after the last session.
    pub(super) fn task(&self) -> Box<dyn Task> {
        let changed = Arc::clone(&self.changed);
        Box::new(GiveBack(StopOfThreads::behind(&self.info, "clrscope-counters", move |info| {
            let methods = std::mem::take(&mut *changed.lock().unwrap_or_else(PoisonError::into_inner));
            methods.iter().for_each(|method| kept_code::forget_body(*method));
            own_code::revert(info, "counters", &methods);
        })))
    }
}

struct GiveBack(StopOfThreads);

impl Task for GiveBack {
    fn undo(&mut self) -> bool {
        self.0.is_over(|| ())
    }
}
