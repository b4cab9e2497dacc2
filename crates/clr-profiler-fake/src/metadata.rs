//! The metadata of a fake module, as far as names need it.

use std::ffi::{c_char, c_void};

use clr_profiler::{HResult, Token};
use clr_profiler_sys::cor::*;
use clr_profiler_sys::metadata::*;
use clr_profiler_sys::structs::COR_FIELD_OFFSET;
use clr_profiler_sys::types::HCORENUM;
use windows_core::{BOOL, GUID, HRESULT, implement};

use super::answer::{S_FALSE, S_OK, answer, put, put_text, read_text, unanswered};
use super::field::{Field, OBJECT};
use super::world::{Class, Function, Shared, World};

/// Error code of searches without a result.
const NOT_FOUND: HResult = HResult(0x8013_1130_u32 as i32);

#[implement(IMetaDataImport2)]
pub(super) struct Metadata {
    pub(super) world: Shared,
    pub(super) module: usize,
}

/// An enumeration in progress.
struct Position {
    tokens: Vec<u32>,
    at: usize,
}

impl Metadata {
    fn class<R>(&self, token: u32, use_class: impl FnOnce(&Class) -> R) -> Result<R, HResult> {
        let world = self.world.lock();
        let class = world.class_of_token(self.module, Token::new(token)).ok_or(NOT_FOUND)?;
        Ok(use_class(&world.classes[class]))
    }

    fn function<R>(&self, token: u32, use_function: impl FnOnce(&World, &Function) -> R) -> Result<R, HResult> {
        let world = self.world.lock();
        let function = world.function_of_token(self.module, Token::new(token)).ok_or(NOT_FOUND)?;
        let function = &world.functions[world.function(function.as_raw())?];
        Ok(use_function(&world, function))
    }

    /// Tokens of a class's fields that `choice` accepts.
    fn fields(&self, class: u32, choice: impl Fn(&Field) -> bool) -> Vec<u32> {
        let of_class = |class: &Class| {
            let fields = class.fields.iter().filter(|field| choice(field));
            fields.map(|field| field.token.as_raw()).collect()
        };
        self.class(class, of_class).unwrap_or_default()
    }

    /// Tokens of a class's methods that `choice` accepts.
    fn methods(&self, class: u32, choice: impl Fn(&Function) -> bool) -> Vec<u32> {
        let world = self.world.lock();
        let of_class = |function: &&Function| world.classes[function.class].token.as_raw() == class && choice(function);
        let functions = world.modules[self.module].functions.iter().map(|function| &world.functions[*function]);
        functions.filter(of_class).map(|function| function.token.as_raw()).collect()
    }
}

/// Writes the next tokens of an enumeration. The first call starts the enumeration.
///
/// # Safety
/// The pointers are those of a metadata enumeration.
unsafe fn next(
    position: *mut HCORENUM,
    tokens: impl FnOnce() -> Vec<u32>,
    out: *mut u32,
    capacity: u32,
    count: *mut u32,
) -> HRESULT {
    // SAFETY: the caller's promise; a position that is not null is one that was made here.
    let state = unsafe {
        if (*position).is_null() {
            *position = Box::into_raw(Box::new(Position { tokens: tokens(), at: 0 })).cast();
        }
        &mut *(*position).cast::<Position>()
    };
    let left = state.tokens.get(state.at..).unwrap_or_default();
    let given = left.len().min(capacity as usize);
    // SAFETY: room for `capacity` tokens.
    unsafe {
        std::ptr::copy_nonoverlapping(left.as_ptr(), out, given);
        put(count, given as u32);
    }
    state.at += given;
    if given == 0 { S_FALSE } else { S_OK }
}

impl IMetaDataImport_Impl for Metadata_Impl {
    unsafe fn CloseEnum(&self, position: HCORENUM) {
        if !position.is_null() {
            // SAFETY: `next` made it, and it is closed once.
            drop(unsafe { Box::from_raw(position.cast::<Position>()) });
        }
    }

