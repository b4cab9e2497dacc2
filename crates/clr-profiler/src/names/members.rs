//! Names of the contents of objects: fields by their offset, array elements by their index.

use crate::{ArrayClass, ClassId, NameCache, ProfilerInfo, Token};

/// Maximum nesting depth of fields and element types.
const DEPTH: u32 = 8;

/// Size of the header of an array: the class reference, and the length padded to 8 bytes.
const ARRAY_HEAD: usize = 16;
/// Size of the length and lowest index of a dimension, in arrays with several dimensions.
const DIMENSION: usize = 8;

impl NameCache {
    /// The name of the field or array element at `offset` bytes in an object of `class`, for
    /// instance of a [`Reference`](crate::Reference). A field, also of a base class, is named like
    /// `Next`; the backing field of a property has the name of the property. An array element is
    /// `[3]`, or `[3].Key` for a field of an element that is a value. Elements of arrays with
    /// several dimensions are numbered consecutively. An offset inside a field of a value type
    /// gives the name of that field. `None` if the runtime has no layout for the class, for
    /// instance for strings.
    ///
    /// Callable in the same places as other name look-ups: not in the callbacks that report
    /// references, but after them.
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
            // The elements are references; for other elements no query is possible.
            return Some(format!("[{}]", place / size_of::<usize>()));
        };
        let bytes = info.class_layout(element).ok()?.size as usize;
        let (number, within) = (place.checked_div(bytes)?, place % bytes);
        let field = self.member_within(info, element, within, depth);
        Some(field.map_or_else(|| format!("[{number}]"), |field| format!("[{number}].{field}")))
    }

    /// The field at an offset, or the last field before it.
    fn field_at(&self, info: &ProfilerInfo, class: ClassId, offset: usize) -> Option<String> {
        let (mut next, mut nearest): (_, Option<(u32, Token, ClassId)>) = (Some(class), None);
        for _ in 0..1000 {
            let Some(class) = next else { break };
            // For classes with a layout built into the runtime, there is no information.
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

/// The name of a field in the source. For the backing field of a property this is the name of the
/// property.
pub(super) fn field_name(name: &str) -> &str {
    name.strip_prefix('<').and_then(|name| name.strip_suffix(">k__BackingField")).unwrap_or(name)
}
