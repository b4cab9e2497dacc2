//! Metadata tokens, attributes, element types and calling conventions (corhdr.h).

/// A metadata token: table in the high byte, row (from 1) below.
pub type mdToken = u32;
/// The module itself, as token.
pub type mdModule = mdToken;
/// A type of another module, as token.
pub type mdTypeRef = mdToken;
/// A type of this module, as token.
pub type mdTypeDef = mdToken;
/// A field, as token.
pub type mdFieldDef = mdToken;
/// A method, as token.
pub type mdMethodDef = mdToken;
/// A parameter entry, as token.
pub type mdParamDef = mdToken;
/// An implemented interface, as token.
pub type mdInterfaceImpl = mdToken;
/// A member of another type, as token.
pub type mdMemberRef = mdToken;
/// A custom attribute, as token.
pub type mdCustomAttribute = mdToken;
/// A permission set, as token.
pub type mdPermission = mdToken;
/// A stand-alone signature, as token.
pub type mdSignature = mdToken;
/// An event, as token.
pub type mdEvent = mdToken;
/// A property, as token.
pub type mdProperty = mdToken;
/// A referenced module, as token.
pub type mdModuleRef = mdToken;
/// A constructed type, as token.
pub type mdTypeSpec = mdToken;
/// The assembly, as token.
pub type mdAssembly = mdToken;
/// A referenced assembly, as token.
pub type mdAssemblyRef = mdToken;
/// A file of the assembly, as token.
pub type mdFile = mdToken;
/// An exported type, as token.
pub type mdExportedType = mdToken;
/// A resource, as token.
pub type mdManifestResource = mdToken;
/// A generic parameter, as token.
pub type mdGenericParam = mdToken;
/// A method instantiation, as token.
pub type mdMethodSpec = mdToken;
/// A constraint, as token.
pub type mdGenericParamConstraint = mdToken;
/// A user string, as token.
pub type mdString = mdToken;

/// The token that names nothing.
pub const mdTokenNil: mdToken = 0;

/// Table of a token, one of [`CorTokenType`]'s values.
#[must_use]
pub const fn TypeFromToken(token: mdToken) -> CorTokenType {
    CorTokenType(token & 0xFF00_0000)
}

/// Row of a token; 0 names nothing.
#[must_use]
pub const fn RidFromToken(token: mdToken) -> u32 {
    token & 0x00FF_FFFF
}

/// Token of a row in a table.
#[must_use]
pub const fn TokenFromRid(rid: u32, token_type: CorTokenType) -> mdToken {
    rid | token_type.0
}

/// Whether a token names nothing.
#[must_use]
pub const fn IsNilToken(token: mdToken) -> bool {
    RidFromToken(token) == 0
}

named_enum! {
    /// The metadata table a token belongs to.
    CorTokenType {
        /// The module itself.
        mdtModule = 0x0000_0000;
        /// A type of another module.
        mdtTypeRef = 0x0100_0000;
        /// A type of this module.
        mdtTypeDef = 0x0200_0000;
        /// A field.
        mdtFieldDef = 0x0400_0000;
        /// A method.
        mdtMethodDef = 0x0600_0000;
        /// A parameter entry.
        mdtParamDef = 0x0800_0000;
        /// An implemented interface.
        mdtInterfaceImpl = 0x0900_0000;
        /// A member of another type.
        mdtMemberRef = 0x0a00_0000;
        /// A custom attribute.
        mdtCustomAttribute = 0x0c00_0000;
        /// A permission set.
        mdtPermission = 0x0e00_0000;
        /// A stand-alone signature.
        mdtSignature = 0x1100_0000;
        /// An event.
        mdtEvent = 0x1400_0000;
        /// A property.
        mdtProperty = 0x1700_0000;
        /// An explicit override.
        mdtMethodImpl = 0x1900_0000;
        /// A referenced module.
        mdtModuleRef = 0x1a00_0000;
        /// A constructed type.
        mdtTypeSpec = 0x1b00_0000;
        /// The assembly.
        mdtAssembly = 0x2000_0000;
        /// A referenced assembly.
        mdtAssemblyRef = 0x2300_0000;
        /// A file of the assembly.
        mdtFile = 0x2600_0000;
        /// An exported type.
        mdtExportedType = 0x2700_0000;
        /// A resource.
        mdtManifestResource = 0x2800_0000;
        /// A nesting entry.
        mdtNestedClass = 0x2900_0000;
        /// A generic parameter.
        mdtGenericParam = 0x2a00_0000;
        /// A method instantiation.
        mdtMethodSpec = 0x2b00_0000;
        /// A constraint.
        mdtGenericParamConstraint = 0x2c00_0000;
        /// A user string.
        mdtString = 0x7000_0000;
    }
}