    unsafe fn EnumTypeDefs(&self, position: *mut HCORENUM, out: *mut u32, capacity: u32, count: *mut u32) -> HRESULT {
        let tokens = || {
            let world = self.world.lock();
            world.modules[self.module].classes.iter().map(|class| world.classes[*class].token.as_raw()).collect()
        };
        // SAFETY: the caller's pointers.
        unsafe { next(position, tokens, out, capacity, count) }
    }

    unsafe fn FindTypeDefByName(&self, name: *const u16, enclosing: u32, out: *mut u32) -> HRESULT {
        // SAFETY: the caller's text.
        let name = unsafe { read_text(name) };
        let world = self.world.lock();
        let enclosing = Some(Token::new(enclosing)).filter(|token| !token.is_nil());
        let classes = world.modules[self.module].classes.iter().map(|class| &world.classes[*class]);
        let found =
            classes.into_iter().find(|class| class.name.to_bytes() == name.as_bytes() && class.enclosing == enclosing);
        // SAFETY: the caller's pointer.
        answer(found.map(|class| unsafe { put(out, class.token.as_raw()) }).ok_or(NOT_FOUND))
    }

    unsafe fn GetTypeDefProps(
        &self,
        token: u32,
        name: *mut u16,
        capacity: u32,
        needed: *mut u32,
        attributes: *mut u32,
        extends: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        answer(self.class(token, |class| unsafe {
            put_text(&class.name.to_string_lossy(), capacity, needed, name);
            // Public, or nested public.
            put(attributes, if class.enclosing.is_some() { 2 } else { 1 });
            put(extends, 0);
        }))
    }

    unsafe fn EnumMethods(
        &self,
        position: *mut HCORENUM,
        class: u32,
        out: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe { next(position, || self.methods(class, |_| true), out, capacity, count) }
    }

    unsafe fn EnumMethodsWithName(
        &self,
        position: *mut HCORENUM,
        class: u32,
        name: *const u16,
        out: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe {
            let name = read_text(name);
            let tokens = || self.methods(class, |function| function.name.to_bytes() == name.as_bytes());
            next(position, tokens, out, capacity, count)
        }
    }

    unsafe fn EnumFieldsWithName(
        &self,
        position: *mut HCORENUM,
        class: u32,
        name: *const u16,
        out: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe {
            let name = read_text(name);
            next(
                position,
                || self.fields(class, |field| field.name.to_bytes() == name.as_bytes()),
                out,
                capacity,
                count,
            )
        }
    }

    unsafe fn EnumFields(
        &self,
        position: *mut HCORENUM,
        class: u32,
        out: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe { next(position, || self.fields(class, |_| true), out, capacity, count) }
    }

    unsafe fn GetFieldProps(
        &self,
        token: u32,
        class: *mut u32,
        name: *mut u16,
        capacity: u32,
        needed: *mut u32,
        attributes: *mut u32,
        signature: *mut *const u8,
        size: *mut u32,
        constant_type: *mut u32,
        constant: *mut *const c_void,
        constant_size: *mut u32,
    ) -> HRESULT {
        let world = self.world.lock();
        let found = world.field_of_token(self.module, Token::new(token)).ok_or(NOT_FOUND);
        // SAFETY: the caller's pointers.
        answer(found.map(|(declared, field)| unsafe {
            put(class, world.classes[declared].token.as_raw());
            put_text(&field.name.to_string_lossy(), capacity, needed, name);
            put(attributes, field.attributes());
            put(signature, OBJECT.as_ptr());
            put(size, OBJECT.len() as u32);
            put(constant_type, 0);
            put(constant, std::ptr::null());
            put(constant_size, 0);
        }))
    }

    unsafe fn EnumParams(
        &self,
        position: *mut HCORENUM,
        _method: u32,
        out: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe { next(position, Vec::new, out, capacity, count) }
    }

    unsafe fn GetMethodProps(
        &self,
        token: u32,
        class: *mut u32,
        name: *mut u16,
        capacity: u32,
        needed: *mut u32,
        attributes: *mut u32,
        signature: *mut *const u8,
        size: *mut u32,
        rva: *mut u32,
        flags: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers; signatures are never changed, so they stay where they are.
        answer(self.function(token, |world, function| unsafe {
            put(class, world.classes[function.class].token.as_raw());
            put_text(&function.name.to_string_lossy(), capacity, needed, name);
            let is_static = function.signature.first().is_none_or(|convention| convention & 0x20 == 0);
            put(attributes, if is_static { 0x16 } else { 0x6 });
            put(signature, function.signature.as_ptr());
            put(size, function.signature.len() as u32);
            put(rva, 0);
            put(flags, 0);
        }))
    }

