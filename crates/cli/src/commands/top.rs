//! `clrscope top`: shows what a running program spends its time and memory on now.

use clrscope_analysis::{Metric, Query};
use clrscope_contract::instruments::cpu;
use clrscope_contract::request::Glob;
use clrscope_report::{Request, View, view};
use serde_json::json;

use super::print;
use crate::attach::Target;
use crate::errors::Failure;
use crate::live::page::{Content, Page};
use crate::live::rates::Rates;
use crate::live::screen::Screen;
use crate::live::source::{NOW, Source};
use crate::terminal::results_on_terminal;

/// Options of `top`.
#[derive(Debug)]
pub(crate) struct TopOptions {
    /// The process to look at.
    pub(crate) pid: u32,
    /// Whether to print once after five seconds, instead of showing a screen.
    pub(crate) once: bool,
    /// Whether to print one JSON document instead of text.
    pub(crate) json: bool,
}

/// Instruments that cost little and let the agent detach afterwards. At 199 samples per second,
/// five seconds are enough to show the methods that matter.
pub(crate) const INSTRUMENTS: [&str; 5] = ["cpu:rate=199", "alloc", "exceptions", "locks", "counters"];
/// Counters of requests, served and made.
const REQUESTS: [&str; 4] = [
    "Microsoft.AspNetCore.Hosting/*",
    "Microsoft.AspNetCore.Server.Kestrel/*",
    "System.Net.Http/*",
    "Grpc.AspNetCore.Server/*",
];
/// Counters of the thread pool and of locks.
const POOL: [&str; 2] = ["System.Runtime/threadpool-*", "System.Runtime/monitor-lock-*"];
/// Schema of the JSON document.
const SCHEMA: &str = "clrscope.top/1";

/// Shows the screen, or prints once.
///
/// # Errors
/// When the process can't be attached to.
pub(crate) fn perform(options: &TopOptions) -> Result<(), Failure> {
    let target = Target::find(options.pid)?;
    let mut source = Source::begin(&target, &INSTRUMENTS)?;
    let mut screen = Screen::new(format!("clrscope top {}", options.pid), pages());
    match options.once {
        true => once(options, &mut source, &mut screen),
        false if results_on_terminal() => screen.show(&mut source),
        false => screen.print(&mut source),
    }
}

fn pages() -> Vec<Page> {
    let of = |name: &str| view(name).expect("a view");
    let plain = |view: &'static View| Content::View(view, Box::default());
    let counters = |names: &[&str]| {
        let names = names.iter().map(|name| Glob::new(name)).collect();
        Content::View(of("counters"), Box::new(Request { names, ..Request::default() }))
    };
    let metric = Metric::each().find(|metric| metric.name == cpu::SPEC.name);
    let by_cpu = Request { query: Query { metric, ..Query::default() }, ..Request::default() };
    vec![
        Page::new("methods", "methods", vec![Content::View(of("functions"), Box::new(by_cpu))]),
        Page::new("allocations", "allocations", vec![Content::Rates(Rates::default())]),
        Page::new("requests", "requests", vec![counters(&REQUESTS)]),
        Page::new("exceptions", "exceptions", vec![plain(of("exceptions"))]),
        Page::new("pool, locks", "pool", vec![counters(&POOL), plain(of("locks"))]),
    ]
}

/// Records for the period that the screen calls "now", and prints the result.
fn once(options: &TopOptions, source: &mut Source<'_>, screen: &mut Screen) -> Result<(), Failure> {
    let last = source.each_for(NOW, |recording| screen.look(recording));
    let recording = last.unwrap_or_default();
    if !options.json {
        return screen.print_once(&recording).map(|_| ());
    }
    let mut document = json!({
        "schema": SCHEMA, "pid": options.pid, "seconds": NOW.as_secs(), "counters": screen.vitals.json(),
    });
    for page in &screen.pages {
        document[page.key] = page.rows(&recording);
    }
    print(&format!("{document:#}\n"))
}
