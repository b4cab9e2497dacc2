//! A program is recorded on a real runtime and played by the fake one: the call stacks must come
//! out as the program says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use clr_profiler::{Call, CallObserver, CallStacks, Callbacks, NamedFunctions, Profiler, ProfilerInfo, Result, Setup};
use clr_profiler_fake::FakeRuntime;
use clrscope_testkit as testkit;

type Edges = Arc<Mutex<BTreeMap<(String, String), u64>>>;

/// Counts calls by caller and callee.
struct Counts {
    functions: Arc<NamedFunctions>,
    edges: Edges,
}

impl CallObserver for Counts {
    /// The names of the calls that the thread is in.
    type Data = Vec<String>;

    fn on_enter(&self, open: &mut Vec<String>, call: Call) {
        open.truncate(call.depth);
        let name = self.functions.get(call.function).map_or_else(String::new, |name| name.name.clone());
        if let Some(caller) = open.last() {
            *self.edges.lock().unwrap().entry((caller.clone(), name.clone())).or_default() += 1;
        }
        open.push(name);
    }

    fn on_block(&self, open: &mut Vec<String>, _block: clr_profiler::Block, owner: Call) {
        open.truncate(owner.depth);
        let name = self.functions.get(owner.function).map_or_else(String::new, |name| name.name.clone());
        open.push(name);
    }
}

struct Stacks {
    edges: Edges,
}

impl Profiler for Stacks {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let (functions, edges) = (Arc::new(NamedFunctions::new(info, |_| true)), Edges::default());
        let stacks = CallStacks::new(info, Counts { functions: functions.clone(), edges: edges.clone() })?;
        Ok((Self { edges }, Setup::default().with_call_stacks(stacks, functions)))
    }
}

impl Callbacks for Stacks {}

/// The example that records, built from the sources as they are now. `cargo test --test NAME` alone
/// would not.
fn recorder() -> PathBuf {
    // A target folder of its own: cargo holds a lock on the usual one while it builds.
    let target = testkit::target_folder().join("framework");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(testkit::workspace_root()).args(["build", "--quiet", "--package", "clr-profiler-fake"]);
    command.args(["--example", "record", "--target-dir"]).arg(&target);
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/examples/librecord.so")
}

#[test]
fn a_recording_of_a_real_runtime_plays_as_it_happened() {
    let library = recorder();
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let recording = folder.path().join("recording.txt");
        let class = "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C09}";
        let mut command = runtime.command(&testkit::fixture("Exceptions"));
        testkit::load_profiler(&mut command, &library, class);
        command.env("RECORD_OUTPUT", &recording);
        let finished = testkit::run(command).expect_success();
        let expected = testkit::Expectations::parse(&finished.stdout_text());

        let text = std::fs::read_to_string(&recording).expect("the recorder writes at the end");
        let (fake, steps) = FakeRuntime::recorded(&text).unwrap();
        let mut program = fake.load::<Stacks>().unwrap();
        program.play(&steps);
        let edges = program.profiler().edges.lock().unwrap().clone();
        assert!(!expected.edges.is_empty());
        for (edge, calls) in &expected.edges {
            assert_eq!(edges.get(edge), Some(calls), "{edge:?} on .NET {}", runtime.version);
        }
        assert_eq!(program.unanswered(), [], "on .NET {}", runtime.version);
    });
}