    unsafe fn GetNameFromToken(&self, token: u32, name: *mut *const c_char) -> HRESULT {
        let found = match Token::new(token).table() {
            Token::TYPE_DEF => self.class(token, |class| class.name.as_ptr()),
            Token::FIELD_DEF => {
                let world = self.world.lock();
                world
                    .field_of_token(self.module, Token::new(token))
                    .map(|(_, field)| field.name.as_ptr())
                    .ok_or(NOT_FOUND)
            }
            Token::METHOD_DEF => self.function(token, |_, function| function.name.as_ptr()),
            _ => Err(NOT_FOUND),
        };
        // SAFETY: the caller's pointer; names are never changed, so they stay where they are.
        answer(found.map(|text| unsafe { put(name, text) }))
    }

    unsafe fn GetCustomAttributeByName(
        &self,
        _owner: u32,
        _name: *const u16,
        value: *mut *const c_void,
        size: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe {
            put(value, std::ptr::null());
            put(size, 0);
        }
        S_FALSE
    }

    unsafe fn IsValidToken(&self, token: u32) -> BOOL {
        let is_type = self.class(token, |_| ()).is_ok();
        (is_type || self.function(token, |_, _| ()).is_ok()).into()
    }

    unsafe fn GetNestedClassProps(&self, nested: u32, enclosing: *mut u32) -> HRESULT {
        let found = self.class(nested, |class| class.enclosing).and_then(|token| token.ok_or(NOT_FOUND));
        // SAFETY: the caller's pointer.
        answer(found.map(|token| unsafe { put(enclosing, token.as_raw()) }))
    }

