//! Agents that are given to the tool's build: what it takes and what it refuses.

use std::fs;

use clrscope_testkit as testkit;

#[path = "../build/prebuilt.rs"]
mod prebuilt;

use prebuilt::check;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn agent() -> Vec<u8> {
    fs::read(testkit::agent()).expect("the agent")
}

#[test]
fn the_agent_of_this_version_is_taken() {
    assert_eq!(check(&agent(), VERSION, "x86_64"), Ok("Gnu"));
}

#[test]
fn an_agent_of_another_version_is_refused() {
    let refusal = check(&agent(), "99.0.0", "x86_64");
    let expected = format!("it is the agent of clrscope {VERSION:?}, and the tool is 99.0.0");
    assert_eq!(refusal, Err(expected));
}

#[test]
fn an_agent_for_another_processor_is_refused() {
    let mut other = agent();
    other[18..20].copy_from_slice(&183_u16.to_le_bytes());
    assert_eq!(check(&other, VERSION, "aarch64"), Ok("Gnu"));
    assert_eq!(
        check(&other, VERSION, "x86_64"),
        Err("it is for ELF machine 183, and the tool for x86_64 (62)".to_owned())
    );
    assert_eq!(check(&agent(), VERSION, "riscv64"), Err("no agent is made for riscv64".to_owned()));
}

#[test]
fn what_is_no_agent_is_refused() {
    assert_eq!(check(b"#!/bin/sh\n", VERSION, "x86_64"), Err("it is no 64-bit ELF file".to_owned()));
    let mut executable = agent();
    executable[16] = 2;
    assert_eq!(check(&executable, VERSION, "x86_64"), Err("it is no shared library".to_owned()));
    let mut other = agent();
    // The name may stand in the table of the dynamic loader and in the one of debuggers.
    while let Some(at) = other.windows(22).position(|window| window == b"CLRSCOPE_AGENT_VERSION") {
        other[at] = b'X';
    }
    let refusal = check(&other, VERSION, "x86_64").expect_err("no version");
    assert_eq!(refusal, "it is no agent of clrscope: it lacks DllGetClassObject or CLRSCOPE_AGENT_VERSION");
}

#[test]
fn agents_say_which_c_library_they_are_for() {
    let renamed = |to: &[u8]| {
        let mut other = agent();
        let at = other.windows(10).position(|window| window == b"libc.so.6\0").expect("it needs glibc");
        other[at..at + to.len()].copy_from_slice(to);
        other
    };
    assert_eq!(check(&renamed(b"libc.so\0"), VERSION, "x86_64"), Ok("Musl"));
    let refusal = check(&renamed(b"libc.so.7"), VERSION, "x86_64");
    assert_eq!(refusal, Err("it is linked with no C library that is known".to_owned()));
}
