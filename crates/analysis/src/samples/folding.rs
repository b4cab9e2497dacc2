//! Folding: frames that are not wanted leave their samples to whoever called them.
//!
//! Hooks are left out of functions that filters exclude, so that their time is the caller's. Samples have all frames, and
//! here those are left out that the filters of the recording, or own code alone, leave out.

use clrscope_recording::model::{FunctionKind, Process, Recording};

use crate::function::{FunctionRef, is_own};
use crate::query::Query;

/// Functions of a process that are folded into their callers.
pub(crate) struct Folded {
    /// By function index.
    is_folded: Vec<bool>,
    /// Whether it is a method, by function index.
    is_method: Vec<bool>,
}

impl Folded {
    /// The functions that a query, or the filters of the recording, leave out; `None` where those are none.
    pub(crate) fn of(recording: &Recording, process: &Process, query: &Query) -> Option<Self> {
        let asked = recording.run.filled.request();
        let just_my_code = query.just_my_code || asked.just_my_code;
        let filter = &asked.filter;
        if !just_my_code && filter.include.is_empty() && filter.exclude.is_empty() {
            return None;
        }
        let is_folded = process.functions.iter().map(|function| {
            let named = FunctionRef::of(process, Some(function));
            let passes = filter.passes(named.module(), &function.name, &function.signature);
            !passes || (just_my_code && !is_own(&named))
        });
        let is_method = process.functions.iter().map(|function| function.kind == FunctionKind::Managed);
        Some(Self { is_folded: is_folded.collect(), is_method: is_method.collect() })
    }

    /// Whether the function is folded into its callers.
    pub(crate) fn leaves_out(&self, function: u32) -> bool {
        self.is_folded.get(function as usize) != Some(&false)
    }

    /// Whether the function is a method.
    pub(crate) fn is_method(&self, function: u32) -> bool {
        self.is_method.get(function as usize) == Some(&true)
    }

    /// Leaves the folded functions out of a path, innermost first. Where nothing would be left, the outermost method stays, or
    /// the outermost function where no method is there: it says whose thread it was, and stands for all of the stack.
    pub(crate) fn fold(&self, path: &mut Vec<u32>) {
        let is_method = |function: &&u32| self.is_method(**function);
        let outermost = path.iter().rev().find(is_method).or(path.last()).copied();
        path.retain(|&function| !self.leaves_out(function));
        if path.is_empty() {
            path.extend(outermost);
        }
    }
}
