//! Names of the event sources that a module's code declares.

use clr_metadata::Blob;
use clr_profiler::Token;
use clr_profiler::metadata::MetadataImport;

/// The type that all event sources derive from, and the attribute that may name one.
const EVENT_SOURCE: &str = "System.Diagnostics.Tracing.EventSource";
const ATTRIBUTE: &str = "System.Diagnostics.Tracing.EventSourceAttribute";
/// The property of the attribute.
const NAME: &str = "Name";

/// Most types between a type and the type that all event sources derive from.
const MOST_BASES: usize = 8;

/// Elements of an attribute (ECMA-335, II.23.3): a property, and a text.
const PROPERTY: u8 = 0x54;
const FIELD: u8 = 0x53;
const TEXT: u8 = 0x0E;

/// The names of the event sources of a module. A name comes from the attribute or, without one, is
/// the name of the type (`EventSource.GetName`). If the source's code passes another name to its
/// base class, that name is not known before the source is created.
pub(super) fn declared(metadata: &MetadataImport) -> Vec<String> {
    let types = metadata.type_defs().unwrap_or_default();
    let sources = types.into_iter().filter(|ty| is_event_source(metadata, *ty));
    sources.filter_map(|ty| name(metadata, ty)).collect()
}

fn is_event_source(metadata: &MetadataImport, mut ty: Token) -> bool {
    for _ in 0..MOST_BASES {
        let Ok(about) = metadata.type_def(ty) else { return false };
        let base = about.extends;
        if metadata.type_ref(base).is_ok_and(|about| about.name == EVENT_SOURCE) {
            return true;
        }
        ty = base;
    }
    false
}

fn name(metadata: &MetadataImport, ty: Token) -> Option<String> {
    let attribute = metadata.custom_attribute(ty, ATTRIBUTE).ok().flatten();
    let named = attribute.and_then(|blob| named_text(&blob, NAME));
    let own = || Some(metadata.type_def(ty).ok()?.name.rsplit(['.', '+']).next()?.to_owned());
    named.or_else(own)
}

/// The text that an attribute without arguments gives one of its properties. A property that is no
/// text ends the search: event sources have none in front of their name.
fn named_text(blob: &[u8], property: &str) -> Option<String> {
    let rest = blob.strip_prefix(&[1, 0])?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let mut rest = Blob::new(rest);
    for _ in 0..u16::from_le_bytes(*count) {
        let (PROPERTY | FIELD, TEXT) = (rest.byte()?, rest.byte()?) else { return None };
        let (name, value) = (rest.counted()?, rest.counted()?);
        if name == property.as_bytes() {
            return String::from_utf8(value.to_vec()).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[EventSource(Guid = "g", Name = "Shop")]`.
    const BLOB: &[u8] = b"\x01\0\x02\0\x54\x0E\x04Guid\x01g\x54\x0E\x04Name\x04Shop";

    #[test]
    fn names_are_read_out_of_attributes() {
        assert_eq!(named_text(BLOB, "Name").as_deref(), Some("Shop"));
        assert_eq!(named_text(BLOB, "Guid").as_deref(), Some("g"));
        assert_eq!(named_text(BLOB, "Other"), None);
        for length in 0..BLOB.len() {
            assert_eq!(named_text(&BLOB[..length], "Name"), None, "{length} bytes");
        }
        let mut long = b"\x01\0\x01\0\x54\x0E\x04Name\x81\x00".to_vec();
        long.extend([b'n'; 256]);
        assert_eq!(named_text(&long, "Name").map(|name| name.len()), Some(256));
    }
}
