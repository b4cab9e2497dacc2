//! Serving the page of a large recording: time until the first picture, time of answers to clicks
//! and to changes of the tree, and memory. Also the page as a file.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_analysis::{Forest, NativeCode, PictureMeasure, Pictures, Query, SAMPLED_CPU};
use clrscope_recording::pack;
use clrscope_recording::testing::many::Many;
use clrscope_testkit::cli;
use serde_json::Value;

use super::absolute::{Line, verdict};
use crate::measured::{Spread, run};

const SHAPE: Many = Many { samples: 10_000_000, stacks: 1_000_000, threads: 500 };
/// Goals of P14: the first picture, a click, a change of the tree, memory after all of these, and a
/// page in one file.
const FIRST: Duration = Duration::from_secs(2);
const CLICK: Duration = Duration::from_millis(100);
const CHANGE: Duration = Duration::from_millis(300);
const MEMORY: u64 = 1_000_000_000;
const FILE_BYTES: u64 = 10_000_000;
/// Clicks of each kind in one run.
const CLICKS: u64 = 9;
/// Time that the user looks at the first picture before the first click.
const LOOKED_AT: Duration = Duration::from_secs(20);

/// Lines of the report. Times are wall times, because a user waits for them.
pub(super) fn of_a_large_recording(runs: usize) -> Result<Vec<Line>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("large.clrs");
    let out = File::create(&file).map_err(|error| error.to_string())?;
    pack::write(&SHAPE.recording(), &mut BufWriter::new(out)).map_err(|error| error.to_string())?;
    // The tool may have to be built for it.
    let tool = cli();
    let mut firsts = Vec::new();
    for _ in 0..runs {
        let began = Instant::now();
        let viewing = Viewing::start(tool, &file)?;
        viewing.document("key=tree.cpu")?;
        firsts.push(began.elapsed().as_secs_f64());
    }
    let first = Spread::from_values(&firsts);
    let figure = format!("{:.2} s ({:.2} to {:.2})", first.median, first.low, first.high);
    let what = "10 M samples, 1 M stacks, 500 threads: from `view` to the first picture's data";
    let mut lines = vec![("P14", what.to_owned(), figure, verdict(first.median < FIRST.as_secs_f64()))];
    let viewing = Viewing::start(tool, &file)?;
    lines.extend(clicks(&viewing)?);
    lines.push(changes(&viewing)?);
    lines.push(memory(&viewing)?);
    drop(viewing);
    lines.push(page(tool, &file)?);
    Ok(lines)
}

/// A line for each kind of click.
fn clicks(viewing: &Viewing) -> Result<Vec<Line>, String> {
    let index = viewing.json("index")?;
    let threads = index["threads"].as_array().ok_or("no threads")?;
    let pid = threads.first().and_then(|thread| thread["pid"].as_u64()).ok_or("no process")?;
    let ids: Vec<u64> = threads.iter().filter_map(|thread| thread["id"].as_u64()).collect();
    let whole = index["recording"]["duration_ns"].as_u64().ok_or("no duration")?;
    viewing.document("key=tree.cpu")?;
    clrscope_testkit::pause(LOOKED_AT);
    let path = |click: u64| format!("below={pid}.0.{click}");
    let thread = |click: u64| format!("threads={pid}.{}", ids[(click as usize * 7) % ids.len()]);
    let time = |click: u64| format!("since={}&until={}", whole * click / 10, whole * (click + 2) / 10);
    let kinds: [(&str, &dyn Fn(u64) -> String); 3] =
        [("a path", &path), ("a thread", &thread), ("a fifth of the time", &time)];
    let line = |(what, filter): (&str, &dyn Fn(u64) -> String)| -> Result<Line, String> {
        let ms = (0..CLICKS).map(|click| viewing.document(&format!("key=tree.cpu&{}", filter(click))));
        let ms = ms.map(|taken| taken.map(|taken| taken.as_secs_f64() * 1e3)).collect::<Result<Vec<_>, _>>()?;
        let spread = Spread::from_values(&ms);
        let figure = format!("{:.0} ms ({:.0} to {:.0})", spread.median, spread.low, spread.high);
        let met = verdict(spread.high < CLICK.as_secs_f64() * 1e3);
        Ok(("P14", format!("the same: a click on {what}, each one that nobody made before"), figure, met))
    };
    kinds.into_iter().map(line).collect()
}

