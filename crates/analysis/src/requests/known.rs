//! Finds the request that each event was for.

use std::rc::Rc;
use std::sync::Arc;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Thread};
use rustc_hash::FxHashMap;

use super::TraceIds;
use super::read::Reading;
use super::switches::Switches;
use crate::metric::StackEvent;
use crate::query::Query;

/// The data of a served request that events refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRequest {
    /// HTTP method with the route template.
    pub route: Rc<str>,
    /// Ids of the request's trace; `None` if the program has no activities.
    pub trace: Option<TraceIds>,
}

/// The requests of a process that its threads worked for.
pub(crate) struct KnownRequests {
    switches: Arc<Switches>,
    by_id: FxHashMap<u64, KnownRequest>,
}

impl KnownRequests {
    /// Reads the requests; `None` if none is known.
    pub(crate) fn read(process: &Process) -> Option<Self> {
        let switches = Switches::for_process(process);
        if !switches.is_known() {
            return None;
        }
        let mut by_id = FxHashMap::default();
        for arena in process.arenas(instrument::REQUESTS) {
            Reading::new(process, arena).each(&Query::default(), |request| {
                let known = KnownRequest { route: Rc::clone(&request.route), trace: request.trace };
                by_id.extend(request.id.map(|id| (id, known)));
            });
        }
        Some(Self { switches, by_id })
    }

    /// Returns the request that a thread's event was for; `None` if it was for no request.
    pub(crate) fn of_event(&self, thread: &Thread, event: &StackEvent) -> Option<&KnownRequest> {
        let said = Some(event.request).filter(|id| *id != 0);
        let id = said.or_else(|| self.switches.request_at(thread.id, event.time_ns))?;
        self.by_id.get(&id)
    }
}
