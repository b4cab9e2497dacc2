//! Metadata tokens, attributes, signatures and IL headers (corhdr.h).

mod attributes;
mod signature;

pub use attributes::*;
pub use signature::*;

/// A metadata token: the table in the high byte, the row (from 1) in the other three.
pub type mdToken = u32;
/// Token of the module itself.
pub type mdModule = mdToken;
/// Token of a reference to a type of another module.
pub type mdTypeRef = mdToken;
/// Token of a type of this module.
pub type mdTypeDef = mdToken;
/// Token of a field.
pub type mdFieldDef = mdToken;
/// Token of a method.
pub type mdMethodDef = mdToken;
/// Token of a parameter's entry.
pub type mdParamDef = mdToken;
/// Token of an implemented interface.
pub type mdInterfaceImpl = mdToken;
/// Token of a reference to a member of another type.
pub type mdMemberRef = mdToken;
/// Token of a custom attribute.
pub type mdCustomAttribute = mdToken;
/// Token of a permission set.
pub type mdPermission = mdToken;
/// Token of a stand-alone signature.
pub type mdSignature = mdToken;
/// Token of an event.
pub type mdEvent = mdToken;
/// Token of a property.
pub type mdProperty = mdToken;
/// Token of a referenced module.
pub type mdModuleRef = mdToken;
/// Token of a constructed type, such as an array or an instantiation.
pub type mdTypeSpec = mdToken;
/// Token of the assembly.
pub type mdAssembly = mdToken;
/// Token of a referenced assembly.
pub type mdAssemblyRef = mdToken;
/// Token of a file of the assembly.
pub type mdFile = mdToken;
/// Token of an exported type.
pub type mdExportedType = mdToken;
/// Token of a resource.
pub type mdManifestResource = mdToken;
/// Token of a generic parameter.
pub type mdGenericParam = mdToken;
/// Token of an instantiation of a generic method.
pub type mdMethodSpec = mdToken;
/// Token of a constraint on a generic parameter.
pub type mdGenericParamConstraint = mdToken;
/// Token of a string literal (user string).
pub type mdString = mdToken;

/// The null token.
pub const mdTokenNil: mdToken = 0;

/// Table of a token, one of [`CorTokenType`]'s values.
#[must_use]
pub const fn TypeFromToken(token: mdToken) -> CorTokenType {
    CorTokenType(token & 0xFF00_0000)
}

/// Row of a token; 0 means none.
#[must_use]
pub const fn RidFromToken(token: mdToken) -> u32 {
    token & 0x00FF_FFFF
}

/// Token of a row in a table.
#[must_use]
pub const fn TokenFromRid(rid: u32, token_type: CorTokenType) -> mdToken {
    rid | token_type.0
}

/// Whether a token is null: its row is 0.
#[must_use]
pub const fn IsNilToken(token: mdToken) -> bool {
    RidFromToken(token) == 0
}

named_enum! {
    /// The metadata table a token belongs to.
    CorTokenType {
        /// The module itself.
        mdtModule = 0x0000_0000;
        /// A reference to a type of another module.
        mdtTypeRef = 0x0100_0000;
        /// A type of this module.
        mdtTypeDef = 0x0200_0000;
        /// A field.
        mdtFieldDef = 0x0400_0000;
        /// A method.
        mdtMethodDef = 0x0600_0000;
        /// A parameter's entry.
        mdtParamDef = 0x0800_0000;
        /// An implemented interface.
        mdtInterfaceImpl = 0x0900_0000;
        /// A reference to a member of another type.
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
        /// A constructed type, such as an array or an instantiation.
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
        /// An entry that nests one type in another.
        mdtNestedClass = 0x2900_0000;
        /// A generic parameter.
        mdtGenericParam = 0x2a00_0000;
        /// An instantiation of a generic method.
        mdtMethodSpec = 0x2b00_0000;
        /// A constraint on a generic parameter.
        mdtGenericParamConstraint = 0x2c00_0000;
        /// A string literal (user string).
        mdtString = 0x7000_0000;
    }
}

named_enum! {
    /// How the size of the saved metadata is computed.
    CorSaveSize {
        /// The exact size.
        cssAccurate = 0x0;
        /// A fast estimate, perhaps too large.
        cssQuick = 0x1;
        /// The size without the custom attributes of discardable types.
        cssDiscardTransientCAs = 0x2;
    }
}

// CorOpenFlags: how metadata is opened.

/// Opens for reading.
pub const ofRead: u32 = 0x0;
/// Opens for writing; the runtime then converts the metadata to a read/write copy, which costs
/// memory and time.
pub const ofWrite: u32 = 0x1;
/// Opens a copy of bytes in memory.
pub const ofCopyMemory: u32 = 0x2;
/// Opens for reading only: the interfaces that write metadata are refused.
pub const ofReadOnly: u32 = 0x10;
/// Opens bytes in memory, which the reader frees at the end.
pub const ofTakeOwnership: u32 = 0x20;
/// Does not open type libraries.
pub const ofNoTypeLib: u32 = 0x80;
/// Opens Windows Runtime metadata without its usual transformation.
pub const ofNoTransform: u32 = 0x1000;

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
}
