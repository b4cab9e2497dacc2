//! Finds instructions that assign static fields, in the code of the module that declares the
//! fields.
//!
//! A field has no line of its own in a PDB. An initializer is code of the type's constructor, and
//! its line is the line of the declaration. An event has compiler-generated code without lines, and
//! changes where handlers are added.

use clr_il::{Opcode, RawInstruction, length, raw_instructions};
use clr_metadata::{Assembly, Table};

/// The position of an instruction: token of its method, and offset in the IL.
pub(crate) type Place = (u32, u32);

/// Closeness of an instruction to a field's declaration, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    /// The type's own constructor sets the field.
    Initializer,
    /// Another method of the type sets the field.
    OwnMethod,
    /// Code of another type sets the field.
    Elsewhere,
    /// A handler is added to an event.
    Subscription,
    /// Code takes the address of the field, through which other code may set it.
    Address,
}

/// A static field of an assembly.
struct Field<'a> {
    assembly: &'a Assembly,
    owner: u32,
    name: &'a str,
}

impl<'a> Field<'a> {
    /// The field with a name in C# notation, `Shop.Cache<string>.items`.
    fn find(assembly: &'a Assembly, name: &'a str) -> Option<Self> {
        let (owner, name) = name.rsplit_once('.')?;
        let owner = without_arguments(owner);
        let mut types = 1..=assembly.count(Table::TYPE_DEF);
        let owner = types.find(|row| without_arguments(&assembly.display_type(*row)) == owner)?;
        Some(Self { assembly, owner, name })
    }

    /// Closeness of an instruction of a method to the field's declaration; `None` if the
    /// instruction does not use the field.
    fn closeness(&self, instruction: &RawInstruction<'_>, method: u32) -> Option<Closeness> {
        let token = || instruction.operand.try_into().ok().map(u32::from_le_bytes);
        let is_own = || self.assembly.type_of_method(method) == Some(self.owner);
        match instruction.opcode {
            Opcode::Stsfld if self.is_named_by(token()?) => Some(match self.assembly.method_name(method) {
                ".cctor" if is_own() => Closeness::Initializer,
                _ if is_own() => Closeness::OwnMethod,
                _ => Closeness::Elsewhere,
            }),
            Opcode::Ldsflda if self.is_named_by(token()?) => Some(Closeness::Address),
            Opcode::Call if self.is_added_to_by(token()?) => Some(Closeness::Subscription),
            _ => None,
        }
    }

    fn is_named_by(&self, token: u32) -> bool {
        let Some(fact) = self.assembly.field(token).filter(|fact| fact.owner == Some(self.owner)) else { return false };
        // The compiler's field of an automatic property.
        let of_property = || fact.name.strip_prefix('<').and_then(|rest| rest.strip_suffix(">k__BackingField"));
        fact.name == self.name || of_property() == Some(self.name)
    }

    /// Whether a token refers to the method that adds handlers to an event with the field's name.
    fn is_added_to_by(&self, token: u32) -> bool {
        let row = token & 0x00FF_FFFF;
        Table::METHOD_DEF.token(row) == token
            && self.assembly.type_of_method(row) == Some(self.owner)
            && self.assembly.method_name(row).strip_prefix("add_") == Some(self.name)
    }
}

/// Instructions that assign a static field, the closest to its declaration first. `name` is the
/// field's name in C# notation.
pub(crate) fn places(assembly: &Assembly, name: &str) -> Vec<Place> {
    let Some(field) = Field::find(assembly, name) else { return Vec::new() };
    let mut found = Vec::new();
    for method in 1..=assembly.count(Table::METHOD_DEF) {
        let code = assembly.code_from(method).and_then(|code| raw_instructions(code.get(..length(code).ok()?)?).ok());
        for instruction in code.into_iter().flatten().map_while(Result::ok) {
            if let Some(closeness) = field.closeness(&instruction, method) {
                found.push((closeness, (Table::METHOD_DEF.token(method), instruction.offset)));
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, place)| place).collect()
}

/// A type's name without type arguments or parameters: the name that all instantiations share.
fn without_arguments(name: &str) -> String {
    let mut depth = 0_u32;
    let mut keep = |letter: &char| match letter {
        '<' => {
            depth += 1;
            false
        }
        '>' => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    };
    name.chars().filter(|letter| keep(letter)).collect()
}
