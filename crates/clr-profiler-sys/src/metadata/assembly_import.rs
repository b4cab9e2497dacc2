//! `IMetaDataAssemblyImport`: reading the assembly manifest.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::cor::{mdAssembly, mdAssemblyRef, mdExportedType, mdFile, mdManifestResource, mdToken, mdTypeDef};
use crate::structs::ASSEMBLYMETADATA;
use crate::types::HCORENUM;

/// Reads a module's assembly manifest. Source: cor.h.
#[interface("EE62470B-E94B-424E-9B7C-2F00C9249F93")]
pub unsafe trait IMetaDataAssemblyImport: IUnknown {
    /// Public key, name, version and flags of the assembly.
    pub fn GetAssemblyProps(
        &self,
        mda: mdAssembly,
        public_key: *mut *const c_void,
        p_cb_public_key: *mut u32,
        hash_alg_id: *mut u32,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
        meta_data: *mut ASSEMBLYMETADATA,
        assembly_flags: *mut u32,
    ) -> HRESULT;
    /// Key or token, name, version, hash and flags of a referenced assembly.
    pub fn GetAssemblyRefProps(
        &self,
        mdar: mdAssemblyRef,
        public_key_or_token: *mut *const c_void,
        p_cb_public_key_or_token: *mut u32,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
        meta_data: *mut ASSEMBLYMETADATA,
        hash_value: *mut *const c_void,
        p_cb_hash_value: *mut u32,
        assembly_ref_flags: *mut u32,
    ) -> HRESULT;
    /// Name, hash and flags of a file of the assembly.
    pub fn GetFileProps(
        &self,
        mdf: mdFile,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
        hash_value: *mut *const c_void,
        p_cb_hash_value: *mut u32,
        file_flags: *mut u32,
    ) -> HRESULT;
    /// Full name, implementation token and flags of an exported or forwarded type.
    pub fn GetExportedTypeProps(
        &self,
        mdct: mdExportedType,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
        implementation: *mut mdToken,
        type_def: *mut mdTypeDef,
        exported_type_flags: *mut u32,
    ) -> HRESULT;
    /// Name, implementation token, offset and flags of a resource.
    pub fn GetManifestResourceProps(
        &self,
        mdmr: mdManifestResource,
        sz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
        implementation: *mut mdToken,
        offset: *mut u32,
        resource_flags: *mut u32,
    ) -> HRESULT;
    /// Assemblies the module refers to.
    pub fn EnumAssemblyRefs(
        &self,
        enumeration: *mut HCORENUM,
        r_assembly_refs: *mut mdAssemblyRef,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Files of the assembly.
    pub fn EnumFiles(
        &self,
        enumeration: *mut HCORENUM,
        r_files: *mut mdFile,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Exported and forwarded types.
    pub fn EnumExportedTypes(
        &self,
        enumeration: *mut HCORENUM,
        r_exported_types: *mut mdExportedType,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Resources of the assembly.
    pub fn EnumManifestResources(
        &self,
        enumeration: *mut HCORENUM,
        r_manifest_resources: *mut mdManifestResource,
        c_max: u32,
        p_c_tokens: *mut u32,
    ) -> HRESULT;
    /// Token of the assembly; an error for a module without a manifest.
    pub fn GetAssemblyFromScope(&self, assembly: *mut mdAssembly) -> HRESULT;
    /// Finds an exported type by its full name.
    pub fn FindExportedTypeByName(
        &self,
        sz_name: *const u16,
        mdt_exported_type: mdToken,
        exported_type: *mut mdExportedType,
    ) -> HRESULT;
    /// Finds a resource by its name.
    pub fn FindManifestResourceByName(
        &self,
        sz_name: *const u16,
        manifest_resource: *mut mdManifestResource,
    ) -> HRESULT;
    /// Frees an enumeration; null is allowed.
    pub fn CloseEnum(&self, enumeration: HCORENUM);
    /// Looks assemblies up by name.
    pub fn FindAssembliesByName(
        &self,
        sz_app_base: *const u16,
        sz_private_bin: *const u16,
        sz_assembly_name: *const u16,
        out: *mut *mut c_void,
        c_max: u32,
        p_c_assemblies: *mut u32,
    ) -> HRESULT;
}
