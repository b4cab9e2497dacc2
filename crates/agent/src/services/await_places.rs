//! Finds awaits in the code of async methods, and the awaited operation of each.
//!
//! The compilers of C# and Visual Basic write an await like this (Roslyn's
//! `AsyncMethodToStateMachineRewriter`):
//!
//! ```text
//! CALL; GetAwaiter; stloc; ldloca; get_IsCompleted; brtrue RESULT
//! ldarg.0; ldc.i4 N; dup; stloc; stfld <>1__state      the method is about to wait
//! ...; AwaitUnsafeOnCompleted; leave
//! ...; ldc.i4.m1; dup; stloc; stfld <>1__state         it goes on, by its first `switch`
//! RESULT: ldloca; GetResult
//! ```
//!
//! The method reads the number once, at its beginning. Methods that differ from this pattern stay
//! unchanged.

use clr_profiler::Token;
use clr_profiler::il::{Body, Flow, Instruction, Label, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Type};
use clrscope_agent_stacks::awaiters::STATES;
use clrscope_contract::async_code::AWAIT_BITS;

/// Most instructions in front of the instruction that reads the number.
const MOST_BEFORE: usize = 8;
/// Name of an unknown awaited operation.
const NOT_KNOWN: &str = "[not known]";
/// Numbers of tables of metadata: fields, methods, members of other types, generic methods, and
/// constructed types (ECMA-335, II.22).
const FIELD: u32 = 0x04;
const METHOD_DEF: u32 = 0x06;
const TYPE_DEF: u32 = 0x02;
const TYPE_REF: u32 = 0x01;
const MEMBER_REF: u32 = 0x0A;
const TYPE_SPEC: u32 = 0x1B;
const METHOD_SPEC: u32 = 0x2B;

/// An await in the code of an async method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Await {
    /// The await's number in the method.
    pub(crate) number: u32,
    /// The instruction that stores the number when the method is about to wait.
    pub(crate) store: Label,
    /// Offset in the IL of the statement with the await.
    pub(crate) il_offset: u32,
    /// The call that fetches the result when the method resumes; `None` if no such call was found.
    pub(crate) result: Option<Label>,
    /// The method whose task is awaited, or the type of the awaited value.
    pub(crate) awaited: Awaited,
}

/// The awaited operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The value that a method of this module returns.
    Own(Token),
    /// A name. It is `Type::Method` for the value that a method of another module returns, and
    /// otherwise the type of the awaited value.
    Named(String),
}

/// The code of an async method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AsyncCode {
    /// Token of the field that holds the number of the await, as the code uses it.
    pub(crate) state: u32,
    pub(crate) awaits: Vec<Await>,
}

impl AsyncCode {
    /// Reads the code of a method.
    ///
    /// # Errors
    /// The reason why the method can't be followed, in words. `Ok(None)` for methods without
    /// awaits.
    pub(crate) fn read(body: &Body, metadata: &MetadataImport) -> Result<Option<Self>, &'static str> {
        find(body.instructions(), &Names(metadata))
    }
}

/// Names of members by their tokens.
trait MemberNames {
    /// Name of a field.
    fn field(&self, token: Token) -> Option<String>;
    /// Name of a method.
    fn method(&self, token: Token) -> Option<String>;
    /// The awaited operation for a call of a method.
    fn awaited(&self, token: Token) -> Option<Awaited>;
    /// Name of the type that declares a method.
    fn declaring_type(&self, token: Token) -> Option<String>;
}

struct Names<'m>(&'m MetadataImport);

fn table(token: Token) -> u32 {
    token.as_raw() >> 24
}

impl Names<'_> {
    /// The definition of an instantiated generic method.
    fn plain(&self, token: Token) -> Option<Token> {
        if table(token) == METHOD_SPEC { self.0.method_spec(token).ok().map(|spec| spec.method) } else { Some(token) }
    }

    fn type_name(&self, token: Token) -> Option<String> {
        let name = match table(token) {
            TYPE_DEF => self.0.type_def(token).ok()?.name,
            TYPE_REF => {
                let about = self.0.type_ref(token).ok()?;
                // A nested type's scope is the type around it.
                let outer = (table(about.scope) == TYPE_REF).then(|| self.type_name(about.scope)).flatten();
                outer.map_or(about.name.clone(), |outer| format!("{outer}+{}", about.name))
            }
            TYPE_SPEC => {
                let (Type::Named { token, .. } | Type::Generic { token, .. }) =
                    signature::type_spec(&self.0.type_spec(token).ok()?).ok()?
                else {
                    return None;
                };
                return self.type_name(token);
            }
            _ => return None,
        };
        Some(without_arity(&name))
    }
}

impl MemberNames for Names<'_> {
    fn field(&self, token: Token) -> Option<String> {
        match table(token) {
            FIELD => self.0.field(token).ok().map(|field| field.name),
            MEMBER_REF => self.0.member_ref(token).ok().map(|named| named.name),
            _ => None,
        }
    }

    fn method(&self, token: Token) -> Option<String> {
        let token = self.plain(token)?;
        match table(token) {
            METHOD_DEF => self.0.method(token).ok().map(|method| method.name),
            MEMBER_REF => self.0.member_ref(token).ok().map(|named| named.name),
            _ => None,
        }
    }

    fn awaited(&self, token: Token) -> Option<Awaited> {
        let token = self.plain(token)?;
        if table(token) == METHOD_DEF {
            return Some(Awaited::Own(token));
        }
        let (class, method) = (self.declaring_type(token)?, self.method(token)?);
        Some(Awaited::Named(format!("{class}::{method}")))
    }

    fn declaring_type(&self, token: Token) -> Option<String> {
        let token = self.plain(token)?;
        let parent = match table(token) {
            METHOD_DEF => self.0.method(token).ok()?.class,
            MEMBER_REF => self.0.member_ref(token).ok()?.parent,
            _ => return None,
        };
        self.type_name(parent)
    }
}

