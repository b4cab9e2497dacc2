//! Metadata tokens, attributes, signatures and IL headers (corhdr.h).

mod attributes;
mod signature;

pub use attributes::*;
pub use signature::*;

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
    /// Method of computing the size of a save.
    CorSaveSize {
        /// Exactly.
        cssAccurate = 0x0;
        /// Fast, perhaps too large.
        cssQuick = 0x1;
        /// Without attributes of discardable types.
        cssDiscardTransientCAs = 0x2;
    }
}

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
