//! `cargo xtask large`: writes a recording of any size, to try readers and the page with.

use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use clrscope_recording::pack;
use clrscope_recording::testing::many::Many;
use clrscope_recording::testing::many_calls;

const USAGE: &str =
    "usage: cargo xtask large FILE.clrs [--samples N] [--stacks N] [--threads N] [--nodes N] [--wall 1]";

/// Writes the recording. By default it has 10 million samples with a million stacks on 500 threads.
/// With `--nodes` it has call trees with this number of nodes in total instead, with `--wall`
/// wall-time samples.
///
/// # Errors
/// A sentence: the usage, or why the file can't be written.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (file, options) = arguments.split_first().ok_or(USAGE)?;
    let (mut nodes, mut wall) = (None, 0_u32);
    let mut shape = Many { samples: 10_000_000, stacks: 1_000_000, threads: 500 };
    for pair in options.chunks(2) {
        let [name, value] = pair else { return Err(USAGE.to_owned()) };
        let value = value.parse().map_err(|_| USAGE)?;
        match name.as_str() {
            "--samples" => shape.samples = value,
            "--stacks" => shape.stacks = value,
            "--threads" => shape.threads = value,
            "--nodes" => nodes = Some(value),
            "--wall" => wall = value,
            _ => return Err(USAGE.to_owned()),
        }
    }
    let began = Instant::now();
    let (recording, made) = match nodes {
        Some(nodes) => {
            (many_calls::recording(nodes, shape.threads), format!("{nodes} nodes on {} threads", shape.threads))
        }
        None if wall > 0 => (shape.by_the_clock(), format!("{shape:?} by the clock")),
        None => (shape.recording(), format!("{shape:?}")),
    };
    let out = File::create(file).map_err(|error| error.to_string())?;
    pack::write(&recording, &mut BufWriter::new(out)).map_err(|error| error.to_string())?;
    let size = std::fs::metadata(file).map_or(0, |found| found.len());
    println!("{file}: {} MB, {made}, made in {:.1?}", size / 1_000_000, began.elapsed());
    Ok(())
}
