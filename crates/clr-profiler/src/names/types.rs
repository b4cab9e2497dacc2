//! Type names of one module, each read once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::source::{self, Closure, StateMachine};
use crate::metadata::MetadataImport;
use crate::{Result, Token};

/// Nesting deeper than this is cut: metadata could claim a circle.
const NESTING: usize = 32;

/// A module's metadata and the type names read from it so far.
pub(super) struct ModuleNames {
    pub(super) metadata: MetadataImport,
    /// Simple name of the assembly.
    pub(super) assembly: Arc<str>,
    types: Mutex<HashMap<Token, Arc<TypeName>>>,
}

/// A type's name, without type arguments.
pub(super) struct TypeName {
    /// Outermost first; namespace and name, then the nested types' own names.
    segments: Vec<Segment>,
    /// The types around it and itself, outermost first; nil for references.
    tokens: Vec<Token>,
    /// ``Shop.Checkout+<Pay>d__5`1``.
    pub(super) raw: String,
    /// For helper types the compiler made: what they were made of.
    pub(super) helper: Option<Helper>,
}

/// One type of a chain of nested ones.
struct Segment {
    /// Without the arity mark.
    name: String,
    /// Number of generic parameters that it adds to those of the types around it.
    arity: usize,
}

/// A type the compiler made to hold closures or a state machine.
pub(super) struct Helper {
    /// Number of types of the chain that are the programmer's.
    pub(super) depth: usize,
    /// For a state machine, the source method, closure in it, and kind.
    pub(super) machine: Option<(String, Closure, StateMachine)>,
}

impl ModuleNames {
    pub(super) fn new(metadata: MetadataImport, assembly: Arc<str>) -> Self {
        Self { metadata, assembly, types: Mutex::default() }
    }

    /// The name of a type definition or reference of this module.
    pub(super) fn type_name(&self, token: Token) -> Result<Arc<TypeName>> {
        let known = self.types.lock().unwrap_or_else(PoisonError::into_inner).get(&token).cloned();
        if let Some(name) = known {
            return Ok(name);
        }
        // The lock is not held while the runtime is asked: it takes locks of its own.
        let name = Arc::new(self.read_type(token)?);
        self.types.lock().unwrap_or_else(PoisonError::into_inner).insert(token, Arc::clone(&name));
        Ok(name)
    }

    fn read_type(&self, token: Token) -> Result<TypeName> {
        let mut names = Vec::new();
        let mut tokens = Vec::new();
        let mut next = Some(token);
        while let Some(token) = next.take_if(|_| names.len() < NESTING) {
            let (name, outer) = self.read_level(token)?;
            names.push(name);
            tokens.push(token);
            next = outer;
        }
        names.reverse();
        tokens.reverse();
        let helper = self.read_helper(&names, &tokens)?;
        Ok(TypeName {
            raw: names.join("+"),
            segments: names.iter().map(|name| segment(name)).collect(),
            tokens,
            helper,
        })
    }

    /// A type's own name and the type around it.
    fn read_level(&self, token: Token) -> Result<(String, Option<Token>)> {
        if token.table() == Token::TYPE_REF {
            let reference = self.metadata.type_ref(token)?;
            let outer = (reference.scope.table() == Token::TYPE_REF).then_some(reference.scope);
            return Ok((reference.name, outer));
        }
        let definition = self.metadata.type_def(token)?;
        let outer = if definition.is_nested() { self.metadata.enclosing_type(token)? } else { None };
        Ok((definition.name, outer))
    }

    fn read_helper(&self, names: &[String], tokens: &[Token]) -> Result<Option<Helper>> {
        let Some(depth) = names.iter().skip(1).position(|name| source::is_helper_type(name)).map(|at| at + 1) else {
            return Ok(None);
        };
        let (Some(last), Some(token)) = (names.last(), tokens.last()) else { return Ok(None) };
        let machine = match source::origin(last).filter(|origin| origin.is_state_machine) {
            Some(origin) if token.table() == Token::TYPE_DEF => {
                Some((origin.method, origin.closure, self.machine_kind(*token)?))
            }
            _ => None,
        };
        Ok(Some(Helper { depth, machine }))
    }

    /// Iterators keep the current element in a field, async methods a builder; async iterators have
    /// both.
    fn machine_kind(&self, token: Token) -> Result<StateMachine> {
        let has = |field| self.metadata.fields_named(token, field).map(|fields| !fields.is_empty());
        Ok(match (has("<>t__builder")? || has("$Builder")?, has("<>2__current")? || has("$Current")?) {
            (true, true) => StateMachine::AsyncIterator,
            (false, true) => StateMachine::Iterator,
            _ => StateMachine::Async,
        })
    }
}

