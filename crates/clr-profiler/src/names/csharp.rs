//! Types and signatures in C# notation.

use std::sync::Arc;

use super::types::{ModuleNames, write_arguments};
use crate::metadata::signature::{MethodSignature, Type, type_spec};

/// Context of a signature: the module of its tokens, and the types that replace its generic
/// parameters.
pub(super) struct Context<'n> {
    pub(super) module: &'n ModuleNames,
    pub(super) type_arguments: &'n [Arc<str>],
    pub(super) method_arguments: &'n [Arc<str>],
}

/// Maximum depth of type specifications that refer to each other: damaged metadata could contain a
/// cycle.
const SPECS: u32 = 4;

impl Context<'_> {
    /// Writes, for instance, `int, ref Shop.Order`. `direction` returns the keyword for each
    /// by-reference parameter.
    pub(super) fn write_parameters(
        &self,
        out: &mut String,
        signature: &MethodSignature,
        direction: impl Fn(usize) -> &'static str,
    ) {
        for (n, parameter) in signature.parameters.iter().enumerate() {
            if n > 0 {
                out.push_str(", ");
            }
            if let Type::ByRef(target) = parameter {
                out.push_str(direction(n));
                out.push(' ');
                self.write_type(out, target);
            } else {
                self.write_type(out, parameter);
            }
        }
    }

    pub(super) fn write_type(&self, out: &mut String, ty: &Type) {
        self.write_within(out, ty, SPECS);
    }

    fn write_within(&self, out: &mut String, ty: &Type, specs: u32) {
        match ty {
            Type::Primitive(primitive) => out.push_str(primitive.csharp()),
            Type::Named { token, .. } if token.table() == crate::Token::TYPE_SPEC => {
                self.write_spec(out, *token, specs);
            }
            Type::Named { token, .. } => self.write_named(out, *token, &[]),
            Type::Generic { token, arguments, .. } => {
                let arguments: Vec<_> = arguments.iter().map(|argument| self.text(argument, specs)).collect();
                self.write_named(out, *token, &arguments);
            }
            Type::TypeParameter(n) => write_parameter(out, self.type_arguments, *n, "T"),
            Type::MethodParameter(n) => write_parameter(out, self.method_arguments, *n, "M"),
            Type::Vector(_) | Type::Array { .. } => self.write_array(out, ty, specs),
            Type::Pointer(target) => {
                self.write_within(out, target, specs);
                out.push('*');
            }
            Type::ByRef(target) => {
                out.push_str("ref ");
                self.write_within(out, target, specs);
            }
            Type::FunctionPointer(signature) => self.write_function_pointer(out, signature, specs),
            Type::Internal(_) => out.push('?'),
        }
    }

    fn text(&self, ty: &Type, specs: u32) -> Arc<str> {
        let mut text = String::new();
        self.write_within(&mut text, ty, specs);
        text.into()
    }

    fn write_named(&self, out: &mut String, token: crate::Token, arguments: &[Arc<str>]) {
        match self.module.type_name(token) {
            Ok(name) => name.write_as_type(out, arguments),
            Err(_) => {
                out.push('?');
                write_arguments(out, arguments);
            }
        }
    }

    fn write_spec(&self, out: &mut String, token: crate::Token, specs: u32) {
        let ty = self.module.metadata.type_spec(token).ok().and_then(|blob| type_spec(&blob).ok());
        match (ty, specs.checked_sub(1)) {
            (Some(ty), Some(specs)) => self.write_within(out, &ty, specs),
            _ => out.push('?'),
        }
    }

    /// C# writes the outermost array's dimensions first: a vector of `int[,]` is `int[][,]`.
    fn write_array(&self, out: &mut String, array: &Type, specs: u32) {
        let mut dimensions = String::new();
        let mut element = array;
        loop {
            match element {
                Type::Vector(inner) => {
                    dimensions.push_str("[]");
                    element = inner;
                }
                Type::Array { element: inner, rank } => {
                    push_rank(&mut dimensions, *rank);
                    element = inner;
                }
                _ => break,
            }
        }
        self.write_within(out, element, specs);
        out.push_str(&dimensions);
    }

    fn write_function_pointer(&self, out: &mut String, signature: &MethodSignature, specs: u32) {
        out.push_str("delegate*<");
        for parameter in &signature.parameters {
            self.write_within(out, parameter, specs);
            out.push_str(", ");
        }
        self.write_within(out, &signature.return_type, specs);
        out.push('>');
    }
}

