//! `IMetaDataImport2`: reading generics.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use windows_core::{HRESULT, interface};

use super::import::*;
use crate::cor::{mdGenericParam, mdGenericParamConstraint, mdMethodSpec, mdToken};
use crate::types::HCORENUM;

/// Generics and image kind. Source: cor.h.
#[interface("FCE5EFA0-8BBA-4F8E-A036-8F2022B08466")]
pub unsafe trait IMetaDataImport2: IMetaDataImport {
    /// Generic parameters of a type or method, in order.
    pub fn EnumGenericParams(
        &self,
        enumeration: *mut HCORENUM,
        tk: mdToken,
        r_generic_params: *mut mdGenericParam,
        c_max: u32,
        p_c_generic_params: *mut u32,
    ) -> HRESULT;
    /// Position, flags, owner and name of a generic parameter.
    pub fn GetGenericParamProps(
        &self,
        gp: mdGenericParam,
        param_seq: *mut u32,
        param_flags: *mut u32,
        pt_owner: *mut mdToken,
        reserved: *mut u32,
        wz_name: *mut u16,
        cch_name: u32,
        p_cch_name: *mut u32,
    ) -> HRESULT;
    /// Method and arguments of a method instantiation.
    pub fn GetMethodSpecProps(
        &self,
        mi: mdMethodSpec,
        tk_parent: *mut mdToken,
        sig_blob: *mut *const u8,
        p_cb_sig_blob: *mut u32,
    ) -> HRESULT;
    /// Constraints of a generic parameter.
    pub fn EnumGenericParamConstraints(
        &self,
        enumeration: *mut HCORENUM,
        tk: mdGenericParam,
        r_generic_param_constraints: *mut mdGenericParamConstraint,
        c_max: u32,
        p_c_generic_param_constraints: *mut u32,
    ) -> HRESULT;
    /// Parameter and type of a constraint.
    pub fn GetGenericParamConstraintProps(
        &self,
        gpc: mdGenericParamConstraint,
        pt_generic_param: *mut mdGenericParam,
        constraint_type: *mut mdToken,
    ) -> HRESULT;
    /// Kind and machine of the image (`CorPEKind`); `S_FALSE` and zeros for modules that the
    /// runtime loaded (observed on .NET 8, 9 and 10).
    pub fn GetPEKind(&self, pe_kind: *mut u32, machine: *mut u32) -> HRESULT;
    /// Runtime version that the metadata was written for.
    pub fn GetVersionString(&self, pwz_buf: *mut u16, cc_buf_size: u32, pcc_buf_size: *mut u32) -> HRESULT;
    /// Method instantiations of the module, or of one method.
    pub fn EnumMethodSpecs(
        &self,
        enumeration: *mut HCORENUM,
        tk: mdToken,
        r_method_specs: *mut mdMethodSpec,
        c_max: u32,
        p_c_method_specs: *mut u32,
    ) -> HRESULT;
}
