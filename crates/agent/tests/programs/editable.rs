//! Assemblies that may be edited while they run, as under `dotnet watch`: the runtime recompiles
//! none of their methods.

use crate::support::counted::{covered, hits_by_line, probed, probed_lines, refused, said_hits, source};
use crate::support::{Run, assert_unchanged, record_in};
use clrscope_recording::model::LossReason;
use clrscope_testkit::{each_runtime, fixture, run};

const EDITABLE: [(&str, &str); 1] = [("DOTNET_MODIFIABLE_ASSEMBLIES", "debug")];

/// Reasons were a number of the runtime's, `CORPROF_E_MODULE_IS_ENC`, or on .NET 8 no reason at
/// all: the methods seemed never to be called.
#[test]
fn methods_of_editable_assemblies_are_covered_and_their_probes_are_refused_in_words() {
    let said = said_hits(&source("Editable"));
    let line = said.keys().next().expect("a line with hits");
    let requests = ["probes;probe=[Editable]*".to_owned(), format!("probes;probe-at=Editable.cs:{line}")];
    each_runtime(|runtime| {
        let mut bare = runtime.command(&fixture("Editable"));
        bare.envs(EDITABLE);
        let bare = run(bare).expect_success();
        for request in &requests {
            let place = format!("{}: {request}", runtime.version);
            let Run { finished, recording, .. } = record_in(runtime, "Editable", request, &EDITABLE);
            assert_unchanged(&finished, &bare, &place);
            let process = &recording.processes[0];
            let refused = refused(process, LossReason::NotProbed);
            assert!(!refused.is_empty(), "{place}");
            assert!(
                refused.iter().all(|why| why.contains("without DOTNET_MODIFIABLE_ASSEMBLIES")),
                "{place}: {refused:?}"
            );
            assert!(probed(process).is_empty() && probed_lines(process).is_empty(), "{place}");
        }
        let Run { finished, recording, .. } = record_in(runtime, "Editable", "coverage;include=[Editable]*", &EDITABLE);
        assert_unchanged(&finished, &bare, "coverage");
        let mut seen = hits_by_line(&fixture("Editable"), &covered(&recording.processes[0]));
        seen.retain(|line, _| said.contains_key(line));
        assert_eq!(seen, said, "{}", runtime.version);
    });
}
