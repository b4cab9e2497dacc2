//! Awaits of methods that wait themselves: what an outer await waits for is what the inner one
//! does.

use clrscope_recording::model::{FunctionKind, Process, StackFrame};
use rustc_hash::{FxHashMap, FxHashSet};

/// A method at an await: the index of its function, and the offset in its IL.
pub(super) type Place = (u32, Option<u32>);

/// Awaits of methods that wait themselves.
#[derive(Default)]
pub(super) struct OuterAwaits {
    /// The paths of all awaits, by their stacks: the method that waits first.
    paths: FxHashMap<u32, Vec<Place>>,
    /// Paths of those that await a method that waits.
    awaiters: FxHashSet<Vec<Place>>,
    /// Where these await.
    places: FxHashSet<Place>,
}

impl OuterAwaits {
    /// Finds them among awaits with these stacks.
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

    /// Whether the method of a stack awaits one that waits itself. Where it is not known who awaits
    /// it, the place decides.
    pub(super) fn has(&self, stack: u32) -> bool {
        let Some(path) = self.paths.get(&stack) else { return false };
        self.awaiters.contains(path) || matches!(path[..], [place] if self.places.contains(&place))
    }
}

/// The method of a stack that waits, and who awaits it; without what stands for the root.
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