named_enum! {
    /// Element of a signature.
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
        /// One-dimensional array from 0, element type follows.
        ELEMENT_TYPE_SZARRAY = 0x1d;
        /// Method's generic parameter, number follows.
        ELEMENT_TYPE_MVAR = 0x1e;
        /// Required modifier, token follows.
        ELEMENT_TYPE_CMOD_REQD = 0x1f;
        /// Optional modifier, token follows.
        ELEMENT_TYPE_CMOD_OPT = 0x20;
        /// The runtime's own type handle follows; never in files.
        ELEMENT_TYPE_INTERNAL = 0x21;
        /// Bit of the modifiers below.
        ELEMENT_TYPE_MODIFIER = 0x40;
        /// Start of the variable arguments.
        ELEMENT_TYPE_SENTINEL = 0x41;
        /// Pinned local.
        ELEMENT_TYPE_PINNED = 0x45;
    }
}

named_enum! {
    /// How the size of a save is worked out.
    CorSaveSize {
        /// Exactly.
        cssAccurate = 0x0;
        /// Fast, perhaps too large.
        cssQuick = 0x1;
        /// Without attributes of discardable types.
        cssDiscardTransientCAs = 0x2;
    }
}

// CorTypeAttr: attributes of a type.

/// Mask of the visibility values.
pub const tdVisibilityMask: u32 = 0x7;
/// Visible in the assembly.
pub const tdNotPublic: u32 = 0x0;
/// Visible everywhere.
pub const tdPublic: u32 = 0x1;
/// Nested, public.
pub const tdNestedPublic: u32 = 0x2;
/// Nested, private.
pub const tdNestedPrivate: u32 = 0x3;
/// Nested, protected.
pub const tdNestedFamily: u32 = 0x4;
/// Nested, internal.
pub const tdNestedAssembly: u32 = 0x5;
/// Nested, private protected.
pub const tdNestedFamANDAssem: u32 = 0x6;
/// Nested, protected internal.
pub const tdNestedFamORAssem: u32 = 0x7;
/// Mask of the layout values.
pub const tdLayoutMask: u32 = 0x18;
/// The runtime lays fields out.
pub const tdAutoLayout: u32 = 0x0;
/// Fields in order.
pub const tdSequentialLayout: u32 = 0x8;
/// Fields at given offsets.
pub const tdExplicitLayout: u32 = 0x10;
/// Mask of class and interface.
pub const tdClassSemanticsMask: u32 = 0x20;
/// A class.
pub const tdClass: u32 = 0x0;
/// An interface.
pub const tdInterface: u32 = 0x20;
/// Abstract.
pub const tdAbstract: u32 = 0x80;
/// Sealed.
pub const tdSealed: u32 = 0x100;
/// The name has a meaning.
pub const tdSpecialName: u32 = 0x400;
/// The runtime looks at the name.
pub const tdRTSpecialName: u32 = 0x800;
/// Imported from COM.
pub const tdImport: u32 = 0x1000;
/// Serializable.
pub const tdSerializable: u32 = 0x2000;
/// Windows Runtime type.
pub const tdWindowsRuntime: u32 = 0x4000;
/// Mask of the string formats.
pub const tdStringFormatMask: u32 = 0x3_0000;
/// Native strings are ANSI.
pub const tdAnsiClass: u32 = 0x0;
/// Native strings are UTF-16.
pub const tdUnicodeClass: u32 = 0x1_0000;
/// Native strings are the platform's.
pub const tdAutoClass: u32 = 0x2_0000;
/// Native strings have a format of their own.
pub const tdCustomFormatClass: u32 = 0x3_0000;
/// Has declarative security.
pub const tdHasSecurity: u32 = 0x4_0000;
/// The initialiser may run early.
pub const tdBeforeFieldInit: u32 = 0x10_0000;
/// An exported type that lives elsewhere.
pub const tdForwarder: u32 = 0x20_0000;

// CorMethodAttr: attributes of a method.

