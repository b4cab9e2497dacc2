//! `cargo xtask soak`: runs the fuzz targets for a while, without libFuzzer; see `fuzz/README.md`.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clrscope_recording::testing::allocator::{Counting, of_process};
use clrscope_recording::testing::fuzzing::{SoakResults, Target, seeds, soak, soak_seeds};

use crate::verdict::in_words;

#[path = "../../crates/report/tests/common/everything.rs"]
mod everything;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// No input may take longer, even on a busy machine: they have some hundred KiB.
const LONGEST: Duration = Duration::from_secs(20);
/// Nor more memory than so many times its size and this; tests have narrower bounds for what only
/// reads.
const MEMORY: (usize, usize) = (200, 64 << 20);

/// Usage: the command line.
fn usage() -> String {
    format!(
        "usage: cargo xtask soak [TARGET|all [SECONDS [SEED]]]
       cargo xtask soak programs [PROGRAM...]
       cargo xtask soak findings [PROGRAM...]
       cargo xtask soak sampling [SECONDS]
       cargo xtask soak async [SECONDS]
       cargo xtask soak probes [ROUNDS]
       cargo xtask soak attaches [INSTRUMENT... [ROUNDS]]
       cargo xtask soak rare [RUNS]
       cargo xtask soak triage [PROGRAM...]
       cargo xtask soak periods [SECONDS]
       cargo xtask soak watch [SECONDS]
       cargo xtask soak fleet [RECORDINGS]
       cargo xtask soak dist
       cargo xtask soak musl
       cargo xtask soak replay TARGET FILE
       cargo xtask soak seeds FOLDER

targets: {}; 60 seconds each unless given, seed number 1
programs: real ones, with the values of all calls read under flow:args and exceptions:args
findings: the programs by which faults were found once; what they print, count and end with is what it is bare
sampling: hostile programs at the highest rate, each 60 seconds unless given, on each runtime and with each engine; then
attach and detach over and over, and a launcher that is killed while attached
async: chains of awaits at full rate while memory is compacted and classes unload, each load 10 seconds unless given
probes: 5,000 methods of a web program under load are recompiled and reverted, ten times unless given, on each runtime
triage: the first look at 36 programs; two of them may be named wrongly (some ten minutes, needs python3 and nothing
else that runs)
periods: a recording of each second for 1,440 seconds unless given, a day of minutes; counts add up, nothing grows
watch: two long programs and 200 short ones in 3,600 seconds unless given; each throw is recorded once, nothing grows
fleet: a data set of 1,000 recordings unless given, made from a few real ones; bytes of each, and queries in DuckDB,
ClickHouse and Spark, which must agree (needs python3 with pip, and Java 17 or later)
dist: what is published is packed twice to the same bytes, installed, and tried in a root of Debian 11 (as root, with debootstrap)
musl: what `dist` has built is tried in a root with musl (as root)",
        Soak::all().map(Soak::name).collect::<Vec<_>>().join(", ")
    )
}

/// The target that is not of the recording alone: every view and every format of a packed file.
const VIEWS: &str = "views";

/// A fuzz target of another crate than the recording's.
struct Foreign {
    name: &'static str,
    run: fn(&[u8]),
    /// Inputs that are right.
    seeds: &'static [&'static [u8]],
}

