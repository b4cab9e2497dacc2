//! Methods, fields and parameters in the metadata.

use super::{MetadataImport, found};
use crate::error::check;
use crate::text::read_text;
use crate::{Result, Token};

/// A method the module declares.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MethodDef {
    /// The type that declares the method; nil for global functions.
    pub class: Token,
    /// Name of the method.
    pub name: String,
    /// Access, static, virtual and the like.
    pub attributes: MethodAttributes,
    /// Signature, see [`signature`](super::signature).
    pub signature: Vec<u8>,
    /// Address of the method's IL relative to the start of the image; 0 if it has none.
    pub rva: u32,
    /// Implementation flags, in the metadata's encoding.
    pub impl_flags: u32,
}

/// Attributes of a method, in the metadata's encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MethodAttributes(pub(crate) u32);

impl MethodAttributes {
    /// The bits, in the metadata's encoding.
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// Whether the method is static.
    #[must_use]
    pub const fn is_static(self) -> bool {
        self.0 & 0x10 != 0
    }
    /// Whether the method is virtual.
    #[must_use]
    pub const fn is_virtual(self) -> bool {
        self.0 & 0x40 != 0
    }
    /// Whether the method has its own slot among the virtual methods and overrides no method of a
    /// base type.
    #[must_use]
    pub const fn is_new_slot(self) -> bool {
        self.0 & 0x100 != 0
    }
    /// Whether the method is abstract and has no body.
    #[must_use]
    pub const fn is_abstract(self) -> bool {
        self.0 & 0x400 != 0
    }
    /// Whether the method has a special name: accessors, operators, constructors.
    #[must_use]
    pub const fn is_special_name(self) -> bool {
        self.0 & 0x800 != 0
    }
    /// Whether the method calls a native function (P/Invoke).
    #[must_use]
    pub const fn is_pinvoke(self) -> bool {
        self.0 & 0x2000 != 0
    }
}

/// A field the module declares.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FieldDef {
    /// The type that declares the field.
    pub class: Token,
    /// Name of the field.
    pub name: String,
    /// Access, static, literal and the like, in the metadata's encoding.
    pub attributes: u32,
    /// Signature, see [`signature`](super::signature).
    pub signature: Vec<u8>,
    /// Element type of a constant.
    pub constant_type: u32,
    /// Address of a constant's value; 0 for other fields.
    pub constant_address: usize,
    /// Length of a constant string in characters.
    pub constant_length: u32,
}

impl FieldDef {
    /// Whether the field is static.
    #[must_use]
    pub const fn is_static(&self) -> bool {
        self.attributes & 0x10 != 0
    }
    /// Whether the field is a compile-time constant, without storage.
    #[must_use]
    pub const fn is_literal(&self) -> bool {
        self.attributes & 0x40 != 0
    }
}

/// A reference of this module to a method or field of another type.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemberRef {
    /// The type (or module, or method) that has the member.
    pub parent: Token,
    /// Name of the method or field.
    pub name: String,
    /// Signature, see [`signature`](super::signature).
    pub signature: Vec<u8>,
}

/// A generic method with its type arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MethodSpec {
    /// The generic method.
    pub method: Token,
    /// Type arguments, see [`signature`](super::signature).
    pub instantiation: Vec<u8>,
}

/// A parameter of a method.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ParamDef {
    /// 0 is the return value, 1 the first parameter.
    pub sequence: u32,
    /// `in`, `out`, optional and the like, in the metadata's encoding.
    pub attributes: u32,
    /// Name of the parameter; may be empty.
    pub name: String,
}

/// The native function of a P/Invoke method.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PinvokeMap {
    /// Character set, calling convention and the like, in the metadata's encoding.
    pub flags: u32,
    /// The function's name in its library.
    pub entry_point: String,
    /// The library, by the program's name for it.
    pub library: String,
}

