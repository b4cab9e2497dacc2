//! Checks the wall and CPU columns with a managed and a native sleep, a spin, work, and a recursion
//! that sleeps.

use clrscope_analysis::{Query, functions};
use clrscope_testkit::{Expectations, Runtime, fixture};

use super::page::Page;
use crate::agents::under_agent;
use crate::measured::run as run_measured;

/// A clock may be this much short of what the program slept or worked: samples come each
/// millisecond.
const LEAST: f64 = 0.95;
/// CPU time that a sleep may show: the calls around it are compiled and run.
const IDLE_MS: f64 = 60.0;

/// Prints the table. Returns the number of wrong rows.
pub(super) fn run(runtime: &Runtime, page: &mut Page) -> Result<usize, String> {
    let mut wrong = 0;
    for request in ["calls", "calls:clock=tsc"] {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Times"));
        under_agent(&mut command, request, &out);
        let expected = Expectations::parse(&run_measured(&mut command)?.stdout);
        let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
        let rows = functions(&recording, &Query::default()).map_err(|problem| format!("{problem:?}"))?.rows;
        page.line(format_args!(
            "\n{request}: milliseconds, inclusive        wall: truth  report     CPU: truth  report"
        ));
        for (name, wall_ms) in &expected.wall_ms {
            let row = rows.iter().find(|row| row.function.name() == name);
            let ms = |ns: u64| ns as f64 / 1e6;
            let wall = row.map_or(0.0, |row| ms(row.times.inclusive_ns));
            let cpu = row.and_then(|row| row.times.inclusive_cpu_ns).map(ms);
            let mut good = wall >= *wall_ms as f64 * LEAST;
            if let (Some(&truth), Some(cpu)) = (expected.cpu_ms.get(name), cpu) {
                let truth = truth as f64;
                good &= cpu >= truth * LEAST - 2.0 && cpu <= truth * 1.1 + IDLE_MS;
            }
            wrong += usize::from(!good);
            let truth = expected.cpu_ms.get(name).map_or("-".to_owned(), u64::to_string);
            let shown = cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.1}"));
            let verdict = if good { "met" } else { "MISSED" };
            page.line(format_args!("  {name:42} {wall_ms:>8} {wall:>8.1}     {truth:>8} {shown:>8}   {verdict}"));
        }
    }
    Ok(wrong)
}