/// A name without the number of type parameters behind each type.
fn without_arity(name: &str) -> String {
    let parts = name.split('+').map(|part| part.split('`').next().unwrap_or(part));
    parts.collect::<Vec<_>>().join("+")
}

fn token_of(instruction: &Instruction) -> Option<Token> {
    match instruction.operand() {
        Operand::Token(token) => Some(Token::new(*token)),
        _ => None,
    }
}

fn find(code: &[Instruction], names: &impl MemberNames) -> Result<Option<AsyncCode>, &'static str> {
    let is_state = |instruction: &Instruction| {
        token_of(instruction).and_then(|token| names.field(token)).is_some_and(|name| STATES.contains(&&*name))
    };
    let of = |opcode| {
        (0..code.len()).filter(move |at| code[*at].opcode() == opcode && is_state(&code[*at])).collect::<Vec<_>>()
    };
    let reads = of(Opcode::Ldfld);
    if of(Opcode::Ldflda).len() + of(Opcode::Ldsflda).len() > 0 {
        return Err("it hands the number of its await to others");
    }
    let mut stores = Vec::new();
    for at in of(Opcode::Stfld) {
        let number = stored_number(code, at).ok_or("it numbers its awaits in a way that is not known")?;
        // Negative numbers mean that the method runs, or has ended.
        stores.extend(u32::try_from(number).ok().map(|number| (at, number)));
    }
    if stores.iter().any(|(_, number)| *number >= 1 << AWAIT_BITS) {
        return Err("it has too many awaits");
    }
    let ends = stores.iter().skip(1).map(|(at, _)| *at).chain([code.len()]);
    let awaits = stores.iter().zip(ends).map(|((at, number), end)| await_at(code, (*at, end), *number, names));
    let awaits: Option<Vec<Await>> = awaits.collect();
    let awaits = awaits.ok_or("it awaits in a way that is not known")?;
    if awaits.is_empty() {
        return Ok(None);
    }
    match reads[..] {
        [read] if read < MOST_BEFORE => {}
        _ => return Err("it reads the number of its await in a way that is not known"),
    }
    let state = token_of(&code[reads[0]]).ok_or("its number has no name")?.as_raw();
    Ok(Some(AsyncCode { state, awaits }))
}

/// The constant that the instruction at a place stores.
fn stored_number(code: &[Instruction], at: usize) -> Option<i32> {
    // Copies for the method's own variable are in between.
    let is_copy = |opcode: Opcode| {
        matches!(
            opcode,
            Opcode::Dup
                | Opcode::Nop
                | Opcode::Stloc
                | Opcode::StlocS
                | Opcode::Stloc0
                | Opcode::Stloc1
                | Opcode::Stloc2
                | Opcode::Stloc3
        )
    };
    let constant = code[..at].iter().rev().find(|instruction| !is_copy(instruction.opcode()))?;
    constant.constant()
}

/// The await whose number is stored at a place; the next await begins at `end`.
fn await_at(
    code: &[Instruction],
    (store, end): (usize, usize),
    number: u32,
    names: &impl MemberNames,
) -> Option<Await> {
    let is_call = |at: &usize| code[*at].opcode().flow() == Flow::Call;
    let name = |at: usize| token_of(&code[at]).and_then(|token| names.method(token));
    let named = |at: usize, wanted: &str| name(at).is_some_and(|name| name == wanted);
    let asks = (0..store).rev().find(is_call)?;
    let result = (store..end).filter(is_call).find(|at| named(*at, "GetResult"));
    let getter = (0..asks).rev().find(|at| is_call(at) && named(*at, "GetAwaiter"));
    let awaited = getter.and_then(|getter| awaited_by(code, getter, names));
    let awaited = awaited.or_else(|| {
        // A dynamic await has no named awaiter.
        let getter = token_of(&code[getter?])?;
        names.declaring_type(getter).map(Awaited::Named)
    });
    Some(Await {
        number,
        store: code[store].label(),
        il_offset: code[asks].label().offset()?,
        result: result.map(|at| code[at].label()),
        awaited: awaited.unwrap_or_else(|| Awaited::Named(NOT_KNOWN.to_owned())),
    })
}

/// The call whose result the awaiter belongs to; `None` if the awaited value is no result of a
/// call.
fn awaited_by(code: &[Instruction], getter: usize, names: &impl MemberNames) -> Option<Awaited> {
    let mut at = before(code, getter)?;
    let name = |at: usize| token_of(&code[at]).and_then(|token| names.method(token));
    if code[at].opcode().flow() == Flow::Call && name(at).is_some_and(|name| name == "ConfigureAwait") {
        // The instruction in front of the argument.
        at = before(code, at.checked_sub(1)?)?;
    }
    let is_call = code[at].opcode().flow() == Flow::Call;
    token_of(&code[at]).filter(|_| is_call).and_then(|token| names.awaited(token))
}

/// The instruction that made the value on which the method at a place is called. A value type is
/// stored in a variable in between.
fn before(code: &[Instruction], at: usize) -> Option<usize> {
    let mut steps = (0..at).rev().filter(|at| code[*at].opcode() != Opcode::Nop);
    let first = steps.next()?;
    match code[first].opcode() {
        Opcode::Ldloca | Opcode::LdlocaS => {
            steps.next()?;
            steps.next()
        }
        _ => Some(first),
    }
}
