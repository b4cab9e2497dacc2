//! A method that gets other IL while its program runs, on every runtime at hand.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use clrscope_testkit as testkit;

/// The fixture `Counter`: a line of input makes it call `Step` ten times and print the count.
struct Counter {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Counter {
    fn start(runtime: &testkit::Runtime, folder: &Path) -> Self {
        let mut command =
            common::profiled(runtime, "Counter", &common::profiler("rejit"), "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C0D}");
        command.args(["-", "10"]).env("REJIT_FOLDER", folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().expect("the program starts");
        let input = program.stdin.take().expect("a pipe");
        let output = BufReader::new(program.stdout.take().expect("a pipe"));
        Self { program, input, output }
    }

    fn next(&mut self) -> u64 {
        writeln!(self.input, "go").expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes");
        line.trim().strip_prefix("count ").and_then(|count| count.parse().ok()).expect("a count")
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.program.wait().expect("it ends").success());
    }
}

/// Gives an order and waits until it is said to be done.
fn order(folder: &Path, what: &str) {
    std::fs::write(folder.join(what), "").expect("a file");
    testkit::wait_until(what, || folder.join(format!("{what} done")).exists());
}

#[test]
fn a_method_gets_other_il_and_its_own_back_where_the_runtime_lets_no_profiler_go() {
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let folder = folder.path();
        let mut counter = Counter::start(runtime, folder);
        assert_eq!(counter.next(), 10);
        // Refused for the event alone: nothing was compiled again so far.
        order(folder, "detach");
        order(folder, "change");
        assert_eq!([counter.next(), counter.next()], [10, 10], "on .NET {}", runtime.version);
        order(folder, "revert");
        assert_eq!([counter.next(), counter.next()], [20, 30], "on .NET {}", runtime.version);
        order(folder, "count");
        assert_eq!([counter.next(), counter.next()], [40, 50], "on .NET {}", runtime.version);
        counter.end();
        let log = std::fs::read_to_string(folder.join("log")).expect("the profiler writes at the end");
        let expected = "detach failed: RequestProfilerDetach: CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT (0x80131370)\n\
                        change: asked\n\
                        parameters of Step: true, (Ok(()), Ok(()))\n\
                        started Counter.Program::Step true\n\
                        finished Counter.Program::Step true Ok(())\n\
                        revert: 2 versions, the newest with code: true, [Ok(())]\n\
                        count: asked\n\
                        counting in Step: true, Ok(true)\n\
                        started Counter.Program::Step true\n\
                        finished Counter.Program::Step true Ok(())\n\
                        counted 20 calls and 20 ends\n";
        assert_eq!(log, expected, "on .NET {}", runtime.version);
    });
}
