//! Elements of signatures and IL bodies.

named_enum! {
    /// An element of a metadata signature.
    CorElementType {
        /// End of a list.
        ELEMENT_TYPE_END = 0x00;
        /// `void`.
        ELEMENT_TYPE_VOID = 0x01;
        /// `bool`.
        ELEMENT_TYPE_BOOLEAN = 0x02;
        /// `char`.
        ELEMENT_TYPE_CHAR = 0x03;
        /// `sbyte`.
        ELEMENT_TYPE_I1 = 0x04;
        /// `byte`.
        ELEMENT_TYPE_U1 = 0x05;
        /// `short`.
        ELEMENT_TYPE_I2 = 0x06;
        /// `ushort`.
        ELEMENT_TYPE_U2 = 0x07;
        /// `int`.
        ELEMENT_TYPE_I4 = 0x08;
        /// `uint`.
        ELEMENT_TYPE_U4 = 0x09;
        /// `long`.
        ELEMENT_TYPE_I8 = 0x0a;
        /// `ulong`.
        ELEMENT_TYPE_U8 = 0x0b;
        /// `float`.
        ELEMENT_TYPE_R4 = 0x0c;
        /// `double`.
        ELEMENT_TYPE_R8 = 0x0d;
        /// `string`.
        ELEMENT_TYPE_STRING = 0x0e;
        /// Pointer to the type that follows.
        ELEMENT_TYPE_PTR = 0x0f;
        /// Reference to the type that follows.
        ELEMENT_TYPE_BYREF = 0x10;
        /// Value type, token follows.
        ELEMENT_TYPE_VALUETYPE = 0x11;
        /// Class, token follows.
        ELEMENT_TYPE_CLASS = 0x12;
        /// Type's generic parameter, number follows.
        ELEMENT_TYPE_VAR = 0x13;
        /// General array: element type, rank, sizes, lower bounds follow.
        ELEMENT_TYPE_ARRAY = 0x14;
        /// Instantiation: generic type, count, arguments follow.
        ELEMENT_TYPE_GENERICINST = 0x15;
        /// `TypedReference`.
        ELEMENT_TYPE_TYPEDBYREF = 0x16;
        /// `nint`.
        ELEMENT_TYPE_I = 0x18;
        /// `nuint`.
        ELEMENT_TYPE_U = 0x19;
        /// Function pointer, method signature follows.
        ELEMENT_TYPE_FNPTR = 0x1b;
        /// `object`.
        ELEMENT_TYPE_OBJECT = 0x1c;
        /// One-dimensional array that starts at index 0, element type follows.
        ELEMENT_TYPE_SZARRAY = 0x1d;
        /// Method's generic parameter, number follows.
        ELEMENT_TYPE_MVAR = 0x1e;
        /// Required modifier, token follows.
        ELEMENT_TYPE_CMOD_REQD = 0x1f;
        /// Optional modifier, token follows.
        ELEMENT_TYPE_CMOD_OPT = 0x20;
        /// The runtime's own type handle follows; only in memory, never in files.
        ELEMENT_TYPE_INTERNAL = 0x21;
        /// Bit that the modifiers below have in common.
        ELEMENT_TYPE_MODIFIER = 0x40;
        /// Start of the variable arguments.
        ELEMENT_TYPE_SENTINEL = 0x41;
        /// Pinned local.
        ELEMENT_TYPE_PINNED = 0x45;
    }
}

// CorCallingConvention: first byte of a signature.

/// Managed method.
pub const IMAGE_CEE_CS_CALLCONV_DEFAULT: u32 = 0x0;
/// Native method, C calling convention.
pub const IMAGE_CEE_CS_CALLCONV_C: u32 = 0x1;
/// Native method, stdcall.
pub const IMAGE_CEE_CS_CALLCONV_STDCALL: u32 = 0x2;
/// Native method, thiscall.
pub const IMAGE_CEE_CS_CALLCONV_THISCALL: u32 = 0x3;
/// Native method, fastcall.
pub const IMAGE_CEE_CS_CALLCONV_FASTCALL: u32 = 0x4;
/// Managed method with variable arguments.
pub const IMAGE_CEE_CS_CALLCONV_VARARG: u32 = 0x5;
/// Signature of a field.
pub const IMAGE_CEE_CS_CALLCONV_FIELD: u32 = 0x6;
/// Signature of local variables.
pub const IMAGE_CEE_CS_CALLCONV_LOCAL_SIG: u32 = 0x7;
/// Signature of a property.
pub const IMAGE_CEE_CS_CALLCONV_PROPERTY: u32 = 0x8;
/// Native method; the signature's modifiers name the calling convention.
pub const IMAGE_CEE_CS_CALLCONV_UNMANAGED: u32 = 0x9;
/// Instantiation of a generic method.
pub const IMAGE_CEE_CS_CALLCONV_GENERICINST: u32 = 0xa;
/// Native method with variable arguments.
pub const IMAGE_CEE_CS_CALLCONV_NATIVEVARARG: u32 = 0xb;
/// Mask of the values above.
pub const IMAGE_CEE_CS_CALLCONV_MASK: u32 = 0xf;
/// Flag: generic, the number of type parameters follows.
pub const IMAGE_CEE_CS_CALLCONV_GENERIC: u32 = 0x10;
/// Flag: has `this`.
pub const IMAGE_CEE_CS_CALLCONV_HASTHIS: u32 = 0x20;
/// Flag: `this` is among the parameters.
pub const IMAGE_CEE_CS_CALLCONV_EXPLICITTHIS: u32 = 0x40;

// CorILMethodFlags: first byte of an IL method header, and sections behind it.

/// Mask of the header formats.
pub const CorILMethod_FormatMask: u32 = 0x7;
/// One-byte header of a body with an even size, which is in the upper six bits.
pub const CorILMethod_TinyFormat: u32 = 0x2;
/// One-byte header of a body with an odd size, which is in the upper six bits.
pub const CorILMethod_TinyFormat1: u32 = 0x6;
/// Twelve-byte header.
pub const CorILMethod_FatFormat: u32 = 0x3;
/// Sections follow the IL.
pub const CorILMethod_MoreSects: u32 = 0x8;
/// Locals start as zero.
pub const CorILMethod_InitLocals: u32 = 0x10;
/// Section with exception clauses.
pub const CorILMethod_Sect_EHTable: u32 = 0x1;
/// Unused section.
pub const CorILMethod_Sect_OptILTable: u32 = 0x2;
/// Mask of the section kinds.
pub const CorILMethod_Sect_KindMask: u32 = 0x3f;
/// Section in the wide format.
pub const CorILMethod_Sect_FatFormat: u32 = 0x40;
/// Another section follows.
pub const CorILMethod_Sect_MoreSects: u32 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_the_values_of_the_standard() {
        // Spot checks by ECMA-335 II.23.1.16.
        assert_eq!(ELEMENT_TYPE_STRING.0, 0x0e);
        assert_eq!(ELEMENT_TYPE_GENERICINST.0, 0x15);
        assert_eq!(CorElementType(0x1d).name(), Some("ELEMENT_TYPE_SZARRAY"));
        assert_eq!(CorElementType(0x17).name(), None);
    }
}
