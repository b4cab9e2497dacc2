//! Known paths by `dotnet-trace`: the runtime's own sampler, which stops all threads and walks
//! their stacks itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use clr_diagnostics::nettrace::{Event, Reader};
use clrscope_testkit::{KnownPaths, Runtime, Tally, fixture, kit};

use super::Condition;
use super::outcome::{Judged, Outcome};
use crate::measured::run as run_measured;

/// Samples, and what names methods: those that were compiled meanwhile, and at the end all.
const PROVIDERS: &str = "Microsoft-DotNETCore-SampleProfiler,Microsoft-Windows-DotNETRuntime:0x4c14fccbd:5";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// Numbers of the events that name a method: loaded, there at the end.
const METHOD_LOADED: u32 = 143;
const METHOD_THERE: u32 = 144;

/// Methods by the address of their code: its end, and the name as recordings have it.
#[derive(Default)]
struct Methods(BTreeMap<u64, (u64, String)>);

/// A sample of a thread.
struct Sample {
    thread: u64,
    time_ns: u64,
    /// Innermost first.
    stack: Vec<u64>,
}

/// Runs the fixture once under `dotnet-trace`, for this number of milliseconds and with this seed.
pub(super) fn run(
    runtime: &Runtime,
    condition: &Condition,
    (milliseconds, seed): (u64, u64),
) -> Result<Outcome, String> {
    let Some(tool) = kit().map(|kit| kit.join("tools/dotnet-trace/dotnet-trace.dll")).filter(|tool| tool.is_file())
    else {
        return Ok(Outcome::NotHere);
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (out, file) = (folder.path().join("run.nettrace"), folder.path().join("notes"));
    let mut command = Command::new(runtime.root.join("dotnet"));
    runtime.prepare(&mut command);
    command
        .arg(tool)
        .args(["collect", "--providers", PROVIDERS, "-o"])
        .arg(&out)
        .arg("--")
        .args(runtime.words(&fixture("KnownPaths")));
    command.arg(&file).args([milliseconds, seed].map(|number| number.to_string())).args(condition.way);
    command.envs(condition.environment.iter().copied());
    if let Err(why) = run_measured(&mut command) {
        return Ok(Outcome::Broken(why));
    }
    let known = KnownPaths::read(&file);
    let tally = judge(&known, &out)?;
    Ok(Outcome::Judged(Judged { tally, cpu_ns: 0, weight_ns: 0 }))
}

fn judge(known: &KnownPaths, file: &Path) -> Result<Tally, String> {
    let (methods, samples) = read(known, file)?;
    let mut tally = Tally::default();
    for sample in samples {
        let Some(walker) = known.walker(sample.thread) else { continue };
        let names: Vec<&str> = sample.stack.iter().rev().filter_map(|&address| methods.name(address)).collect();
        // The tool calls no stack anything but whole.
        tally.add(known, known.moment(walker, sample.time_ns), &names, true, 1);
    }
    Ok(tally)
}

/// Methods and samples of a stream.
fn read(known: &KnownPaths, file: &Path) -> Result<(Methods, Vec<Sample>), String> {
    let file = File::open(file).map_err(|error| error.to_string())?;
    let mut stream = Reader::new(BufReader::new(file)).map_err(|error| error.to_string())?;
    let (mut methods, mut samples) = (Methods::default(), Vec::new());
    let clock = stream.clock();
    while let Some(event) = stream.next_event().map_err(|error| error.to_string())? {
        match (event.description.provider.as_str(), event.description.id) {
            (SAMPLER, _) if known.walker(event.thread_id).is_some() => {
                let stack = stream.stack(event.stack).unwrap_or_default().to_vec();
                // The clock is the monotonic one.
                let time_ns = u128::from(event.timestamp) * 1_000_000_000 / u128::from(clock.frequency);
                let time_ns = u64::try_from(time_ns).unwrap_or(u64::MAX);
                samples.push(Sample { thread: event.thread_id, time_ns, stack });
            }
            (RUNTIME, METHOD_LOADED) | (RUNDOWN, METHOD_THERE) => {
                let _ = methods.learn(&event);
            }
            _ => {}
        }
    }
    Ok((methods, samples))
}

impl Methods {
    /// Takes a method from an event: number and module in 8 bytes each, address in 8, size, token
    /// and flags in 4 each, then type, method and signature.
    fn learn(&mut self, event: &Event) -> Option<()> {
        let payload = &event.payload;
        let start = u64::from_le_bytes(payload.get(16..24)?.try_into().ok()?);
        let size = u32::from_le_bytes(payload.get(24..28)?.try_into().ok()?);
        let mut texts = payload.get(36..)?;
        let (of_type, method) = (text(&mut texts)?, text(&mut texts)?);
        self.0.insert(start, (start + u64::from(size), name(&of_type, &method)));
        Some(())
    }

    /// Name of the method with this address, which may be one that a call returns to.
    fn name(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.0.range(..=address).next_back()?;
        (address <= *end).then_some(name)
    }
}

/// The next text of UTF-16 with a zero at its end.
fn text(from: &mut &[u8]) -> Option<String> {
    let units = from.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let units: Vec<u16> = units.take_while(|&unit| unit != 0).collect();
    *from = from.get(2 * (units.len() + 1)..)?;
    Some(String::from_utf16_lossy(&units))
}

/// `Namespace.Type::Method` of the source: without type arguments, a method that the compiler made
/// named after the one that it made it of.
fn name(of_type: &str, method: &str) -> String {
    if of_type == "dynamicClass" {
        return format!("DynamicClass::{method}");
    }
    let source =
        |word: &str| Some(word.strip_prefix('<')?.split_once('>')?.0.to_owned()).filter(|word| !word.is_empty());
    let (outer, made) = of_type.split_once('+').unwrap_or((of_type, ""));
    let outer = outer.split('`').next().unwrap_or_default();
    let method = source(method).or_else(|| source(made)).unwrap_or_else(|| method.to_owned());
    format!("{outer}::{method}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(name("KnownPaths.Plain", "Forward"), "KnownPaths.Plain::Forward");
        assert_eq!(name("KnownPaths.Callbacks+<Async>d__28", "MoveNext"), "KnownPaths.Callbacks::Async");
        assert_eq!(name("KnownPaths.Program+<>c__DisplayClass4_0", "<Main>b__0"), "KnownPaths.Program::Main");
        assert_eq!(name("KnownPaths.Generic`1[System.__Canon]", "Run"), "KnownPaths.Generic::Run");
        assert_eq!(name("dynamicClass", "lambda_method1"), "DynamicClass::lambda_method1");
    }

    #[test]
    fn an_address_has_the_name_of_the_code_that_it_lies_in_or_returns_to() {
        let mut methods = Methods::default();
        methods.0.insert(100, (120, "A".to_owned()));
        methods.0.insert(140, (150, "B".to_owned()));
        assert_eq!(
            [99, 100, 120, 121, 145].map(|address| methods.name(address)),
            [None, Some("A"), Some("A"), None, Some("B")]
        );
    }
}
