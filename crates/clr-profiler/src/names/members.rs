//! Names of what objects keep: fields by their place, elements by their number.

use crate::{ArrayClass, ClassId, NameCache, ProfilerInfo, Token};

/// Fields and element types nested deeper than this are cut.
const DEPTH: u32 = 8;

/// A reference to the class, and in arrays the length and what fills it up to 8 bytes.
const ARRAY_HEAD: usize = 16;
/// Length and lowest index of a dimension, where an array has several.
const DIMENSION: usize = 8;

impl NameCache {
    /// The name of what lies `offset` bytes into an object of `class`, for instance of a
    /// [`Reference`](crate::Reference): a field, one of a base class too, as `Next` (a property's
    /// own by the property's name); an element of an array as `[3]`, and the field in it where
    /// elements are values, `[3].Key`. Elements of arrays with several dimensions are counted
    /// through. A place inside a field whose type is a value has the field's name. `None` where the
    /// runtime says nothing, of strings for instance.
    ///
    /// Where names may be looked up; so not in the callbacks that report references, but after
    /// them.
    #[must_use]
    pub fn member(&self, info: &ProfilerInfo, class: ClassId, offset: usize) -> Option<String> {
        self.member_within(info, class, offset, DEPTH)
    }

    fn member_within(&self, info: &ProfilerInfo, class: ClassId, offset: usize, depth: u32) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        match info.array_class(class).ok()? {
            Some(array) => self.element(info, array, offset, depth),
            None => self.field_at(info, class, offset),
        }
    }

    fn element(&self, info: &ProfilerInfo, array: ArrayClass, offset: usize, depth: u32) -> Option<String> {
        /// Element type of values in the metadata.
        const VALUE: u8 = 0x11;
        let dimensions = if array.rank > 1 { array.rank as usize * DIMENSION } else { 0 };
        let place = offset.checked_sub(ARRAY_HEAD + dimensions)?;
        let (VALUE, Some(element)) = (array.element_type, array.element) else {
            // References: of others nothing can be asked.
            return Some(format!("[{}]", place / size_of::<usize>()));
        };
        let bytes = info.class_layout(element).ok()?.size as usize;
        let (number, within) = (place.checked_div(bytes)?, place % bytes);
        let field = self.member_within(info, element, within, depth);
        Some(field.map_or_else(|| format!("[{number}]"), |field| format!("[{number}].{field}")))
    }

    /// The field at or last before an offset.
    fn field_at(&self, info: &ProfilerInfo, class: ClassId, offset: usize) -> Option<String> {
        let (mut next, mut nearest): (_, Option<(u32, Token, ClassId)>) = (Some(class), None);
        for _ in 0..1000 {
            let Some(class) = next else { break };
            // Of classes that the runtime lays out itself, there is nothing to tell.
            let fields = info.class_layout(class).map_or_else(|_| Vec::new(), |layout| layout.fields);
            let before = fields.into_iter().filter(|(_, start)| *start as usize <= offset);
            let own = before.map(|(token, start)| (start, token, class)).max_by_key(|(start, ..)| *start);
            nearest = nearest.into_iter().chain(own).max_by_key(|(start, ..)| *start);
            next = info.class_info(class).ok()?.parent;
        }
        let (_, token, class) = nearest?;
        let metadata = self.metadata(info, info.class_info(class).ok()?.module).ok()?;
        Some(field_name(&metadata.field(token).ok()?.name).to_owned())
    }
}

/// The name of a field in the source: what a property keeps, the compiler names after the property.
pub(super) fn field_name(name: &str) -> &str {
    name.strip_prefix('<').and_then(|name| name.strip_suffix(">k__BackingField")).unwrap_or(name)
}