impl MetadataImport {
    /// A method the module declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn method(&self, token: Token) -> Result<MethodDef> {
        let (name, props) = (self.name(token)?, self.method_props(token)?);
        Ok(MethodDef { name, ..props })
    }

    /// Whether a method has an IL body: it is not abstract, not native, and not provided by the
    /// runtime.
    #[must_use]
    pub fn has_il(&self, method: Token) -> bool {
        /// `miCodeTypeMask`.
        const KIND: u32 = 3;
        self.method_props(method).is_ok_and(|about| about.rva != 0 && about.impl_flags & KIND == 0)
    }

    /// A method without its name, to save the copy of the name.
    pub(crate) fn method_props(&self, token: Token) -> Result<MethodDef> {
        let metadata = self.read("GetMethodProps")?;
        let (mut class, mut attributes, mut rva, mut impl_flags) = (0, 0, 0, 0);
        let (mut start, mut size) = (std::ptr::null(), 0);
        // SAFETY: valid out-parameters; no buffer for the name.
        let answer = unsafe {
            metadata.GetMethodProps(
                token.0,
                &mut class,
                std::ptr::null_mut(),
                0,
                std::ptr::null_mut(),
                &mut attributes,
                &mut start,
                &mut size,
                &mut rva,
                &mut impl_flags,
            )
        };
        check(answer, "GetMethodProps")?;
        // SAFETY: pointer and length are from the runtime.
        let signature = unsafe { metadata.blob(start, size) };
        let attributes = MethodAttributes(attributes);
        Ok(MethodDef { class: Token(class), name: String::new(), attributes, signature, rva, impl_flags })
    }

    /// A field the module declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn field(&self, token: Token) -> Result<FieldDef> {
        let metadata = self.read("GetFieldProps")?;
        let (mut class, mut attributes, mut constant_type, mut constant_length) = (0, 0, 0, 0);
        let (mut start, mut size, mut constant) = (std::ptr::null(), 0, std::ptr::null());
        let name = read_text("GetFieldProps", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe {
                metadata.GetFieldProps(
                    token.0,
                    &mut class,
                    buffer,
                    capacity,
                    needed,
                    &mut attributes,
                    &mut start,
                    &mut size,
                    &mut constant_type,
                    &mut constant,
                    &mut constant_length,
                )
            }
        })?;
        // SAFETY: pointer and length are from the runtime.
        let signature = unsafe { metadata.blob(start, size) };
        let (class, constant_address) = (Token(class), constant as usize);
        Ok(FieldDef { class, name, attributes, signature, constant_type, constant_address, constant_length })
    }

    /// A method or field of another type.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn member_ref(&self, token: Token) -> Result<MemberRef> {
        let metadata = self.read("GetMemberRefProps")?;
        let (mut parent, mut start, mut size) = (0, std::ptr::null(), 0);
        let name = read_text("GetMemberRefProps", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { metadata.GetMemberRefProps(token.0, &mut parent, buffer, capacity, needed, &mut start, &mut size) }
        })?;
        // SAFETY: pointer and length are from the runtime.
        Ok(MemberRef { parent: Token(parent), name, signature: unsafe { metadata.blob(start, size) } })
    }

    /// A generic method with its type arguments.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn method_spec(&self, token: Token) -> Result<MethodSpec> {
        let metadata = self.read("GetMethodSpecProps")?;
        let (mut method, mut start, mut size) = (0, std::ptr::null(), 0);
        // SAFETY: valid out-parameters.
        let answer = unsafe { metadata.GetMethodSpecProps(token.0, &mut method, &mut start, &mut size) };
        check(answer, "GetMethodSpecProps")?;
        // SAFETY: pointer and length are from the runtime.
        Ok(MethodSpec { method: Token(method), instantiation: unsafe { metadata.blob(start, size) } })
    }

    /// A stand-alone signature: the local variables of a body, or the target of a `calli`.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn signature(&self, token: Token) -> Result<Vec<u8>> {
        let metadata = self.read("GetSigFromToken")?;
        let (mut start, mut size) = (std::ptr::null(), 0);
        // SAFETY: valid out-parameters.
        check(unsafe { metadata.GetSigFromToken(token.0, &mut start, &mut size) }, "GetSigFromToken")?;
        // SAFETY: pointer and length are from the runtime.
        Ok(unsafe { metadata.blob(start, size) })
    }

    /// A parameter, by an entry of [`params`](Self::params).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn param(&self, token: Token) -> Result<ParamDef> {
        let metadata = self.read("GetParamProps")?;
        let (mut method, mut sequence, mut attributes, mut constant_type) = (0, 0, 0, 0);
        let (mut constant, mut constant_length) = (std::ptr::null(), 0);
        let name = read_text("GetParamProps", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe {
                metadata.GetParamProps(
                    token.0,
                    &mut method,
                    &mut sequence,
                    buffer,
                    capacity,
                    needed,
                    &mut attributes,
                    &mut constant_type,
                    &mut constant,
                    &mut constant_length,
                )
            }
        })?;
        Ok(ParamDef { sequence, attributes, name })
    }

    /// Attributes of a method's parameter, by its number from 1; `None` if the metadata has no
    /// entry for it.
    pub(crate) fn param_attributes(&self, method: Token, sequence: u32) -> Option<u32> {
        let metadata = self.read("GetParamForMethodIndex").ok()?;
        let mut token = 0;
        // SAFETY: a valid out-parameter.
        let answer = unsafe { metadata.GetParamForMethodIndex(method.0, sequence, &mut token) };
        found(answer, "GetParamForMethodIndex").ok()?.then_some(())?;
        self.param(Token(token)).ok().map(|param| param.attributes)
    }

    /// The native function of a P/Invoke method; `None` for other methods.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn pinvoke_map(&self, method: Token) -> Result<Option<PinvokeMap>> {
        let metadata = self.read("GetPinvokeMap")?;
        let (mut flags, mut module, mut missing) = (0, 0, false);
        let entry_point = read_text("GetPinvokeMap", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            let answer = unsafe { metadata.GetPinvokeMap(method.0, &mut flags, buffer, capacity, needed, &mut module) };
            missing = matches!(found(answer, ""), Ok(false)) && answer.is_err();
            answer
        });
        match entry_point {
            Err(_) if missing => Ok(None),
            Err(error) => Err(error),
            Ok(entry_point) => Ok(Some(PinvokeMap { flags, entry_point, library: self.module_ref(Token(module))? })),
        }
    }

    /// The name of another module or native library.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn module_ref(&self, token: Token) -> Result<String> {
        let metadata = self.read("GetModuleRefProps")?;
        read_text("GetModuleRefProps", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { metadata.GetModuleRefProps(token.0, buffer, capacity, needed) }
        })
    }
}
