//! Memory that attaches leave in the program.

use clrscope_testkit::{self as testkit, private_kilobytes};

use super::server::{Server, attach, said, some_runtime};
use crate::common::TestFolder;

/// Each attach left 10 to 170 kB: the parts of its recording were never freed. `cargo xtask soak
/// attaches` does the same a thousand times.
#[test]
fn attaches_do_not_pile_up_memory_in_the_program() {
    const INSTRUMENTS: &str = "-i cpu -i wall -i exceptions -i gc -i alloc";
    /// Rounds until everything that is made once is made, and rounds after that.
    const ROUNDS: [u64; 2] = [12, 16];
    /// The heaps of the program and of the C library move by less; 16 rounds left five times as
    /// much.
    const MOST_KILOBYTES: u64 = 500;
    let place = TestFolder::new();
    let mut command = some_runtime().command(&testkit::fixture("Collections"));
    // One heap of the C library, which overwrites freed memory: code that still uses it fails.
    command.arg("serve").envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_PERTURB_", "165"), ("DOTNET_gcConcurrent", "0")]);
    let server = Server::spawn(command);
    let [_, before, after] = [0, ROUNDS[0], ROUNDS[1]].map(|rounds| {
        for _ in 0..rounds {
            let more = format!("{INSTRUMENTS} --duration 50ms --force -o round.clrs");
            let output = attach(&place, server.pid, &more).output().expect("the tool starts");
            assert!(output.status.success(), "{}", said(&output));
        }
        private_kilobytes(server.pid)
    });
    assert!(before > 0 && after < before + MOST_KILOBYTES, "{before} kB before, {after} kB after {} rounds", ROUNDS[1]);
    server.end();
}
