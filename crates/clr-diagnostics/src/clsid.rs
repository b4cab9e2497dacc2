//! Class ids of profilers.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Class id of a profiler, in the format of `CORECLR_PROFILER`:
/// `{XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "128 bits, as COM has them")]
pub struct Clsid(pub u128);

impl FromStr for Clsid {
    type Err = Error;

    /// Reads 32 hexadecimal digits; braces and dashes are ignored.
    fn from_str(text: &str) -> Result<Self, Error> {
        let digits: String = text.chars().filter(|c| !"{}-".contains(*c)).collect();
        let number = (digits.len() == 32).then(|| u128::from_str_radix(&digits, 16).ok()).flatten();
        number.map(Self).ok_or(Error::nonsense("a class id has 32 hexadecimal digits"))
    }
}

impl fmt::Display for Clsid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let (a, b, c, d) = (n >> 96, n >> 80 & 0xffff, n >> 64 & 0xffff, n >> 48 & 0xffff);
        write!(f, "{{{a:08X}-{b:04X}-{c:04X}-{d:04X}-{:012X}}}", n & 0xffff_ffff_ffff)
    }
}
