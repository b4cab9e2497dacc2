//! Helpers that the tests of the tool share: the tool itself, and a small recording made by hand.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod blocked;
pub mod counted;
pub mod pending;
pub mod recent;
pub mod terminal;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clrscope_recording::model::{
    CallTreeBuilder, CallsInfo, Clock, Exit, Function, FunctionKind, HookCost, Loss, LossReason, Module, Node,
    NodeFlags, NodeValues, Process, ROOT, Recording, Remark, Run, SourceKind, Thread, ThreadRole, TreeSource,
};
use serde_json::Value;
use tempfile::TempDir;

/// A folder of its own for a test, with the tool run inside.
pub struct TestFolder(TempDir);

impl TestFolder {
    pub fn new() -> Self {
        clrscope_testkit::let_children_hear();
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts a copy of the tool there, which other users may run. Another process writes it: while a
    /// file is open for writing in a child that another test has just started, it can't be run
    /// ("Text file busy").
    pub fn copied_tool(&self) -> PathBuf {
        let tool = self.file("clrscope");
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_clrscope")).arg(&tool);
        clrscope_testkit::run(copy).expect_success();
        tool
    }

    /// Puts the sample recording there.
    pub fn with_sample(self) -> Self {
        write_packed(&sample(), &self.file("sample.clrs"));
        self
    }

    /// The tool, to be run in this folder, in a plain environment.
    pub fn clrscope<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrscope"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null()).env("COLUMNS", "100");
        for name in clrscope_testkit::PROFILER_VARIABLES {
            command.env_remove(name);
        }
        command
    }

    /// Runs it with words that hold no spaces.
    pub fn run(&self, line: &str) -> Output {
        self.clrscope(line.split_whitespace()).output().expect("the tool starts")
    }

    /// Runs it with each of these lines: it fails with the words behind it and a hint, and leaves
    /// files as they are.
    pub fn assert_each_refused(&self, lines: &[(&str, &str)]) {
        std::fs::write(self.file("file"), "mine").expect("a file");
        for (line, words) in lines {
            let output = self.run(line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(words) && said.contains("hint: "), "{line}: {said}");
            assert!(output.status.code().is_some_and(|code| code != 0), "{line}");
        }
        assert_eq!(std::fs::read_to_string(self.file("file")).expect("the file"), "mine");
    }

