//! Texts that objects produce of themselves: they contain the values of fields, including hidden
//! ones.

use std::cell::RefCell;
use std::collections::HashSet;

use clr_profiler::Token;
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Primitive, Type};

use super::types::Types;

/// Deepest nesting of types that is searched.
const MOST_DEPTH: u32 = 64;

/// Whether a method returns a text that may contain hidden values: `ToString` of a type that has a
/// hidden field, or a field that may hold an object with one. Decided by metadata alone. If the
/// metadata is not enough, the answer is `true`.
pub(super) fn may_have_hidden(types: &Types, metadata: &MetadataImport, method: &str, class: Token) -> bool {
    let is_text = method == "ToString" || method.ends_with(".ToString");
    is_text && types.hides_something() && Search { types, metadata, visited: RefCell::default() }.in_type(class, 0)
}

/// Search for hidden fields in the types of a module.
struct Search<'s> {
    types: &'s Types,
    metadata: &'s MetadataImport,
    /// Type definitions that were visited, or are being visited.
    visited: RefCell<HashSet<Token>>,
}

impl Search<'_> {
    fn in_type(&self, token: Token, depth: u32) -> bool {
        if depth > MOST_DEPTH {
            return true;
        }
        match token.table() {
            Token::TYPE_DEF => self.in_definition(token, depth),
            Token::TYPE_REF => !self.is_frameworks(token),
            _ => {
                let Ok(Ok(ty)) = self.metadata.type_spec(token).map(|blob| signature::type_spec(&blob)) else {
                    return true;
                };
                self.in_value_of(&ty, depth)
            }
        }
    }

    fn in_definition(&self, token: Token, depth: u32) -> bool {
        if !self.visited.borrow_mut().insert(token) {
            return false;
        }
        let Ok(declared) = self.metadata.type_def(token) else { return true };
        let base = declared.extends;
        if !base.is_nil() && self.in_type(base, depth + 1) {
            return true;
        }
        let Ok(fields) = self.metadata.fields(token) else { return true };
        let fields = fields.into_iter().filter_map(|field| self.metadata.field(field).ok());
        fields.filter(|field| !field.is_static() && !field.is_literal()).any(|field| {
            let ty = || signature::field(&field.signature);
            self.types.hides(&field.name) || ty().map_or(true, |ty| self.in_value_of(&ty, depth + 1))
        })
    }

    /// Whether the text of a value of a declared type may contain hidden values.
    fn in_value_of(&self, ty: &Type, depth: u32) -> bool {
        match ty {
            Type::Primitive(Primitive::Object) | Type::TypeParameter(_) | Type::MethodParameter(_) => true,
            Type::Named { token, .. } => self.in_type(*token, depth),
            Type::Generic { token, arguments, .. } => {
                self.in_type(*token, depth) || arguments.iter().any(|argument| self.in_value_of(argument, depth + 1))
            }
            // The texts of arrays, pointers and functions do not show their contents.
            _ => false,
        }
    }

    /// Whether a type of another module belongs to the framework, by its name.
    fn is_frameworks(&self, token: Token) -> bool {
        let Ok(referred) = self.metadata.type_ref(token) else { return false };
        match referred.scope.table() {
            // Nested in another type.
            Token::TYPE_REF => self.is_frameworks(referred.scope),
            _ => referred.name.starts_with("System.") || referred.name.starts_with("Microsoft."),
        }
    }
}
