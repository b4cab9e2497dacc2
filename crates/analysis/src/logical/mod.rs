//! Logical paths: resumed code stands below its awaiter instead of below the code that completed
//! the awaited operation.
//!
//! After an `await` that has to wait, the rest of an async method runs below the thread pool's
//! loop, a timer, or the method that completed the awaited operation. The recorded stacks show
//! these callers, so they do not show on whose behalf the code runs. This module changes the stacks
//! before any view reads them, see [`make_paths_logical`]. Physical and logical paths have the same
//! sums.

mod roles;

use std::sync::Arc;

use clrscope_contract::async_code::CORE_LIBRARY;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    ChainEnd, ChangedFrame, Derived, FrameToChange, Function, FunctionKind, Process, Recording, RemarkKind, StackFrame,
    Stacks,
};

use crate::metric_events::MetricEvents;
use roles::{Role, role_of};

/// Name of the frame for the time of schedulers and method builders, whose own frames are left out.
pub(crate) const MACHINERY: &str = "[async machinery]";
/// Name of the root of resumed methods whose awaiter is unknown.
pub(crate) const UNKNOWN_AWAITER: &str = "[unknown awaiter]";
/// Name of the root of methods whose task was not awaited yet when they were observed.
pub(crate) const NOT_AWAITED_YET: &str = "[not awaited yet]";
/// Name of the root of methods that can't be awaited.
pub(crate) const NOT_AWAITED: &str = "[not awaited]";
/// Name of the root of methods that no other method can await.
pub(crate) const MORE_AWAITERS: &str = "[more awaiters]";
/// Name of the root of code that threads of the pool run.
pub(crate) const POOL: &str = "[pool]";
/// Name of the root of code that timers call.
pub(crate) const TIMER: &str = "[timer]";

/// Changes the paths of a recording to their logical form, before any view reads it:
///
/// - A stack begins at the innermost method that was resumed after an `await`. Frames below the
///   resumption are the physical caller, which is unrelated. They are replaced by the chain of
///   awaiters, as far as it was recorded, or by `[unknown awaiter]`. If the outermost awaiter is
///   not awaited itself, the path begins at `[not awaited yet]` or `[not awaited]`.
/// - Code that threads of the pool run begins at `[pool]`, code that timers call at `[timer]`.
/// - Frames of schedulers and of the builders of async methods are left out. If a stack ends in
///   such a frame, its time counts in `[async machinery]`, below the method that the frame worked
///   for.
///
/// Paths of a process with an unknown runtime version stay unchanged: its awaiters could not be
/// determined, and a remark says so. If any path changes, the original recording is kept as well
/// ([`physical`](Recording::physical)).
pub fn make_paths_logical(recording: &mut Recording) {
    let roles_of = |process: &Process| {
        if process.remarks.iter().any(|remark| remark.kind == RemarkKind::NoAwaiters) {
            return None;
        }
        let roles = process.functions.iter().map(|function| role_of(process, function)).collect::<Vec<Role>>();
        // Stacks of awaits have no frames of the framework, and their awaiters are recorded
        // separately.
        let has_awaits = process.arenas(instrument::AWAITS).next().is_some();
        Some(roles).filter(|roles| has_awaits || !roles.iter().all(|role| matches!(role, Role::Method | Role::Native)))
    };
    let roles: Vec<Option<Vec<Role>>> = recording.processes.iter().map(roles_of).collect();
    if roles.iter().all(Option::is_none) {
        return;
    }
    recording.physical = Some(Arc::new(recording.clone()));
    for (process, roles) in recording.processes.iter_mut().zip(roles) {
        let Some(roles) = roles else { continue };
        let functions = AddedFunctions::to(process);
        change(Arc::make_mut(&mut process.stacks), &roles, &functions);
        process.derived = Derived::default();
    }
}

/// For each stack of the events, whether it begins at `[unknown awaiter]`. Empty if no stack does.
pub(crate) fn stacks_without_awaiter(process: &Process, measured: &MetricEvents) -> Vec<bool> {
    let is_root = |function: &Function| function.kind == FunctionKind::Runtime && function.name == UNKNOWN_AWAITER;
    let Some(root) = process.functions.iter().position(is_root) else { return Vec::new() };
    let table = &measured.table;
    let mut is_below = vec![false; table.len()];
    for place in 0..table.len() {
        let is_it =
            matches!(table.frame_at(place), Some(StackFrame::Method { function, .. }) if function as usize == root);
        is_below[place] = is_it || table.caller_of(place).is_some_and(|caller| is_below[caller]);
    }
    let stacks = 0..measured.stacks() as u32;
    stacks.map(|stack| measured.position_of_stack(stack).is_some_and(|place| is_below[place])).collect()
}