    /// Runs it with words that hold no spaces, and reads the JSON document that it prints.
    pub fn json(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --format json"));
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Exit code, stdout and stderr as one text, without the folder's name.
    pub fn transcript(&self, line: &str) -> String {
        let output = self.run(line);
        let text = format!(
            "$ clrscope {line}\nexit {}\n--- stdout\n{}--- stderr\n{}",
            output.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let folder = fs::canonicalize(self.path()).expect("the folder").to_string_lossy().into_owned();
        text.replace(&folder, "FOLDER")
    }
}

pub fn write_packed(recording: &Recording, path: &Path) {
    let mut bytes = Vec::new();
    clrscope_recording::pack::write(recording, &mut bytes).expect("memory takes all");
    fs::write(path, bytes).expect("a file");
}

fn function(name: &str, signature: &str, module: u32, token: u32) -> Function {
    Function {
        name: name.to_owned(),
        signature: signature.to_owned(),
        raw_name: name.to_owned(),
        module,
        token,
        ..Function::default()
    }
}

fn module(name: &str, framework: bool) -> Module {
    Module {
        name: name.to_owned(),
        path: format!("/app/{name}.dll"),
        version: "1.2.0.0".to_owned(),
        framework,
        ..Module::default()
    }
}

fn node(parent: u32, function: u32, calls: u64, wall_ns: u64, cpu_ns: u64) -> Node {
    Node { parent, function, calls, values: NodeValues { metric: wall_ns, cpu_ns }, flags: NodeFlags::default() }
}

fn main_tree() -> TreeSource {
    let mut tree = CallTreeBuilder::new(NodeValues { metric: 2_000_000, cpu_ns: 0 });
    let main = tree.push(node(ROOT, 1, 1, 5_000_000, 4_000_000));
    let jit = tree.push(node(main, 6, 12, 60_000_000, 55_000_000));
    assert_eq!(jit, 2);
    let total = tree.push(node(main, 2, 40, 120_000_000, 110_000_000));
    let inner = tree.push(node(total, 2, 10, 30_000_000, 30_000_000));
    tree.push(node(inner, 3, 1_234_567, 200_000_000, 190_000_000));
    tree.push(node(total, 7, 3, 9_000_000, 0));
    let pay = tree.push(node(main, 4, 7, 400_000, 300_000));
    let tail = NodeFlags { by_tail_call: true };
    tree.push(Node { flags: tail, ..node(pay, 5, 7, 1_500_000_000, 250_000) });
    TreeSource::ready(tree.finish())
}

fn pool_tree() -> TreeSource {
    let mut tree = CallTreeBuilder::new(NodeValues { metric: 800_000_000, cpu_ns: 0 });
    let add = tree.push(node(ROOT, 8, 100, 70_000_000, 66_000_000));
    tree.push(node(add, 3, 999, 800_000, 700_000));
    TreeSource::ready(tree.finish())
}

/// A run of a shop with one process, two threads, recursion, compilation, suspension and a loss.
pub fn sample() -> Recording {
    let long = "Shop.Warehouse.Extremely.Long.Namespaces.Of.A.Very.Large.Company::AddEverythingToTheShelf";
    let functions = vec![
        Function::default(),
        function("Shop.Program::Main", "Shop.Program.Main(string[])", 1, 0x0600_0001),
        function("Shop.Cart::Total", "Shop.Cart.Total(List<Item>)", 1, 0x0600_0002),
        function("System.String::Equals", "System.String.Equals(string, string)", 2, 0x0600_0100),
        Function {
            source: SourceKind::Async,
            ..function("Shop.Checkout::Pay", "Shop.Checkout.Pay(Order)", 1, 0x0600_0003)
        },
        function("System.Threading.Monitor::Wait", "System.Threading.Monitor.Wait(object)", 2, 0x0600_0101),
        Function { kind: FunctionKind::Runtime, ..function("[JIT]", "[JIT]", 0, 0) },
        Function { kind: FunctionKind::Suspended, ..function("[suspended: GC]", "[suspended: GC]", 0, 0) },
        function(long, &format!("{long}(int)"), 1, 0x0600_0004),
    ];
    let calls = CallsInfo {
        clock: Clock::Sampled,
        trivial: true,
        cpu_measured: true,
        hook_cost: HookCost { enter_ns: 1.0, leave_ns: 1.5, pair_low_ns: 2.0, pair_high_ns: 4.5 },
        interval_ns: 1_000_000,
        ..CallsInfo::default()
    };
    let thread = |id, os_id, name: &str, role, tree| Thread {
        id,
        os_id,
        name: name.to_owned(),
        role,
        created_ns: 1_000_000 * u64::from(id),
        ended_ns: (id == 2).then_some(1_900_000_000),
        cpu_ns: Some(300_000_000),
        out_of_stack_at: 0,
        tree,
    };
    let process = Process {
        pid: 4711,
        parent_pid: 4710,
        command: vec!["dotnet".to_owned(), "shop.dll".to_owned()],
        runtime: ".NET 8.0.33".to_owned(),
        started_ns: 900_000,
        duration_ns: 2_000_000_000,
        cpu_ns: Some(700_000_000),
        exit: Some(Exit::Code(3)),
        complete: true,
        calls: Some(calls),
        functions,
        modules: vec![Module::default(), module("Shop", false), module("System.Private.CoreLib", true)],
        threads: vec![
            thread(1, 4711, "", ThreadRole::Main, main_tree()),
            thread(2, 4720, ".NET TP Worker", ThreadRole::Pool, pool_tree()),
        ],
        losses: vec![Loss::new(LossReason::NameUnknown, 2, 5_000, 9_000)],
        remarks: vec![Remark { time_ns: 7, text: "perf events are not allowed here".to_owned(), ..Remark::default() }],
        ..Process::default()
    };
    Recording {
        run: Run {
            command: vec!["dotnet".to_owned(), "shop.dll".to_owned(), "--day".to_owned(), "7".to_owned()],
            started_unix_ns: 1_795_000_000_000_000_000,
            duration_ns: 2_001_000_000,
            exit: Some(Exit::Code(3)),
            given: "calls".into(),
            filled: "calls:clock=sampled,native=off,helpers=off,trivial=on,max=1073741824".into(),
            clrscope_version: "0.1.0".to_owned(),
            id: String::new(),
        },
        processes: vec![process],
        problems: Vec::new(),
        physical: None,
    }
}