/// Writes `[,]` for rank 2.
pub(super) fn push_rank(out: &mut String, rank: u32) {
    out.push('[');
    out.extend((1..rank.clamp(1, 32)).map(|_| ','));
    out.push(']');
}

fn write_parameter(out: &mut String, arguments: &[Arc<str>], n: u32, letter: &str) {
    match arguments.get(n as usize) {
        Some(argument) => out.push_str(argument),
        None => {
            out.push_str(letter);
            out.push_str(&n.to_string());
        }
    }
}

/// Name of a method in C# notation, and whether its parameters are in brackets before an accessor's
/// name.
pub(super) fn method_name(name: &str, is_special: bool, type_name: &str, parameters: usize) -> String {
    match name {
        ".ctor" => return type_name.to_owned(),
        ".cctor" => return format!("static {type_name}"),
        _ if !is_special => return name.to_owned(),
        _ => {}
    }
    if let Some(operator) = operator(name) {
        return operator.to_owned();
    }
    // An explicitly implemented accessor begins with the interface: `Shop.IBag.get_Count`.
    let (prefix, own) = name.rfind('.').map_or(("", name), |dot| name.split_at(dot + 1));
    for (mark, accessor) in [("get_", "get"), ("set_", "set"), ("add_", "add"), ("remove_", "remove")] {
        if let Some(property) = own.strip_prefix(mark) {
            let indexed = parameters > usize::from(accessor == "set");
            let is_indexer = property == "Item" && indexed && accessor.ends_with("et");
            let property = if is_indexer { "this" } else { property };
            return format!("{prefix}{property}.{accessor}");
        }
    }
    name.to_owned()
}

fn operator(name: &str) -> Option<&'static str> {
    Some(match name {
        "op_Implicit" => "implicit operator",
        "op_Explicit" => "explicit operator",
        "op_Addition" => "operator +",
        "op_Subtraction" => "operator -",
        "op_Multiply" => "operator *",
        "op_Division" => "operator /",
        "op_Modulus" => "operator %",
        "op_BitwiseAnd" => "operator &",
        "op_BitwiseOr" => "operator |",
        "op_ExclusiveOr" => "operator ^",
        "op_LeftShift" => "operator <<",
        "op_RightShift" => "operator >>",
        "op_UnsignedRightShift" => "operator >>>",
        "op_Equality" => "operator ==",
        "op_Inequality" => "operator !=",
        "op_LessThan" => "operator <",
        "op_GreaterThan" => "operator >",
        "op_LessThanOrEqual" => "operator <=",
        "op_GreaterThanOrEqual" => "operator >=",
        "op_UnaryNegation" => "operator -",
        "op_UnaryPlus" => "operator +",
        "op_LogicalNot" => "operator !",
        "op_OnesComplement" => "operator ~",
        "op_Increment" => "operator ++",
        "op_Decrement" => "operator --",
        "op_True" => "operator true",
        "op_False" => "operator false",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_methods_are_written_as_in_source() {
        assert_eq!(method_name(".ctor", true, "Order", 1), "Order");
        assert_eq!(method_name(".cctor", true, "Order", 0), "static Order");
        assert_eq!(method_name("get_Total", true, "Order", 0), "Total.get");
        assert_eq!(method_name("set_Total", true, "Order", 1), "Total.set");
        assert_eq!(method_name("get_Item", true, "Order", 1), "this.get");
        assert_eq!(method_name("set_Item", true, "Order", 1), "Item.set");
        assert_eq!(method_name("add_Changed", true, "Order", 1), "Changed.add");
        assert_eq!(method_name("Shop.IBag.get_Count", true, "Bag", 0), "Shop.IBag.Count.get");
        assert_eq!(method_name("op_Addition", true, "Money", 2), "operator +");
        assert_eq!(method_name("get_Lost", false, "Order", 0), "get_Lost");
    }
}
