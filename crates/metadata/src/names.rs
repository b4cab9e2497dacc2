//! Names of types in metadata form, and of types and methods in C# form.

use crate::assembly::{DEPTH, row_of};
use crate::{Assembly, Blob, Table};

/// C# keywords for the element types of ECMA-335, II.23.1.16, that have one.
const KEYWORDS: &[(u8, &str)] = &[
    (0x01, "void"),
    (0x02, "bool"),
    (0x03, "char"),
    (0x04, "sbyte"),
    (0x05, "byte"),
    (0x06, "short"),
    (0x07, "ushort"),
    (0x08, "int"),
    (0x09, "uint"),
    (0x0a, "long"),
    (0x0b, "ulong"),
    (0x0c, "float"),
    (0x0d, "double"),
    (0x0e, "string"),
    (0x18, "nint"),
    (0x19, "nuint"),
    (0x1c, "object"),
];

/// The next element type that is not a custom modifier.
pub(crate) fn without_modifiers(blob: &mut Blob<'_>) -> Option<u8> {
    loop {
        match blob.byte()? {
            0x1f | 0x20 => blob.type_token()?,
            0x41 | 0x45 => 0,
            element => return Some(element),
        };
    }
}

/// Splits a name from the number of type parameters at its end.
fn without_arity(name: &str) -> (&str, usize) {
    match name.rsplit_once('`') {
        Some((plain, count)) => count.parse().map_or((name, 0), |count| (plain, count)),
        None => (name, 0),
    }
}

impl Assembly {
    /// Name of a field's type, in the form of [`Assembly::type_name`], for the kinds that callers
    /// need; empty for others.
    pub(crate) fn field_type(&self, signature: &[u8]) -> String {
        let mut blob = Blob::new(signature);
        if blob.byte() == Some(0x06) { self.element_type(&mut blob).unwrap_or_default() } else { String::new() }
    }

    fn element_type(&self, blob: &mut Blob<'_>) -> Option<String> {
        match without_modifiers(blob)? {
            0x02 => Some("System.Boolean".into()),
            0x08 => Some("System.Int32".into()),
            0x1c => Some("System.Object".into()),
            0x11 | 0x12 => Some(self.type_name(blob.type_token()?)),
            0x15 => {
                blob.byte()?;
                Some(self.type_name(blob.type_token()?))
            }
            _ => None,
        }
    }

    /// Full name of the type with this token, in metadata form: `Shop.Cache`1/Entry`. A constructed
    /// type has the name of its definition. Empty if no type has this token.
    #[must_use]
    pub fn type_name(&self, token: u32) -> String {
        self.type_name_within(self.definition_of(token), DEPTH).unwrap_or_default()
    }

