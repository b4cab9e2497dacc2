//! The program's entry assembly and its version.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clr_profiler::{AssemblyId, Callbacks, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::functions::Functions;
use clrscope_recording::model::EntryAssembly;
use clrscope_recording::writer::ProcessWriter;

/// Attribute with the version that users see: `1.4.2+8a3f12c`.
const VERSION: &str = "System.Reflection.AssemblyInformationalVersionAttribute";
/// Token of an assembly in its own metadata.
const ASSEMBLY: Token = Token::new(0x2000_0001);
/// Bytes of the longest version that is kept.
const LONGEST: usize = 255;

/// Waits for the entry assembly to be loaded, and notes it in the recording.
pub(crate) struct EntryAssemblyWatch {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    writer: &'static ProcessWriter,
    /// The simple name of the assembly.
    name: String,
    is_found: AtomicBool,
}

impl EntryAssemblyWatch {
    pub(crate) fn new(
        info: &ProfilerInfo,
        functions: &Arc<Functions>,
        writer: &'static ProcessWriter,
        name: String,
    ) -> Self {
        Self { info: info.clone(), functions: Arc::clone(functions), writer, name, is_found: AtomicBool::new(false) }
    }

    /// Notes the module if it is the entry assembly. Call it where the runtime may be queried.
    fn look(&self, module: ModuleId) {
        if self.is_found.load(Ordering::Acquire) {
            return;
        }
        if self.functions.names().assembly(&self.info, module).is_ok_and(|name| *name == *self.name)
            && !self.is_found.swap(true, Ordering::AcqRel)
        {
            let version = self.version(module);
            self.writer.entry_assembly(&EntryAssembly { name: self.name.clone(), version });
        }
    }

    fn version(&self, module: ModuleId) -> String {
        let Ok(metadata) = self.functions.names().metadata(&self.info, module) else { return String::new() };
        let attribute = metadata.custom_attribute(ASSEMBLY, VERSION).ok().flatten();
        let version = attribute.as_deref().and_then(text_of).filter(|version| !version.is_empty());
        version.or_else(|| metadata.assembly_version().ok()).unwrap_or_default()
    }
}

impl Callbacks for EntryAssemblyWatch {
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.look(module);
    }

    fn profiler_attach_complete(&self) {
        self.info.modules().unwrap_or_default().into_iter().for_each(|module| self.look(module));
    }
}

/// The string of an attribute with one argument (ECMA-335, II.23.3): a prolog of two bytes, then
/// the compressed length, then UTF-8.
fn text_of(value: &[u8]) -> Option<String> {
    let (length, text) = match value.strip_prefix(&[1, 0])? {
        [length @ 0..=0x7F, text @ ..] => (usize::from(*length), text),
        [first @ 0x80..=0xBF, second, text @ ..] => (usize::from(first & 0x3F) << 8 | usize::from(*second), text),
        _ => return None,
    };
    let text = std::str::from_utf8(text.get(..length.min(LONGEST))?).ok()?;
    Some(text.chars().filter(|c| !c.is_control()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_attribute_is_read() {
        let value = |text: &str| [&[1, 0, text.len() as u8][..], text.as_bytes(), &[0, 0]].concat();
        assert_eq!(text_of(&value("1.4.2+8a3f12c")).as_deref(), Some("1.4.2+8a3f12c"));
        assert_eq!(text_of(&value("")).as_deref(), Some(""));
        assert_eq!(text_of(&value("1\n2")).as_deref(), Some("12"));
        let long = [&[1, 0, 0x80, 0xC8][..], &[b'x'; 200]].concat();
        assert_eq!(text_of(&long), Some("x".repeat(200)));
        for bad in [&[][..], &[1, 0], &[1, 0, 5, b'a'], &[1, 0, 0xFF], &[0, 0, 1, b'a'], &[1, 0, 1, 0xFF]] {
            assert_eq!(text_of(bad), None, "{bad:?}");
        }
    }
}
