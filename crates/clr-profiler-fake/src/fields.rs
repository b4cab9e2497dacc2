//! Fields of the fake runtime's classes, and their locations.

use clr_profiler::{HResult, Token};
use clr_profiler_sys::structs::COR_FIELD_OFFSET;

use super::field::{Field, HEAD, LEAST};
use super::world::{World, c_string};

impl World {
    pub(super) fn add_field(&mut self, class: usize, name: &str, place: Option<usize>) {
        let fields = &mut self.modules[self.classes[class].module].fields;
        *fields += 1;
        let token = Token::new(0x0400_0000 + *fields);
        self.classes[class].fields.push(Field { token, name: c_string(name), place });
    }

    /// Returns a field and the index of the class that declares it.
    pub(super) fn field_of_token(&self, module: usize, token: Token) -> Option<(usize, &Field)> {
        let mut classes = self.modules.get(module)?.classes.iter();
        classes.find_map(|class| {
            let fields = &self.classes[*class].fields;
            fields.iter().find(|field| field.token == token).map(|field| (*class, field))
        })
    }

    fn field_of_class(&self, class: usize, token: u32) -> Result<&Field, HResult> {
        let fields = &self.classes[self.class(class)?].fields;
        fields.iter().find(|field| field.token.as_raw() == token).ok_or(HResult::INVALID_ARGUMENT)
    }

    /// Static kind of a field in the runtime's encoding: 0 for an instance field, 1 for one value
    /// per program.
    pub(super) fn static_kind(&self, class: usize, token: u32) -> Result<u32, HResult> {
        Ok(self.field_of_class(class, token)?.place.is_some().into())
    }

    /// The address of a static field's value.
    pub(super) fn static_place(&self, class: usize, token: u32) -> Result<usize, HResult> {
        self.field_of_class(class, token)?.place.ok_or(HResult::INVALID_ARGUMENT)
    }

    /// The instance fields with their offsets, and the size of an object.
    pub(super) fn layout(&self, class: usize) -> Result<(Vec<COR_FIELD_OFFSET>, usize), HResult> {
        let class = &self.classes[self.class(class)?];
        let own = class.fields.iter().filter(|field| field.place.is_none());
        let fields: Vec<_> = (HEAD as u32..)
            .step_by(8)
            .zip(own)
            .map(|(offset, field)| COR_FIELD_OFFSET { field: field.token.as_raw(), offset })
            .collect();
        // The size includes the header in front of the object.
        let size = (2 * HEAD + 8 * fields.len()).max(LEAST);
        Ok((fields, size))
    }
}
