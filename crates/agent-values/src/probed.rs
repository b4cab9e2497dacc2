//! Values of calls of probed methods, whose IL passes arguments and results by address.
//!
//! No calling convention is involved here. Each address is that of a variable that the compiler
//! itself has laid out. So a value there has the type of the signature, and is alive during the
//! call. The target of an argument passed by reference may lie anywhere, and is read as such.

use clr_profiler::il::{Body, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Primitive, Type};
use clr_profiler::{FunctionId, Token};
use clrscope_recording::layout::value;

use super::arguments::depth;
use super::kinds::Kind;
use super::memory::{At, Ground};
use super::open_types::declaring;
use super::plan::{Argument, ArgumentLocation, Passing, Plan, PlannedCode, ResultPlan, is_declared_value, make};
use super::read::Writer;
use super::types::Types;

/// Maximum number of addresses passed when a call begins: for the first parameters, including
/// `this`.
pub const MOST_PARAMETERS: usize = 16;
/// Most addresses that are passed when a call ends, not counting the address of the result.
pub const MOST_AGAIN: usize = 8;

/// How a method passes a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The parameter is not passed.
    Nothing,
    /// By the address of a copy, for a reference that must not change: `this` of a class.
    Copy,
    /// Directly, because the parameter itself is an address.
    Itself,
    /// By the address of the parameter.
    Place,
    /// By a typed reference to the parameter, whose type has this token and contains type
    /// parameters.
    Typed(Token),
    /// By a typed reference to the target of the parameter, which is an address.
    TypedTarget(Token),
}

/// How a method passes its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultWay {
    /// The result is not passed.
    Nothing,
    /// By the address of the result.
    Place,
    /// By a typed reference to the result, whose type has this token.
    Typed(Token),
}

/// How a method passes its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handing {
    /// How each parameter is passed, `this` first if there is one.
    pub parameters: Vec<Way>,
    /// Numbers of the parameters that are passed again when a call ends, because their targets may
    /// have changed.
    pub again: Vec<usize>,
    /// How the result is passed.
    pub result: ResultWay,
}

impl Handing {
    /// Returns how a method passes its values; `None` for a method with a variable number of
    /// arguments, or with an unreadable signature. Values of the types in `typed` are passed by
    /// typed reference.
    pub fn for_method(metadata: &MetadataImport, method: Token, body: &Body, typed: &[(Type, Token)]) -> Option<Self> {
        let about = metadata.method(method).ok()?;
        let signature = signature::method(&about.signature).ok()?;
        if signature.convention != 0 || signature.explicit_this {
            return None;
        }
        let declared = metadata.type_def(about.class).ok()?;
        let is_value = is_declared_value(metadata, about.class);
        let typed = |ty: &Type| typed.iter().find(|(open, _)| open == ty).map(|(_, token)| *token);
        let of_generic = declaring(metadata, about.class).as_ref().and_then(typed);
        let this = match (is_value, &*declared.name, of_generic) {
            // Derived from the base of all value types, but itself a class.
            (true, "System.Enum", _) => Way::Nothing,
            (true, _, Some(token)) => Way::TypedTarget(token),
            (true, ..) => Way::Itself,
            (false, ..) => Way::Copy,
        };
        let this = signature.has_this.then_some(this);
        let ways = signature.parameters.iter().map(|ty| match ty {
            Type::ByRef(target) => typed(target).map_or(Way::Itself, Way::TypedTarget),
            Type::Primitive(Primitive::TypedReference) => Way::Nothing,
            ty => typed(ty).map_or(Way::Place, Way::Typed),
        });
        let mut parameters: Vec<Way> = this.into_iter().chain(ways).collect();
        parameters.iter_mut().skip(MOST_PARAMETERS).for_each(|way| *way = Way::Nothing);
        let stays = |number: &usize| match parameters[*number] {
            Way::Copy => true,
            Way::Itself | Way::TypedTarget(_) => !is_assigned(body, *number),
            Way::Nothing | Way::Place | Way::Typed(_) => false,
        };
        let again = (0..parameters.len()).filter(stays).take(MOST_AGAIN).collect();
        let result = match &signature.return_type {
            Type::Primitive(Primitive::Void | Primitive::TypedReference) | Type::ByRef(_) => ResultWay::Nothing,
            ty => typed(ty).map_or(ResultWay::Place, ResultWay::Typed),
        };
        Some(Self { parameters, again, result })
    }
}

