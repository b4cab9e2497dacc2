//! Finds the names of a function by its identifier.

use std::sync::Arc;

use super::csharp::{Context, method_name};
use super::source::{self, Closure, SourceKind, StateMachine};
use super::types::{ModuleNames, TypeName, write_arguments};
use super::visual_basic;
use super::{FunctionName, NameCache};
use crate::metadata::signature::{self, MethodSignature, Type};
use crate::metadata::{MethodAttributes, MethodDef};
use crate::{ClassId, FunctionId, FunctionInfo, ModuleId, ProfilerInfo, Result, Token};

/// A function in its module, before its source method is known.
struct RawFunction<'n> {
    module: &'n ModuleNames,
    class: &'n TypeName,
    method: MethodDef,
    name: &'n str,
    /// Type arguments of its class.
    class_arguments: Vec<Arc<str>>,
    /// Type arguments of the function itself.
    own_arguments: Vec<Arc<str>>,
}

/// The source method that a function was compiled from.
struct Source {
    /// Number of types in the chain of nested types that are in the source, not compiler-generated.
    depth: usize,
    method: String,
    kind: SourceKind,
}

pub(super) fn resolve(cache: &NameCache, info: &ProfilerInfo, function: FunctionId) -> Result<FunctionName> {
    let place = match info.function_info(function) {
        Ok(place) if !place.token.is_nil() => place,
        _ => return dynamic(cache, info, function),
    };
    let own_arguments = place.type_arguments.iter().map(|class| cache.class(info, *class)).collect();
    of_method(cache, info, &place, own_arguments)
}

/// The names of a method without type arguments: its generic parameters keep their own names.
pub(super) fn resolve_method(
    cache: &NameCache,
    info: &ProfilerInfo,
    id: ModuleId,
    token: Token,
) -> Result<FunctionName> {
    let own_arguments = parameter_names(&*cache.module(info, id)?, token);
    let place = FunctionInfo { class: None, module: id, token, type_arguments: Vec::new() };
    of_method(cache, info, &place, own_arguments)
}

fn of_method(
    cache: &NameCache,
    info: &ProfilerInfo,
    place: &FunctionInfo,
    own_arguments: Vec<Arc<str>>,
) -> Result<FunctionName> {
    let mut module = cache.module(info, place.module)?;
    if !module.metadata.contains(place.token) {
        // Hot reload may have added the method while the program runs; the image does not have it.
        module = cache.live_module(info, place.module)?;
    }
    let method = module.metadata.method_props(place.token)?;
    let class = module.type_name(method.class)?;
    let name = module.metadata.name(place.token)?;
    let class_arguments = class_arguments(cache, info, place, &module, &class);
    let found = RawFunction { module: &module, class: &class, method, name: &name, class_arguments, own_arguments };
    let source = found.source(info, place.module);
    Ok(FunctionName {
        name: found.plain_name(&source),
        signature: found.signature(&source, place.token),
        raw_name: format!("{}::{name}", class.raw),
        module: Arc::clone(&module.assembly),
        token: place.token,
        module_id: place.module,
        source_kind: source.map_or_else(SourceKind::default, |source| source.kind),
    })
}

/// The type arguments of the class, or the names of its generic parameters if its code is shared
/// over reference types. For shared code .NET 8 and 9 return no class, but .NET 10 does. With the
/// same names for both, their recordings can be compared.
fn class_arguments(
    cache: &NameCache,
    info: &ProfilerInfo,
    place: &FunctionInfo,
    module: &ModuleNames,
    class: &TypeName,
) -> Vec<Arc<str>> {
    if class.arity(class.depth()) == 0 {
        return Vec::new();
    }
    let known = place.class.and_then(|class| info.class_info(class).ok());
    known
        .and_then(|known| exact_names(cache, info, &known.type_arguments))
        .unwrap_or_else(|| class.token(class.depth()).map_or_else(Vec::new, |token| parameter_names(module, token)))
}

/// Names of type arguments; `None` if one of them is open or is the placeholder for all reference
/// types.
fn exact_names(cache: &NameCache, info: &ProfilerInfo, arguments: &[ClassId]) -> Option<Vec<Arc<str>>> {
    let exact = |class: &ClassId| {
        let name = class.non_null().map(|class| cache.class(info, class))?;
        (!is_shared(&name)).then_some(name)
    };
    arguments.iter().map(exact).collect()
}

/// Whether a type's name is, or contains, the placeholder for all reference types.
fn is_shared(name: &str) -> bool {
    name.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).any(|word| word == "__Canon")
}