/// Mask of the access values.
pub const mdMemberAccessMask: u32 = 0x7;
/// Not referable by name.
pub const mdPrivateScope: u32 = 0x0;
/// Private.
pub const mdPrivate: u32 = 0x1;
/// Private protected.
pub const mdFamANDAssem: u32 = 0x2;
/// Internal.
pub const mdAssem: u32 = 0x3;
/// Protected.
pub const mdFamily: u32 = 0x4;
/// Protected internal.
pub const mdFamORAssem: u32 = 0x5;
/// Public.
pub const mdPublic: u32 = 0x6;
/// Exported to native code.
pub const mdUnmanagedExport: u32 = 0x8;
/// Static.
pub const mdStatic: u32 = 0x10;
/// Not to be overridden.
pub const mdFinal: u32 = 0x20;
/// Virtual.
pub const mdVirtual: u32 = 0x40;
/// Hides by name and signature.
pub const mdHideBySig: u32 = 0x80;
/// Takes a new slot.
pub const mdNewSlot: u32 = 0x100;
/// To override needs access.
pub const mdCheckAccessOnOverride: u32 = 0x200;
/// Abstract.
pub const mdAbstract: u32 = 0x400;
/// The name has a meaning.
pub const mdSpecialName: u32 = 0x800;
/// The runtime looks at the name (constructors).
pub const mdRTSpecialName: u32 = 0x1000;
/// Implemented by a P/Invoke.
pub const mdPinvokeImpl: u32 = 0x2000;
/// Has declarative security.
pub const mdHasSecurity: u32 = 0x4000;
/// Calls code with security.
pub const mdRequireSecObject: u32 = 0x8000;

// CorMethodImpl: how a method is implemented.

/// Mask of the code types.
pub const miCodeTypeMask: u32 = 0x3;
/// IL.
pub const miIL: u32 = 0x0;
/// Native code.
pub const miNative: u32 = 0x1;
/// Optimised IL; unused.
pub const miOPTIL: u32 = 0x2;
/// Provided by the runtime (delegates).
pub const miRuntime: u32 = 0x3;
/// Not managed.
pub const miUnmanaged: u32 = 0x4;
/// Never inlined.
pub const miNoInlining: u32 = 0x8;
/// Declared only.
pub const miForwardRef: u32 = 0x10;
/// Runs under a lock.
pub const miSynchronized: u32 = 0x20;
/// Not optimised.
pub const miNoOptimization: u32 = 0x40;
/// Signature as written in interop.
pub const miPreserveSig: u32 = 0x80;
/// Inlined if possible.
pub const miAggressiveInlining: u32 = 0x100;
/// Optimised at once, never tiered.
pub const miAggressiveOptimization: u32 = 0x200;
/// Inside the runtime.
pub const miInternalCall: u32 = 0x1000;

// CorFieldAttr: attributes of a field.

/// Mask of the access values.
pub const fdFieldAccessMask: u32 = 0x7;
/// Not referable by name.
pub const fdPrivateScope: u32 = 0x0;
/// Private.
pub const fdPrivate: u32 = 0x1;
/// Private protected.
pub const fdFamANDAssem: u32 = 0x2;
/// Internal.
pub const fdAssembly: u32 = 0x3;
/// Protected.
pub const fdFamily: u32 = 0x4;
/// Protected internal.
pub const fdFamORAssem: u32 = 0x5;
/// Public.
pub const fdPublic: u32 = 0x6;
/// Static.
pub const fdStatic: u32 = 0x10;
/// Read-only.
pub const fdInitOnly: u32 = 0x20;
/// A constant without storage.
pub const fdLiteral: u32 = 0x40;
/// Not serialized.
pub const fdNotSerialized: u32 = 0x80;
/// Data in the image.
pub const fdHasFieldRVA: u32 = 0x100;
/// The name has a meaning.
pub const fdSpecialName: u32 = 0x200;
/// The runtime looks at the name.
pub const fdRTSpecialName: u32 = 0x400;
/// Has a native type.
pub const fdHasFieldMarshal: u32 = 0x1000;
/// Implemented by a P/Invoke.
pub const fdPinvokeImpl: u32 = 0x2000;
/// Has a constant.
pub const fdHasDefault: u32 = 0x8000;

// CorParamAttr: attributes of a parameter.

