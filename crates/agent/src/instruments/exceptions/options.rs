//! Options of `exceptions`.

use std::fmt;

use clrscope_contract::request::{InstrumentRequest, parse_limit};

use crate::services::stacks::Walk;

/// Frames kept of a stack when nobody says how many, and at most.
const FRAMES: usize = 64;
const MOST_FRAMES: usize = 256;

/// `exceptions:args,frames=N,stacks=frames|snapshot|check,max=SIZE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// Frames kept of the stack at the throw.
    pub(crate) frames: usize,
    /// Keep the arguments of methods that were named.
    pub(crate) arguments: bool,
    /// How it is walked.
    pub(crate) walk: Walk,
    pub(crate) max_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { frames: FRAMES, arguments: false, walk: Walk::Frames, max_bytes: 1 << 30 }
    }
}

impl crate::instrument::Options for Options {
    fn parse(request: &InstrumentRequest) -> Result<Self, String> {
        let mut options = Self::default();
        for (key, value) in &request.options {
            if key == "args" {
                match value {
                    None => options.arguments = true,
                    Some(value) => return Err(format!("exceptions:args={value}: it takes no value")),
                }
                continue;
            }
            let value = value.as_deref().unwrap_or_default();
            match key.as_str() {
                "frames" => options.frames = frames(value)?,
                "stacks" => options.walk = walk(value)?,
                "max" => options.max_bytes = parse_limit(value).map_err(|error| error.0)?,
                _ => return Err(format!("exceptions has no option '{key}'; known: args, frames, stacks, max")),
            }
        }
        Ok(options)
    }
}

fn frames(value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(frames @ 0..=MOST_FRAMES) => Ok(frames),
        _ => Err(format!("exceptions:frames={value}: it takes a whole number from 0 to {MOST_FRAMES}")),
    }
}

fn walk(value: &str) -> Result<Walk, String> {
    match value {
        "frames" => Ok(Walk::Frames),
        "snapshot" => Ok(Walk::Snapshot),
        "check" => Ok(Walk::Check),
        _ => Err(format!("exceptions:stacks={value}: it takes frames, snapshot or check")),
    }
}

impl fmt::Display for Options {
    /// The options with every default filled in, in the grammar that [`Options::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let walk = match self.walk {
            Walk::Frames => "frames",
            Walk::Snapshot => "snapshot",
            Walk::Check => "check",
        };
        let args = if self.arguments { "args," } else { "" };
        write!(f, "exceptions:{args}frames={},stacks={walk},max={}", self.frames, self.max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::Options as _;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(&InstrumentRequest::parse(text).expect("the grammar"))
    }

    #[test]
    fn what_is_printed_is_what_is_meant() {
        let options = parse("exceptions:frames=9,args,stacks=snapshot,max=64MiB").expect("options");
        assert_eq!(parse(&options.to_string()), Ok(options));
        assert_eq!(parse("exceptions"), Ok(Options::default()));
    }

    #[test]
    fn unknown_options_list_the_known_ones() {
        assert!(parse("exceptions:depth=9").expect_err("unknown").contains("known: args, frames, stacks, max"));
        assert!(parse("exceptions:frames=1000").expect_err("too many").contains("0 to 256"));
        assert!(parse("exceptions:args=all").expect_err("a value").contains("no value"));
        assert!(parse("exceptions:stacks=none").expect_err("unknown").contains("frames, snapshot or check"));
    }
}
