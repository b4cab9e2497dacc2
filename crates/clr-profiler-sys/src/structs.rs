//! Structures passed by pointer (corprof.idl, cor.h, corhdr.h).
//!
//! Field names are the names of the definitions in snake case, without type prefixes.

use core::ffi::c_void;

use crate::cor::{mdFieldDef, mdMemberRef, mdMethodDef};
use crate::enums::{COR_PRF_CLAUSE_TYPE, COR_PRF_GC_GENERATION};
use crate::types::{FunctionID, ModuleID, ObjectID, ReJITID};

/// A range of memory that holds an argument or the result, or a part of one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_FUNCTION_ARGUMENT_RANGE {
    /// Address of the first byte.
    pub start_address: usize,
    /// Length in bytes.
    pub length: u32,
}

/// Locations of a call's arguments: a header and `num_ranges` ranges. The declaration contains the
/// first range.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct COR_PRF_FUNCTION_ARGUMENT_INFO {
    /// Number of ranges that follow.
    pub num_ranges: u32,
    /// Length of all arguments in bytes.
    pub total_argument_size: u32,
    /// The first range; more follow in memory.
    pub ranges: [COR_PRF_FUNCTION_ARGUMENT_RANGE; 1],
}

/// One block of compiled code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_CODE_INFO {
    /// Address of the first instruction.
    pub start_address: usize,
    /// Length in bytes.
    pub size: usize,
}

/// A function and the version of its IL, as enumerated.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_FUNCTION {
    /// The function.
    pub function_id: FunctionID,
    /// Version; 0 is the original.
    pub rejit_id: ReJITID,
}

/// A method by module and token.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_METHOD {
    /// The module.
    pub module_id: ModuleID,
    /// The method's token in the module.
    pub method_id: mdMethodDef,
}

/// A range of the GC heap and the generation it belongs to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_GC_GENERATION_RANGE {
    /// The generation.
    pub generation: COR_PRF_GC_GENERATION,
    /// First address.
    pub range_start: ObjectID,
    /// Bytes in use.
    pub range_length: usize,
    /// Bytes reserved.
    pub range_length_reserved: usize,
}

/// A range of the heap that the GC doesn't collect.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_NONGC_HEAP_RANGE {
    /// First address.
    pub range_start: ObjectID,
    /// Bytes in use.
    pub range_length: usize,
    /// Bytes reserved.
    pub range_length_reserved: usize,
}

/// The exception clause about to run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_EX_CLAUSE_INFO {
    /// Filter, catch or finally.
    pub clause_type: COR_PRF_CLAUSE_TYPE,
    /// Address of the clause's code.
    pub program_counter: usize,
    /// Frame pointer of the function.
    pub frame_pointer: usize,
    /// Backing-store pointer; Itanium only.
    pub shadow_stack_pointer: usize,
}

/// A range of native code and its IL offset.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_DEBUG_IL_TO_NATIVE_MAP {
    /// IL offset, or one of the special values in [`crate::enums`].
    pub il_offset: u32,
    /// First byte, relative to the code's start.
    pub native_start_offset: u32,
    /// One past the last byte.
    pub native_end_offset: u32,
}

/// An old IL offset and the new one in a changed body.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_IL_MAP {
    /// Offset in the original IL.
    pub old_offset: u32,
    /// Offset in the new IL.
    pub new_offset: u32,
    /// Whether the mapping is exact (a `BOOL`).
    pub accurate: i32,
}

/// A field and its offset.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_FIELD_OFFSET {
    /// Token of the field.
    pub field: mdFieldDef,
    /// Offset in bytes from the object's start (profiling interfaces) or from the first field
    /// (metadata interfaces); all ones if unknown.
    pub offset: u32,
}

/// An operating system that an assembly was built for; unused today.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OSINFO {
    /// Platform number.
    pub os_platform_id: u32,
    /// Major version.
    pub os_major_version: u32,
    /// Minor version.
    pub os_minor_version: u32,
}

/// Version, culture, processors and systems of an assembly.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ASSEMBLYMETADATA {
    /// Major version.
    pub major_version: u16,
    /// Minor version.
    pub minor_version: u16,
    /// Build number.
    pub build_number: u16,
    /// Revision number.
    pub revision_number: u16,
    /// Culture name, UTF-16.
    pub locale: *mut u16,
    /// In: capacity of `locale` in UTF-16 units; out: required units.
    pub cch_locale: u32,
    /// Processor ids.
    pub processors: *mut u32,
    /// In: capacity of `processors`; out: number of entries.
    pub processor_count: u32,
    /// Operating systems.
    pub systems: *mut OSINFO,
    /// In: capacity of `systems`; out: number of entries.
    pub system_count: u32,
}