/// In.
pub const pdIn: u32 = 0x1;
/// Out.
pub const pdOut: u32 = 0x2;
/// Optional.
pub const pdOptional: u32 = 0x10;
/// Has a constant.
pub const pdHasDefault: u32 = 0x1000;
/// Has a native type.
pub const pdHasFieldMarshal: u32 = 0x2000;

// CorPropertyAttr and CorEventAttr: attributes of a property and an event.

/// The name of a property has a meaning.
pub const prSpecialName: u32 = 0x200;
/// The runtime looks at the name of a property.
pub const prRTSpecialName: u32 = 0x400;
/// The property has a constant.
pub const prHasDefault: u32 = 0x1000;
/// The name of an event has a meaning.
pub const evSpecialName: u32 = 0x200;
/// The runtime looks at the name of an event.
pub const evRTSpecialName: u32 = 0x400;

// CorMethodSemanticsAttr: role of a method in a property or event.

/// Setter.
pub const msSetter: u32 = 0x1;
/// Getter.
pub const msGetter: u32 = 0x2;
/// Another accessor.
pub const msOther: u32 = 0x4;
/// Adds a handler.
pub const msAddOn: u32 = 0x8;
/// Removes a handler.
pub const msRemoveOn: u32 = 0x10;
/// Raises the event.
pub const msFire: u32 = 0x20;

// CorPinvokeMap: how a P/Invoke is called.

/// The name is exact.
pub const pmNoMangle: u32 = 0x1;
/// Mask of the character sets.
pub const pmCharSetMask: u32 = 0x6;
/// Character set not given.
pub const pmCharSetNotSpec: u32 = 0x0;
/// ANSI strings.
pub const pmCharSetAnsi: u32 = 0x2;
/// UTF-16 strings.
pub const pmCharSetUnicode: u32 = 0x4;
/// The platform's strings.
pub const pmCharSetAuto: u32 = 0x6;
/// Best-fit mapping on.
pub const pmBestFitEnabled: u32 = 0x10;
/// Best-fit mapping off.
pub const pmBestFitDisabled: u32 = 0x20;
/// The last error is kept.
pub const pmSupportsLastError: u32 = 0x40;
/// Mask of the calling conventions.
pub const pmCallConvMask: u32 = 0x700;
/// The platform's convention.
pub const pmCallConvWinapi: u32 = 0x100;
/// C.
pub const pmCallConvCdecl: u32 = 0x200;
/// Stdcall.
pub const pmCallConvStdcall: u32 = 0x300;
/// Thiscall.
pub const pmCallConvThiscall: u32 = 0x400;
/// Fastcall.
pub const pmCallConvFastcall: u32 = 0x500;
/// Throws on characters without a mapping.
pub const pmThrowOnUnmappableCharEnabled: u32 = 0x1000;
/// Does not throw on characters without a mapping.
pub const pmThrowOnUnmappableCharDisabled: u32 = 0x2000;

// CorAssemblyFlags: attributes of an assembly or a reference to one.

/// Full public key, not its token.
pub const afPublicKey: u32 = 0x1;
/// Mask of the processor architectures.
pub const afPA_Mask: u32 = 0x70;
/// Any processor.
pub const afPA_MSIL: u32 = 0x10;
/// x86.
pub const afPA_x86: u32 = 0x20;
/// x64.
pub const afPA_AMD64: u32 = 0x40;
/// ARM.
pub const afPA_ARM: u32 = 0x50;
/// ARM64.
pub const afPA_ARM64: u32 = 0x60;
/// Reference assembly, runs nowhere.
pub const afPA_NoPlatform: u32 = 0x70;
/// Architecture is copied into references.
pub const afPA_Specified: u32 = 0x80;
/// Another publisher may stand in.
pub const afRetargetable: u32 = 0x100;
/// Mask of the content types.
pub const afContentType_Mask: u32 = 0xe00;
/// Windows Runtime metadata.
pub const afContentType_WindowsRuntime: u32 = 0x200;
/// Compiled without optimisation.
pub const afDisableJITcompileOptimizer: u32 = 0x4000;
/// Keeps tracking information.
pub const afEnableJITcompileTracking: u32 = 0x8000;

// CorGenericParamAttr: attributes of a generic parameter.