    unanswered! {
        CountEnum(HCORENUM, *mut u32);
        ResetEnum(HCORENUM, u32);
        EnumInterfaceImpls(*mut HCORENUM, mdTypeDef, *mut mdInterfaceImpl, u32, *mut u32);
        EnumTypeRefs(*mut HCORENUM, *mut mdTypeRef, u32, *mut u32);
        GetScopeProps(*mut u16, u32, *mut u32, *mut GUID);
        GetModuleFromScope(*mut mdModule);
        GetInterfaceImplProps(mdInterfaceImpl, *mut mdTypeDef, *mut mdToken);
        GetTypeRefProps(mdTypeRef, *mut mdToken, *mut u16, u32, *mut u32);
        ResolveTypeRef(mdTypeRef, *const GUID, *mut *mut c_void, *mut mdTypeDef);
        EnumMembers(*mut HCORENUM, mdTypeDef, *mut mdToken, u32, *mut u32);
        EnumMembersWithName(*mut HCORENUM, mdTypeDef, *const u16, *mut mdToken, u32, *mut u32);
        EnumMemberRefs(*mut HCORENUM, mdToken, *mut mdMemberRef, u32, *mut u32);
        EnumMethodImpls(*mut HCORENUM, mdTypeDef, *mut mdToken, *mut mdToken, u32, *mut u32);
        EnumPermissionSets(*mut HCORENUM, mdToken, u32, *mut mdPermission, u32, *mut u32);
        FindMember(mdTypeDef, *const u16, *const u8, u32, *mut mdToken);
        FindMethod(mdTypeDef, *const u16, *const u8, u32, *mut mdMethodDef);
        FindField(mdTypeDef, *const u16, *const u8, u32, *mut mdFieldDef);
        FindMemberRef(mdTypeRef, *const u16, *const u8, u32, *mut mdMemberRef);
        GetMemberRefProps(mdMemberRef, *mut mdToken, *mut u16, u32, *mut u32, *mut *const u8, *mut u32);
        EnumProperties(*mut HCORENUM, mdTypeDef, *mut mdProperty, u32, *mut u32);
        EnumEvents(*mut HCORENUM, mdTypeDef, *mut mdEvent, u32, *mut u32);
        GetEventProps(mdEvent, *mut mdTypeDef, *mut u16, u32, *mut u32, *mut u32, *mut mdToken, *mut mdMethodDef, *mut mdMethodDef, *mut mdMethodDef, *mut mdMethodDef, u32, *mut u32);
        EnumMethodSemantics(*mut HCORENUM, mdMethodDef, *mut mdToken, u32, *mut u32);
        GetMethodSemantics(mdMethodDef, mdToken, *mut u32);
        GetClassLayout(mdTypeDef, *mut u32, *mut COR_FIELD_OFFSET, u32, *mut u32, *mut u32);
        GetFieldMarshal(mdToken, *mut *const u8, *mut u32);
        GetRVA(mdToken, *mut u32, *mut u32);
        GetPermissionSetProps(mdPermission, *mut u32, *mut *const c_void, *mut u32);
        GetSigFromToken(mdSignature, *mut *const u8, *mut u32);
        GetModuleRefProps(mdModuleRef, *mut u16, u32, *mut u32);
        EnumModuleRefs(*mut HCORENUM, *mut mdModuleRef, u32, *mut u32);
        GetTypeSpecFromToken(mdTypeSpec, *mut *const u8, *mut u32);
        EnumUnresolvedMethods(*mut HCORENUM, *mut mdToken, u32, *mut u32);
        GetUserString(mdString, *mut u16, u32, *mut u32);
        GetPinvokeMap(mdToken, *mut u32, *mut u16, u32, *mut u32, *mut mdModuleRef);
        EnumSignatures(*mut HCORENUM, *mut mdSignature, u32, *mut u32);
        EnumTypeSpecs(*mut HCORENUM, *mut mdTypeSpec, u32, *mut u32);
        EnumUserStrings(*mut HCORENUM, *mut mdString, u32, *mut u32);
        GetParamForMethodIndex(mdMethodDef, u32, *mut mdParamDef);
        EnumCustomAttributes(*mut HCORENUM, mdToken, mdToken, *mut mdCustomAttribute, u32, *mut u32);
        GetCustomAttributeProps(mdCustomAttribute, *mut mdToken, *mut mdToken, *mut *const c_void, *mut u32);
        FindTypeRef(mdToken, *const u16, *mut mdTypeRef);
        GetMemberProps(mdToken, *mut mdTypeDef, *mut u16, u32, *mut u32, *mut u32, *mut *const u8, *mut u32, *mut u32, *mut u32, *mut u32, *mut *const c_void, *mut u32);
        GetPropertyProps(mdProperty, *mut mdTypeDef, *mut u16, u32, *mut u32, *mut u32, *mut *const u8, *mut u32, *mut u32, *mut *const c_void, *mut u32, *mut mdMethodDef, *mut mdMethodDef, *mut mdMethodDef, u32, *mut u32);
        GetParamProps(mdParamDef, *mut mdMethodDef, *mut u32, *mut u16, u32, *mut u32, *mut u32, *mut u32, *mut *const c_void, *mut u32);
        GetNativeCallConvFromSig(*const c_void, u32, *mut u32);
        IsGlobal(mdToken, *mut i32);
    }
}

impl IMetaDataImport2_Impl for Metadata_Impl {
    unsafe fn EnumGenericParams(
        &self,
        position: *mut HCORENUM,
        _owner: u32,
        out: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> HRESULT {
        // SAFETY: the caller's pointers.
        unsafe { next(position, Vec::new, out, capacity, count) }
    }

    unanswered! {
        GetGenericParamProps(mdGenericParam, *mut u32, *mut u32, *mut mdToken, *mut u32, *mut u16, u32, *mut u32);
        GetMethodSpecProps(mdMethodSpec, *mut mdToken, *mut *const u8, *mut u32);
        EnumGenericParamConstraints(*mut HCORENUM, mdGenericParam, *mut mdGenericParamConstraint, u32, *mut u32);
        GetGenericParamConstraintProps(mdGenericParamConstraint, *mut mdGenericParam, *mut mdToken);
        GetPEKind(*mut u32, *mut u32);
        GetVersionString(*mut u16, u32, *mut u32);
        EnumMethodSpecs(*mut HCORENUM, mdToken, *mut mdMethodSpec, u32, *mut u32);
    }
}