fn parameter_names(module: &ModuleNames, owner: Token) -> Vec<Arc<str>> {
    let params = module.metadata.generic_params(owner).unwrap_or_default();
    params.into_iter().map(|param| param.name.into()).collect()
}

/// The names of a function without metadata, as in stack traces.
fn dynamic(cache: &NameCache, info: &ProfilerInfo, function: FunctionId) -> Result<FunctionName> {
    let found = info.dynamic_function_info(function)?;
    let module = cache.module(info, found.module).map_or_else(|_| "".into(), |module| Arc::clone(&module.assembly));
    let name = format!("DynamicClass::{}", found.name);
    Ok(FunctionName {
        signature: format!("DynamicClass.{}", found.name),
        raw_name: name.clone(),
        name,
        module,
        token: Token(0),
        module_id: found.module,
        source_kind: SourceKind::default(),
    })
}

impl RawFunction<'_> {
    /// Source method of the function, if the compiler generated the function from a part of a
    /// method.
    fn source(&self, info: &ProfilerInfo, id: ModuleId) -> Option<Source> {
        let mut source = self.named_source()?;
        if source::is_visual_basic_lambda(&source.method)
            && let Some(owner) = self.class.token(source.depth)
            && let Some(method) = visual_basic::source_method(info, (id, self.module), owner, &source.method)
        {
            source.method = method;
        }
        Some(source)
    }

    /// Source method of the function, if its names reveal it.
    fn named_source(&self) -> Option<Source> {
        let helper = self.class.helper.as_ref();
        if let Some(helper) = helper
            && let Some((method, closure, state_machine)) = &helper.machine
        {
            let kind = SourceKind { closure: closure.clone(), state_machine: *state_machine };
            return (self.name == "MoveNext").then(|| Source { depth: helper.depth, method: method.clone(), kind });
        }
        let origin = source::origin(self.name).filter(|origin| !origin.is_state_machine)?;
        let depth = helper.map_or(self.class.depth(), |helper| helper.depth);
        let kind = SourceKind { closure: origin.closure, state_machine: StateMachine::None };
        Some(Source { depth, method: origin.method, kind })
    }

    fn plain_name(&self, source: &Option<Source>) -> String {
        let (depth, method) =
            source.as_ref().map_or((self.class.depth(), self.name), |source| (source.depth, source.method.as_str()));
        let mut name = self.class.plain(depth);
        name.push_str("::");
        name.push_str(method);
        name
    }

    fn signature(&self, source: &Option<Source>, token: Token) -> String {
        match source {
            None => {
                let signature = signature::method(&self.method.signature).ok();
                let attributes = self.method.attributes;
                self.write(self.class.depth(), self.name, attributes, signature.as_ref(), token)
            }
            Some(source) => {
                let (token, attributes, signature) = self.source_method(source);
                let mut text = self.write(source.depth, &source.method, attributes, signature.as_ref(), token);
                text.push_str(" (");
                text.push_str(&source.kind.to_string());
                text.push(')');
                text
            }
        }
    }

    /// Token, attributes and signature of the source method, if it can be distinguished from its
    /// overloads.
    fn source_method(&self, source: &Source) -> (Token, MethodAttributes, Option<MethodSignature>) {
        let nothing = (Token(0), MethodAttributes(0), None);
        let Some(owner) = self.class.token(source.depth) else { return nothing };
        let overloads = self.module.metadata.methods_named(owner, &source.method).unwrap_or_default();
        let chosen = match overloads.as_slice() {
            [only] => Some(*only),
            several => several.iter().copied().find(|method| self.is_made_of(*method, source)),
        };
        let Some((token, method)) =
            chosen.and_then(|token| self.module.metadata.method_props(token).ok().map(|method| (token, method)))
        else {
            return nothing;
        };
        (token, method.attributes, signature::method(&method.signature).ok())
    }

    /// Whether the compiler has marked the method with this state machine's type.
    fn is_made_of(&self, method: Token, source: &Source) -> bool {
        let attribute = match source.kind.state_machine {
            StateMachine::Async => "System.Runtime.CompilerServices.AsyncStateMachineAttribute",
            StateMachine::Iterator => "System.Runtime.CompilerServices.IteratorStateMachineAttribute",
            StateMachine::AsyncIterator => "System.Runtime.CompilerServices.AsyncIteratorStateMachineAttribute",
            StateMachine::None => return false,
        };
        if source.kind.closure != Closure::None {
            return false;
        }
        let value = self.module.metadata.custom_attribute(method, attribute).ok().flatten();
        value.as_deref().and_then(attribute_text).is_some_and(|name| name == self.class.raw)
    }

    /// Writes, for instance, `Shop.Checkout<int>.Pay<string>(Shop.Order)`.
    fn write(
        &self,
        depth: usize,
        method: &str,
        attributes: MethodAttributes,
        signature: Option<&MethodSignature>,
        token: Token,
    ) -> String {
        let mut out = String::with_capacity(96);
        // A helper type repeats the type parameters of its enclosing types and of the source
        // method, in this order.
        let all: Vec<_> = self.class_arguments.iter().chain(&self.own_arguments).cloned().collect();
        let (for_type, rest) = all.split_at(self.class.arity(depth).min(all.len()));
        let arity = signature.map_or(0, |signature| signature.generic_arity as usize);
        let for_method = &rest[..rest.len().min(arity)];
        self.class.write_csharp(&mut out, depth, for_type);
        let context = Context { module: self.module, type_arguments: for_type, method_arguments: for_method };
        let Some(signature) = signature else {
            out.push('.');
            out.push_str(method);
            out.push_str("(...)");
            return out;
        };
        out.push('.');
        let is_special = attributes.is_special_name();
        out.push_str(&method_name(method, is_special, self.class.simple(depth), signature.parameters.len()));
        if is_special && matches!(method, "op_Implicit" | "op_Explicit") {
            out.push(' ');
            context.write_type(&mut out, &signature.return_type);
        }
        write_arguments(&mut out, for_method);
        out.push('(');
        context.write_parameters(&mut out, signature, |n| self.direction(token, n, signature));
        out.push(')');
        out
    }

    /// The keyword of a by-reference parameter. `in` and `out` are attributes of the parameter;
    /// otherwise it is `ref`.
    fn direction(&self, method: Token, parameter: usize, signature: &MethodSignature) -> &'static str {
        if !matches!(signature.parameters.get(parameter), Some(Type::ByRef(_))) {
            return "";
        }
        let attributes = self.module.metadata.param_attributes(method, parameter as u32 + 1).unwrap_or(0);
        match attributes & 3 {
            1 => "in",
            2 => "out",
            _ => "ref",
        }
    }
}

