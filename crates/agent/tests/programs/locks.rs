//! Contended locks, against what programs count and clock themselves.

use clrscope_analysis::{LockKind, LockQuery, LockRow, locks};
use clrscope_recording::model::Recording;
use clrscope_testkit::{Runtime, attempted, each_runtime};

use crate::support::record_with;

/// A number that the program printed.
fn printed(output: &str, key: &str) -> u64 {
    let line = output.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {key} in {output}"))
}

/// Checks a number of waits that the program has: all for its own lock are among them, and all of
/// them were recorded. These are one number unless the framework's locks are waited for, too, while
/// the program counts or at other times.
fn assert_between(number: u64, type_name: &str, rows: &[LockRow<'_>], place: &str) {
    let own = rows.iter().filter(|row| row.type_name == type_name).map(|row| row.count).sum::<u64>();
    let all = rows.iter().map(|row| row.count).sum::<u64>();
    assert!(0 < own && own <= number && number <= all, "{own} {number} {all} {place}");
}

fn rows(recording: &Recording) -> Vec<LockRow<'_>> {
    locks(recording, &LockQuery::default()).expect("locks").0
}

/// Four threads that wait for one lock, which each holds for two milliseconds.
fn assert_convoy(runtime: &Runtime, kind: LockKind, type_name: &str, waits_in: &str) {
    let (argument, place) = (kind.name().to_lowercase(), format!("{kind:?} on {}", runtime.version));
    for request in ["locks", "locks:exact"] {
        // A busy machine may let a thread have the lock that had not waited, so that some holders
        // are not known.
        attempted(|| {
            let seen = record_with(runtime, "Contended", request, &[&argument, "4", "100"]);
            let output = seen.finished.stdout_text();
            assert_eq!(printed(&output, "ENTRIES"), 400, "{place}");
            let rows = rows(&seen.recording);
            let row = rows.iter().find(|row| row.type_name == type_name).unwrap_or_else(|| panic!("no row: {place}"));
            assert_eq!((row.kind, row.type_name, row.locks, row.pending), (kind, type_name, 1, 0), "{place}");
            assert!(row.is_exact, "{place}");
            assert_between(printed(&output, "CONTENDED"), type_name, &rows, &place);
            // The program's clock includes the time that threads spin, before the runtime says that
            // they wait.
            let (waited, longest) = (printed(&output, "WAITED_NS"), printed(&output, "LONGEST_NS"));
            assert!(
                row.total_ns <= waited && row.max_ns <= longest,
                "{} {} of {output} {place}",
                row.total_ns,
                row.max_ns
            );
            assert!(
                row.waiters
                    .iter()
                    .chain(&row.holders)
                    .all(|path| { path.own_frame().is_some_and(|frame| frame.function.name() == waits_in) })
            );
            assert_eq!(row.waiters.iter().map(|path| path.count).sum::<u64>(), row.count, "{place}");
            assert_eq!(
                row.holders.iter().map(|path| path.count).sum::<u64>() + row.without_holder,
                row.count,
                "{place}"
            );
            let numbers = (row.count, row.total_ns, row.max_ns, row.max_waiters, row.without_holder);
            let (found, least) = (format!("{numbers:?} {output} {place}"), waited / 100 * 97);
            let is_convoy = row.max_waiters == 3 && row.count > 350 && row.without_holder < 40 && row.total_ns >= least;
            if is_convoy { Ok(()) } else { Err(found) }
        })
        .unwrap_or_else(|found: String| panic!("{found}"));
    }
}

#[test]
fn a_convoy_at_a_monitor_is_counted_and_clocked_as_the_program_does() {
    each_runtime(|runtime| {
        assert_convoy(runtime, LockKind::Monitor, "Contended.Ledger", "Contended.Program::BookShared");
    });
}

#[test]
fn a_convoy_at_a_lock_is_counted_and_clocked_as_the_program_does() {
    each_runtime(|runtime| {
        // .NET 8 has no such class.
        if !runtime.version.to_string().starts_with("8.") {
            assert_convoy(runtime, LockKind::Lock, "System.Threading.Lock", "Contended.Program::BookPlain");
        }
    });
}

#[test]
fn the_programs_own_listener_hears_of_each_wait_as_without_us() {
    each_runtime(|runtime| {
        let seen = record_with(runtime, "Contended", "locks", &["monitor", "3", "50", "listen"]);
        let output = seen.finished.stdout_text();
        let (rows, place) = (rows(&seen.recording), format!("{output} on {}", runtime.version));
        let numbers = ["HEARD", "CONTENDED"].map(|key| printed(&output, key));
        assert!(numbers[0] >= numbers[1], "{place}");
        numbers.into_iter().for_each(|number| assert_between(number, "Contended.Ledger", &rows, &place));
    });
}

#[test]
fn locks_that_are_free_leave_nothing() {
    each_runtime(|runtime| {
        let seen = record_with(runtime, "Contended", "locks", &["monitor", "1", "20"]);
        let rows = rows(&seen.recording);
        assert!(rows.iter().all(|row| row.type_name != "Contended.Ledger"), "on {}", runtime.version);
    });
}

