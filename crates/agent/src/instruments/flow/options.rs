//! Options of `flow`.

use std::fmt;

use clrscope_contract::request::{InstrumentRequest, parse_size};

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

/// `flow:last=SIZE` or `flow:all`, and `args[=types]`, `depth=N`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) kept: Kept,
    pub(crate) args: Args,
    /// How deep objects are opened.
    pub(crate) depth: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { kept: Kept::Last(1 << 30), args: Args::Nothing, depth: 1 }
    }
}

/// The smallest ring.
const LEAST: u64 = 1 << 20;
/// Objects are opened this deep at most: an event's values have two kilobytes.
const DEEPEST: u32 = 5;

impl crate::instrument::Options for Options {
    fn parse(request: &InstrumentRequest) -> Result<Self, String> {
        let mut options = Self::default();
        let mut kept = None;
        let mut depth = None;
        for (key, value) in &request.options {
            let found = match (key.as_str(), value.as_deref()) {
                ("args", value) => {
                    options.args = args(value)?;
                    continue;
                }
                ("depth", value) => {
                    depth = Some(object_depth(value)?);
                    continue;
                }
                ("last", Some(size)) => Kept::Last(ring_size(size)?),
                ("last", None) => return Err("flow:last takes a size, for instance last=64MiB".into()),
                ("all", None) => Kept::All,
                ("all", Some(value)) => return Err(format!("flow:all={value}: it takes no value")),
                _ => return Err(format!("flow has no option '{key}'; known: last, all, args, depth")),
            };
            if kept.replace(found).is_some() {
                return Err("flow keeps either the last events or all, and that is said once".into());
            }
        }
        if depth.is_some() && options.args != Args::Values {
            return Err("flow:depth is how deep objects are opened, and that needs flow:args".into());
        }
        options.depth = depth.unwrap_or(options.depth);
        options.kept = kept.unwrap_or(options.kept);
        Ok(options)
    }
}

fn args(value: Option<&str>) -> Result<Args, String> {
    match value {
        None | Some("values") => Ok(Args::Values),
        Some("types") => Ok(Args::Types),
        Some(other) => Err(format!("flow:args={other}: it takes 'types' or 'values'")),
    }
}

fn object_depth(value: Option<&str>) -> Result<u32, String> {
    let depth = value.and_then(|value| value.parse().ok()).filter(|depth| *depth <= DEEPEST);
    depth.ok_or_else(|| format!("flow:depth={}: it takes a number from 0 to {DEEPEST}", value.unwrap_or_default()))
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
            Args::Values => write!(f, ",args=values,depth={}", self.depth),
        }
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
        for text in [
            "flow",
            "flow:all",
            "flow:last=64MiB",
            "flow:args",
            "flow:all,args=types",
            "flow:args,depth=3",
            "flow:depth=0,args",
        ] {
            let options = parse(text).expect("options");
            assert_eq!(parse(&options.to_string()), Ok(options));
        }
    }

    #[test]
    fn bad_options_say_what_is_wrong() {
        assert!(parse("flow:speed=9").expect_err("unknown").contains("known: last"));
        assert!(parse("flow:last=1k").expect_err("small").contains("at least 1MiB"));
        assert!(parse("flow:args=9").expect_err("unknown").contains("'types' or 'values'"));
        assert!(parse("flow:args,depth=9").expect_err("deep").contains("from 0 to 5"));
        assert!(parse("flow:args,depth=abc").expect_err("no number").contains("from 0 to 5"));
        assert!(parse("flow:depth=2").expect_err("nothing to open").contains("needs flow:args"));
        assert!(parse("flow:last").expect_err("no size").contains("takes a size"));
        assert!(parse("flow:all,last=2MiB").expect_err("both").contains("either"));
    }
}
