//! Options of `heap`.

use std::time::Duration;

use clrscope_contract::instruments::heap::{AT, COLLECT, SPEC};
use clrscope_contract::instruments::spec::Moment;
use clrscope_contract::instruments::{CheckedInstrument, Spec};

use crate::instrument::InstrumentOptions;

/// The requested options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeapOptions {
    /// Times of snapshots after the start of the recording, in ascending order.
    pub(super) after: Vec<Duration>,
    /// Resident sizes of the process at which a snapshot is taken, in bytes and ascending order.
    pub(super) sizes: Vec<u64>,
    /// Whether a snapshot is taken at the end.
    pub(super) at_end: bool,
    /// Whether snapshots show the heap after a full collection.
    pub(super) collects: bool,
}

impl InstrumentOptions for HeapOptions {
    const SPEC: &'static Spec = SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        let moments = request.moments(AT);
        let time = |moment: &Moment| match moment {
            Moment::After(ms) => Some(Duration::from_millis(*ms)),
            Moment::Resident(_) | Moment::End => None,
        };
        let size = |moment: &Moment| match moment {
            Moment::Resident(bytes) => Some(*bytes),
            Moment::After(_) | Moment::End => None,
        };
        Self {
            after: moments.iter().filter_map(time).collect(),
            sizes: moments.iter().filter_map(size).collect(),
            at_end: moments.contains(&Moment::End),
            collects: request.is_on(COLLECT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        let of = |text| HeapOptions::from_request(&checked(text));
        assert_eq!(of("heap"), HeapOptions { after: Vec::new(), sizes: Vec::new(), at_end: true, collects: true });
        assert_eq!(
            of("heap:at=command"),
            HeapOptions { after: Vec::new(), sizes: Vec::new(), at_end: false, collects: true }
        );
        let after = [500, 10_000].map(Duration::from_millis).to_vec();
        let sizes = vec![300 << 20, 2 << 30];
        let all = HeapOptions { after, sizes, at_end: true, collects: true };
        assert_eq!(of("heap:at=10s+2GiB+end+500ms+300MiB"), all);
        assert!(!of("heap:collect=off").collects);
    }
}