/// What the program waits for besides locks, with the kind that the stack says, and the method.
const BLOCKING: [(&str, LockKind, &str); 5] = [
    ("handle", LockKind::WaitHandle, "AwaitHandle"),
    ("task", LockKind::Task, "AwaitTask"),
    ("event", LockKind::ManualResetEventSlim, "AwaitEvent"),
    ("semaphore", LockKind::SemaphoreSlim, "BookSemaphore"),
    ("writer", LockKind::ReaderWriterLockSlim, "BookWriter"),
];

/// A wait that ends while the thread still spins is none, and a thread that was woken in vain waits
/// again: only waits for a handle are as many as the program makes. Their time is nearly all of
/// what it clocks.
#[test]
fn waits_for_semaphores_events_and_tasks_are_clocked_as_the_program_does() {
    each_runtime(|runtime| {
        for (argument, kind, method) in BLOCKING {
            attempted(|| {
                let seen = record_with(runtime, "Contended", "locks:exact", &[argument, "4", "100"]);
                let (output, rows) = (seen.finished.stdout_text(), rows(&seen.recording));
                let place = format!("{argument} on {}: {output}", runtime.version);
                let rows: Vec<_> =
                    rows.iter().filter(|row| !row.kind.is_held() && row.kind != LockKind::Thread).collect();
                if runtime.major() < 9 {
                    // The runtime raises no events of these waits, as the recording says.
                    let remarks = &seen.recording.processes[0].remarks;
                    assert!(
                        rows.is_empty() && remarks.iter().any(|remark| remark.text.contains("semaphores")),
                        "{place}"
                    );
                    return Ok(());
                }
                let row = rows.iter().find(|row| row.kind == kind).unwrap_or_else(|| panic!("no row: {place}"));
                assert!(rows.iter().all(|row| row.kind != LockKind::Unknown) && row.is_exact, "{place}");
                let is_own = |path: &clrscope_analysis::LockPath<'_>| {
                    path.own_frame()
                        .is_some_and(|frame| frame.function.name() == format!("Contended.Program::{method}"))
                };
                assert!(row.waiters.iter().all(is_own) && !row.waiters.is_empty(), "{place}");
                let (waited, longest) = (printed(&output, "WAITED_NS"), printed(&output, "LONGEST_NS"));
                assert!(row.total_ns <= waited && row.max_ns <= longest && row.pending == 0, "{place}");
                assert!(argument != "handle" || row.count == 400, "{} waits: {place}", row.count);
                // Three wait while one has the lock; who wait for a time do so at once.
                let most = if ["semaphore", "writer"].contains(&argument) { 3 } else { 4 };
                assert!(row.max_waiters <= most, "{place}");
                // On a busy machine threads seldom wait all at once.
                let is_clocked = row.total_ns >= waited / 10 * 7 && row.max_waiters == most;
                if is_clocked { Ok(()) } else { Err(format!("{} ns, {}: {place}", row.total_ns, row.max_waiters)) }
            })
            .unwrap_or_else(|found: String| panic!("{found}"));
        }
    });
}

/// On 8 there are samples of what raises no events. Their bounds hold what the program clocked, but
/// for the time that threads spin.
#[test]
fn waits_that_raise_no_events_are_sampled_within_their_bounds() {
    each_runtime(|runtime| {
        if runtime.major() >= 9 {
            return;
        }
        for (argument, kind, method) in BLOCKING {
            // One in twenty is outside of bounds of 95 %.
            attempted(|| {
                let seen = record_with(runtime, "Contended", "wall;locks", &[argument, "4", "100"]);
                let (output, rows) = (seen.finished.stdout_text(), rows(&seen.recording));
                let place = format!("{argument} on {}: {output}", runtime.version);
                let row = rows.iter().find(|row| row.kind == kind).ok_or_else(|| format!("no row: {place}"))?;
                assert!(row.is_sampled && !row.is_exact && row.holders.is_empty() && row.count > 0, "{place}");
                let own = row.waiters[0].own_frame().map(|frame| frame.function.name().to_owned());
                assert_eq!(own.as_deref(), Some(&*format!("Contended.Program::{method}")), "{place}");
                let (waited, (low, high)) = (printed(&output, "WAITED_NS"), row.bounds_ns);
                let is_clocked = low <= waited && high >= waited / 10 * 7 && row.count <= 400;
                let numbers = (row.count, row.total_ns, low, high);
                if is_clocked { Ok(()) } else { Err(format!("{numbers:?} of {place}")) }
            })
            .unwrap_or_else(|found: String| panic!("{found}"));
        }
    });
}

/// A lock whose holder has ended is waited for in vain; who holds it is not known.
#[test]
fn a_lock_that_a_thread_held_to_its_end_is_waited_for_with_no_holder() {
    each_runtime(|runtime| {
        let seen = record_with(runtime, "Contended", "locks:exact", &["abandoned", "4", "50"]);
        let output = seen.finished.stdout_text();
        let (rows, place) = (rows(&seen.recording), format!("{output} on {}", runtime.version));
        let row =
            rows.iter().find(|row| row.type_name == "System.Version").unwrap_or_else(|| panic!("no row: {place}"));
        assert_eq!((row.kind, row.count, row.without_holder), (LockKind::Monitor, 200, 200), "{place}");
        assert_eq!((row.locks, row.max_waiters, row.pending, row.is_exact), (1, 4, 0, true), "{place}");
        let waited = printed(&output, "WAITED_NS");
        assert!(row.total_ns <= waited && row.total_ns >= waited / 10 * 9, "{} of {place}", row.total_ns);
    });
}