/// Whether a method's code may assign to a parameter.
fn is_assigned(body: &Body, number: usize) -> bool {
    let names = |operand: &Operand| match operand {
        Operand::Byte(named) => usize::from(*named) == number,
        Operand::Word(named) => usize::from(*named) == number,
        _ => false,
    };
    let assigns = [Opcode::StargS, Opcode::Starg, Opcode::LdargaS, Opcode::Ldarga];
    body.instructions().iter().any(|one| assigns.contains(&one.opcode()) && names(one.operand()))
}

/// The plan of a probed method, described in the recording under its number. `id` is any of its
/// functions.
pub fn prepare(types: &Types, id: FunctionId, number: u32) -> Option<Plan> {
    make(types, id, PlannedCode::Probed(number))
}

/// The addresses that a call has passed, and how the method passes them.
pub struct HandedOver<'h> {
    /// How the method's code passes them.
    pub handing: &'h Handing,
    /// Addresses of the first parameters if the call begins, or of the parameters that are passed
    /// again if it ends.
    pub addresses: &'h [usize],
}

impl HandedOver<'_> {
    /// Writes the arguments of a call that begins, until the buffer is full. Returns the number of
    /// bytes.
    ///
    /// # Safety
    /// The addresses must have just been passed by code of the plan's method, with this `handing`.
    pub unsafe fn write_arguments(&self, plan: &Plan, buffer: &mut [u8], types_only: bool) -> usize {
        let mut writer = Writer::new(buffer, types_only);
        let given = plan.arguments.iter().enumerate().filter(|(_, argument)| argument.passing != Passing::Out);
        for (number, argument) in given {
            // SAFETY: guaranteed by the caller.
            unsafe { self.write_argument(&mut writer, argument, number) };
        }
        finish(plan, &writer)
    }

    /// Writes the results of a call: the targets of `ref` and `out` parameters, and the result,
    /// whose address is `result`.
    ///
    /// # Safety
    /// As for [`write_arguments`](Self::write_arguments).
    pub unsafe fn write_results(&self, plan: &Plan, result: usize, buffer: &mut [u8], types_only: bool) -> usize {
        let mut writer = Writer::new(buffer, types_only);
        for (number, argument) in plan.arguments.iter().enumerate() {
            if matches!(argument.passing, Passing::Ref | Passing::Out) {
                let again = self.handing.again.iter().position(|again| *again == number);
                let address = again.and_then(|at| self.addresses.get(at).copied());
                match self.handing.parameters.get(number) {
                    // SAFETY: guaranteed by the caller: a typed reference.
                    Some(Way::TypedTarget(_)) => unsafe { typed(&mut writer, argument.kind, address, false) },
                    _ => by_reference(&mut writer, argument.kind, address),
                }
            }
        }
        match plan.returned {
            ResultPlan::Nothing => {}
            ResultPlan::Redacted => writer.word(value::REDACTED),
            ResultPlan::Awaited if types_only => writer.word(value::HIDDEN),
            ResultPlan::Awaited => writer.word(value::UNKNOWN),
            ResultPlan::Behind(offset, kind) => {
                let this = self.handing.again.first().filter(|number| **number == 0).and(self.addresses.first());
                // SAFETY: guaranteed by the caller: `this` is the first address that is passed
                // again.
                let machine = this.and_then(|this| unsafe { self.machine(&mut writer, *this) });
                alive_or_unknown(&mut writer, kind, machine.map(|at| at.behind(offset as usize)));
            }
            ResultPlan::Memory(kind) | ResultPlan::At(_, kind) => match (self.handing.result, result) {
                (ResultWay::Nothing, _) | (_, 0) => alive_or_unknown(&mut writer, kind, None),
                // SAFETY: guaranteed by the caller: the local variable that holds the result.
                (ResultWay::Place, _) => alive_or_unknown(&mut writer, kind, Some(unsafe { at_alive(result) })),
                // SAFETY: guaranteed by the caller: a typed reference to that variable.
                (ResultWay::Typed(_), _) => unsafe { typed(&mut writer, kind, Some(result), true) },
            },
        }
        finish(plan, &writer)
    }

    /// # Safety
    /// As for [`write_arguments`](Self::write_arguments).
    unsafe fn write_argument(&self, writer: &mut Writer<'_>, argument: &Argument, number: usize) {
        if let ArgumentLocation::Behind(_, offset) = argument.location {
            // SAFETY: guaranteed by the caller.
            let machine = self.addresses.first().and_then(|this| unsafe { self.machine(writer, *this) });
            return alive_or_unknown(writer, argument.kind, machine.map(|at| at.behind(offset as usize)));
        }
        let address = self.addresses.get(number).copied();
        match (self.handing.parameters.get(number), argument.passing) {
            (Some(Way::Place | Way::Copy), Passing::Value) => {
                // SAFETY: guaranteed by the caller: a variable of the method.
                let at = address.map(|address| unsafe { at_alive(address) });
                alive_or_unknown(writer, argument.kind, at);
            }
            (Some(Way::Itself), Passing::Ref | Passing::In | Passing::Out) => {
                by_reference(writer, argument.kind, address);
            }
            // SAFETY: guaranteed by the caller: a typed reference to a variable of the method.
            (Some(Way::Typed(_)), Passing::Value) => unsafe { typed(writer, argument.kind, address, true) },
            // SAFETY: guaranteed by the caller: a typed reference.
            (Some(Way::TypedTarget(_)), _) => unsafe { typed(writer, argument.kind, address, false) },
            _ => alive_or_unknown(writer, argument.kind, None),
        }
    }

    /// Address of the state machine whose code was called, from the address of `this`.
    ///
    /// # Safety
    /// As for [`write_arguments`](Self::write_arguments).
    unsafe fn machine(&self, writer: &mut Writer<'_>, this: usize) -> Option<At> {
        let address = match self.handing.parameters.first()? {
            // SAFETY: guaranteed by the caller: a copy of the reference.
            Way::Copy => writer.memory.word(unsafe { at_alive(this) })?,
            Way::Itself => this,
            Way::Nothing | Way::Place | Way::Typed(_) | Way::TypedTarget(_) => return None,
        };
        // SAFETY: only the compiler's own code calls the code of a state machine, with a live one.
        (address != 0).then(|| unsafe { at_alive(address) })
    }
}