    fn type_name_within(&self, token: u32, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        let (data, tables) = (&self.data[..], &self.tables);
        let (table, names, outer) = if let Some(row) = row_of(token, Table::TYPE_DEF) {
            let outer = self.enclosing_type(row).map(|row| Table::TYPE_DEF.token(row));
            (Table::TYPE_DEF, (row, 1), outer)
        } else {
            let row = row_of(token, Table::TYPE_REF)?;
            let scope = tables.token(data, Table::TYPE_REF, row, 0);
            (Table::TYPE_REF, (row, 1), scope.filter(|token| row_of(*token, Table::TYPE_REF).is_some()))
        };
        let (row, column) = names;
        let name = tables.text(data, table, row, column)?;
        if let Some(outer) = outer {
            return Some(format!("{}/{name}", self.type_name_within(outer, depth)?));
        }
        let namespace = tables.text(data, table, row, column + 1)?;
        Some(if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") })
    }

    /// Name of a type of this assembly in C# form: `Shop.Cache<T>.Entry`.
    #[must_use]
    pub fn display_type(&self, type_row: u32) -> String {
        self.display_type_with(type_row, '.')
    }

    /// Name of a type of this assembly in C# form, but with the character `within` in front of
    /// nested types: `Shop.Cache<T>+Entry`.
    #[must_use]
    pub fn display_type_with(&self, type_row: u32, within: char) -> String {
        let (data, tables) = (&self.data[..], &self.tables);
        let mut parameters = self.generic_parameters(Table::TYPE_DEF.token(type_row)).into_iter();
        let mut rows: Vec<u32> = self.with_enclosing(type_row).collect();
        rows.reverse();
        let mut shown = String::new();
        for row in rows {
            let namespace = tables.text(data, Table::TYPE_DEF, row, 2).unwrap_or_default();
            let before = if shown.is_empty() { namespace } else { "" };
            let (name, arity) = without_arity(tables.text(data, Table::TYPE_DEF, row, 1).unwrap_or_default());
            match (shown.is_empty(), before.is_empty()) {
                (true, true) => {}
                (true, false) => shown = format!("{before}."),
                (false, _) => shown.push(within),
            }
            shown.push_str(name);
            if arity > 0 {
                let own: Vec<String> = parameters.by_ref().take(arity).collect();
                shown.push_str(&format!("<{}>", own.join(", ")));
            }
        }
        shown
    }

    /// Name of a method in C# form, with its type parameters and without its type: `Add<T>`.
    #[must_use]
    pub fn display_method(&self, row: u32) -> String {
        let parameters = self.generic_parameters(Table::METHOD_DEF.token(row));
        let name = self.method_name(row);
        if parameters.is_empty() { name.to_owned() } else { format!("{name}<{}>", parameters.join(", ")) }
    }

    /// Parameter types of a method in C# form: `(int, string)`. Types of other assemblies have no
    /// namespace.
    #[must_use]
    pub fn display_parameters(&self, row: u32) -> String {
        let shown = self.parameters(row).unwrap_or_default();
        format!("({})", shown.join(", "))
    }

    fn parameters(&self, row: u32) -> Option<Vec<String>> {
        let of_type = self.type_of_method(row).map(|owner| self.generic_parameters(Table::TYPE_DEF.token(owner)));
        let scope = (of_type.unwrap_or_default(), self.generic_parameters(Table::METHOD_DEF.token(row)));
        let mut blob = Blob::new(self.method_signature(row));
        if blob.byte()? & 0x10 != 0 {
            blob.unsigned()?;
        }
        let count = blob.unsigned()?;
        // The return type comes first.
        self.display_element(&mut blob, &scope, DEPTH)?;
        (0..count).map(|_| self.display_element(&mut blob, &scope, DEPTH)).collect()
    }

    fn display_element(&self, blob: &mut Blob<'_>, scope: &(Vec<String>, Vec<String>), depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        let element = without_modifiers(blob)?;
        if let Some((_, word)) = KEYWORDS.iter().find(|(known, _)| *known == element) {
            return Some((*word).to_owned());
        }
        let named = |names: &[String], number: u32| names.get(number as usize).cloned().unwrap_or_else(|| "?".into());
        Some(match element {
            0x0f => format!("{}*", self.display_element(blob, scope, depth)?),
            0x10 => format!("ref {}", self.display_element(blob, scope, depth)?),
            0x11 | 0x12 => self.short_name(blob.type_token()?),
            0x13 => named(&scope.0, blob.unsigned()?),
            0x1e => named(&scope.1, blob.unsigned()?),
            0x14 => self.display_array(blob, scope, depth)?,
            0x15 => {
                blob.byte()?;
                let definition = self.short_name(blob.type_token()?);
                let count = blob.unsigned()?;
                let arguments = (0..count).map(|_| self.display_element(blob, scope, depth));
                format!("{definition}<{}>", arguments.collect::<Option<Vec<_>>>()?.join(", "))
            }
            0x16 => "TypedReference".into(),
            0x1d => format!("{}[]", self.display_element(blob, scope, depth)?),
            // Function pointers contain a signature of their own.
            _ => return None,
        })
    }

    fn display_array(&self, blob: &mut Blob<'_>, scope: &(Vec<String>, Vec<String>), depth: usize) -> Option<String> {
        let element = self.display_element(blob, scope, depth)?;
        let rank = blob.unsigned()?;
        for _ in 0..2 {
            for _ in 0..blob.unsigned()? {
                blob.unsigned()?;
            }
        }
        Some(format!("{element}[{}]", ",".repeat((rank.min(32) as usize).saturating_sub(1))))
    }

    /// A type's own name, without namespace and enclosing types.
    fn short_name(&self, token: u32) -> String {
        let full = self.type_name(token);
        let name = full.rsplit('/').next().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
        without_arity(name).0.to_owned()
    }

    /// Names of the generic parameters of a type or method.
    fn generic_parameters(&self, owner: u32) -> Vec<String> {
        let tag = u32::from(owner >> 24 == u32::from(Table::METHOD_DEF.0));
        let coded = (owner & 0x00ff_ffff) << 1 | tag;
        let first = self.tables.lower_bound(&self.data, Table::GENERIC_PARAM, 2, coded);
        let rows =
            (first..).take_while(|row| self.tables.get(&self.data, Table::GENERIC_PARAM, *row, 2) == Some(coded));
        rows.map(|row| self.tables.text(&self.data, Table::GENERIC_PARAM, row, 3).unwrap_or_default().to_owned())
            .collect()
    }
}
