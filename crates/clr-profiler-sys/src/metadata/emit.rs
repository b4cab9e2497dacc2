//! `IMetaDataEmit` and `IMetaDataEmit2`: writing types, members and signatures.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::cor::{
    CorSaveSize, mdCustomAttribute, mdEvent, mdFieldDef, mdGenericParam, mdMemberRef, mdMethodDef, mdMethodSpec,
    mdModuleRef, mdParamDef, mdPermission, mdProperty, mdSignature, mdString, mdToken, mdTypeDef, mdTypeRef,
    mdTypeSpec,
};
use crate::structs::{COR_FIELD_OFFSET, COR_SECATTR};

/// Writes metadata, which must be opened with `ofWrite`. `ICorProfilerInfo7::ApplyMetaData` tells
/// the runtime about additions. Source: cor.h.
#[interface("BA3FEE4C-ECB9-4E41-83B7-183FA41CD859")]
pub unsafe trait IMetaDataEmit: IUnknown {
    /// Sets the module's name.
    pub fn SetModuleProps(&self, sz_name: *const u16) -> HRESULT;
    /// Writes the metadata to a file.
    pub fn Save(&self, sz_file: *const u16, save_flags: u32) -> HRESULT;
    /// Writes the metadata to an `IStream`.
    pub fn SaveToStream(&self, stream: *mut c_void, save_flags: u32) -> HRESULT;
    /// Number of bytes that a save would write.
    pub fn GetSaveSize(&self, save: CorSaveSize, save_size: *mut u32) -> HRESULT;
    /// Adds a type; `implements` ends with a nil token.
    pub fn DefineTypeDef(
        &self,
        sz_type_def: *const u16,
        type_def_flags: u32,
        tk_extends: mdToken,
        implements: *const mdToken,
        type_def: *mut mdTypeDef,
    ) -> HRESULT;
    /// Adds a type nested in another.
    pub fn DefineNestedType(
        &self,
        sz_type_def: *const u16,
        type_def_flags: u32,
        tk_extends: mdToken,
        implements: *const mdToken,
        td_encloser: mdTypeDef,
        type_def: *mut mdTypeDef,
    ) -> HRESULT;
    /// Sets a handler for notifications of the writer.
    pub fn SetHandler(&self, unknown: *mut c_void) -> HRESULT;
    /// Adds a method.
    pub fn DefineMethod(
        &self,
        td: mdTypeDef,
        sz_name: *const u16,
        method_flags: u32,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        code_rva: u32,
        impl_flags: u32,
        method: *mut mdMethodDef,
    ) -> HRESULT;
    /// Adds an explicit override.
    pub fn DefineMethodImpl(&self, td: mdTypeDef, tk_body: mdToken, tk_decl: mdToken) -> HRESULT;
    /// Adds a reference to a type, given by scope and full name.
    pub fn DefineTypeRefByName(
        &self,
        tk_resolution_scope: mdToken,
        sz_name: *const u16,
        type_ref: *mut mdTypeRef,
    ) -> HRESULT;
    /// Adds a reference to a type found in another scope.
    pub fn DefineImportType(
        &self,
        assembly_import: *mut c_void,
        hash_value: *const c_void,
        cb_hash_value: u32,
        import: *mut c_void,
        td_import: mdTypeDef,
        assembly_emit: *mut c_void,
        type_ref: *mut mdTypeRef,
    ) -> HRESULT;
    /// Adds a reference to a member, given by name and signature.
    pub fn DefineMemberRef(
        &self,
        tk_import: mdToken,
        sz_name: *const u16,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        member_ref: *mut mdMemberRef,
    ) -> HRESULT;
    /// Adds a reference to a member found in another scope.
    pub fn DefineImportMember(
        &self,
        assembly_import: *mut c_void,
        hash_value: *const c_void,
        cb_hash_value: u32,
        import: *mut c_void,
        mb_member: mdToken,
        assembly_emit: *mut c_void,
        tk_parent: mdToken,
        member_ref: *mut mdMemberRef,
    ) -> HRESULT;
    /// Adds an event; `other_methods` ends with a nil token.
    pub fn DefineEvent(
        &self,
        td: mdTypeDef,
        sz_event: *const u16,
        event_flags: u32,
        tk_event_type: mdToken,
        md_add_on: mdMethodDef,
        md_remove_on: mdMethodDef,
        md_fire: mdMethodDef,
        other_methods: *const mdMethodDef,
        event: *mut mdEvent,
    ) -> HRESULT;
    /// Sets packing, offsets and size of a type.
    pub fn SetClassLayout(
        &self,
        td: mdTypeDef,
        pack_size: u32,
        r_field_offsets: *const COR_FIELD_OFFSET,
        class_size: u32,
    ) -> HRESULT;
    /// Removes packing, offsets and size of a type.
    pub fn DeleteClassLayout(&self, td: mdTypeDef) -> HRESULT;
    /// Sets the native type of a field or parameter.
    pub fn SetFieldMarshal(&self, tk: mdToken, native_type: *const u8, cb_native_type: u32) -> HRESULT;
    /// Removes the native type of a field or parameter.
    pub fn DeleteFieldMarshal(&self, tk: mdToken) -> HRESULT;
    /// Adds declarative security.
    pub fn DefinePermissionSet(
        &self,
        tk: mdToken,
        action: u32,
        permission: *const c_void,
        cb_permission: u32,
        permission_token: *mut mdPermission,
    ) -> HRESULT;
    /// Sets a method's address in the image.
    pub fn SetRVA(&self, md: mdMethodDef, rva: u32) -> HRESULT;
    /// Token of a stand-alone signature, added if new. Used for the local variables of a changed
    /// body.
    pub fn GetTokenFromSig(&self, sig: *const u8, cb_sig: u32, signature: *mut mdSignature) -> HRESULT;
    /// Adds a referenced module (the library of a P/Invoke).
    pub fn DefineModuleRef(&self, sz_name: *const u16, module_ref: *mut mdModuleRef) -> HRESULT;
    /// Moves a member reference to another parent.
    pub fn SetParent(&self, mr: mdMemberRef, tk: mdToken) -> HRESULT;
    /// Token of a constructed type, added if new.
    pub fn GetTokenFromTypeSpec(&self, sig: *const u8, cb_sig: u32, type_spec: *mut mdTypeSpec) -> HRESULT;
    /// Writes the metadata to memory.
    pub fn SaveToMemory(&self, data: *mut c_void, cb_data: u32) -> HRESULT;
    /// Token of a string literal, added if new.
    pub fn DefineUserString(&self, sz_string: *const u16, cch_string: u32, string: *mut mdString) -> HRESULT;
    /// Removes a definition, if possible.
    pub fn DeleteToken(&self, tk_obj: mdToken) -> HRESULT;
    /// Changes a method's attributes, address and implementation flags.
    pub fn SetMethodProps(&self, md: mdMethodDef, method_flags: u32, code_rva: u32, impl_flags: u32) -> HRESULT;
    /// Changes a type's attributes, base and interfaces.
    pub fn SetTypeDefProps(
        &self,
        td: mdTypeDef,
        type_def_flags: u32,
        tk_extends: mdToken,
        implements: *const mdToken,
    ) -> HRESULT;
    /// Changes an event.
    pub fn SetEventProps(
        &self,
        ev: mdEvent,
        event_flags: u32,
        tk_event_type: mdToken,
        md_add_on: mdMethodDef,
        md_remove_on: mdMethodDef,
        md_fire: mdMethodDef,
        other_methods: *const mdMethodDef,
    ) -> HRESULT;
    /// Changes declarative security.
    pub fn SetPermissionSetProps(
        &self,
        tk: mdToken,
        action: u32,
        permission: *const c_void,
        cb_permission: u32,
        permission_token: *mut mdPermission,
    ) -> HRESULT;
    /// Makes a method a P/Invoke.
    pub fn DefinePinvokeMap(
        &self,
        tk: mdToken,
        mapping_flags: u32,
        sz_import_name: *const u16,
        mr_import_dll: mdModuleRef,
    ) -> HRESULT;
    /// Changes a P/Invoke.
    pub fn SetPinvokeMap(
        &self,
        tk: mdToken,
        mapping_flags: u32,
        sz_import_name: *const u16,
        mr_import_dll: mdModuleRef,
    ) -> HRESULT;
    /// Makes a P/Invoke an ordinary method.
    pub fn DeletePinvokeMap(&self, tk: mdToken) -> HRESULT;
    /// Adds a custom attribute.
    pub fn DefineCustomAttribute(
        &self,
        tk_owner: mdToken,
        tk_ctor: mdToken,
        custom_attribute: *const c_void,
        cb_custom_attribute: u32,
        attribute: *mut mdCustomAttribute,
    ) -> HRESULT;
    /// Changes a custom attribute's blob.
    pub fn SetCustomAttributeValue(
        &self,
        attribute: mdCustomAttribute,
        custom_attribute: *const c_void,
        cb_custom_attribute: u32,
    ) -> HRESULT;
    /// Adds a field.
    pub fn DefineField(
        &self,
        td: mdTypeDef,
        sz_name: *const u16,
        field_flags: u32,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        c_plus_type_flag: u32,
        value: *const c_void,
        cch_value: u32,
        field: *mut mdFieldDef,
    ) -> HRESULT;
    /// Adds a property; `other_methods` ends with a nil token.
    pub fn DefineProperty(
        &self,
        td: mdTypeDef,
        sz_property: *const u16,
        prop_flags: u32,
        sig: *const u8,
        cb_sig: u32,
        c_plus_type_flag: u32,
        value: *const c_void,
        cch_value: u32,
        md_setter: mdMethodDef,
        md_getter: mdMethodDef,
        other_methods: *const mdMethodDef,
        property: *mut mdProperty,
    ) -> HRESULT;
    /// Adds a parameter entry; position 0 is the result.
    pub fn DefineParam(
        &self,
        md: mdMethodDef,
        param_seq: u32,
        sz_name: *const u16,
        param_flags: u32,
        c_plus_type_flag: u32,
        value: *const c_void,
        cch_value: u32,
        param: *mut mdParamDef,
    ) -> HRESULT;
    /// Changes a field.
    pub fn SetFieldProps(
        &self,
        fd: mdFieldDef,
        field_flags: u32,
        c_plus_type_flag: u32,
        value: *const c_void,
        cch_value: u32,
    ) -> HRESULT;
    /// Changes a property.
    pub fn SetPropertyProps(
        &self,
        pr: mdProperty,
        prop_flags: u32,
        c_plus_type_flag: u32,
        value: *const c_void,
        cch_value: u32,
        md_setter: mdMethodDef,
        md_getter: mdMethodDef,
        other_methods: *const mdMethodDef,
    ) -> HRESULT;
    /// Changes a parameter entry.
    pub fn SetParamProps(
        &self,
        param: mdParamDef,
        sz_name: *const u16,
        param_flags: u32,
        c_plus_type_flag: u32,
        value: *const c_void,
        cch_value: u32,
    ) -> HRESULT;
    /// Adds security attributes.
    pub fn DefineSecurityAttributeSet(
        &self,
        tk_obj: mdToken,
        r_sec_attrs: *const COR_SECATTR,
        c_sec_attrs: u32,
        error_attr: *mut u32,
    ) -> HRESULT;
    /// Applies the changes of another scope.
    pub fn ApplyEditAndContinue(&self, import: *mut c_void) -> HRESULT;
    /// Rewrites a signature of one scope for use in another scope.
    pub fn TranslateSigWithScope(
        &self,
        assembly_import: *mut c_void,
        hash_value: *const c_void,
        cb_hash_value: u32,
        import_scope: *mut c_void,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        assembly_emit: *mut c_void,
        emit_scope: *mut c_void,
        translated_sig: *mut u8,
        cb_translated_sig_max: u32,
        p_cb_translated_sig: *mut u32,
    ) -> HRESULT;
    /// Changes a method's implementation flags.
    pub fn SetMethodImplFlags(&self, md: mdMethodDef, impl_flags: u32) -> HRESULT;
    /// Sets the address of a field's data in the image.
    pub fn SetFieldRVA(&self, fd: mdFieldDef, rva: u32) -> HRESULT;
    /// Adds a scope to be merged.
    pub fn Merge(&self, import: *mut c_void, host_map_token: *mut c_void, handler: *mut c_void) -> HRESULT;
    /// Merges the added scopes.
    pub fn MergeEnd(&self) -> HRESULT;
}

