//! Methods and types of other assemblies: their location, and keys that distinguish a method from
//! others of the same name.

use crate::assembly::{DEPTH, row_of};
use crate::names::without_modifiers;
use crate::{Assembly, Blob, Table};

/// A key that identifies a method, equal in all assemblies that refer to it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MethodKey {
    /// Name of the type that declares the method, see [`Assembly::type_name`].
    pub owner: String,
    /// Name of the method.
    pub name: String,
    /// Signature as text, with the full names of its types.
    pub signature: String,
}

impl Assembly {
    /// Key of the method with this token, which is a row of the methods or of the member
    /// references. `None` for fields, and for methods whose signature contains function pointers.
    #[must_use]
    pub fn method_key(&self, token: u32) -> Option<MethodKey> {
        let (data, tables) = (&self.data[..], &self.tables);
        let member = row_of(token, Table::MEMBER_REF);
        let signature = match member {
            Some(row) => tables.blob(data, Table::MEMBER_REF, row, 2)?,
            None => self.method_signature(row_of(token, Table::METHOD_DEF)?),
        };
        let fact = self.method(token)?;
        Some(MethodKey { owner: fact.owner, name: fact.name, signature: self.signature_text(signature)? })
    }

    /// Signature of a call's target: of the method, or for `calli` the signature that the token
    /// names.
    #[must_use]
    pub fn signature_of_call(&self, token: u32) -> Option<&[u8]> {
        let (data, tables, token) = (&self.data[..], &self.tables, self.method_definition(token));
        if let Some(row) = row_of(token, Table::METHOD_DEF) {
            return Some(self.method_signature(row));
        }
        match row_of(token, Table::MEMBER_REF) {
            Some(row) => tables.blob(data, Table::MEMBER_REF, row, 2),
            None => tables.blob(data, Table::SIGNATURE, row_of(token, Table::SIGNATURE)?, 0),
        }
    }

    /// For a generic method with type arguments, the token of its definition; other tokens are
    /// returned unchanged.
    #[must_use]
    pub fn method_definition(&self, token: u32) -> u32 {
        let row = row_of(token, Table::METHOD_SPEC);
        row.and_then(|row| self.tables.token(&self.data, Table::METHOD_SPEC, row, 0)).unwrap_or(token)
    }

    /// For a member of a type in another assembly: the name of that assembly, and the name of the
    /// outermost type that encloses the member. `None` for members of types in this assembly.
    #[must_use]
    pub fn assembly_of_member(&self, token: u32) -> Option<(&str, String)> {
        let row = row_of(token, Table::MEMBER_REF)?;
        let mut owner = self.definition_of(self.tables.token(&self.data, Table::MEMBER_REF, row, 0)?);
        for _ in 0..DEPTH {
            let scope = self.tables.token(&self.data, Table::TYPE_REF, row_of(owner, Table::TYPE_REF)?, 0)?;
            if let Some(row) = row_of(scope, Table::ASSEMBLY_REF) {
                return Some((self.tables.text(&self.data, Table::ASSEMBLY_REF, row, 6)?, self.type_name(owner)));
            }
            owner = scope;
        }
        None
    }

    /// Types that this assembly forwards: for each type, its name and the name of the assembly that
    /// defines it. Nested types are not listed.
    pub fn forwarded_types(&self) -> impl Iterator<Item = (String, &str)> {
        let (data, tables) = (&self.data[..], &self.tables);
        (1..=self.count(Table::EXPORTED_TYPE)).filter_map(move |row| {
            let target = tables.token(data, Table::EXPORTED_TYPE, row, 4)?;
            let assembly = tables.text(data, Table::ASSEMBLY_REF, row_of(target, Table::ASSEMBLY_REF)?, 6)?;
            let name = tables.text(data, Table::EXPORTED_TYPE, row, 2)?;
            let namespace = tables.text(data, Table::EXPORTED_TYPE, row, 3)?;
            Some((if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }, assembly))
        })
    }

    /// Name of the base type of a type, see [`type_name`](Self::type_name).
    #[must_use]
    pub fn base_type(&self, type_row: u32) -> Option<String> {
        self.tables.token(&self.data, Table::TYPE_DEF, type_row, 3).map(|token| self.type_name(token))
    }

    fn signature_text(&self, signature: &[u8]) -> Option<String> {
        let mut blob = Blob::new(signature);
        let kind = blob.byte()?;
        // The signature of a field.
        if kind & 0x0f == 0x06 {
            return None;
        }
        let generics = if kind & 0x10 != 0 { blob.unsigned()? } else { 0 };
        let count = blob.unsigned()?;
        let mut text = format!("{kind:x}`{generics}");
        // The return type comes first.
        for _ in 0..=count {
            text.push(' ');
            self.add_element(&mut blob, &mut text, DEPTH)?;
        }
        Some(text)
    }

    fn add_element(&self, blob: &mut Blob<'_>, text: &mut String, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let element = without_modifiers(blob)?;
        match element {
            // Pointers, references and one-dimensional arrays contain an element type.
            0x0f | 0x10 | 0x1d => {
                text.push_str(&format!("{element:x}:"));
                self.add_element(blob, text, depth)?;
            }
            0x11 | 0x12 => text.push_str(&self.type_name(blob.type_token()?)),
            // Generic parameters of the type and of the method.
            0x13 | 0x1e => text.push_str(&format!("{element:x}!{}", blob.unsigned()?)),
            0x14 => {
                self.add_element(blob, text, depth)?;
                text.push_str(&format!("[{}]", blob.unsigned()?));
                for _ in 0..2 {
                    for _ in 0..blob.unsigned()? {
                        blob.unsigned()?;
                    }
                }
            }
            0x15 => {
                blob.byte()?;
                text.push_str(&self.type_name(blob.type_token()?));
                for number in 0..blob.unsigned()? {
                    text.push(if number == 0 { '<' } else { ',' });
                    self.add_element(blob, text, depth)?;
                }
                text.push('>');
            }
            // A function pointer has a signature of its own.
            0x1b => return None,
            _ => text.push_str(&format!("{element:x}")),
        }
        Some(())
    }
}
