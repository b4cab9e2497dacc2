//! Runs the fuzz targets without libFuzzer, see `fuzz/README.md`.
#![expect(clippy::print_stdout, reason = "an example that prints what it found")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use clrscope_recording::testing::fuzzing::{Target, seeds, soak};

const USAGE: &str = "usage: soak run TARGET|all SECONDS SEED | soak replay TARGET FILE | soak seeds FOLDER";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["run", target, seconds, seed] => {
            let (seconds, seed) = (Duration::from_secs(seconds.parse()?), seed.parse()?);
            targets(target)?.into_iter().try_for_each(|target| run(target, seconds, seed))
        }
        ["replay", target, file] => {
            targets(target)?.into_iter().for_each(|target| target.run(&fs::read(file).unwrap_or_default()));
            Ok(())
        }
        ["seeds", folder] => Target::ALL.into_iter().try_for_each(|target| write_seeds(target, Path::new(folder))),
        _ => Err(USAGE.into()),
    }
}

fn targets(name: &str) -> Result<Vec<Target>, Box<dyn Error>> {
    let found: Vec<_> = Target::ALL.into_iter().filter(|target| name == "all" || name == target.name()).collect();
    if found.is_empty() { Err(USAGE.into()) } else { Ok(found) }
}

fn run(target: Target, time: Duration, seed: u64) -> Result<(), Box<dyn Error>> {
    let soaked = soak(target, seed, time)?;
    println!("{}: {} inputs, the slowest took {:.1?}", target.name(), soaked.inputs, soaked.slowest);
    let Some(input) = soaked.failure else { return Ok(()) };
    let name = format!("crash-{}-{seed}", target.name());
    fs::write(&name, input)?;
    Err(format!("{} panicked; the input is in {name}", target.name()).into())
}

fn write_seeds(target: Target, folder: &Path) -> Result<(), Box<dyn Error>> {
    let folder = folder.join(target.name());
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds(target)?.into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