/// Indices of the functions that were added for entries other than functions.
struct AddedFunctions {
    machinery: u32,
    unknown_awaiter: u32,
    not_awaited_yet: u32,
    not_awaited: u32,
    more_awaiters: u32,
    pool: u32,
    timer: u32,
}

impl AddedFunctions {
    fn to(process: &mut Process) -> Self {
        let library = process.modules.iter().position(|module| module.name == CORE_LIBRARY).unwrap_or(0) as u32;
        let mut add = |name: &str, kind, module| {
            let [name, signature, raw_name] = [name; 3].map(str::to_owned);
            process.functions.push(Function { name, signature, raw_name, kind, module, ..Function::default() });
            process.functions.len() as u32 - 1
        };
        Self {
            // The frame stands for methods of the framework.
            machinery: add(MACHINERY, FunctionKind::Managed, library),
            unknown_awaiter: add(UNKNOWN_AWAITER, FunctionKind::Runtime, 0),
            not_awaited_yet: add(NOT_AWAITED_YET, FunctionKind::Runtime, 0),
            not_awaited: add(NOT_AWAITED, FunctionKind::Runtime, 0),
            more_awaiters: add(MORE_AWAITERS, FunctionKind::Runtime, 0),
            pool: add(POOL, FunctionKind::Runtime, 0),
            timer: add(TIMER, FunctionKind::Runtime, 0),
        }
    }

    /// The root for the end of a chain of awaiters. The recording does not tell which thread blocks
    /// on an outermost method; the root is then the pool, whose threads run the method.
    fn root(&self, end: ChainEnd) -> StackFrame {
        let function = match end {
            ChainEnd::NotAwaitedYet => self.not_awaited_yet,
            ChainEnd::NotAwaited => self.not_awaited,
            ChainEnd::Thread => self.pool,
            ChainEnd::Longer => self.more_awaiters,
            _ => self.unknown_awaiter,
        };
        StackFrame::method(function, None)
    }

    /// The frame that replaces a frame with this role; the frame itself if the role needs no
    /// replacement.
    fn stand_in(&self, role: Role, frame: Option<StackFrame>) -> Option<StackFrame> {
        let function = match role {
            Role::Machinery => self.machinery,
            Role::Resumption => self.unknown_awaiter,
            Role::Pool => self.pool,
            Role::Timer => self.timer,
            Role::Method | Role::Native => return frame,
        };
        let Some(StackFrame::Method { tier, .. }) = frame else { return frame };
        Some(StackFrame::Method { function, il_offset: None, il_span: 0, tier })
    }
}

/// State that a frame passes to its callees.
#[derive(Clone, Copy, Default)]
struct Below {
    /// Place of the frame below which called methods stand; `None` if they are outermost.
    methods: Option<u32>,
    /// Place of the frame below which called native code stands.
    native: Option<u32>,
    /// Place of the awaiter of the innermost resumed method; `None` if it was not recorded.
    awaiter: Option<u32>,
}

fn change(stacks: &mut Stacks, roles: &[Role], functions: &AddedFunctions) {
    let mut all: Vec<Below> = Vec::with_capacity(stacks.len());
    stacks.change_frames(|FrameToChange { place, caller, frame, awaiter, chain_end }| {
        let here = Some(place as u32);
        let is_outermost = caller.is_none();
        let below = caller.map_or(Below::default(), |caller| all[caller]);
        let awaiter = awaiter.map_or(below.awaiter, |awaiter| Some(awaiter as u32));
        let role = match frame {
            Some(StackFrame::Method { function, .. }) => roles.get(function as usize).copied(),
            _ => None,
        };
        let role = role.unwrap_or(Role::Native);
        let (caller, frame, callees) = match role {
            _ if chain_end.is_some() => {
                (None, chain_end.map(|end| functions.root(end)), Below { methods: here, native: here, awaiter })
            }
            // The frame is left out: its own time counts for the awaiter of the method.
            Role::Resumption if awaiter.is_some() => {
                (awaiter, functions.stand_in(Role::Machinery, frame), Below { methods: awaiter, native: here, awaiter })
            }
            Role::Resumption | Role::Pool | Role::Timer => {
                (None, functions.stand_in(role, frame), Below { methods: here, native: here, awaiter })
            }
            Role::Machinery => {
                let frame = functions.stand_in(role, frame);
                (below.methods, frame, Below { methods: below.methods, native: here, awaiter })
            }
            // Recorded without its callers: its awaiter is recorded separately.
            Role::Method if is_outermost && awaiter.is_some() => {
                (awaiter, frame, Below { methods: here, native: here, awaiter })
            }
            Role::Method => (below.methods, frame, Below { methods: here, native: here, awaiter }),
            Role::Native => (below.native, frame, Below { methods: here, native: here, awaiter }),
        };
        all.push(callees);
        ChangedFrame { caller, frame }
    });
}