/// Mask of the variance values.
pub const gpVarianceMask: u32 = 0x3;
/// Invariant.
pub const gpNonVariant: u32 = 0x0;
/// Covariant (`out`).
pub const gpCovariant: u32 = 0x1;
/// Contravariant (`in`).
pub const gpContravariant: u32 = 0x2;
/// Mask of the special constraints.
pub const gpSpecialConstraintMask: u32 = 0x3c;
/// `class`.
pub const gpReferenceTypeConstraint: u32 = 0x4;
/// `struct`.
pub const gpNotNullableValueTypeConstraint: u32 = 0x8;
/// `new()`.
pub const gpDefaultConstructorConstraint: u32 = 0x10;
/// `allows ref struct`.
pub const gpAllowByRefLike: u32 = 0x20;

// CorPEKind: kind of an image.

/// Not a PE file.
pub const peNot: u32 = 0x0;
/// IL only.
pub const peILonly: u32 = 0x1;
/// Needs a 32-bit process.
pub const pe32BitRequired: u32 = 0x2;
/// 64-bit image.
pub const pe32Plus: u32 = 0x4;
/// 32-bit image without a CLR header.
pub const pe32Unmanaged: u32 = 0x8;
/// Prefers a 32-bit process.
pub const pe32BitPreferred: u32 = 0x10;

// CorOpenFlags: how metadata is opened.

/// For reading.
pub const ofRead: u32 = 0x0;
/// For writing; the runtime then converts to a read/write copy, which costs memory and time.
pub const ofWrite: u32 = 0x1;
/// From memory, copied.
pub const ofCopyMemory: u32 = 0x2;
/// For reading, emit interfaces refused.
pub const ofReadOnly: u32 = 0x10;
/// From memory that the reader frees.
pub const ofTakeOwnership: u32 = 0x20;
/// Not from a type library.
pub const ofNoTypeLib: u32 = 0x80;
/// Without the transformation of Windows Runtime metadata.
pub const ofNoTransform: u32 = 0x1000;

// CorCallingConvention: first byte of a signature.

/// Managed method.
pub const IMAGE_CEE_CS_CALLCONV_DEFAULT: u32 = 0x0;
/// Native, C.
pub const IMAGE_CEE_CS_CALLCONV_C: u32 = 0x1;
/// Native, stdcall.
pub const IMAGE_CEE_CS_CALLCONV_STDCALL: u32 = 0x2;
/// Native, thiscall.
pub const IMAGE_CEE_CS_CALLCONV_THISCALL: u32 = 0x3;
/// Native, fastcall.
pub const IMAGE_CEE_CS_CALLCONV_FASTCALL: u32 = 0x4;
/// Managed, variable arguments.
pub const IMAGE_CEE_CS_CALLCONV_VARARG: u32 = 0x5;
/// A field.
pub const IMAGE_CEE_CS_CALLCONV_FIELD: u32 = 0x6;
/// Local variables.
pub const IMAGE_CEE_CS_CALLCONV_LOCAL_SIG: u32 = 0x7;
/// A property.
pub const IMAGE_CEE_CS_CALLCONV_PROPERTY: u32 = 0x8;
/// Native, convention in modifiers.
pub const IMAGE_CEE_CS_CALLCONV_UNMANAGED: u32 = 0x9;
/// Method instantiation.
pub const IMAGE_CEE_CS_CALLCONV_GENERICINST: u32 = 0xa;
/// Native, variable arguments.
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
/// One-byte header, size in the upper six bits, even size.
pub const CorILMethod_TinyFormat: u32 = 0x2;
/// One-byte header, size in the upper six bits, odd size.
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
    fn a_token_comes_apart_and_together() {
        let token = 0x0600_002a;
        assert_eq!(TypeFromToken(token), mdtMethodDef);
        assert_eq!(RidFromToken(token), 0x2a);
        assert_eq!(TokenFromRid(0x2a, mdtMethodDef), token);
        assert!(IsNilToken(0x0200_0000));
        assert!(!IsNilToken(token));
        assert_eq!(TypeFromToken(0x0700_0001).name(), None);
    }

    #[test]
    fn element_types_have_the_values_of_the_standard() {
        // Spot checks by ECMA-335 II.23.1.16.
        assert_eq!(ELEMENT_TYPE_STRING.0, 0x0e);
        assert_eq!(ELEMENT_TYPE_GENERICINST.0, 0x15);
        assert_eq!(CorElementType(0x1d).name(), Some("ELEMENT_TYPE_SZARRAY"));
        assert_eq!(CorElementType(0x17).name(), None);
    }
}
