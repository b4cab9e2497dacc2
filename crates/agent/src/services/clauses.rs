//! Finds out which catch blocks belong to clauses with a filter. The runtime reports where the code
//! of a catch block begins, but not whether its clause has a filter.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::code_owner::{RunAddress, function_at};
use clrscope_agent_base::il;
use clrscope_agent_stacks::stacks::code_start;

/// Blocks that are cached at most.
const MOST: usize = 1 << 12;

/// The catch blocks seen so far, each looked up once.
#[derive(Default)]
pub(crate) struct Clauses {
    known: Mutex<KnownClauses>,
}

#[derive(Default)]
struct KnownClauses {
    has_filter: HashMap<usize, Option<bool>>,
    /// Counts unloads: a result that was looked up before an unload is not stored after it.
    unloads: u64,
}

impl Clauses {
    fn known_clauses(&self) -> MutexGuard<'_, KnownClauses> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the catch block that has just run belongs to a clause with a filter; `None` if the
    /// runtime can't say. To be called only when a catch block is left. Asks the runtime about a
    /// block that is not cached.
    pub(crate) fn has_filter(&self, info: &ProfilerInfo) -> Option<bool> {
        let code = info.exception_clause().ok()?.code;
        let (known, unloads) = {
            let known = self.known_clauses();
            (known.has_filter.get(&code).copied(), known.unloads)
        };
        if let Some(known) = known {
            return known;
        }
        let found = look_up(info, code);
        let mut known = self.known_clauses();
        if known.unloads == unloads {
            if known.has_filter.len() >= MOST {
                known.has_filter.clear();
            }
            known.has_filter.insert(code, found);
        }
        found
    }

    /// Call it when code was unloaded, as other code may later be placed at its addresses.
    pub(crate) fn code_unloaded(&self) {
        let mut known = self.known_clauses();
        known.has_filter.clear();
        known.unloads += 1;
    }
}

fn look_up(info: &ProfilerInfo, code: usize) -> Option<bool> {
    let block = RunAddress::executed(code);
    let (function, _) = function_at(info, block)?;
    let about = info.function_info(function).ok()?;
    let body = info.il_function_body(about.module, about.token).ok()?;
    let start = code_start(info, function, block)?;
    let block = u32::try_from(code.checked_sub(start.address())?).ok()?;
    let map = info.il_map_at(start).ok()?;
    // The first instruction of the block with a known IL offset: the instructions before it belong
    // to the prolog.
    let inside = map.iter().filter(|range| range.start >= block).filter_map(|range| Some((range.start, range.il?)));
    il::handler_has_filter(&body, inside.min_by_key(|(start, _)| *start)?.1)
}