impl TypeName {
    /// `Shop.Checkout+Line`, of the first `depth` types of the chain.
    pub(super) fn plain(&self, depth: usize) -> String {
        let mut text = String::with_capacity(self.raw.len());
        for (n, segment) in self.segments.iter().take(depth).enumerate() {
            if n > 0 {
                text.push('+');
            }
            text.push_str(&segment.name);
        }
        text
    }

    /// Number of types that the chain has.
    pub(super) fn depth(&self) -> usize {
        self.segments.len()
    }

    /// The token of the `depth`th type of the chain.
    pub(super) fn token(&self, depth: usize) -> Option<Token> {
        self.tokens.get(depth.checked_sub(1)?).copied()
    }

    /// Number of generic parameters of the `depth`th type, those around it included.
    pub(super) fn arity(&self, depth: usize) -> usize {
        self.segments.iter().take(depth).map(|segment| segment.arity).sum()
    }

    /// The last type's own name without namespace: what a constructor is called.
    pub(super) fn simple(&self, depth: usize) -> &str {
        let Some(segment) = self.segments.get(depth.saturating_sub(1)) else { return "" };
        if depth > 1 { &segment.name } else { segment.name.rsplit('.').next().unwrap_or_default() }
    }

    /// As C# writes it: `Shop.Checkout<int>.Line`. Takes type arguments from the front of
    /// `arguments` and returns how many.
    pub(super) fn write_csharp(&self, out: &mut String, depth: usize, arguments: &[Arc<str>]) -> usize {
        let mut used = 0;
        for (n, segment) in self.segments.iter().take(depth).enumerate() {
            if n > 0 {
                out.push('.');
            }
            out.push_str(&segment.name);
            let own = arguments.get(used..).unwrap_or_default();
            let own = &own[..own.len().min(segment.arity)];
            write_arguments(out, own);
            used += own.len();
        }
        used
    }

    /// The C# word or notation for types that have one, the full name otherwise.
    pub(super) fn write_as_type(&self, out: &mut String, arguments: &[Arc<str>]) {
        if let [segment] = self.segments.as_slice() {
            match (segment.name.as_str(), arguments) {
                ("System.Nullable", [inner]) => {
                    out.push_str(inner);
                    return out.push('?');
                }
                ("System.ValueTuple", [_, _, ..]) if arguments.len() < 8 => {
                    out.push('(');
                    write_list(out, arguments);
                    return out.push(')');
                }
                (name, []) if keyword(name).is_some() => return out.push_str(keyword(name).unwrap_or_default()),
                _ => {}
            }
        }
        self.write_csharp(out, self.depth(), arguments);
    }
}

pub(super) fn write_arguments(out: &mut String, arguments: &[Arc<str>]) {
    if !arguments.is_empty() {
        out.push('<');
        write_list(out, arguments);
        out.push('>');
    }
}

fn write_list(out: &mut String, items: &[Arc<str>]) {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        out.push_str(item);
    }
}

/// Takes the arity mark off: ``List`1``. Visual Basic's state machines have the names of their
/// methods; only the numbers before the names are the compiler's.
fn segment(name: &str) -> Segment {
    let (plain, arity) = match name.rsplit_once('`') {
        Some((plain, arity)) if arity.parse::<usize>().is_ok() => (plain, arity.parse().unwrap_or(0)),
        _ => (name, 0),
    };
    Segment { name: source::visual_basic_state_machine(plain).unwrap_or(plain).to_owned(), arity }
}

/// C#'s word for a type of the base library. `System.__Canon` stands for all reference types that
/// share code.
fn keyword(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("System.")? {
        "Void" => "void",
        "Boolean" => "bool",
        "Char" => "char",
        "SByte" => "sbyte",
        "Byte" => "byte",
        "Int16" => "short",
        "UInt16" => "ushort",
        "Int32" => "int",
        "UInt32" => "uint",
        "Int64" => "long",
        "UInt64" => "ulong",
        "Single" => "float",
        "Double" => "double",
        "Decimal" => "decimal",
        "String" => "string",
        "Object" => "object",
        "IntPtr" => "nint",
        "UIntPtr" => "nuint",
        "__Canon" => "__Canon",
        _ => return None,
    })
}
