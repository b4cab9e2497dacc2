//! Stacks of threads as a process has them last, of samples made by hand.

use clrscope_analysis::Query;
use clrscope_recording::model::{ThreadRole, ThreadState};
use clrscope_recording::testing::samples::HandSampled;
use clrscope_report::{Format, Request, STACKS};
use serde_json::Value;

fn written(format: Format, width: usize) -> String {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    let workers = ["one", "two"].map(|name| taken.thread(name, ThreadRole::User));
    let pool = taken.thread("worker", ThreadRole::Pool);
    let waits = "App.P::Work > System.Threading.Tasks.Task::Wait > System.Threading.ManualResetEventSlim::Wait";
    taken.wall(main, 1, "App.P::Main > App.P::Early").state = ThreadState::Running;
    for worker in workers {
        taken.wall(worker, 2, waits).state = ThreadState::Waiting;
    }
    taken.wall(main, 3, "libc.so!clone > App.P::Main > App.P::Enter").state = ThreadState::Lock;
    taken.wall(pool, 3, "System.Threading.LowLevelLifoSemaphore::Wait").state = ThreadState::Idle;
    let recording = taken.recording();
    let request = Request { query: Query::default(), ..Request::default() };
    let mut out = Vec::new();
    STACKS.open(&recording, &request).expect("stacks").write(format, width, &mut out).expect("memory takes all");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn each_thread_is_as_it_was_seen_last_with_what_it_waits_for() {
    let found: Value = serde_json::from_str(&written(Format::Json, 100)).expect("JSON");
    let threads = found["threads"].as_array().expect("threads");
    let row = |thread: &Value| {
        let text = |key: &str| thread[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {} {}", thread["os_id"], text("state"), text("waits_for"), thread["frames"][0]["name"])
    };
    assert_eq!(
        threads.iter().map(row).collect::<Vec<_>>(),
        [
            "101 lock a lock \"App.P::Enter\"",
            "102 waiting a task \"System.Threading.ManualResetEventSlim::Wait\"",
            "103 waiting a task \"System.Threading.ManualResetEventSlim::Wait\"",
            "104 idle - \"System.Threading.LowLevelLifoSemaphore::Wait\"",
        ]
    );
    assert!(found.get("pending").is_none(), "the heap was not looked at");
}

#[test]
fn a_stack_that_several_threads_have_stands_once_in_text() {
    let text = written(Format::Text, 80);
    assert_eq!(text.matches("App.P::Work").count(), 1, "{text}");
    assert!(text.contains("as thread 102") && !text.contains("LowLevelLifoSemaphore"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
