//! Recordings of events, as text.

use super::FakeRuntime;
use super::event::{Event, Step};
use super::words::{Parsed, Reader};

/// Reads a recording from its beginning. Names may be defined before or after their use.
pub(super) fn read(text: &str) -> Parsed<(FakeRuntime, Vec<Step>)> {
    let mut reader = Reader::new(text);
    let mut steps = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.contains(" = ") {
            continue;
        }
        let step = step(&mut reader, line).map_err(|what| format!("line {}: {what}", number + 1))?;
        steps.push(step);
    }
    Ok((reader.finish()?, steps))
}

fn step<'t>(reader: &mut Reader<'t>, line: &'t str) -> Parsed<Step> {
    let mut words = line.split('\t');
    let thread = words.next().and_then(|word| word.parse().ok()).ok_or("begins with the number of a thread")?;
    let name = words.next().ok_or("names no event")?;
    let event = Event::read(name, reader, &mut words)?;
    match words.next() {
        Some(more) => Err(format!("{name} has no value {more}")),
        None => Ok(Step { thread, event }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_profiler::{CallerSp, HResult};

    #[test]
    fn what_things_are_called_is_explained_anywhere() {
        let text = "1\tModuleLoadFinished\tm1\t0\nm1 = Shop\nf1 = Shop!Shop.Cart+Line::Add\n2\tEnterAt\tf1\tff40\n";
        let (runtime, steps) = read(text).unwrap();
        assert_eq!(steps[0].event, Event::ModuleLoadFinished(runtime.module_id("Shop"), HResult::OK));
        let add = runtime.function("Shop.Cart+Line::Add");
        assert_eq!(steps[1], Step { thread: 2, event: Event::EnterAt(add, CallerSp::new(0xff40)) });
    }

    #[test]
    fn what_can_not_be_read_is_named_with_its_line() {
        let error = |text: &str| read(text).err().unwrap_or_default();
        assert_eq!(error("1\tShutdown\n1\tShutUp\n"), "line 2: there is no event ShutUp in recordings");
        assert_eq!(error("x\tShutdown\n"), "line 1: begins with the number of a thread");
        assert_eq!(error("1\tThreadCreated\n"), "line 1: ThreadCreated lacks a value");
        assert_eq!(error("1\tShutdown\tnow\n"), "line 1: Shutdown has no value now");
        assert_eq!(error("1\tEnterAt\tf1\tnowhere\n"), "line 1: nowhere is no address");
    }
}
