//! Filters of requests that the program serves and makes.

use clap::Args;
use clrscope_analysis::RequestFilter;
use clrscope_contract::request::Glob;

use super::times::time;
use crate::errors::{Failure, quoted};

/// Digits of a trace's number.
const DIGITS: usize = 32;

/// Options that select requests.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Requests (needs -i requests)")]
pub(super) struct RequestFlags {
    /// Only what is done for requests that match, such as 'GET /orders/*' or '* bank.example'; can
    /// be repeated
    #[arg(long, value_name = "PATTERN")]
    request: Vec<String>,

    /// Only for requests that took longer, such as 200ms
    #[arg(long, value_name = "TIME")]
    slower_than: Option<String>,

    /// Only for requests that failed
    #[arg(long)]
    failed: bool,

    /// Only for requests of this trace: 32 hexadecimal digits, or a traceparent header
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
}

impl RequestFlags {
    pub(super) fn into_filter(self) -> Result<RequestFilter, Failure> {
        Ok(RequestFilter {
            routes: self.request.iter().map(|text| Glob::new(text)).collect(),
            slower_than_ns: self.slower_than.as_deref().map(|text| time("--slower-than", text)).transpose()?,
            failed: self.failed,
            trace: self.trace.as_deref().map(trace).transpose()?,
            ..RequestFilter::default()
        })
    }
}

/// The number of a trace. A header has it as its second part (W3C Trace Context, section 3.2).
fn trace(text: &str) -> Result<u128, Failure> {
    let digits = text.trim().split('-').find(|part| part.len() == DIGITS);
    let is_hexadecimal = |digits: &&str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = digits.filter(is_hexadecimal).and_then(|digits| u128::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| {
        let what = format!("'--trace' does not take {}", quoted(text));
        let hint = "write it as --view requests --each --json has it in trace_id";
        Failure::usage(what, "the number of a trace has 32 hexadecimal digits", hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_written_alone_or_as_headers_have_them() {
        let digits = "0af7651916cd43dd8448eb211c80319c";
        let number = u128::from_str_radix(digits, 16).ok();
        assert_eq!(trace(digits).ok(), number);
        assert_eq!(trace(&format!("00-{digits}-b7ad6b7169203331-01")).ok(), number);
        assert_eq!(trace(&digits.to_uppercase()).ok(), number);
        for wrong in ["", "7", &digits[1..], "0af7651916cd43dd8448eb211c80319x", "+af7651916cd43dd8448eb211c80319c"] {
            assert!(trace(wrong).is_err(), "{wrong}");
        }
    }
}
