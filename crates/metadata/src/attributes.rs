//! Custom attributes.

use crate::assembly::row_of;
use crate::schema::HAS_CUSTOM_ATTRIBUTE;
use crate::{Assembly, Table};

impl Assembly {
    /// Type names of the custom attributes on the item with this token, see
    /// [`Assembly::type_name`].
    pub fn attributes(&self, token: u32) -> impl Iterator<Item = String> {
        let table = (token >> 24) as u8;
        let tag = HAS_CUSTOM_ATTRIBUTE.tables.iter().position(|other| *other == table);
        let coded = tag.map(|tag| (token & 0x00ff_ffff) << HAS_CUSTOM_ATTRIBUTE.bits | tag as u32);
        let first = coded.map_or(0, |coded| self.tables.lower_bound(&self.data, Table::CUSTOM_ATTRIBUTE, 0, coded));
        let rows = (first..).take_while(move |row| {
            coded.is_some() && self.tables.get(&self.data, Table::CUSTOM_ATTRIBUTE, *row, 0) == coded
        });
        rows.filter_map(|row| self.attribute_type(row)).map(|token| self.type_name(token))
    }

    /// Whether the item with this token has a custom attribute of this type.
    #[must_use]
    pub fn has_attribute(&self, token: u32, type_name: &str) -> bool {
        self.attributes(token).any(|name| name == type_name)
    }

    /// Tokens of all items with a custom attribute for whose type name `wanted` returns true.
    #[must_use]
    pub fn with_attributes(&self, wanted: impl Fn(&str) -> bool) -> Vec<u32> {
        let mut known = std::collections::HashMap::new();
        let mut found = Vec::new();
        for row in 1..=self.count(Table::CUSTOM_ATTRIBUTE) {
            let Some(constructor) = self.tables.token(&self.data, Table::CUSTOM_ATTRIBUTE, row, 1) else { continue };
            let is_wanted = *known
                .entry(constructor)
                .or_insert_with(|| self.attribute_type(row).is_some_and(|token| wanted(&self.type_name(token))));
            if is_wanted {
                found.extend(self.tables.token(&self.data, Table::CUSTOM_ATTRIBUTE, row, 0));
            }
        }
        found
    }

    /// Token of an attribute's type: the type that declares its constructor.
    fn attribute_type(&self, row: u32) -> Option<u32> {
        let constructor = self.tables.token(&self.data, Table::CUSTOM_ATTRIBUTE, row, 1)?;
        match row_of(constructor, Table::METHOD_DEF) {
            Some(method) => self.type_of_method(method).map(|row| Table::TYPE_DEF.token(row)),
            None => self.tables.token(&self.data, Table::MEMBER_REF, row_of(constructor, Table::MEMBER_REF)?, 0),
        }
    }

    /// Rows of the methods that are accessors of a property, for all properties.
    pub fn accessors_of_properties(&self) -> impl Iterator<Item = u32> {
        let rows = 1..=self.count(Table::METHOD_SEMANTICS);
        let rows = rows.filter(|row| {
            let of = self.tables.token(&self.data, Table::METHOD_SEMANTICS, *row, 2);
            of.is_some_and(|token| row_of(token, Table::PROPERTY).is_some())
        });
        rows.filter_map(|row| self.tables.get(&self.data, Table::METHOD_SEMANTICS, row, 1))
    }

    /// Rows of the methods that are accessors of this property.
    pub fn accessors(&self, property: u32) -> impl Iterator<Item = u32> {
        let wanted = Some(Table::PROPERTY.token(property));
        let rows = 1..=self.count(Table::METHOD_SEMANTICS);
        let rows = rows.filter(move |row| self.tables.token(&self.data, Table::METHOD_SEMANTICS, *row, 2) == wanted);
        rows.filter_map(|row| self.tables.get(&self.data, Table::METHOD_SEMANTICS, row, 1))
    }
}
