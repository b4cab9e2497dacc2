//! Type names of one module, each read once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::source::{self, Closure, StateMachine};
use crate::metadata::MetadataImport;
use crate::{Result, Token};

/// Maximum nesting depth: damaged metadata could contain a cycle.
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
    /// Outermost first: namespace and name, then the own names of the nested types.
    segments: Vec<Segment>,
    /// The enclosing types and the type itself, outermost first; nil for references.
    tokens: Vec<Token>,
    /// ``Shop.Checkout+<Pay>d__5`1``.
    pub(super) raw: String,
    /// The source of a compiler-generated helper type.
    pub(super) helper: Option<Helper>,
}

/// One type of a chain of nested ones.
struct Segment {
    /// Name without the arity suffix.
    name: String,
    /// Number of generic parameters, without those of enclosing types.
    arity: usize,
}

/// A type that the compiler generated for closures or a state machine.
pub(super) struct Helper {
    /// Number of types in the chain of nested types that are in the source, not compiler-generated.
    pub(super) depth: usize,
    /// For a state machine: the source method, the closure in it, and the kind.
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
        // The lock is not held during a query: the runtime takes its own locks.
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

    /// A type's own name and its enclosing type.
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

    /// Finds the kind by fields: iterators have a field for the current element, async methods one
    /// for a builder, async iterators both.
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
    /// The name of the first `depth` types of the chain, such as `Shop.Checkout+Line`.
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

    /// Number of types in the chain.
    pub(super) fn depth(&self) -> usize {
        self.segments.len()
    }

    /// The token of the `depth`th type of the chain.
    pub(super) fn token(&self, depth: usize) -> Option<Token> {
        self.tokens.get(depth.checked_sub(1)?).copied()
    }

    /// Number of generic parameters of the `depth`th type, including those of its enclosing types.
    pub(super) fn arity(&self, depth: usize) -> usize {
        self.segments.iter().take(depth).map(|segment| segment.arity).sum()
    }

    /// The own name of the last type without namespace, for the name of a constructor.
    pub(super) fn simple(&self, depth: usize) -> &str {
        let Some(segment) = self.segments.get(depth.saturating_sub(1)) else { return "" };
        if depth > 1 { &segment.name } else { segment.name.rsplit('.').next().unwrap_or_default() }
    }

    /// Writes the name in C# notation, such as `Shop.Checkout<int>.Line`. Takes type arguments from
    /// the front of `arguments` and returns their number.
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

    /// Writes the C# keyword or notation for types that have one, otherwise the full name.
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

/// Splits off the arity suffix, as in ``List`1``. State machines of Visual Basic contain the name
/// of their method; only the number before the name is compiler-generated.
fn segment(name: &str) -> Segment {
    let (plain, arity) = match name.rsplit_once('`') {
        Some((plain, arity)) if arity.parse::<usize>().is_ok() => (plain, arity.parse().unwrap_or(0)),
        _ => (name, 0),
    };
    Segment { name: source::visual_basic_state_machine(plain).unwrap_or(plain).to_owned(), arity }
}

/// The C# keyword for a type of the base library. `System.__Canon` is the placeholder for all
/// reference types that share code.
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
