//! Types with type parameters, whose values are passed together with their type.
//!
//! All instantiations of a method share its IL. A value of type `T` alone does not tell its type,
//! and one of type `(T, int)` does not tell its memory layout. So the code passes a typed reference
//! (`mkrefany`), which has the address and the actual type in this call. Shared code looks the type
//! up as for any instruction that names `T`.

use clr_profiler::Token;
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Type};

use super::bindings::REFERENCE_TYPES;
use super::plan::is_declared_value;
use super::types::is_of_framework;

/// `gpAllowByRefLike`: types without typed references can be arguments for the parameter.
const BY_REF_LIKE: u32 = 0x20;
/// Attribute of value types that have no typed references.
const IS_BY_REF_LIKE: &str = "System.Runtime.CompilerServices.IsByRefLikeAttribute";
/// Type parameters of a method and its declaring type.
struct Parameters<'m> {
    metadata: &'m MetadataImport,
    /// Attributes of the type's parameters, and of the method's.
    of_type: Vec<u32>,
    of_method: Vec<u32>,
}

/// Types of a method's parameters and result that do not follow from the values; the type of `this`
/// comes first.
pub fn open_types(metadata: &MetadataImport, method: Token) -> Vec<Type> {
    let Ok(about) = metadata.method(method) else { return Vec::new() };
    let Ok(signature) = signature::method(&about.signature) else { return Vec::new() };
    let attributes = |owner| {
        let all = metadata.generic_params(owner).unwrap_or_default();
        all.into_iter().map(|parameter| parameter.attributes).collect::<Vec<u32>>()
    };
    let parameters = Parameters { metadata, of_type: attributes(about.class), of_method: attributes(method) };
    let this = declaring(metadata, about.class).filter(|_| signature.has_this);
    let others = signature.parameters.iter().chain([&signature.return_type]).map(|ty| match ty {
        Type::ByRef(target) => target,
        ty => ty,
    });
    let mut found = Vec::new();
    for ty in this.iter().chain(others).filter(|ty| parameters.are_in(ty)) {
        if !found.contains(ty) {
            found.push(ty.clone());
        }
    }
    found
}

/// The declaring type of a method, if it is a generic value type.
pub(super) fn declaring(metadata: &MetadataImport, class: Token) -> Option<Type> {
    let parameters = metadata.generic_params(class).ok()?.len() as u32;
    let is_meant = parameters > 0 && is_declared_value(metadata, class);
    let arguments = (0..parameters).map(Type::TypeParameter).collect();
    is_meant.then_some(Type::Generic { token: class, is_value: true, arguments })
}

impl Parameters<'_> {
    /// Whether values of a type are passed together with their type. Not for types that are
    /// certainly classes, as objects tell their class themselves.
    fn are_in(&self, ty: &Type) -> bool {
        let is_any = |attributes: Option<&u32>| {
            attributes.is_some_and(|attributes| attributes & (REFERENCE_TYPES | BY_REF_LIKE) == 0)
        };
        match ty {
            Type::TypeParameter(number) => is_any(self.of_type.get(*number as usize)),
            Type::MethodParameter(number) => is_any(self.of_method.get(*number as usize)),
            Type::Generic { token, is_value: true, .. } => is_open(ty) && self.has_typed_references(*token),
            _ => false,
        }
    }

    /// Whether values of a generic value type are known to have typed references.
    fn has_typed_references(&self, token: Token) -> bool {
        if token.table() == Token::TYPE_DEF {
            return self.metadata.custom_attribute(token, IS_BY_REF_LIKE).is_ok_and(|found| found.is_none());
        }
        let named = (token.table() == Token::TYPE_REF).then(|| self.metadata.type_ref(token).ok()).flatten();
        named.is_some_and(|named| is_of_framework(&named.name))
    }
}

/// Whether a type contains type parameters.
fn is_open(ty: &Type) -> bool {
    match ty {
        Type::TypeParameter(_) | Type::MethodParameter(_) => true,
        Type::Generic { arguments, .. } => arguments.iter().any(is_open),
        Type::Vector(inner) | Type::Pointer(inner) | Type::ByRef(inner) | Type::Array { element: inner, .. } => {
            is_open(inner)
        }
        _ => false,
    }
}