/// # Safety
/// The memory there must be alive, and references in it must lead to live objects.
unsafe fn at_alive(address: usize) -> At {
    // SAFETY: guaranteed by the caller.
    unsafe { At::on(Ground::Alive, std::ptr::with_exposed_provenance(address)) }
}

fn alive_or_unknown(writer: &mut Writer<'_>, kind: Kind, at: Option<At>) {
    match (kind, at) {
        (Kind::Redacted, _) => writer.word(value::REDACTED),
        (_, Some(at)) => writer.value(kind, at, depth()),
        (_, None) => writer.word(value::UNKNOWN),
    }
}

/// Writes the target of an arbitrary address.
fn by_reference(writer: &mut Writer<'_>, kind: Kind, address: Option<usize>) {
    match (kind, address) {
        (Kind::Redacted, _) => writer.word(value::REDACTED),
        (_, Some(0)) => writer.word(value::NULL),
        (_, Some(address)) => writer.value(kind, At::somewhere(address, kind.size() as usize), depth()),
        (_, None) => writer.word(value::UNKNOWN),
    }
}

/// Writes the target of the typed reference at an address. `is_alive`: the reference is to a
/// variable of the method; otherwise it may be to anything.
///
/// # Safety
/// There must be a typed reference made by the method's own code.
unsafe fn typed(writer: &mut Writer<'_>, kind: Kind, reference: Option<usize>, is_alive: bool) {
    let known = reference.filter(|address| *address != 0);
    match (kind, known) {
        (Kind::Redacted, _) => writer.word(value::REDACTED),
        // SAFETY: guaranteed by the caller.
        (_, Some(address)) => writer.typed(unsafe { at_alive(address) }, is_alive, depth()),
        (_, None) => writer.word(value::UNKNOWN),
    }
}

/// Number of bytes written. Counts a call whose values could not be read because the system does
/// not copy for us.
fn finish(plan: &Plan, writer: &Writer<'_>) -> usize {
    if writer.memory.was_refused() {
        plan.evidence.leave_unread();
    }
    writer.used()
}
