//! Attribute words of types, members, parameters, assemblies and images.

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
/// The runtime determines the layout of fields.
pub const tdAutoLayout: u32 = 0x0;
/// Fields in order.
pub const tdSequentialLayout: u32 = 0x8;
/// Fields at given offsets.
pub const tdExplicitLayout: u32 = 0x10;
/// Mask of the values for class and interface.
pub const tdClassSemanticsMask: u32 = 0x20;
/// A class.
pub const tdClass: u32 = 0x0;
/// An interface.
pub const tdInterface: u32 = 0x20;
/// Abstract.
pub const tdAbstract: u32 = 0x80;
/// Sealed.
pub const tdSealed: u32 = 0x100;
/// The name has a special meaning.
pub const tdSpecialName: u32 = 0x400;
/// The name has a special meaning for the runtime.
pub const tdRTSpecialName: u32 = 0x800;
/// Imported from COM.
pub const tdImport: u32 = 0x1000;
/// Serializable.
pub const tdSerializable: u32 = 0x2000;
/// Windows Runtime type.
pub const tdWindowsRuntime: u32 = 0x4000;
/// Mask of the string formats.
pub const tdStringFormatMask: u32 = 0x3_0000;
/// Strings passed to native code are ANSI.
pub const tdAnsiClass: u32 = 0x0;
/// Strings passed to native code are UTF-16.
pub const tdUnicodeClass: u32 = 0x1_0000;
/// Strings passed to native code have the platform's encoding.
pub const tdAutoClass: u32 = 0x2_0000;
/// Strings passed to native code have a custom format.
pub const tdCustomFormatClass: u32 = 0x3_0000;
/// Has declarative security.
pub const tdHasSecurity: u32 = 0x4_0000;
/// The initialiser may run early.
pub const tdBeforeFieldInit: u32 = 0x10_0000;
/// An exported type that is defined elsewhere.
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
/// Can't be overridden.
pub const mdFinal: u32 = 0x20;
/// Virtual.
pub const mdVirtual: u32 = 0x40;
/// Hides by name and signature.
pub const mdHideBySig: u32 = 0x80;
/// Uses a new slot in the method table.
pub const mdNewSlot: u32 = 0x100;
/// Only code that can access the method may override it.
pub const mdCheckAccessOnOverride: u32 = 0x200;
/// Abstract.
pub const mdAbstract: u32 = 0x400;
/// The name has a special meaning.
pub const mdSpecialName: u32 = 0x800;
/// The name has a special meaning for the runtime (constructors).
pub const mdRTSpecialName: u32 = 0x1000;
/// Implemented by a P/Invoke.
pub const mdPinvokeImpl: u32 = 0x2000;
/// Has declarative security.
pub const mdHasSecurity: u32 = 0x4000;
/// Calls a method that contains security code.
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
/// The code is not managed.
pub const miUnmanaged: u32 = 0x4;
/// Never inlined.
pub const miNoInlining: u32 = 0x8;
/// Only declared; the body is defined elsewhere.
pub const miForwardRef: u32 = 0x10;
/// Runs under a lock.
pub const miSynchronized: u32 = 0x20;
/// Not optimised.
pub const miNoOptimization: u32 = 0x40;
/// Interop keeps the signature as it is, without a conversion of `HRESULT`s.
pub const miPreserveSig: u32 = 0x80;
/// Inlined if possible.
pub const miAggressiveInlining: u32 = 0x100;
/// Optimised immediately, never tiered.
pub const miAggressiveOptimization: u32 = 0x200;
/// Implemented in the runtime.
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
/// The field's data is in the image.
pub const fdHasFieldRVA: u32 = 0x100;
/// The name has a special meaning.
pub const fdSpecialName: u32 = 0x200;
/// The name has a special meaning for the runtime.
pub const fdRTSpecialName: u32 = 0x400;
/// Has a native type for marshalling.
pub const fdHasFieldMarshal: u32 = 0x1000;
/// Implemented by a P/Invoke.
pub const fdPinvokeImpl: u32 = 0x2000;
/// Has a constant value in the metadata.
pub const fdHasDefault: u32 = 0x8000;

// CorParamAttr: attributes of a parameter.

/// An input parameter.
pub const pdIn: u32 = 0x1;
/// An output parameter.
pub const pdOut: u32 = 0x2;
/// Callers may omit the argument.
pub const pdOptional: u32 = 0x10;
/// Has a constant default value.
pub const pdHasDefault: u32 = 0x1000;
/// Has a native type for marshalling.
pub const pdHasFieldMarshal: u32 = 0x2000;

// CorPropertyAttr and CorEventAttr: attributes of a property and an event.

/// The name of a property has a special meaning.
pub const prSpecialName: u32 = 0x200;
/// The name of a property has a special meaning for the runtime.
pub const prRTSpecialName: u32 = 0x400;
/// The property has a constant.
pub const prHasDefault: u32 = 0x1000;
/// The name of an event has a special meaning.
pub const evSpecialName: u32 = 0x200;
/// The name of an event has a special meaning for the runtime.
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

/// The entry point has exactly the given name.
pub const pmNoMangle: u32 = 0x1;
/// Mask of the character sets.
pub const pmCharSetMask: u32 = 0x6;
/// Character set not given.
pub const pmCharSetNotSpec: u32 = 0x0;
/// ANSI strings.
pub const pmCharSetAnsi: u32 = 0x2;
/// UTF-16 strings.
pub const pmCharSetUnicode: u32 = 0x4;
/// Strings in the platform's encoding.
pub const pmCharSetAuto: u32 = 0x6;
/// Best-fit mapping of characters is on.
pub const pmBestFitEnabled: u32 = 0x10;
/// Best-fit mapping of characters is off.
pub const pmBestFitDisabled: u32 = 0x20;
/// The runtime saves the native last-error code after the call.
pub const pmSupportsLastError: u32 = 0x40;
/// Mask of the calling conventions.
pub const pmCallConvMask: u32 = 0x700;
/// The platform's default calling convention.
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

/// A reference holds the full public key, not its token.
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
/// A reference assembly, which cannot run anywhere.
pub const afPA_NoPlatform: u32 = 0x70;
/// References to the assembly get a copy of the architecture flags.
pub const afPA_Specified: u32 = 0x80;
/// An assembly of another publisher may replace it.
pub const afRetargetable: u32 = 0x100;
/// Mask of the content types.
pub const afContentType_Mask: u32 = 0xe00;
/// Windows Runtime metadata.
pub const afContentType_WindowsRuntime: u32 = 0x200;
/// Compiled without optimisation.
pub const afDisableJITcompileOptimizer: u32 = 0x4000;
/// The JIT compiler keeps tracking information for debuggers.
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
