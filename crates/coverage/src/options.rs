//! Options: the parts of a method that are left out only on demand.

use clrscope_contract::instruments::CheckedInstrument;
use clrscope_contract::instruments::coverage::{DOES_NOT_RETURN, SKIP_AUTO_PROPS};

/// Parts that a plan leaves out only on demand. Making the same plan again needs the same options.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PlanOptions {
    /// Names of the attributes that mark a method as never returning. Code that could run only
    /// after a call of such a method is left out.
    pub(crate) does_not_return: Vec<String>,
    /// Whether auto-implemented properties are left out.
    pub(crate) skips_auto_props: bool,
}

impl PlanOptions {
    /// Reads the options of the instrument `coverage`.
    ///
    /// # Panics
    /// When given the options of another instrument.
    #[must_use]
    pub fn from_request(coverage: &CheckedInstrument) -> Self {
        Self {
            does_not_return: coverage.names(DOES_NOT_RETURN).to_vec(),
            skips_auto_props: coverage.is_on(SKIP_AUTO_PROPS),
        }
    }

    /// Whether plans depend on files of other assemblies, including the framework's.
    #[must_use]
    pub fn needs_framework(&self) -> bool {
        !self.does_not_return.is_empty()
    }

    /// Whether an attribute marks a method that does not return. The option names attributes with
    /// or without the suffix `Attribute`, and in any namespace unless it names one.
    pub(crate) fn is_of_no_return(&self, attribute: &str) -> bool {
        let own = attribute.rsplit(['.', '/']).next().unwrap_or(attribute);
        self.does_not_return.iter().any(|name| {
            let of = if name.contains('.') { attribute } else { own };
            of.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest == "Attribute")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_named_with_and_without_their_ending_and_namespace() {
        let is = |name: &str, attribute: &str| {
            PlanOptions { does_not_return: vec![name.into()], skips_auto_props: false }.is_of_no_return(attribute)
        };
        let full = "System.Diagnostics.CodeAnalysis.DoesNotReturnAttribute";
        for name in ["DoesNotReturn", "DoesNotReturnAttribute", full, "System.Diagnostics.CodeAnalysis.DoesNotReturn"] {
            assert!(is(name, full), "{name}");
        }
        assert!(is("Exits", "Shop/Exits") && is("Exits", "Exits"));
        for name in ["DoesNot", "NotReturnAttribute", "CodeAnalysis.DoesNotReturn", "Shop.DoesNotReturn"] {
            assert!(!is(name, full), "{name}");
        }
        assert!(!is("DoesNotReturn", "System.Diagnostics.CodeAnalysis.DoesNotReturnIfAttribute"));
    }
}
