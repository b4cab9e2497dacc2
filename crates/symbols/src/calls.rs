//! Call sites in the code of a method, searched by the name of the callee.

use std::collections::HashSet;

use clr_il::{Opcode, length, raw_instructions};
use clr_metadata::{Assembly, Table};

/// Maximum depth of followed calls. A callee may be inlined, and its callees too.
const DEPTH: usize = 4;
/// Maximum number of followed calls of one method.
const MOST: usize = 2000;

/// A call in a method.
#[derive(Debug)]
struct Call {
    /// Offset in the IL.
    offset: u32,
    /// Name of the called method and of its type.
    name: Name,
    /// Names of the methods that the callee calls in turn, as far as the code is in this module.
    through: HashSet<Name>,
}

/// The name of a method without its type and interface; for a constructor, with the type. Types are
/// left out because a virtual call may run the method of another type than the code names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name(String);

impl Name {
    fn new(owner: &str, name: &str) -> Self {
        if name.starts_with('.') {
            let owner = owner.split(['`', '<']).next().unwrap_or(owner);
            let owner = owner.rsplit(['.', '+', '/']).next().unwrap_or(owner);
            return Self(format!("{owner}{name}"));
        }
        Self(
            name.split('<')
                .next()
                .filter(|name| !name.is_empty())
                .unwrap_or(name)
                .rsplit('.')
                .next()
                .unwrap_or(name)
                .to_owned(),
        )
    }

    /// Parses `Namespace.Type::Method`.
    fn parse(function: &str) -> Self {
        let (owner, name) = function.rsplit_once("::").unwrap_or(("", function));
        Self::new(owner, name)
    }
}

/// The calls of a method, in the order of its code.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<Call>);

impl Calls {
    /// The calls of the method in this row of the metadata table.
    pub(crate) fn of_method(assembly: &Assembly, row: u32) -> Self {
        let mut left = MOST;
        let call = |(offset, token): (u32, u32)| {
            let fact = assembly.method(token)?;
            let mut through = HashSet::new();
            follow(assembly, token, DEPTH, &mut left, &mut through);
            Some(Call { offset, name: Name::new(&fact.owner, &fact.name), through })
        };
        Self(tokens(assembly, row).into_iter().filter_map(call).collect())
    }

    /// IL offsets of all calls that may lead to a method: direct calls, calls of methods of this
    /// module that may be inlined, and calls of delegates.
    pub(crate) fn to(&self, function: &str) -> Vec<u32> {
        let wanted = Name::parse(function);
        // Whatever a delegate is made of.
        let delegate = Name::new("", "Invoke");
        let leads_to = |call: &&Call| call.name == wanted || call.name == delegate || call.through.contains(&wanted);
        self.0.iter().filter(leads_to).map(|call| call.offset).collect()
    }
}

/// Adds the names of the callees of a method of this module.
fn follow(assembly: &Assembly, token: u32, depth: usize, left: &mut usize, names: &mut HashSet<Name>) {
    let row = token & 0x00FF_FFFF;
    if depth == 0 || Table::METHOD_DEF.token(row) != token {
        return;
    }
    for (_, token) in tokens(assembly, row) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let Some(fact) = assembly.method(token) else { continue };
        // Known names have been followed already.
        if names.insert(Name::new(&fact.owner, &fact.name)) {
            follow(assembly, token, depth - 1, left, names);
        }
    }
}

/// Offsets of the calls in a method, and the tokens of the callees.
fn tokens(assembly: &Assembly, row: u32) -> Vec<(u32, u32)> {
    let code = assembly.code_from(row).and_then(|code| raw_instructions(code.get(..length(code).ok()?)?).ok());
    let calls = code.into_iter().flatten().map_while(Result::ok).filter_map(|one| {
        let is_call = matches!(one.opcode, Opcode::Call | Opcode::Callvirt | Opcode::Newobj | Opcode::Jmp);
        let token = is_call.then(|| one.operand.try_into().ok().map(u32::from_le_bytes))??;
        Some((one.offset, token))
    });
    calls.collect()
}
