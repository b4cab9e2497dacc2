//! Numbers, characters, booleans.

use clr_profiler::metadata::signature::Primitive;

use crate::kinds::Kind;

/// The kind as which a primitive is read; `None` for primitives without a value.
pub(crate) fn primitive_kind(primitive: Primitive) -> Option<Kind> {
    Some(match primitive {
        Primitive::Bool => Kind::Bool,
        Primitive::Char => Kind::Char,
        Primitive::SByte => Kind::Int(1),
        Primitive::Short => Kind::Int(2),
        Primitive::Int => Kind::Int(4),
        Primitive::Long | Primitive::NInt => Kind::Int(8),
        Primitive::Byte => Kind::UInt(1),
        Primitive::UShort => Kind::UInt(2),
        Primitive::UInt => Kind::UInt(4),
        Primitive::ULong | Primitive::NUInt => Kind::UInt(8),
        Primitive::Float => Kind::Float,
        Primitive::Double => Kind::Double,
        Primitive::String => Kind::String,
        Primitive::Object => Kind::Reference(None),
        Primitive::Void | Primitive::TypedReference => return None,
    })
}

pub(super) const CORE_TYPES: [(&str, Primitive); 16] = [
    ("System.Boolean", Primitive::Bool),
    ("System.Char", Primitive::Char),
    ("System.SByte", Primitive::SByte),
    ("System.Byte", Primitive::Byte),
    ("System.Int16", Primitive::Short),
    ("System.UInt16", Primitive::UShort),
    ("System.Int32", Primitive::Int),
    ("System.UInt32", Primitive::UInt),
    ("System.Int64", Primitive::Long),
    ("System.UInt64", Primitive::ULong),
    ("System.Single", Primitive::Float),
    ("System.Double", Primitive::Double),
    ("System.String", Primitive::String),
    ("System.Object", Primitive::Object),
    ("System.IntPtr", Primitive::NInt),
    ("System.UIntPtr", Primitive::NUInt),
];

/// The kind of a primitive, found by the name of its class.
pub(super) fn core_kind(name: &str) -> Option<Kind> {
    let found = CORE_TYPES.iter().find(|(known, _)| *known == name && *known != "System.Object");
    found.and_then(|(_, primitive)| primitive_kind(*primitive))
}

pub(super) fn core_name(primitive: Primitive) -> Option<&'static str> {
    CORE_TYPES.iter().find(|(_, known)| *known == primitive).map(|(name, _)| *name)
}
