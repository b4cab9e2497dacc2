//! Members that the framework's own code refers to, so that inserted code may refer to them, too.

use std::borrow::Cow;

use clr_profiler::il::{Instruction, Operand};
use clr_profiler::metadata::signature::{self, Type};
use clr_profiler::metadata::{MemberRef, MetadataImport};
use clr_profiler::{ClassId, ModuleId, ProfilerInfo, Token};

/// Numbers of tables of metadata (ECMA-335, II.22).
const TYPE_REF: u32 = 0x0100_0000;
const MEMBER_REF: u32 = 0x0A00_0000;
const METHOD_SPEC: u32 = 0x2B00_0000;
/// Most rows of a table that are searched.
const MOST_ROWS: u32 = 1 << 16;

/// First byte of the signature of an instance method (ECMA-335, II.23.2.1).
pub(super) const HAS_THIS: u8 = 0x20;

/// Name of the base type of all objects.
pub(super) const EVERY_OBJECT: &str = "System.Object";

/// Reason why a method stays unchanged, in words.
pub(super) type Reason = Cow<'static, str>;

/// The reason for a method whose code differs from the expected code.
pub(super) const NOT_AS_KNOWN: Reason =
    Cow::Borrowed("this version of the framework has unknown code there");

/// The reason for a member that has another name, or does not exist.
pub(super) fn missing(name: &str) -> Reason {
    format!("{NOT_AS_KNOWN}, without '{name}'").into()
}

/// The signature of an instance method without parameters that returns this type.
pub(super) fn getter(result: &[u8]) -> Vec<u8> {
    [&[HAS_THIS, 0][..], result].concat()
}

/// Whether a token belongs to a table.
fn is_in(token: Token, table: u32) -> bool {
    token.as_raw() >> 24 == table >> 24
}

/// Finds members in a module.
pub(super) struct Members<'m>(pub(super) &'m MetadataImport);

impl Members<'_> {
    /// The rows of a table.
    fn rows(&self, table: u32) -> impl Iterator<Item = Token> {
        (1..MOST_ROWS).map(move |row| Token::new(table | row)).take_while(|token| self.0.contains(*token))
    }

    /// Whether a token refers to a type of another module with this name.
    fn is_type(&self, token: Token, name: &str) -> bool {
        is_in(token, TYPE_REF) && self.0.type_ref(token).is_ok_and(|ty| ty.name == name)
    }

    /// A member of a type of another module. The runtime also accepts tokens of other tables here,
    /// and returns the row at the same place.
    fn member(&self, token: Token) -> Option<MemberRef> {
        is_in(token, MEMBER_REF).then(|| self.0.member_ref(token).ok()).flatten()
    }

    /// Whether an instruction refers to a member of another type with this name.
    pub(super) fn is_named(&self, instruction: &Instruction, name: &str) -> bool {
        match instruction.operand() {
            Operand::Token(token) => self.member(Token::new(*token)).is_some_and(|member| member.name == name),
            _ => false,
        }
    }

    /// Token of a type of another module.
    pub(super) fn other_type(&self, name: &str) -> Result<u32, Reason> {
        self.rows(TYPE_REF).find(|token| self.is_type(*token, name)).map(Token::as_raw).ok_or_else(|| missing(name))
    }

    /// Token of a method of a type of another module. `suits` decides whether its signature is
    /// accepted.
    pub(super) fn other(&self, ty: &str, name: &str, suits: impl Fn(&[u8]) -> bool) -> Result<u32, Reason> {
        let is_it = |token: &Token| {
            self.member(*token).is_some_and(|member| {
                member.name == name && suits(&member.signature) && self.is_type(member.parent, ty)
            })
        };
        self.rows(MEMBER_REF).find(is_it).map(Token::as_raw).ok_or_else(|| missing(name))
    }

    /// Token of a generic method of a type of another module. Its type argument is also a type of
    /// another module.
    pub(super) fn generic(&self, ty: &str, name: &str, argument: &str) -> Result<u32, Reason> {
        let is_it = |token: &Token| {
            let Ok(spec) = self.0.method_spec(*token) else { return false };
            let arguments = signature::method_instantiation(&spec.instantiation).unwrap_or_default();
            let has = matches!(arguments[..], [Type::Named { token, .. }] if self.is_type(token, argument));
            has && self.member(spec.method).is_some_and(|member| member.name == name && self.is_type(member.parent, ty))
        };
        self.rows(METHOD_SPEC).find(is_it).map(Token::as_raw).ok_or_else(|| missing(name))
    }

    /// Token of a type of this module.
    pub(super) fn own_type(&self, name: &str, outer: Option<Token>) -> Result<Token, Reason> {
        self.0.find_type_def(name, outer).ok().flatten().ok_or_else(|| missing(name))
    }

    /// Token of a method of this module. It must be the only one with this name.
    pub(super) fn own(&self, ty: Token, name: &str) -> Result<Token, Reason> {
        match self.0.methods_named(ty, name).unwrap_or_default()[..] {
            [method] => Ok(method),
            _ => Err(missing(name)),
        }
    }

    /// Like [`own`](Self::own), with the name of the type, which must not be nested in another one.
    pub(super) fn own_named(&self, ty: &str, name: &str) -> Result<u32, Reason> {
        self.own(self.own_type(ty, None)?, name).map(Token::as_raw)
    }

    /// Token of a field of this module.
    pub(super) fn field(&self, ty: Token, name: &str) -> Result<u32, Reason> {
        match self.0.fields_named(ty, name).unwrap_or_default()[..] {
            [field] => Ok(field.as_raw()),
            _ => Err(missing(name)),
        }
    }

    /// A class of the module, and the offsets of some of its fields. Loads the class if necessary,
    /// so it may be used only for classes that may have objects.
    pub(super) fn offsets<const N: usize>(
        &self,
        info: &ProfilerInfo,
        module: ModuleId,
        ty: Token,
        fields: [&str; N],
    ) -> Option<(usize, [u32; N])> {
        let class = info.class_from_token(module, ty).ok()?;
        Some((class.as_raw(), self.offsets_in(info, class, ty, fields)?))
    }

    /// Offsets of some fields of a class whose declaration is known.
    pub(super) fn offsets_in<const N: usize>(
        &self,
        info: &ProfilerInfo,
        class: ClassId,
        ty: Token,
        fields: [&str; N],
    ) -> Option<[u32; N]> {
        let layout = info.class_layout(class).ok()?.fields;
        let offset = |name| {
            let field = self.field(ty, name).ok()?;
            layout.iter().find(|(token, _)| token.as_raw() == field).map(|(_, offset)| *offset)
        };
        let mut offsets = [0; N];
        for (place, name) in offsets.iter_mut().zip(fields) {
            *place = offset(name)?;
        }
        Some(offsets)
    }
}
