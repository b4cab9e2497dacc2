//! Versions of .NET as in folder names: `8.0.15`, `10.0.0-rc.1.25451.107`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version of a runtime or an SDK. Versions are ordered as in .NET: a preview precedes its
/// release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// The major version: `8` in `8.0.15`.
    pub major: u32,
    /// The minor version: `0` in `8.0.15`.
    pub minor: u32,
    /// The patch version: `15` in `8.0.15`.
    pub patch: u32,
    /// The label after the hyphen; empty for a release.
    pub preview: String,
}

/// The text is not a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAVersion;

impl fmt::Display for NotAVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a version such as 8.0.15")
    }
}

impl std::error::Error for NotAVersion {}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let (numbers, preview) = text.split_once('-').unwrap_or((text, ""));
        let mut parts = numbers.split('.').map(number);
        let (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NotAVersion);
        };
        Ok(Self { major, minor, patch, preview: preview.to_owned() })
    }
}

/// Digits only: `u32::from_str` would accept `+8`.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| self.preview.is_empty().cmp(&other.preview.is_empty()))
            .then_with(|| self.preview_parts().cmp(&other.preview_parts()))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Version {
    /// Numbers sort before words and by value, as in semantic versioning.
    fn preview_parts(&self) -> Vec<(bool, u32, &str)> {
        self.preview.split('.').map(|part| number(part).map_or((true, 0, part), |value| (false, value, part))).collect()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.preview.is_empty() { Ok(()) } else { write!(f, "-{}", self.preview) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_as_dotnet_does() {
        let texts = ["8.0.9", "8.0.15", "9.0.0-preview.2", "9.0.0-preview.10", "9.0.0-rc.1", "9.0.0", "10.0.0"];
        let versions: Vec<Version> = texts.iter().map(|text| text.parse().expect("a version")).collect();
        assert!(versions.is_sorted(), "{versions:?}");
        for (version, text) in versions.iter().zip(texts) {
            assert_eq!(version.to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for text in ["", "8", "8.0", "8.0.x", "8.0.1.2", "+8.0.1", "8..1", "99999999999.0.0"] {
            assert_eq!(text.parse::<Version>(), Err(NotAVersion), "{text}");
        }
    }
}
