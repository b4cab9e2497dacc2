//! Conversations with the runtimes at hand.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clr_diagnostics::{
    AttachProfiler, Clsid, Counter, CounterKind, Error, Port, Process, Provider, StartupPort, processes,
};
use clrscope_testkit as testkit;

/// A program that runs until it is dropped.
struct Running(Child);

impl Running {
    /// The fixture, once it says that it is ready.
    fn server(mut command: Command) -> Self {
        command.stdout(Stdio::piped());
        let mut program = command.spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(program.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it writes");
        assert_eq!(line, "ready\n");
        Self(program)
    }

    fn process(&self) -> Process {
        Process::open(self.0.id()).expect("it is there")
    }

    fn port(&self) -> Port {
        self.process().port().expect("it has a port")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Numbers of processes come round: a program that was killed leaves its socket, and its number
/// goes to another.
#[test]
fn sockets_of_earlier_processes_with_the_same_number_are_no_ports() {
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let mut command = runtime.command(&testkit::fixture("Server"));
        command.env("TMPDIR", folder.path()).env("DOTNET_EnableDiagnostics", "0");
        let program = Running::server(command);
        let left = folder.path().join(format!("dotnet-diagnostic-{}-1-socket", program.0.id()));
        drop(std::os::unix::net::UnixListener::bind(&left).expect("a socket"));
        let port = program.process().port();
        assert!(matches!(port, Err(Error::DiagnosticsOff { .. })), "on .NET {}: {port:?}", runtime.version);
    });
}

#[test]
fn a_running_program_says_what_it_is() {
    testkit::each_runtime(|runtime| {
        let library = testkit::fixture("Server");
        let folder = testkit::scratch();
        let mut command = runtime.command(&library);
        command.env("TMPDIR", folder.path()).env("OF_THE_TEST", "a=b");
        let program = Running::server(command);
        let found = processes();
        assert!(found.iter().any(|process| process.pid() == program.0.id()), "{found:?}");
        assert!(!found.iter().any(|process| process.pid() == std::process::id()));
        let process = program.process();
        assert_eq!(process.inner_pid(), process.pid());
        assert!(process.is_alive() && !process.is_stopped());
        let port = process.port().expect("a port");
        assert!(port.socket().ends_with(format!("dotnet-diagnostic-{}-{}-socket", process.pid(), process.started())));
        let info = port.info().expect("it answers");
        assert_eq!(info.short_version(), runtime.version.to_string());
        assert_eq!((info.entry_assembly.as_str(), info.os.as_str()), ("Server", "Linux"));
        assert_eq!((info.architecture.as_str(), info.portable_rid.as_str()), ("x64", "linux-x64"));
        assert!(info.command_line.contains("Server.dll"), "{}", info.command_line);
        assert_eq!(info.pid, u64::from(process.pid()));
        let environment = port.environment().expect("it answers");
        assert!(environment.contains(&("OF_THE_TEST".to_owned(), "a=b".to_owned())));
        port.set_environment_variable("OF_THE_TEST", "c").expect("it is set");
        assert!(port.environment().expect("it answers").contains(&("OF_THE_TEST".to_owned(), "c".to_owned())));
    });
}

#[test]
fn a_library_that_is_not_there_is_refused_with_the_runtimes_reason() {
    testkit::each_runtime(|runtime| {
        let program = Running::server(runtime.command(&testkit::fixture("Server")));
        let class: Clsid = "{00000000-0000-0000-0000-000000000001}".parse().expect("a class id");
        let profiler = AttachProfiler::new(class, "/no/such.so").with_timeout(Duration::from_secs(5));
        let error = program.port().attach_profiler(&profiler).expect_err("there is no such library");
        assert!(error.code().is_some_and(|code| !code.is_ok()), "{error}");
    });
}

#[test]
fn programs_without_diagnostics_are_told_apart_from_others() {
    testkit::each_runtime(|runtime| {
        let mut command = runtime.command(&testkit::fixture("Server"));
        command.env("DOTNET_EnableDiagnostics", "0");
        let program = Running::server(command);
        let error = program.process().port().map(drop).expect_err("it has no port");
        assert!(matches!(error, Error::DiagnosticsOff { .. }), "{error}");
        assert!(processes().iter().any(|process| process.pid() == program.0.id()));
    });
}

#[test]
fn a_program_that_starts_waits_until_it_is_resumed() {
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let port = StartupPort::bind(&folder.path().join("start")).expect("a port");
        let mut command = runtime.command(&testkit::fixture("Echo"));
        command.env("DOTNET_DiagnosticPorts", port.variable()).stdout(Stdio::piped()).stderr(Stdio::null());
        let program = command.spawn().expect("it starts");
        let patience = Duration::from_secs(60);
        let held = port.accept(patience).expect("it comes");
        assert_eq!(held.pid, u64::from(program.id()));
        held.set_environment_variable("ECHO_VALUE", "set while it waited").expect("it is set");
        port.accept(patience).expect("it comes again").resume().expect("it goes on");
        let output = program.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("set while it waited"), "{said}");
    });
}

