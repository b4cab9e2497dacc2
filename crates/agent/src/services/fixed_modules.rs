//! Modules whose methods the runtime does not recompile, each with the reason as text.

use std::env;

use clr_profiler::{HResult, ModuleId, NameCache, ProfilerInfo, Token};

const COLLECTIBLE: &str =
    "its assembly is collectible, and the runtime does not recompile (ReJIT) methods of collectible assemblies";
const EDITABLE: &str = "its assembly may be edited while it runs (Edit and Continue), and the runtime does not \
                        recompile methods of such assemblies: start the program without \
                        DOTNET_MODIFIABLE_ASSEMBLIES, which `dotnet watch` sets (`--no-hot-reload`)";
/// Variable that, with the value `debug`, makes assemblies compiled for a debugger editable.
const MODIFIABLE: &str = "DOTNET_MODIFIABLE_ASSEMBLIES";
/// Attribute by which a compiler marks an assembly as compiled for a debugger.
const DEBUGGABLE: &str = "System.Diagnostics.DebuggableAttribute";
/// Token of an assembly in its own metadata.
const ASSEMBLY: Token = Token::new(0x2000_0001);

/// Modules whose methods can't be recompiled.
pub(crate) struct FixedModules {
    /// Whether assemblies compiled for a debugger may be edited.
    edits_allowed: bool,
}

impl FixedModules {
    /// Reads the environment of the process.
    pub(crate) fn new() -> Self {
        Self { edits_allowed: env::var(MODIFIABLE).is_ok_and(|value| value.eq_ignore_ascii_case("debug")) }
    }

    /// Reason why no method of a module can be recompiled. Call only where calls into the runtime
    /// are allowed.
    ///
    /// The attribute tells whether a module may be edited. .NET 9 and 10 refuse such a module with
    /// `CORPROF_E_MODULE_IS_ENC`. .NET 8 accepts the request and does nothing, so the methods
    /// seemed never to be called (measured with the fixture `Editable`).
    pub(crate) fn why(&self, info: &ProfilerInfo, names: &NameCache, module: ModuleId) -> Option<&'static str> {
        if info.module_info(module).is_ok_and(|about| about.flags.is_collectible()) {
            return Some(COLLECTIBLE);
        }
        let attribute = || names.metadata(info, module)?.custom_attribute(ASSEMBLY, DEBUGGABLE);
        let is_editable =
            self.edits_allowed && attribute().is_ok_and(|value| value.is_some_and(|value| is_unoptimised(&value)));
        is_editable.then_some(EDITABLE)
    }
}

/// Whether the value of a [`DEBUGGABLE`] attribute asks for unoptimised code: it holds the modes as
/// one number, or two booleans.
fn is_unoptimised(value: &[u8]) -> bool {
    match value {
        [1, 0, _, modes, _, _, 0, 0] => modes & 1 != 0,
        [1, 0, _, is_disabled, 0, 0] => *is_disabled != 0,
        _ => false,
    }
}

/// Text for a refusal by the runtime, with an explanation where users can do something about it.
pub(crate) fn reason(error: &clr_profiler::Error) -> String {
    match error.hresult() {
        HResult::MODULE_IS_ENC => EDITABLE.to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_for_a_debugger_is_told_by_either_form_of_the_attribute() {
        // Modes of `-debug` and of `-optimize`, then (tracking, not optimised).
        assert!(is_unoptimised(&[1, 0, 7, 1, 0, 0, 0, 0]));
        assert!(!is_unoptimised(&[1, 0, 2, 0, 0, 0, 0, 0]));
        assert!(is_unoptimised(&[1, 0, 1, 1, 0, 0]) && !is_unoptimised(&[1, 0, 1, 0, 0, 0]));
        assert!(!is_unoptimised(&[]));
    }
}
