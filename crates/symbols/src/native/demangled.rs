//! Demangles names of C++ and Rust functions.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Maximum characters of a name: nested templates can be arbitrarily long, and a file may be
/// hostile.
const MOST: usize = 1_000;

/// The function's name in the source, without parameters and result type, like names of methods; so
/// overloads share one name. A name that is not mangled or can't be demangled stays unchanged.
pub(super) fn demangled(name: String) -> String {
    written(&name).unwrap_or(name)
}

fn written(name: &str) -> Option<String> {
    let mut written = BoundedText(String::new());
    // First, as one of Rust's two forms is a name of C++ with a hash at its end.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(written, "{rust:#}").ok()?;
    } else if name.starts_with("_Z") {
        let options = DemangleOptions::new().no_params().no_return_type();
        Symbol::new(name).ok()?.structured_demangle(&mut written, &options).ok()?;
    }
    (!written.0.is_empty()).then_some(written.0)
}

/// A text that refuses to grow beyond [`MOST`].
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_and_rust_are_as_they_were_written() {
        for (mangled, name) in [
            ("_ZN3WKS7gc_heap4markEPPh", "WKS::gc_heap::mark"),
            ("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"),
            ("PAL_wcscmp", "PAL_wcscmp"),
            ("_Znonsense", "_Znonsense"),
            ("_Z", "_Z"),
            ("", ""),
        ] {
            assert_eq!(demangled(mangled.to_owned()), name);
        }
    }

    #[test]
    fn names_that_would_grow_without_end_stay_mangled() {
        // Each pair doubles the one before.
        let pairs: String = (0..64).map(|_| "St4pairI").collect();
        let ends: String =
            (0..64).map(|at| if at == 0 { "iiE".to_owned() } else { format!("S{}_E", at - 1) }).collect();
        let mangled = format!("_Z1f{pairs}{ends}");
        assert_eq!(demangled(mangled.clone()).len().min(MOST + 1), mangled.len().min(MOST + 1));
    }
}