/// A reference to add in `GetAssemblyReferences`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct COR_PRF_ASSEMBLY_REFERENCE_INFO {
    /// Public key or its token.
    pub public_key_or_token: *mut c_void,
    /// Number of bytes at `public_key_or_token`.
    pub cb_public_key_or_token: u32,
    /// Simple name, UTF-16, terminated.
    pub name: *const u16,
    /// Version and culture.
    pub metadata: *mut ASSEMBLYMETADATA,
    /// Hash of the assembly.
    pub hash_value: *mut c_void,
    /// Number of bytes at `hash_value`.
    pub cb_hash_value: u32,
    /// `CorAssemblyFlags`.
    pub assembly_ref_flags: u32,
}

/// A provider to enable in an EventPipe session.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct COR_PRF_EVENTPIPE_PROVIDER_CONFIG {
    /// Name, UTF-16, terminated.
    pub provider_name: *const u16,
    /// Keywords to enable.
    pub keywords: u64,
    /// `COR_PRF_EVENTPIPE_LEVEL`.
    pub logging_level: u32,
    /// Filter as `key=value` pairs, UTF-16, terminated; may be null.
    pub filter_data: *const u16,
}

/// A field of the profiler's own event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct COR_PRF_EVENTPIPE_PARAM_DESC {
    /// `COR_PRF_EVENTPIPE_PARAM_TYPE` of the field.
    pub r#type: u32,
    /// Type of the elements, if the field is an array.
    pub element_type: u32,
    /// Name, UTF-16, terminated.
    pub name: *const u16,
}

/// One part of an event's payload.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_EVENT_DATA {
    /// Address of the bytes.
    pub ptr: u64,
    /// Number of bytes.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
}

/// A filter that was passed when a provider was enabled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct COR_PRF_FILTER_DATA {
    /// Address of the bytes.
    pub ptr: u64,
    /// Number of bytes.
    pub size: u32,
    /// Kind of filter.
    pub r#type: u32,
}

/// A security attribute for `IMetaDataEmit::DefineSecurityAttributeSet`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct COR_SECATTR {
    /// Constructor of the attribute.
    pub ctor: mdMemberRef,
    /// The attribute's blob.
    pub custom_attribute: *const c_void,
    /// Number of bytes at `custom_attribute`.
    pub cb_custom_attribute: u32,
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use core::mem::{offset_of, size_of};

    use super::*;

    /// Sizes and the offsets after padding, computed by hand from the definitions for 64-bit
    /// targets.
    #[test]
    fn layout_is_that_of_the_definitions() {
        assert_eq!(size_of::<COR_PRF_FUNCTION_ARGUMENT_RANGE>(), 16);
        assert_eq!(size_of::<COR_PRF_FUNCTION_ARGUMENT_INFO>(), 24);
        assert_eq!(offset_of!(COR_PRF_FUNCTION_ARGUMENT_INFO, ranges), 8);
        assert_eq!(size_of::<COR_PRF_CODE_INFO>(), 16);
        assert_eq!(size_of::<COR_PRF_FUNCTION>(), 16);
        assert_eq!(size_of::<COR_PRF_METHOD>(), 16);
        assert_eq!(size_of::<COR_PRF_GC_GENERATION_RANGE>(), 32);
        assert_eq!(offset_of!(COR_PRF_GC_GENERATION_RANGE, range_start), 8);
        assert_eq!(size_of::<COR_PRF_NONGC_HEAP_RANGE>(), 24);
        assert_eq!(size_of::<COR_PRF_EX_CLAUSE_INFO>(), 32);
        assert_eq!(offset_of!(COR_PRF_EX_CLAUSE_INFO, program_counter), 8);
        assert_eq!(size_of::<COR_DEBUG_IL_TO_NATIVE_MAP>(), 12);
        assert_eq!(size_of::<COR_IL_MAP>(), 12);
        assert_eq!(size_of::<COR_FIELD_OFFSET>(), 8);
        assert_eq!(size_of::<OSINFO>(), 12);
        assert_eq!(size_of::<ASSEMBLYMETADATA>(), 56);
        assert_eq!(offset_of!(ASSEMBLYMETADATA, locale), 8);
        assert_eq!(offset_of!(ASSEMBLYMETADATA, processors), 24);
        assert_eq!(offset_of!(ASSEMBLYMETADATA, systems), 40);
        assert_eq!(size_of::<COR_PRF_ASSEMBLY_REFERENCE_INFO>(), 48);
        assert_eq!(offset_of!(COR_PRF_ASSEMBLY_REFERENCE_INFO, name), 16);
        assert_eq!(offset_of!(COR_PRF_ASSEMBLY_REFERENCE_INFO, assembly_ref_flags), 44);
        assert_eq!(size_of::<COR_PRF_EVENTPIPE_PROVIDER_CONFIG>(), 32);
        assert_eq!(offset_of!(COR_PRF_EVENTPIPE_PROVIDER_CONFIG, filter_data), 24);
        assert_eq!(size_of::<COR_PRF_EVENTPIPE_PARAM_DESC>(), 16);
        assert_eq!(size_of::<COR_PRF_EVENT_DATA>(), 16);
        assert_eq!(size_of::<COR_PRF_FILTER_DATA>(), 16);
        assert_eq!(size_of::<COR_SECATTR>(), 24);
    }
}
