//! `IMetaDataTables` and `IMetaDataTables2`: raw tables and heaps.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::{c_char, c_void};

use windows_core::{GUID, HRESULT, IUnknown, IUnknown_Vtbl, interface};

/// Reads metadata as raw tables and heaps. Strings are UTF-8, terminated. Source: cor.h.
#[interface("D8F579AB-402D-4B8E-82D9-5D63B1065C68")]
pub unsafe trait IMetaDataTables: IUnknown {
    /// Size of the string heap in bytes.
    pub fn GetStringHeapSize(&self, p_cb_strings: *mut u32) -> HRESULT;
    /// Size of the blob heap in bytes.
    pub fn GetBlobHeapSize(&self, p_cb_blobs: *mut u32) -> HRESULT;
    /// Size of the GUID heap in bytes.
    pub fn GetGuidHeapSize(&self, p_cb_guids: *mut u32) -> HRESULT;
    /// Size of the user-string heap in bytes.
    pub fn GetUserStringHeapSize(&self, p_cb_blobs: *mut u32) -> HRESULT;
    /// Number of tables.
    pub fn GetNumTables(&self, p_c_tables: *mut u32) -> HRESULT;
    /// Table a token belongs to.
    pub fn GetTableIndex(&self, token: u32, table: *mut u32) -> HRESULT;
    /// Row size, rows, columns, key column (all ones if none) and name of a table.
    pub fn GetTableInfo(
        &self,
        table: u32,
        p_cb_row: *mut u32,
        p_c_rows: *mut u32,
        p_c_cols: *mut u32,
        pi_key: *mut u32,
        name: *mut *const c_char,
    ) -> HRESULT;
    /// Offset, size, type and name of a column.
    pub fn GetColumnInfo(
        &self,
        table: u32,
        column: u32,
        po_col: *mut u32,
        p_cb_col: *mut u32,
        column_type: *mut u32,
        name: *mut *const c_char,
    ) -> HRESULT;
    /// Tables a coded token may refer to.
    pub fn GetCodedTokenInfo(
        &self,
        coded_token_index: u32,
        p_c_tokens: *mut u32,
        tokens: *mut *mut u32,
        name: *mut *const c_char,
    ) -> HRESULT;
    /// Address of a row; rows count from 1.
    pub fn GetRow(&self, table: u32, rid: u32, row: *mut *mut c_void) -> HRESULT;
    /// Value of a column in a row.
    pub fn GetColumn(&self, table: u32, column: u32, rid: u32, val: *mut u32) -> HRESULT;
    /// A string by heap offset.
    pub fn GetString(&self, ix_string: u32, string: *mut *const c_char) -> HRESULT;
    /// A blob by heap offset.
    pub fn GetBlob(&self, ix_blob: u32, p_cb_data: *mut u32, data: *mut *const c_void) -> HRESULT;
    /// A GUID by index.
    pub fn GetGuid(&self, ix_guid: u32, guid: *mut *const GUID) -> HRESULT;
    /// A user string by heap offset.
    pub fn GetUserString(&self, ix_user_string: u32, p_cb_data: *mut u32, data: *mut *const c_void) -> HRESULT;
    /// Offset of the string after the one at `ix_string`; `S_FALSE` at the end.
    pub fn GetNextString(&self, ix_string: u32, next: *mut u32) -> HRESULT;
    /// Offset of the blob after the one at `ix_blob`; `S_FALSE` at the end.
    pub fn GetNextBlob(&self, ix_blob: u32, next: *mut u32) -> HRESULT;
    /// Index of the GUID after the one at `ix_guid`; `S_FALSE` at the end.
    pub fn GetNextGuid(&self, ix_guid: u32, next: *mut u32) -> HRESULT;
    /// Offset of the user string after the one at `ix_user_string`; `S_FALSE` at the end.
    pub fn GetNextUserString(&self, ix_user_string: u32, next: *mut u32) -> HRESULT;
}

/// The raw bytes of metadata. Source: cor.h.
#[interface("BADB5F70-58DA-43A9-A1C6-D74819F19B15")]
pub unsafe trait IMetaDataTables2: IMetaDataTables {
    /// All metadata as one block. Only for scopes opened by a dispenser: on metadata of a module
    /// that the runtime loaded the method dereferences null and crashes (observed on .NET 8, 9 and
    /// 10).
    pub fn GetMetaDataStorage(&self, data: *mut *const c_void, p_cb: *mut u32) -> HRESULT;
    /// Name and bytes of a stream.
    pub fn GetMetaDataStreamInfo(
        &self,
        ix: u32,
        name: *mut *const c_char,
        data: *mut *const c_void,
        p_cb: *mut u32,
    ) -> HRESULT;
}
