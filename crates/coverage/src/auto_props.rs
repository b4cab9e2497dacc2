//! Initial values of auto-implemented properties. A constructor stores them in compiler-generated
//! backing fields.

use std::collections::HashSet;
use std::ops::Range;

use clr_il::Opcode;
use clr_metadata::{Assembly, SequencePoint, Table};

use crate::code::{Code, Step};
use crate::excluded::COMPILER_GENERATED;

/// Backing fields of properties.
#[derive(Debug, Default)]
pub(crate) struct Initializers {
    /// Each by its type's row and its name: code of generic types has no field tokens.
    fields: HashSet<(u32, String)>,
}

impl Initializers {
    /// Returns the backing fields of all auto-implemented properties of an assembly.
    pub(crate) fn in_assembly(assembly: &Assembly) -> Self {
        let made = assembly.with_attributes(|attribute| attribute == COMPILER_GENERATED);
        let fields = made.into_iter().filter(|token| token >> 24 == u32::from(Table::FIELD.0));
        let fields = fields.filter_map(|token| assembly.field(token));
        let fields = fields.filter(|field| field.name.ends_with("k__BackingField"));
        Self { fields: fields.filter_map(|field| Some((field.owner?, field.name))).collect() }
    }

    /// Offset ranges of the code that stores initial values of properties. Each range extends from
    /// one sequence point to the next. Only code before the call of the base constructor counts, so
    /// constructors that assign to properties keep their lines. Constructors of structures call no
    /// base constructor and keep all lines.
    pub(crate) fn within(
        &self,
        code: &Code<'_>,
        assembly: &Assembly,
        method: u32,
        owner: u32,
        points: &[SequencePoint],
    ) -> Vec<Range<u32>> {
        if self.fields.is_empty() || assembly.method_name(method) != ".ctor" {
            return Vec::new();
        }
        let base_call = base_call(code, assembly, owner);
        let ends = points.iter().skip(1).map(|point| point.il_offset).chain([base_call]);
        let ranges = points.iter().zip(ends).map(|(point, end)| point.il_offset..end.min(base_call));
        let is_initial = |range: &Range<u32>| {
            code.steps.iter().any(|step| range.contains(&step.offset) && self.is_store(code, step))
        };
        ranges.filter(is_initial).collect()
    }

    fn is_store(&self, code: &Code<'_>, step: &Step) -> bool {
        // The default value of a structure or type parameter is initialised in place.
        let field = code.field(step).filter(|_| step.is_one_of(&[Opcode::Stfld, Opcode::Ldflda]));
        field.and_then(|field| Some((field.owner?, field.name))).is_some_and(|field| self.fields.contains(&field))
    }
}

/// Offset of the call of the base constructor; 0 if there is none.
fn base_call(code: &Code<'_>, assembly: &Assembly, owner: u32) -> u32 {
    let Some(base) = assembly.base_type(owner) else { return 0 };
    let is_base = |step: &&Step| {
        step.is(Opcode::Call) && code.callee(step).is_some_and(|callee| callee.name == ".ctor" && callee.owner == base)
    };
    code.steps.iter().find(is_base).map_or(0, |step| step.offset)
}