/// Writes generics and deltas. Source: cor.h.
#[interface("F5DD9950-F693-42E6-830E-7B833E8146A9")]
pub unsafe trait IMetaDataEmit2: IMetaDataEmit {
    /// Token of a method instantiation, added if new.
    pub fn DefineMethodSpec(
        &self,
        tk_parent: mdToken,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        method_spec: *mut mdMethodSpec,
    ) -> HRESULT;
    /// Number of bytes that a save of the changes would write.
    pub fn GetDeltaSaveSize(&self, save: CorSaveSize, save_size: *mut u32) -> HRESULT;
    /// Writes the changes to a file.
    pub fn SaveDelta(&self, sz_file: *const u16, save_flags: u32) -> HRESULT;
    /// Writes the changes to an `IStream`.
    pub fn SaveDeltaToStream(&self, stream: *mut c_void, save_flags: u32) -> HRESULT;
    /// Writes the changes to memory.
    pub fn SaveDeltaToMemory(&self, data: *mut c_void, cb_data: u32) -> HRESULT;
    /// Adds a generic parameter; `constraints` ends with a nil token.
    pub fn DefineGenericParam(
        &self,
        tk: mdToken,
        param_seq: u32,
        param_flags: u32,
        sz_name: *const u16,
        reserved: u32,
        constraints: *const mdToken,
        generic_param: *mut mdGenericParam,
    ) -> HRESULT;
    /// Changes a generic parameter.
    pub fn SetGenericParamProps(
        &self,
        gp: mdGenericParam,
        param_flags: u32,
        sz_name: *const u16,
        reserved: u32,
        constraints: *const mdToken,
    ) -> HRESULT;
    /// Clears the log of changes.
    pub fn ResetENCLog(&self) -> HRESULT;
}
