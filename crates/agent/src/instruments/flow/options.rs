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

/// What is taken of arguments and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Args {
    Nothing,
    /// Their types.
    Types,
    /// Their values.
    Values,
}

/// `flow:last=SIZE` or `flow:all`, and `args[=types]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) kept: Kept,
    pub(crate) args: Args,
}

impl Default for Options {
    fn default() -> Self {
        Self { kept: Kept::Last(1 << 30), args: Args::Nothing }
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
            match (key.as_str(), value.as_deref()) {
                ("args", None | Some("values")) => options.args = Args::Values,
                ("args", Some("types")) => options.args = Args::Types,
                ("args", Some(other)) => return Err(format!("flow:args={other}: it takes 'types' or 'values'")),
                _ => {}
            }
            if key == "args" {
                continue;
            }
            let found = match (key.as_str(), value.as_deref()) {
                ("last", Some(size)) => Kept::Last(ring_size(size)?),
                ("last", None) => return Err("flow:last takes a size, for instance last=64MiB".into()),
                ("all", None) => Kept::All,
                ("all", Some(value)) => return Err(format!("flow:all={value}: it takes no value")),
                _ => return Err(format!("flow has no option '{key}'; known: last, all, args")),
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
            Kept::Last(bytes) => write!(f, "flow:last={bytes}")?,
            Kept::All => write!(f, "flow:all")?,
        }
        match self.args {
            Args::Nothing => Ok(()),
            Args::Types => write!(f, ",args=types"),
            Args::Values => write!(f, ",args=values"),
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
        for text in ["flow", "flow:all", "flow:last=64MiB", "flow:args", "flow:all,args=types"] {
            let options = parse(text).expect("options");
            assert_eq!(parse(&options.to_string()), Ok(options));
        }
    }

    #[test]
    fn bad_options_say_what_is_wrong() {
        assert!(parse("flow:speed=9").expect_err("unknown").contains("known: last"));
        assert!(parse("flow:last=1k").expect_err("small").contains("at least 1MiB"));
        assert!(parse("flow:args=9").expect_err("unknown").contains("'types' or 'values'"));
        assert!(parse("flow:last").expect_err("no size").contains("takes a size"));
        assert!(parse("flow:all,last=2MiB").expect_err("both").contains("either"));
    }
}
