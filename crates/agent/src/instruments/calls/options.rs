//! Options of `calls`.

use std::fmt;

use clrscope_contract::request::{InstrumentRequest, parse_limit};
use clrscope_recording::model::Clock;

/// `calls:clock=sampled|tsc,noinline,native=on|off,helpers=on|off,trivial=on|off,max=SIZE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) clock: Clock,
    pub(crate) noinline: bool,
    pub(crate) native: bool,
    pub(crate) helpers: bool,
    pub(crate) trivial: bool,
    pub(crate) max_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::Sampled,
            noinline: false,
            native: false,
            helpers: false,
            trivial: true,
            max_bytes: 1 << 30,
        }
    }
}

impl crate::instrument::Options for Options {
    fn parse(request: &InstrumentRequest) -> Result<Self, String> {
        let mut options = Self::default();
        for (key, value) in &request.options {
            let value = value.as_deref();
            match key.as_str() {
                "clock" => options.clock = clock(value)?,
                "noinline" => options.noinline = switch(key, value)?,
                "native" => options.native = switch(key, value)?,
                "helpers" => options.helpers = switch(key, value)?,
                "trivial" => options.trivial = switch(key, value)?,
                "max" => options.max_bytes = parse_limit(value.unwrap_or_default()).map_err(|error| error.0)?,
                _ => {
                    return Err(format!(
                        "calls has no option '{key}'; known: clock, noinline, native, helpers, trivial, max"
                    ));
                }
            }
        }
        Ok(options)
    }
}

fn clock(value: Option<&str>) -> Result<Clock, String> {
    match value {
        Some("sampled") => Ok(Clock::Sampled),
        Some("tsc") => Ok(Clock::Tsc),
        other => Err(format!("calls:clock={}: it takes 'sampled' or 'tsc'", other.unwrap_or_default())),
    }
}

fn switch(key: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(format!("calls:{key}={other}: it takes 'on' or 'off'")),
    }
}

impl fmt::Display for Options {
    /// The options with every default filled in, in the grammar that [`Options::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |value| if value { "on" } else { "off" };
        write!(
            f,
            "calls:clock={},noinline={},native={},helpers={},trivial={},max={}",
            if self.clock == Clock::Tsc { "tsc" } else { "sampled" },
            on(self.noinline),
            on(self.native),
            on(self.helpers),
            on(self.trivial),
            self.max_bytes
        )
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
        let options = parse("calls:clock=tsc,noinline,trivial=off,max=64MiB").expect("options");
        assert_eq!(parse(&options.to_string()), Ok(options));
    }

    #[test]
    fn unknown_options_list_the_known_ones() {
        assert!(parse("calls:speed=9").expect_err("unknown").contains("known: clock"));
        assert!(parse("calls:clock=sun").expect_err("unknown").contains("'sampled' or 'tsc'"));
        assert!(parse("calls:native=maybe").expect_err("unknown").contains("'on' or 'off'"));
    }
}