/// Fuzz targets of other crates.
const FOREIGN: [Foreign; 4] = [
    Foreign {
        name: "diagnostics_answers",
        run: clr_diagnostics::fuzzing::read_answers,
        seeds: &[
            b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0",
            b"ADVR_V1\x000123456789abcdef\x07\0\0\0\0\0\0\0\0\0",
            b"\x03\0\0\0a\0=\0\0\0",
        ],
    },
    Foreign {
        name: "event_stream",
        run: clr_diagnostics::fuzzing::read_events,
        seeds: &[b"Nettrace\x14\0\0\0!FastSerialization.1\x05\x05\x01\x04\0\0\0\x04\0\0\0\x05\0\0\0Trace\x06\x06\x01"],
    },
    Foreign {
        name: "metadata",
        run: clr_metadata::fuzzing::read_file,
        // Its PDB is embedded.
        seeds: &[include_bytes!("../../dotnet/fixtures/bin/Hello.dll")],
    },
    Foreign {
        name: "method_body",
        run: |bytes| {
            clr_il::fuzzing::change_body(bytes);
            clr_il::fuzzing::read_signatures(bytes);
        },
        seeds: &[
            // if (arg) return 1; return 2;
            &[7 << 2 | 2, 0x02, 0x2c, 0x02, 0x17, 0x2a, 0x18, 0x2a],
            // A switch of two, and a block that is protected by a finally.
            &[
                0x1b, 0x30, 8, 0, 21, 0, 0, 0, 0, 0, 0, 0, // fat, with sections
                0x02, 0x45, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x00, 0x00, 0xde, 0x02, 0x00, 0xdc, 0x2a, 0, 0,
                0, // code
                1, 16, 0, 0, 2, 0, 14, 0, 4, 18, 0, 2, 0, 0, 0, 0, // a clause
            ],
            // A signature of a method, and one of local variables.
            &[0x20, 2, 8, 0x1c, 0x0e],
            &[7, 2, 8, 0x12, 0x09],
        ],
    },
];

/// A program to be soaked.
#[derive(Clone, Copy)]
enum Soak {
    /// A fuzz target of the recording.
    Fuzzed(Target),
    /// A fuzz target of another crate.
    Foreign(&'static Foreign),
    /// [`VIEWS`].
    Views,
}

impl Soak {
    fn all() -> impl Iterator<Item = Self> {
        Target::ALL.into_iter().map(Self::Fuzzed).chain(FOREIGN.iter().map(Self::Foreign)).chain([Self::Views])
    }

    fn named(name: &str) -> Result<Vec<Self>, String> {
        let found: Vec<_> = Self::all().filter(|one| name == "all" || name == one.name()).collect();
        if found.is_empty() { Err(usage()) } else { Ok(found) }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Fuzzed(target) => target.name(),
            Self::Foreign(target) => target.name,
            Self::Views => VIEWS,
        }
    }

    /// Panics where the input makes something panic, and where it takes too long or too much.
    fn once(self, input: &[u8]) {
        let began = Instant::now();
        let ((), bytes) = of_process(|| match self {
            Self::Fuzzed(target) => target.run(input),
            Self::Foreign(target) => (target.run)(input),
            Self::Views => ask_everything(input),
        });
        let (took, size) = (began.elapsed(), input.len());
        assert!(took < LONGEST, "{took:?} for {size} bytes");
        assert!(bytes <= size * MEMORY.0 + MEMORY.1, "{bytes} bytes of memory for {size}");
    }

    fn for_a_while(self, seed: u64, time: Duration) -> std::io::Result<SoakResults> {
        let once = |input: &[u8]| self.once(input);
        match self {
            Self::Fuzzed(target) => soak(target, seed, time, once),
            Self::Foreign(_) => Ok(soak_seeds(&self.seeds()?, |_, _| (), seed, time, once)),
            Self::Views => soak(Target::OpenPacked, seed, time, once),
        }
    }

    /// Inputs that are right, to start from.
    fn seeds(self) -> std::io::Result<Vec<Vec<u8>>> {
        match self {
            Self::Fuzzed(target) => seeds(target),
            Self::Foreign(target) => Ok(target.seeds.iter().map(|seed| seed.to_vec()).collect()),
            Self::Views => seeds(Target::OpenPacked),
        }
    }
}

