//! `IMetaDataImport`: reading types, members and signatures.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::{c_char, c_void};

use windows_core::{BOOL, GUID, HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::cor::{
    mdCustomAttribute, mdEvent, mdFieldDef, mdInterfaceImpl, mdMemberRef, mdMethodDef, mdModule, mdModuleRef,
    mdParamDef, mdPermission, mdProperty, mdSignature, mdString, mdToken, mdTypeDef, mdTypeRef, mdTypeSpec,
};
use crate::structs::COR_FIELD_OFFSET;
use crate::types::HCORENUM;

/// Reads a module's metadata. Source: cor.h.
#[interface("7DAC8207-D3AE-4C75-9B67-92801A497D44")]
pub unsafe trait IMetaDataImport: IUnknown {
    /// Frees an enumeration; null is allowed.
    pub fn CloseEnum(&self, enumeration: HCORENUM);
    /// Number of elements of an enumeration.
    pub fn CountEnum(&self, enumeration: HCORENUM, count: *mut u32) -> HRESULT;
    /// Sets the position of an enumeration.
    pub fn ResetEnum(&self, enumeration: HCORENUM, pos: u32) -> HRESULT;
    /// Types defined in the module, without the global one.
    pub fn EnumTypeDefs(
        &self,
        enumeration: *mut HCORENUM,
        r_type_defs: *mut mdTypeDef,
        c_max: u32,
        p_c_type_defs: *mut u32,
    ) -> HRESULT;
    /// Interfaces a type implements.
    pub fn EnumInterfaceImpls(
        &self,
        enumeration: *mut HCORENUM,
        td: mdTypeDef,
        r_impls: *mut mdInterfaceImpl,
        c_max: u32,
        p_c_impls: *mut u32,
    ) -> HRESULT;
    /// Types the module refers to.
    pub fn EnumTypeRefs(
        &self,
        enumeration: *mut HCORENUM,
        r_type_refs: *mut mdTypeRef,
        c_max: u32,
        p_c_type_refs: *mut u32,
    ) -> HRESULT;
    /// Finds a type by its full name. `tk_enclosing_class` is the enclosing type, or nil.
    pub fn FindTypeDefByName(
        &self,
        sz_type_def: *const u16,
        tk_enclosing_class: mdToken,
        type_def: *mut mdTypeDef,
    ) -> HRESULT;
    /// Name and version id of the module.
    pub fn GetScopeProps(&self, sz_name: *mut u16, cch_name: u32, p_cch_name: *mut u32, mvid: *mut GUID) -> HRESULT;
    /// Token of the module.
    pub fn GetModuleFromScope(&self, module: *mut mdModule) -> HRESULT;
    /// Full name, attributes and base of a type. Name lengths count the terminator.
    pub fn GetTypeDefProps(
        &self,
        td: mdTypeDef,
        sz_type_def: *mut u16,
        cch_type_def: u32,
        p_cch_type_def: *mut u32,
        type_def_flags: *mut u32,
        extends: *mut mdToken,
    ) -> HRESULT;
    /// Class and interface of an implementation entry.
    pub fn GetInterfaceImplProps(
        &self,
        ii_impl: mdInterfaceImpl,
        class: *mut mdTypeDef,
        iface: *mut mdToken,
    ) -> HRESULT;
    /// Scope and full name of a referenced type.
    pub fn GetTypeRefProps(
        &self,
        tr: mdTypeRef,
        resolution_scope: *mut mdToken,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
    ) -> HRESULT;
    /// Finds the module and type that a reference refers to.
    pub fn ResolveTypeRef(
        &self,
        tr: mdTypeRef,
        riid: *const GUID,
        out: *mut *mut c_void,
        type_def: *mut mdTypeDef,
    ) -> HRESULT;
    /// Methods and fields of a type.
    pub fn EnumMembers(
        &self,
        enumeration: *mut HCORENUM,
        cl: mdTypeDef,
        r_members: *mut mdToken,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Methods and fields of a type that have the given name.
    pub fn EnumMembersWithName(
        &self,
        enumeration: *mut HCORENUM,
        cl: mdTypeDef,
        sz_name: *const u16,
        r_members: *mut mdToken,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Methods of a type.
    pub fn EnumMethods(
        &self,
        enumeration: *mut HCORENUM,
        cl: mdTypeDef,
        r_methods: *mut mdMethodDef,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Methods of a type that have the given name.
    pub fn EnumMethodsWithName(
        &self,
        enumeration: *mut HCORENUM,
        cl: mdTypeDef,
        sz_name: *const u16,
        r_methods: *mut mdMethodDef,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Fields of a type.
    pub fn EnumFields(
        &self,
        enumeration: *mut HCORENUM,
        cl: mdTypeDef,
        r_fields: *mut mdFieldDef,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Fields of a type that have the given name.
    pub fn EnumFieldsWithName(
        &self,
        enumeration: *mut HCORENUM,
        cl: mdTypeDef,
        sz_name: *const u16,
        r_fields: *mut mdFieldDef,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Parameter entries of a method; may be fewer than its parameters.
    pub fn EnumParams(
        &self,
        enumeration: *mut HCORENUM,
        mb: mdMethodDef,
        r_params: *mut mdParamDef,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Member references under a parent.
    pub fn EnumMemberRefs(
        &self,
        enumeration: *mut HCORENUM,
        tk_parent: mdToken,
        r_member_refs: *mut mdMemberRef,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Explicit overrides in a type: each body and the declaration that it overrides.
    pub fn EnumMethodImpls(
        &self,
        enumeration: *mut HCORENUM,
        td: mdTypeDef,
        r_method_body: *mut mdToken,
        r_method_decl: *mut mdToken,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Declarative security of a token.
    pub fn EnumPermissionSets(
        &self,
        enumeration: *mut HCORENUM,
        tk: mdToken,
        actions: u32,
        r_permission: *mut mdPermission,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Finds a member by name and signature.
    pub fn FindMember(
        &self,
        td: mdTypeDef,
        sz_name: *const u16,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        member: *mut mdToken,
    ) -> HRESULT;
    /// Finds a method by name and signature.
    pub fn FindMethod(
        &self,
        td: mdTypeDef,
        sz_name: *const u16,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        member: *mut mdMethodDef,
    ) -> HRESULT;
    /// Finds a field by name and signature.
    pub fn FindField(
        &self,
        td: mdTypeDef,
        sz_name: *const u16,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        member: *mut mdFieldDef,
    ) -> HRESULT;
    /// Finds a member reference by name and signature.
    pub fn FindMemberRef(
        &self,
        td: mdTypeRef,
        sz_name: *const u16,
        sig_blob: *const u8,
        cb_sig_blob: u32,
        member_ref: *mut mdMemberRef,
    ) -> HRESULT;
    /// Type, name, attributes, signature, address and implementation flags of a method.
    pub fn GetMethodProps(
        &self,
        mb: mdMethodDef,
        class: *mut mdTypeDef,
        sz_method: *mut u16,
        cch_method: u32,
        p_cch_method: *mut u32,
        attr: *mut u32,
        sig_blob: *mut *const u8,
        p_cb_sig_blob: *mut u32,
        code_rva: *mut u32,
        impl_flags: *mut u32,
    ) -> HRESULT;
    /// Parent, name and signature of a member reference.
    pub fn GetMemberRefProps(
        &self,
        mr: mdMemberRef,
        ptk: *mut mdToken,
        sz_member: *mut u16,
        cch_member: u32,
        p_cch_member: *mut u32,
        sig_blob: *mut *const u8,
        p_cb_sig: *mut u32,
    ) -> HRESULT;
    /// Properties of a type.
    pub fn EnumProperties(
        &self,
        enumeration: *mut HCORENUM,
        td: mdTypeDef,
        r_properties: *mut mdProperty,
        c_max: u32,
        p_c_properties: *mut u32,
    ) -> HRESULT;
    /// Events of a type.
    pub fn EnumEvents(
        &self,
        enumeration: *mut HCORENUM,
        td: mdTypeDef,
        r_events: *mut mdEvent,
        c_max: u32,
        p_c_events: *mut u32,
    ) -> HRESULT;
    /// Type, name, handler type and accessors of an event. `sz_event` is an output although the
    /// header declares it constant.
    pub fn GetEventProps(
        &self,
        ev: mdEvent,
        class: *mut mdTypeDef,
        sz_event: *mut u16,
        cch_event: u32,
        p_cch_event: *mut u32,
        event_flags: *mut u32,
        event_type: *mut mdToken,
        add_on: *mut mdMethodDef,
        remove_on: *mut mdMethodDef,
        fire: *mut mdMethodDef,
        other_methods: *mut mdMethodDef,
        c_max: u32,
        p_c_other_method: *mut u32,
    ) -> HRESULT;
    /// Properties and events a method belongs to.
    pub fn EnumMethodSemantics(
        &self,
        enumeration: *mut HCORENUM,
        mb: mdMethodDef,
        r_event_prop: *mut mdToken,
        c_max: u32,
        p_c_event_prop: *mut u32,
    ) -> HRESULT;
    /// Role of a method in a property or event (`CorMethodSemanticsAttr`).
    pub fn GetMethodSemantics(&self, mb: mdMethodDef, tk_event_prop: mdToken, semantics_flags: *mut u32) -> HRESULT;
    /// Packing, size and explicit offsets of a type; an error when it has none.
    pub fn GetClassLayout(
        &self,
        td: mdTypeDef,
        pack_size: *mut u32,
        r_field_offset: *mut COR_FIELD_OFFSET,
        c_max: u32,
        p_c_field_offset: *mut u32,
        class_size: *mut u32,
    ) -> HRESULT;
    /// Native type of a field or parameter.
    pub fn GetFieldMarshal(&self, tk: mdToken, native_type: *mut *const u8, p_cb_native_type: *mut u32) -> HRESULT;
    /// Address in the image and implementation flags of a method or field.
    pub fn GetRVA(&self, tk: mdToken, code_rva: *mut u32, impl_flags: *mut u32) -> HRESULT;
    /// Action and blob of a permission set.
    pub fn GetPermissionSetProps(
        &self,
        pm: mdPermission,
        action: *mut u32,
        permission: *mut *const c_void,
        p_cb_permission: *mut u32,
    ) -> HRESULT;
    /// Blob of a stand-alone signature.
    pub fn GetSigFromToken(&self, md_sig: mdSignature, sig: *mut *const u8, p_cb_sig: *mut u32) -> HRESULT;
    /// Name of a referenced module (the library of a P/Invoke).
    pub fn GetModuleRefProps(
        &self,
        mur: mdModuleRef,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
    ) -> HRESULT;
    /// Modules the module refers to.
    pub fn EnumModuleRefs(
        &self,
        enumeration: *mut HCORENUM,
        r_module_refs: *mut mdModuleRef,
        cmax: u32,
        p_c_module_refs: *mut u32,
    ) -> HRESULT;
    /// Signature of a constructed type.
    pub fn GetTypeSpecFromToken(&self, typespec: mdTypeSpec, sig: *mut *const u8, p_cb_sig: *mut u32) -> HRESULT;
    /// UTF-8 name of a token inside the metadata; obsolete.
    pub fn GetNameFromToken(&self, tk: mdToken, utf8_name: *mut *const c_char) -> HRESULT;
    /// Methods and references without a body.
    pub fn EnumUnresolvedMethods(
        &self,
        enumeration: *mut HCORENUM,
        r_methods: *mut mdToken,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Text of a string literal (user string), without a terminator.
    pub fn GetUserString(&self, stk: mdString, sz_string: *mut u16, cch_string: u32, p_cch_string: *mut u32)
    -> HRESULT;
    /// Flags, entry point and library of a P/Invoke method.
    pub fn GetPinvokeMap(
        &self,
        tk: mdToken,
        mapping_flags: *mut u32,
        sz_import_name: *mut u16,
        cch_import_name: u32,
        p_cch_import_name: *mut u32,
        pmr_import_dll: *mut mdModuleRef,
    ) -> HRESULT;
    /// Stand-alone signatures of the module.
    pub fn EnumSignatures(
        &self,
        enumeration: *mut HCORENUM,
        r_signatures: *mut mdSignature,
        cmax: u32,
        p_c_signatures: *mut u32,
    ) -> HRESULT;
    /// Constructed types of the module.
    pub fn EnumTypeSpecs(
        &self,
        enumeration: *mut HCORENUM,
        r_type_specs: *mut mdTypeSpec,
        cmax: u32,
        p_c_type_specs: *mut u32,
    ) -> HRESULT;
    /// Literals of the module.
    pub fn EnumUserStrings(
        &self,
        enumeration: *mut HCORENUM,
        r_strings: *mut mdString,
        cmax: u32,
        p_c_strings: *mut u32,
    ) -> HRESULT;
    /// Parameter entry of a method by position; 0 is the result.
    pub fn GetParamForMethodIndex(&self, md: mdMethodDef, param_seq: u32, param: *mut mdParamDef) -> HRESULT;
    /// Custom attributes on a token. If `tk_type` is not nil, only those with that constructor.
    pub fn EnumCustomAttributes(
        &self,
        enumeration: *mut HCORENUM,
        tk: mdToken,
        tk_type: mdToken,
        r_custom_attributes: *mut mdCustomAttribute,
        c_max: u32,
        p_c_custom_attributes: *mut u32,
    ) -> HRESULT;
    /// Owner, constructor and blob of a custom attribute.
    pub fn GetCustomAttributeProps(
        &self,
        cv: mdCustomAttribute,
        owner: *mut mdToken,
        type_token: *mut mdToken,
        blob: *mut *const c_void,
        p_cb_size: *mut u32,
    ) -> HRESULT;
    /// Finds a type reference by scope and full name.
    pub fn FindTypeRef(&self, tk_resolution_scope: mdToken, sz_name: *const u16, type_ref: *mut mdTypeRef) -> HRESULT;
    /// Everything about a method or field in one call.
    pub fn GetMemberProps(
        &self,
        mb: mdToken,
        class: *mut mdTypeDef,
        sz_member: *mut u16,
        cch_member: u32,
        p_cch_member: *mut u32,
        attr: *mut u32,
        sig_blob: *mut *const u8,
        p_cb_sig_blob: *mut u32,
        code_rva: *mut u32,
        impl_flags: *mut u32,
        c_plus_type_flag: *mut u32,
        value: *mut *const c_void,
        p_cch_value: *mut u32,
    ) -> HRESULT;
    /// Type, name, attributes, signature and constant of a field.
    pub fn GetFieldProps(
        &self,
        mb: mdFieldDef,
        class: *mut mdTypeDef,
        sz_field: *mut u16,
        cch_field: u32,
        p_cch_field: *mut u32,
        attr: *mut u32,
        sig_blob: *mut *const u8,
        p_cb_sig_blob: *mut u32,
        c_plus_type_flag: *mut u32,
        value: *mut *const c_void,
        p_cch_value: *mut u32,
    ) -> HRESULT;
    /// Type, name, signature, constant and accessors of a property. `sz_property` is an output
    /// although the header declares it constant.
    pub fn GetPropertyProps(
        &self,
        property: mdProperty,
        class: *mut mdTypeDef,
        sz_property: *mut u16,
        cch_property: u32,
        p_cch_property: *mut u32,
        prop_flags: *mut u32,
        sig: *mut *const u8,
        p_cb_sig: *mut u32,
        c_plus_type_flag: *mut u32,
        default_value: *mut *const c_void,
        p_cch_default_value: *mut u32,
        setter: *mut mdMethodDef,
        getter: *mut mdMethodDef,
        other_methods: *mut mdMethodDef,
        c_max: u32,
        p_c_other_method: *mut u32,
    ) -> HRESULT;
    /// Method, position, name, attributes and constant of a parameter.
    pub fn GetParamProps(
        &self,
        tk: mdParamDef,
        method: *mut mdMethodDef,
        sequence: *mut u32,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
        attr: *mut u32,
        c_plus_type_flag: *mut u32,
        value: *mut *const c_void,
        p_cch_value: *mut u32,
    ) -> HRESULT;
    /// Blob of the first custom attribute whose type has the given name; `S_FALSE` if there is
    /// none.
    pub fn GetCustomAttributeByName(
        &self,
        tk_obj: mdToken,
        sz_name: *const u16,
        data: *mut *const c_void,
        p_cb_data: *mut u32,
    ) -> HRESULT;
    /// Whether a token names a row that exists.
    pub fn IsValidToken(&self, tk: mdToken) -> BOOL;
    /// Enclosing type of a nested type; an error when the type is not nested.
    pub fn GetNestedClassProps(&self, td_nested_class: mdTypeDef, ptd_enclosing_class: *mut mdTypeDef) -> HRESULT;
    /// Native calling convention of a signature.
    pub fn GetNativeCallConvFromSig(&self, sig: *const c_void, cb_sig: u32, call_conv: *mut u32) -> HRESULT;
    /// Whether a member is outside every class.
    pub fn IsGlobal(&self, member: mdToken, global: *mut i32) -> HRESULT;
}