/// The one string argument of a custom attribute: after two bytes of prologue, a length and UTF-8.
/// Type names may carry an assembly after a comma.
fn attribute_text(value: &[u8]) -> Option<&str> {
    let rest = value.strip_prefix(&[1, 0])?;
    let (length, text) = match rest {
        [short @ 0..=0x7f, text @ ..] => (usize::from(*short), text),
        [high @ 0x80..=0xbf, low, text @ ..] => (usize::from(high & 0x3f) << 8 | usize::from(*low), text),
        _ => return None,
    };
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    text.split(',').next()
}

/// The name of a class in C# notation.
pub(super) fn resolve_class(cache: &NameCache, info: &ProfilerInfo, class: ClassId, depth: u32) -> Result<String> {
    let mut out = String::new();
    if let Some(array) = info.array_class(class)? {
        let element = match array.element {
            Some(element) => cache.class_within(info, element, depth),
            None => signature::Primitive::from_element_type(array.element_type).map_or("?", |p| p.csharp()).into(),
        };
        // The outermost dimensions come first, see `Context::write_array`.
        let at = element.find('[').unwrap_or(element.len());
        out.push_str(&element[..at]);
        super::csharp::push_rank(&mut out, array.rank);
        out.push_str(&element[at..]);
        return Ok(out);
    }
    let known = info.class_info(class)?;
    let module = cache.module(info, known.module)?;
    let arguments: Vec<_> =
        known.type_arguments.iter().map(|argument| cache.class_within(info, *argument, depth)).collect();
    module.type_name(known.token)?.write_as_type(&mut out, &arguments);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_hold_all_reference_types_are_shared() {
        assert!(is_shared("__Canon") && is_shared("System.Collections.Generic.KeyValuePair<int, __Canon[]>"));
        assert!(!is_shared("Shop.__Canon") && !is_shared("List<My__Canon>") && !is_shared("int"));
    }

    #[test]
    fn an_attribute_names_the_state_machine() {
        let mut value = vec![1, 0, 19];
        value.extend(b"Shop.Cart+<Pay>d__5");
        value.extend([0, 0]);
        assert_eq!(attribute_text(&value), Some("Shop.Cart+<Pay>d__5"));
        assert_eq!(attribute_text(&value[..10]), None);
        assert_eq!(attribute_text(&[1, 0]), None);
        assert_eq!(attribute_text(&[]), None);
        let mut long = vec![1, 0, 0x80, 0x85];
        long.extend("n".repeat(0x80).bytes().chain(*b", App"));
        assert_eq!(attribute_text(&long).map(str::len), Some(0x80));
    }
}
