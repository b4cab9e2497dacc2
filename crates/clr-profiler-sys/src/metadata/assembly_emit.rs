//! `IMetaDataAssemblyEmit`: writing the assembly manifest.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::cor::{mdAssembly, mdAssemblyRef, mdExportedType, mdFile, mdManifestResource, mdToken, mdTypeDef};
use crate::structs::ASSEMBLYMETADATA;

/// Writes an assembly manifest. Source: cor.h.
#[interface("211EF15B-5317-4438-B196-DEC87B887693")]
pub unsafe trait IMetaDataAssemblyEmit: IUnknown {
    /// Adds the assembly's manifest.
    pub fn DefineAssembly(
        &self,
        public_key: *const c_void,
        cb_public_key: u32,
        hash_alg_id: u32,
        sz_name: *const u16,
        meta_data: *const ASSEMBLYMETADATA,
        assembly_flags: u32,
        assembly: *mut mdAssembly,
    ) -> HRESULT;
    /// Adds a reference to an assembly.
    pub fn DefineAssemblyRef(
        &self,
        public_key_or_token: *const c_void,
        cb_public_key_or_token: u32,
        sz_name: *const u16,
        meta_data: *const ASSEMBLYMETADATA,
        hash_value: *const c_void,
        cb_hash_value: u32,
        assembly_ref_flags: u32,
        assembly_ref: *mut mdAssemblyRef,
    ) -> HRESULT;
    /// Adds a file of the assembly.
    pub fn DefineFile(
        &self,
        sz_name: *const u16,
        hash_value: *const c_void,
        cb_hash_value: u32,
        file_flags: u32,
        file_token: *mut mdFile,
    ) -> HRESULT;
    /// Adds an exported type.
    pub fn DefineExportedType(
        &self,
        sz_name: *const u16,
        tk_implementation: mdToken,
        tk_type_def: mdTypeDef,
        exported_type_flags: u32,
        exported_type: *mut mdExportedType,
    ) -> HRESULT;
    /// Adds a resource.
    pub fn DefineManifestResource(
        &self,
        sz_name: *const u16,
        tk_implementation: mdToken,
        offset: u32,
        resource_flags: u32,
        resource: *mut mdManifestResource,
    ) -> HRESULT;
    /// Changes the assembly.
    pub fn SetAssemblyProps(
        &self,
        assembly: mdAssembly,
        public_key: *const c_void,
        cb_public_key: u32,
        hash_alg_id: u32,
        sz_name: *const u16,
        meta_data: *const ASSEMBLYMETADATA,
        assembly_flags: u32,
    ) -> HRESULT;
    /// Changes a reference to an assembly.
    pub fn SetAssemblyRefProps(
        &self,
        ar: mdAssemblyRef,
        public_key_or_token: *const c_void,
        cb_public_key_or_token: u32,
        sz_name: *const u16,
        meta_data: *const ASSEMBLYMETADATA,
        hash_value: *const c_void,
        cb_hash_value: u32,
        assembly_ref_flags: u32,
    ) -> HRESULT;
    /// Changes a file.
    pub fn SetFileProps(&self, file: mdFile, hash_value: *const c_void, cb_hash_value: u32, file_flags: u32)
    -> HRESULT;
    /// Changes an exported type.
    pub fn SetExportedTypeProps(
        &self,
        ct: mdExportedType,
        tk_implementation: mdToken,
        tk_type_def: mdTypeDef,
        exported_type_flags: u32,
    ) -> HRESULT;
    /// Changes a resource.
    pub fn SetManifestResourceProps(
        &self,
        mr: mdManifestResource,
        tk_implementation: mdToken,
        offset: u32,
        resource_flags: u32,
    ) -> HRESULT;
}
