//! Outer awaits: awaits of a method that itself waits. The outer await waits for the operation of
//! the inner one.

use clrscope_recording::model::{FunctionKind, Process, StackFrame};
use rustc_hash::{FxHashMap, FxHashSet};

/// A method at an await: the index of its function, and the offset in its IL.
pub(super) type Place = (u32, Option<u32>);

/// The outer awaits of a process.
#[derive(Default)]
pub(super) struct OuterAwaits {
    /// The path of each stack of an await, the waiting method first.
    paths: FxHashMap<u32, Vec<Place>>,
    /// Paths of the methods that await a waiting method.
    awaiters: FxHashSet<Vec<Place>>,
    /// Places of the outer awaits in the awaiting methods.
    places: FxHashSet<Place>,
}

impl OuterAwaits {
    /// Finds the outer awaits among awaits with these stacks.
    pub(super) fn new(process: &Process, stacks: impl Iterator<Item = u32>) -> Self {
        let mut outer = Self::default();
        for stack in stacks {
            if outer.paths.contains_key(&stack) {
                continue;
            }
            let path = path_of(process, stack);
            for at in 1..path.len() {
                outer.places.insert(path[at]);
                // Where this path is known, the rest of it is known, too.
                if !outer.awaiters.insert(path[at..].to_vec()) {
                    break;
                }
            }
            outer.paths.insert(stack, path);
        }
        outer
    }

    /// Whether the method of a stack awaits a method that itself waits. If the stack does not show
    /// the method's awaiter, only the place decides.
    pub(super) fn has(&self, stack: u32) -> bool {
        let Some(path) = self.paths.get(&stack) else { return false };
        self.awaiters.contains(path) || matches!(path[..], [place] if self.places.contains(&place))
    }
}

/// The waiting method of a stack and its awaiters, without the entry for the root.
fn path_of(process: &Process, stack: u32) -> Vec<Place> {
    let awaiters = process.stacks.awaiters(stack).map(|(frames, _)| frames).unwrap_or_default();
    let frames = process.stacks.frames(stack).chain(awaiters);
    let place = |frame| match frame {
        StackFrame::Method { function, il_offset, .. } => Some((function, il_offset)),
        _ => None,
    };
    let is_root = |(function, _): &Place| {
        process.functions.get(*function as usize).is_some_and(|function| function.kind == FunctionKind::Runtime)
    };
    frames.filter_map(place).filter(|place| !is_root(place)).collect()
}