#[test]
fn counters_of_the_runtime_are_read() {
    testkit::each_runtime(|runtime| {
        let program = Running::server(runtime.command(&testkit::fixture("Server")));
        let provider = Provider::new("System.Runtime", u64::MAX, 4).with_arguments("EventCounterIntervalSec=1");
        let session = program.port().collect_events(&[provider], 8).expect("a session");
        let mut reader = session.reader(Some(Duration::from_secs(60))).expect("a stream");
        assert_eq!(reader.clock().pid, program.0.id());
        let mut seen = BTreeSet::new();
        while !(seen.contains("cpu-usage") && seen.contains("exception-count") && seen.contains("gc-heap-size")) {
            let event = reader.next_event().expect("an event").expect("no end yet");
            let Some(counter) = Counter::from_event(&event) else { continue };
            assert_eq!(counter.provider, "System.Runtime");
            assert!(counter.value.is_finite() && counter.interval_s > 0.0, "{counter:?}");
            match counter.name.as_str() {
                "cpu-usage" => assert_eq!((counter.unit.as_str(), counter.kind), ("%", CounterKind::Mean)),
                "exception-count" => assert_eq!(counter.kind, CounterKind::Sum),
                _ => {}
            }
            seen.insert(counter.name);
        }
        session.stop().expect("it stops");
        while reader.next_event().expect("an event").is_some() {}
    });
}

/// Instruments of meters, which newer programs publish instead of counters. The runtime has a meter
/// of its own from .NET 9 on.
#[test]
fn values_of_meters_are_read() {
    testkit::each_runtime(|runtime| {
        if runtime.major() < 9 {
            return;
        }
        let program = Running::server(runtime.command(&testkit::fixture("Server")));
        // Keyword 2: values as the time goes by.
        let provider = Provider::new("System.Diagnostics.Metrics", 2, 4).with_arguments(
            "SessionId=one;Metrics=System.Runtime;RefreshInterval=1;MaxTimeSeries=100;MaxHistograms=10",
        );
        let session = program.port().collect_events(&[provider], 8).expect("a session");
        let mut reader = session.reader(Some(Duration::from_secs(60))).expect("a stream");
        let exceptions = loop {
            let event = reader.next_event().expect("an event").expect("no end yet");
            let fields = event.fields().expect("described fields");
            let text =
                |name: &str| fields.iter().find(|(field, _)| field == name).and_then(|(_, value)| value.as_text());
            if event.description.name == "CounterRateValuePublished"
                && text("instrumentName") == Some("dotnet.exceptions")
            {
                assert_eq!((text("meterName"), text("unit")), (Some("System.Runtime"), Some("{exception}")));
                break text("rate").and_then(|rate| rate.parse::<f64>().ok());
            }
        };
        assert!(exceptions.is_some_and(f64::is_finite), "{exceptions:?}");
        session.stop().expect("it stops");
    });
}

#[test]
fn the_end_of_a_program_ends_its_events() {
    let runtime = testkit::runtimes().first().expect("a runtime");
    let program = Running::server(runtime.command(&testkit::fixture("Server")));
    let provider = Provider::new("Microsoft-Windows-DotNETRuntime", 0x8000, 4);
    let session = program.port().collect_events(&[provider], 8).expect("a session");
    let mut reader = session.reader(Some(Duration::from_secs(60))).expect("a stream");
    // Exceptions: the program throws many.
    let event = reader.next_event().expect("an event").expect("no end yet");
    assert_eq!(event.description.provider, "Microsoft-Windows-DotNETRuntime");
    drop(program);
    let last = std::iter::from_fn(|| reader.next_event().transpose()).last().expect("some came");
    assert!(last.is_ok() || matches!(last, Err(Error::Closed { .. })), "{last:?}");
}
