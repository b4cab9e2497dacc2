//! Options of `flow`.

use std::fmt;

use clrscope_recording::request::{InstrumentRequest, parse_size};

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The last events, in a ring of so many bytes.
    Last(u64),
    /// Everything.
    All,
}

/// `flow:last=SIZE` or `flow:all`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) kept: Kept,
}

impl Default for Options {
    fn default() -> Self {
        Self { kept: Kept::Last(1 << 30) }
    }
}

/// The smallest ring.
const LEAST: u64 = 1 << 20;

impl Options {
    /// Understands the options.
    pub(crate) fn parse(request: &InstrumentRequest) -> Result<Self, String> {
        let mut options = Self::default();
        let mut kept = None;
        for (key, value) in &request.options {
            let found = match (key.as_str(), value.as_deref()) {
                ("last", Some(size)) => Kept::Last(ring_size(size)?),
                ("last", None) => return Err("flow:last takes a size, for instance last=64MiB".into()),
                ("all", None) => Kept::All,
                ("all", Some(value)) => return Err(format!("flow:all={value}: it takes no value")),
                _ => return Err(format!("flow has no option '{key}'; known: last, all")),
            };
            if kept.replace(found).is_some() {
                return Err("flow keeps either the last events or all, and that is said once".into());
            }
        }
        options.kept = kept.unwrap_or(options.kept);
        Ok(options)
    }
}

fn ring_size(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(|error| error.0)?;
    if bytes < LEAST {
        return Err(format!("flow:last={text}: a ring has at least 1MiB"));
    }
    Ok(bytes)
}

impl fmt::Display for Options {
    /// The options with every default filled in, in the grammar that [`Options::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kept {
            Kept::Last(bytes) => write!(f, "flow:last={bytes}"),
            Kept::All => write!(f, "flow:all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(&InstrumentRequest::parse(text).expect("the grammar"))
    }

    #[test]
    fn what_is_printed_is_what_is_meant() {
        for text in ["flow", "flow:all", "flow:last=64MiB"] {
            let options = parse(text).expect("options");
            assert_eq!(parse(&options.to_string()), Ok(options));
        }
    }

    #[test]
    fn bad_options_say_what_is_wrong() {
        assert!(parse("flow:speed=9").expect_err("unknown").contains("known: last"));
        assert!(parse("flow:last=1k").expect_err("small").contains("at least 1MiB"));
        assert!(parse("flow:last").expect_err("no size").contains("takes a size"));
        assert!(parse("flow:all,last=2MiB").expect_err("both").contains("either"));
    }
}