/// The line of changes of the tree, each kind with several functions: all paths are changed, and
/// none is left out before.
fn changes(viewing: &Viewing) -> Result<Line, String> {
    const KINDS: [(&str, &str); 12] = [
        ("focus", "changes=fID"),
        ("focus, inverted", "changes=fID&invert=1"),
        ("merge", "changes=mID"),
        ("drop", "changes=dID"),
        ("collapse", "changes=cID"),
        ("collapse an assembly", "changes=CID"),
        ("recursion", "changes=rID"),
        ("merge code of a kind", "changes=kID"),
        ("own code, inverted", "changes=o,mID&invert=1"),
        ("functions", "changes=mID&as=functions"),
        ("callers", "changes=dID&of=ID"),
        ("search", "changes=mID&search=system"),
    ];
    let functions = largest_functions()?;
    let mut found: Vec<(f64, &str)> = Vec::new();
    let mut ask = |kind: &'static str, filter: &str| -> Result<(), String> {
        let taken = viewing.document(&format!("key=tree.cpu&measure=cpu&{filter}"))?;
        found.push((taken.as_secs_f64() * 1e3, kind));
        Ok(())
    };
    ask("invert", "invert=1")?;
    for id in &functions {
        for (kind, filter) in KINDS {
            ask(kind, &filter.replace("ID", &id.to_string()))?;
        }
    }
    let spread = Spread::from_values(&found.iter().map(|(ms, _)| *ms).collect::<Vec<_>>());
    let slowest = found.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |(_, kind)| kind);
    let figure = format!("{:.0} ms ({:.0} to {:.0}, {slowest})", spread.median, spread.low, spread.high);
    let what = format!("the same: {} changes of the whole tree, of {} kinds", found.len(), KINDS.len() + 1);
    Ok(("P14", what, figure, verdict(spread.high < CHANGE.as_secs_f64() * 1e3)))
}

/// Addresses that call the functions of the recording that have most time, those of its roots left
/// out.
fn largest_functions() -> Result<Vec<u64>, String> {
    // The same program, for less time.
    let recording = Many { samples: 20_000, stacks: 5_000, threads: 1 }.recording();
    let query = Query { metric: Some(&SAMPLED_CPU), native_code: Some(NativeCode::Places), ..Query::default() };
    let forest = Forest::open(&recording, &query).map_err(|problem| problem.to_string())?;
    let pictures = Pictures::new(&forest, PictureMeasure::Metric);
    let sums = pictures.changed(&[], false).by_function();
    let mut ids: Vec<(u64, u32)> = pictures.functions().ids().collect();
    ids.sort_by_key(|(_, function)| Reverse((sums[*function as usize].total, *function)));
    Ok(ids.iter().skip(3).step_by(5).take(CLICKS as usize).map(|(id, _)| *id).collect())
}

/// The line of the memory that the tool had at most.
fn memory(viewing: &Viewing) -> Result<Line, String> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", viewing.child.id())).map_err(|e| e.to_string())?;
    let kib = |line: &str| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok();
    let peak: Option<u64> = status.lines().find_map(kib);
    let bytes = 1_024 * peak.ok_or("the system does not say how much memory a process had at most")?;
    let what = "the same: memory of `view` at most, after all of these".to_owned();
    Ok(("P14", what, format!("{:.0} MB", bytes as f64 / 1e6), verdict(bytes < MEMORY)))
}

/// The line of the page in one file.
fn page(tool: &Path, recording: &Path) -> Result<Line, String> {
    let out = recording.with_extension("html");
    let mut command = Command::new(tool);
    command.args(["report", "--format", "html", "-o"]).arg(&out).arg(recording);
    let took = run(&mut command)?;
    let bytes = std::fs::metadata(&out).map_err(|error| error.to_string())?.len();
    let (cpu, wall) = ((took.user + took.system).as_secs_f64(), took.wall.as_secs_f64());
    let figure = format!("{:.1} MB, in {cpu:.1} s of CPU time, {wall:.1} s by the clock", bytes as f64 / 1e6);
    Ok(("P14", "the same: its page in one file".to_owned(), figure, verdict(bytes < FILE_BYTES)))
}

/// A tool that serves a recording.
struct Viewing {
    child: Child,
    port: u16,
    token: String,
}

impl Viewing {
    fn start(tool: &Path, recording: &Path) -> Result<Self, String> {
        let mut command = Command::new(tool);
        command.arg("view").arg(recording).arg("--no-browser").stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let said = child.stderr.take().ok_or("no messages")?;
        let address = BufReader::new(said).lines().map_while(Result::ok).find_map(|line| {
            let address = line.split_once("http://127.0.0.1:")?.1.trim_end_matches('/').to_owned();
            let (port, token) = address.split_once('/')?;
            Some((port.parse().ok()?, token.to_owned()))
        });
        let (port, token) = address.ok_or("the tool has said no address")?;
        Ok(Self { child, port, token })
    }

    /// Asks for a document; the time until all of it is there.
    fn document(&self, query: &str) -> Result<Duration, String> {
        let began = Instant::now();
        let answer = self.get(&format!("document?{query}"))?;
        let taken = began.elapsed();
        if answer.contains("\"problem\"") { Err(format!("{query}: {answer}")) } else { Ok(taken) }
    }

    fn json(&self, rest: &str) -> Result<Value, String> {
        serde_json::from_str(&self.get(rest)?).map_err(|error| error.to_string())
    }

    fn get(&self, rest: &str) -> Result<String, String> {
        let ask = || {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            write!(stream, "GET /{}/{rest} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.token, self.port)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        };
        let answer = ask().map_err(|error| error.to_string())?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        if head.starts_with("HTTP/1.1 200") { Ok(body.to_owned()) } else { Err(head.to_owned()) }
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