fn ask_everything(packed: &[u8]) {
    if let Ok(recording) = clrscope_recording::packed::from_bytes(Path::new("soaked.clrs"), packed) {
        everything::everything(&recording);
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["replay", target, file] => {
            let input = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
            Soak::named(target)?.into_iter().for_each(|target| target.once(&input));
            Ok(())
        }
        ["seeds", folder] => {
            let has_seeds = |soak: &Soak| !matches!(soak, Soak::Views);
            Soak::all().filter(has_seeds).try_for_each(|soak| write_seeds(soak, Path::new(folder))).map_err(in_words)
        }
        ["programs", ref names @ ..] => crate::programs::run(names),
        ["findings", ref names @ ..] => crate::findings::run(names),
        ["sampling", ref words @ ..] => crate::sampling::run(Duration::from_secs(number_or(words, 60)?)),
        ["async", ref words @ ..] => crate::async_chains::run(Duration::from_secs(number_or(words, 10)?)),
        ["probes", ref words @ ..] => crate::probes::run(number_or(words, 10)?),
        ["triage", ref programs @ ..] => crate::triages::run(programs),
        ["periods", ref words @ ..] => crate::periods::run(Duration::from_secs(number_or(words, 1440)?)),
        ["watch", ref words @ ..] => crate::watches::run(Duration::from_secs(number_or(words, 3600)?)),
        ["fleet", ref words @ ..] => crate::fleet::run(number_or(words, crate::fleet::RECORDINGS)?),
        ["dist"] => crate::published::run(),
        ["musl"] => crate::published::run_with_musl(),
        ["rare", ref words @ ..] => crate::rare::run(number_or(words, 2000)?),
        ["attaches", ref words @ ..] => {
            let (instruments, rounds) = match words.split_last().map(|(last, first)| (first, last.parse())) {
                Some((first, Ok(rounds))) => (first, rounds),
                _ => (words, 1000),
            };
            crate::attaches::run(if instruments.is_empty() { &["cpu"] } else { instruments }, rounds)
        }
        [] => soak_all("all", "60", "1"),
        [target] => soak_all(target, "60", "1"),
        [target, seconds] => soak_all(target, seconds, "1"),
        [target, seconds, seed] => soak_all(target, seconds, seed),
        _ => Err(usage()),
    }
}

/// The only word as a number, or `usual` where there is none.
fn number_or<T: FromStr>(words: &[&str], usual: T) -> Result<T, String> {
    match words {
        [] => Ok(usual),
        [word] => word.parse().map_err(|_| usage()),
        _ => Err(usage()),
    }
}

fn soak_all(target: &str, seconds: &str, seed: &str) -> Result<(), String> {
    let (Ok(seconds), Ok(seed)) = (seconds.parse(), seed.parse()) else { return Err(usage()) };
    Soak::named(target)?.into_iter().try_for_each(|target| soak_one(target, Duration::from_secs(seconds), seed))
}

#[expect(clippy::print_stdout, reason = "a command line tool")]
fn soak_one(target: Soak, time: Duration, seed: u64) -> Result<(), String> {
    let soaked = target.for_a_while(seed, time).map_err(in_words)?;
    println!("{}: {} inputs, the slowest took {:.1?}", target.name(), soaked.inputs, soaked.slowest);
    let Some(input) = soaked.failure else { return Ok(()) };
    let name = format!("crash-{}-{seed}", target.name());
    fs::write(&name, input).map_err(in_words)?;
    Err(format!("{} failed; 'cargo xtask soak replay {} {name}' runs it again", target.name(), target.name()))
}

fn write_seeds(target: Soak, folder: &Path) -> std::io::Result<()> {
    let folder = folder.join(target.name());
    fs::create_dir_all(&folder)?;
    for (number, seed) in target.seeds()?.into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `method_body` was added there and forgotten here.
    #[test]
    fn every_fuzz_target_is_soaked() {
        let manifest = include_str!("../../fuzz/Cargo.toml");
        let targets = manifest.split("[[bin]]").skip(1).map(|bin| {
            let name = bin.lines().find_map(|line| line.strip_prefix("name = ")).expect("a name");
            name.trim_matches('"')
        });
        let mut targets: Vec<&str> = targets.chain([VIEWS]).collect();
        let mut soaked: Vec<&str> = Soak::all().map(Soak::name).collect();
        targets.sort_unstable();
        soaked.sort_unstable();
        assert_eq!(soaked, targets);
    }

    #[test]
    fn right_inputs_of_each_target_are_taken() {
        for soak in Soak::all() {
            for seed in soak.seeds().expect("seeds") {
                assert!(!seed.is_empty(), "{}", soak.name());
                soak.once(&seed);
            }
        }
    }
}
