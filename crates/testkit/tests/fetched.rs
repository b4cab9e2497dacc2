//! Fetched runtimes run: the demo's .NET 8, and a large single-file program on .NET 10.

use clrscope_testkit::{Expectations, azmcp, azmcp_command, fetched_runtime, fixture, run, workspace_root};

#[test]
#[expect(clippy::print_stderr, reason = "a test says that it did not run")]
fn the_fetched_dotnet_runs_the_demo_and_a_fixture() {
    let Some(runtime) = fetched_runtime() else {
        eprintln!("did not run: there is no pip to fetch .NET with");
        return;
    };
    let demo = run(runtime.command(&workspace_root().join("dotnet/demo/bin/Demo.dll"))).expect_success();
    assert!(demo.stdout_text().starts_with("orders paid "), "{}", demo.stdout_text());
    let recursion = run(runtime.command(&fixture("Recursion"))).expect_success();
    assert_eq!(Expectations::parse(&recursion.stdout_text()).calls("Recursion.Program::Fib"), Some(242_785));
}

#[test]
#[expect(clippy::print_stderr, reason = "a test says that it did not run")]
fn the_fetched_azmcp_lists_its_tools() {
    let Some(program) = azmcp() else {
        eprintln!("did not run: there is no npm to fetch azmcp with");
        return;
    };
    let version = run(azmcp_command(&program, &["--version"])).expect_success();
    assert!(version.stdout_text().starts_with("2.0.5"), "{}", version.stdout_text());
    let tools = run(azmcp_command(&program, &["tools", "list"])).expect_success();
    assert!(tools.stdout.len() > 10_000, "{}", tools.stdout_text());
}
