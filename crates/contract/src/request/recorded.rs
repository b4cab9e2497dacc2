//! A request as a recording keeps it.

use super::syntax::{InstrumentRequest, Request};

/// A longer text is not parsed as a request: no environment variable could have held it.
const LONGEST: usize = 256 << 10;

/// The text of a request, and the parts that this version understands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedRequest {
    text: String,
    request: Request,
}

impl RecordedRequest {
    /// The recorded text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parts of the request that this version understands; other parts are missing.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The requested instruments.
    #[must_use]
    pub fn instruments(&self) -> &[InstrumentRequest] {
        &self.request.instruments
    }
}

impl From<String> for RecordedRequest {
    fn from(text: String) -> Self {
        let request = if text.len() <= LONGEST { Request::understood(&text) } else { Request::default() };
        Self { text, request }
    }
}

impl From<&str> for RecordedRequest {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_later_version_hide_no_others() {
        let recorded = RecordedRequest::from("calls:max=1,x y;speed=9;flow:all; ;include=[A]*;include=[");
        assert_eq!(recorded.instruments(), [InstrumentRequest::parse("flow:all").expect("well formed")]);
        assert_eq!(recorded.request().filter.include.len(), 1);
        assert!(recorded.text().ends_with("include=["));
    }

    #[test]
    fn what_no_environment_could_hold_is_kept_as_text_alone() {
        let recorded = RecordedRequest::from("a;".repeat(LONGEST));
        assert_eq!((recorded.instruments().len(), recorded.text().len()), (0, 2 * LONGEST));
    }
}
