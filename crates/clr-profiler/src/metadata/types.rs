//! Types in the metadata.

use super::{MetadataImport, found};
use crate::error::check;
use crate::text::{read_text, wide};
use crate::{Result, Token};

/// A type the module declares.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TypeDef {
    /// Namespace and name; for a nested type only its own name.
    pub name: String,
    /// Visibility, layout and the like, in the metadata's encoding.
    pub attributes: u32,
    /// Base type; nil for interfaces and for `System.Object`.
    pub extends: Token,
}

impl TypeDef {
    /// Whether the type is nested in another type.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.attributes & 7 >= 2
    }

    /// Whether it is an interface.
    #[must_use]
    pub fn is_interface(&self) -> bool {
        self.attributes & 0x20 != 0
    }
}

/// A reference of this module to a type of another module.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TypeRef {
    /// Namespace and name; for a nested type only its own name.
    pub name: String,
    /// The assembly or module of the type, or for a nested type the enclosing type.
    pub scope: Token,
}

/// A generic parameter of a type or method.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GenericParam {
    /// Position, from 0.
    pub index: u32,
    /// Variance and constraints, in the metadata's encoding.
    pub attributes: u32,
    /// Name of the parameter.
    pub name: String,
}

impl MetadataImport {
    /// A type the module declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn type_def(&self, token: Token) -> Result<TypeDef> {
        let metadata = self.read("GetTypeDefProps")?;
        let (mut attributes, mut extends) = (0, 0);
        let name = read_text("GetTypeDefProps", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { metadata.GetTypeDefProps(token.0, buffer, capacity, needed, &mut attributes, &mut extends) }
        })?;
        Ok(TypeDef { name, attributes, extends: Token(extends) })
    }

    /// A type of another module.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn type_ref(&self, token: Token) -> Result<TypeRef> {
        let metadata = self.read("GetTypeRefProps")?;
        let mut scope = 0;
        let name = read_text("GetTypeRefProps", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { metadata.GetTypeRefProps(token.0, &mut scope, buffer, capacity, needed) }
        })?;
        Ok(TypeRef { name, scope: Token(scope) })
    }

    /// The signature of a constructed type.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn type_spec(&self, token: Token) -> Result<Vec<u8>> {
        let metadata = self.read("GetTypeSpecFromToken")?;
        let (mut start, mut size) = (std::ptr::null(), 0);
        // SAFETY: valid out-parameters.
        check(unsafe { metadata.GetTypeSpecFromToken(token.0, &mut start, &mut size) }, "GetTypeSpecFromToken")?;
        // SAFETY: pointer and length are from the runtime.
        Ok(unsafe { metadata.blob(start, size) })
    }

    /// The type that encloses a nested type; `None` for other types.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn enclosing_type(&self, nested: Token) -> Result<Option<Token>> {
        let metadata = self.read("GetNestedClassProps")?;
        let mut enclosing = 0;
        // SAFETY: a valid out-parameter.
        let answer = unsafe { metadata.GetNestedClassProps(nested.0, &mut enclosing) };
        Ok(found(answer, "GetNestedClassProps")?.then_some(Token(enclosing)))
    }

    /// Finds a type by its name (with namespace) and, for a nested type, by its enclosing type.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn find_type_def(&self, name: &str, enclosing: Option<Token>) -> Result<Option<Token>> {
        let metadata = self.read("FindTypeDefByName")?;
        let (name, mut token) = (wide(name), 0);
        let enclosing = enclosing.map_or(0, |token| token.0);
        // SAFETY: a zero-terminated name and a valid out-parameter.
        let answer = unsafe { metadata.FindTypeDefByName(name.as_ptr(), enclosing, &mut token) };
        Ok(found(answer, "FindTypeDefByName")?.then_some(Token(token)))
    }

    /// The generic parameters of a type or method, in order. Those of a nested type begin with the
    /// parameters of the enclosing types.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn generic_params(&self, owner: Token) -> Result<Vec<GenericParam>> {
        let metadata = self.read("EnumGenericParams")?;
        // SAFETY: valid out-parameters.
        let tokens = self.list("EnumGenericParams", |position, tokens, capacity, count| unsafe {
            metadata.EnumGenericParams(position, owner.0, tokens, capacity, count)
        })?;
        let mut params = tokens.into_iter().map(|token| self.generic_param(token)).collect::<Result<Vec<_>>>()?;
        params.sort_by_key(|param| param.index);
        Ok(params)
    }

    fn generic_param(&self, token: Token) -> Result<GenericParam> {
        let metadata = self.read("GetGenericParamProps")?;
        let (mut index, mut attributes, mut owner, mut reserved) = (0, 0, 0, 0);
        let name = read_text("GetGenericParamProps", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe {
                metadata.GetGenericParamProps(
                    token.0,
                    &mut index,
                    &mut attributes,
                    &mut owner,
                    &mut reserved,
                    buffer,
                    capacity,
                    needed,
                )
            }
        })?;
        Ok(GenericParam { index, attributes, name })
    }

    /// The value of the first custom attribute of the type `type_name` (full name) on `owner`, as
    /// the metadata encodes it.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn custom_attribute(&self, owner: Token, type_name: &str) -> Result<Option<Vec<u8>>> {
        let metadata = self.read("GetCustomAttributeByName")?;
        let (name, mut start, mut size) = (wide(type_name), std::ptr::null(), 0);
        // SAFETY: a zero-terminated name and valid out-parameters.
        let answer = unsafe { metadata.GetCustomAttributeByName(owner.0, name.as_ptr(), &mut start, &mut size) };
        if !found(answer, "GetCustomAttributeByName")? {
            return Ok(None);
        }
        // SAFETY: pointer and length are from the runtime.
        Ok(Some(unsafe { metadata.blob(start.cast(), size) }))
    }
}
