//! Inserted code that reports each call of a method, and the functions that this code calls.
//!
//! The functions are called like those of [`code`](super::super::code), and the same rules apply.
//! Like the hooks of `flow` they write a record, and read values while no collection can begin on
//! this thread. Arguments come by address: the address of the parameter, of a copy of `this`, or
//! the address that is itself passed by reference. As parameters of the call these addresses are
//! managed pointers, so a collection before the call updates them when it moves their targets.

use clr_profiler::il::element::{BY_REF, I8, OBJECT, TYPED_REF, U1, UINT, VOID};
use clr_profiler::il::{Code, Edits, NewLocal, Opcode, Operand};
use clr_profiler::{MethodToWrite, ModuleId, ProfilerInfo, Token};
use clrscope_recording::layout::probe_calls;
use clrscope_recording::writer::CallerCell;
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::hooks::is_stopped;
use clrscope_agent_base::clock::ticks;
use clrscope_agent_values::probed::{HandedOver, Handing, MOST_AGAIN, MOST_PARAMETERS, ResultWay, Way};

use super::super::callers::{CalledMethod, CallerSignatures, keep_record};
use super::super::code::{NOT_COUNTED, add, ends_counted};
use super::super::nesting::{self, OUTERMOST};
use super::{Calls, WatchedMethod};
use crate::services::code_address::function_address;

/// A managed pointer to bytes.
const POINTER: [u8; 2] = [BY_REF, U1];

/// Most addresses that [`enter_few`] takes, and most that [`leave_few`] takes in addition to the
/// result's address: as many as fit in registers.
const FEW_PARAMETERS: usize = 4;
const FEW_AGAIN: usize = 3;

/// Tokens of the functions' signatures in a module.
#[derive(Clone, Copy)]
pub(in crate::instruments::probes) struct EachSignatures {
    enter: Token,
    enter_few: Token,
    enter_many: Token,
    leave: Token,
    leave_few: Token,
    leave_many: Token,
}

impl EachSignatures {
    /// Makes the signatures in a module.
    ///
    /// # Errors
    /// The runtime's error.
    pub(in crate::instruments::probes) fn make(info: &ProfilerInfo, module: ModuleId) -> clr_profiler::Result<Self> {
        let token = |given: &[u8], takes: &[u8], addresses| {
            info.signature_token(module, &signature(given, takes, addresses))
        };
        Ok(Self {
            enter: token(&[I8], &[UINT, UINT], 0)?,
            enter_few: token(&[I8], &[UINT, UINT], FEW_PARAMETERS)?,
            enter_many: token(&[I8], &[UINT, UINT], MOST_PARAMETERS)?,
            leave: token(&[VOID], &[UINT, I8, UINT], 0)?,
            leave_few: token(&[VOID], &[UINT, I8, UINT], 1 + FEW_AGAIN)?,
            leave_many: token(&[VOID], &[UINT, I8, UINT], 1 + MOST_AGAIN)?,
        })
    }
}

/// A signature of managed code with `addresses` addresses after the other parameters.
fn signature(given: &[u8], takes: &[u8], addresses: usize) -> Vec<u8> {
    let head = [0, (takes.len() + addresses) as u8];
    [&head, given, takes, &POINTER.repeat(addresses)].concat()
}

/// A watched method is called.
unsafe extern "C" fn enter(method: *const WatchedMethod, record: usize) -> u64 {
    // SAFETY: the address and the record that `edits` put into the code.
    unsafe { began(method, record, &[]) }
}

/// A watched method is called, with the addresses of up to four parameters.
unsafe extern "C" fn enter_few(
    method: *const WatchedMethod,
    record: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
) -> u64 {
    // SAFETY: as in `enter`.
    unsafe { began(method, record, &[a, b, c, d]) }
}

/// A watched method is called, with the addresses of up to sixteen parameters.
unsafe extern "C" fn enter_many(
    method: *const WatchedMethod,
    record: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    g: usize,
    h: usize,
    i: usize,
    j: usize,
    k: usize,
    l: usize,
    m: usize,
    n: usize,
    o: usize,
    p: usize,
) -> u64 {
    // SAFETY: as in `enter`.
    unsafe { began(method, record, &[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]) }
}

/// A watched method returns.
unsafe extern "C" fn leave(method: *const WatchedMethod, began: u64, record: usize) {
    // SAFETY: as in `enter`.
    unsafe { ended(method, (began, record), probe_calls::RETURN, None) };
}

/// A watched method returns, with the address of the result and of up to three arguments that were
/// passed by reference.
unsafe extern "C" fn leave_few(
    method: *const WatchedMethod,
    began: u64,
    record: usize,
    result: usize,
    a: usize,
    b: usize,
    c: usize,
) {
    // SAFETY: as in `enter`.
    unsafe { ended(method, (began, record), probe_calls::RETURN, Some((result, &[a, b, c]))) };
}

/// A watched method returns, with the address of the result and of up to eight arguments that were
/// passed by reference.
unsafe extern "C" fn leave_many(
    method: *const WatchedMethod,
    began: u64,
    record: usize,
    result: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    g: usize,
    h: usize,
) {
    // SAFETY: as in `enter`.
    unsafe { ended(method, (began, record), probe_calls::RETURN, Some((result, &[a, b, c, d, e, f, g, h]))) };
}

/// An exception leaves a watched method.
unsafe extern "C" fn fail(method: *const WatchedMethod, began: u64, record: usize) {
    // SAFETY: as in `enter`.
    unsafe { ended(method, (began, record), probe_calls::FAIL, None) };
}

/// Counts and records the begin of a call, and returns its time. `record` is the record of its
/// callers, 0 if there is none.
///
/// # Safety
/// The method and the record must come from the code of the method.
unsafe fn began(method: *const WatchedMethod, record: usize, addresses: &[usize]) -> u64 {
    if is_stopped() {
        return NOT_COUNTED;
    }
    // SAFETY: the caller's promise.
    let (method, cell) = unsafe { (&*method, CallerCell::at(record)) };
    method.lanes.begin();
    if let Some(cell) = cell {
        cell.begin();
    }
    let mut recorded = None;
    guard(|| {
        let Some(calls) = Calls::of_recording(method.recording) else { return };
        let fill = method.values().map(|(handing, plan)| {
            let handed = HandedOver { handing, addresses };
            // SAFETY: the method's own code has just passed the addresses.
            move |buffer: &mut [u8]| unsafe { handed.write_arguments(plan, buffer, calls.types_only) }
        });
        recorded = calls.begin(method.number, fill);
    });
    nesting::begin(method.lanes) | recorded.unwrap_or_else(ticks).max(NOT_COUNTED + 1)
}

/// Counts and records the end of a call, from its begin time and the record of its callers. `left`
/// are the addresses of the result and of the arguments that were passed by reference.
///
/// # Safety
/// As [`began`].
unsafe fn ended(
    method: *const WatchedMethod,
    (began, record): (u64, usize),
    kind: u32,
    left: Option<(usize, &[usize])>,
) {
    // SAFETY: the caller's promise.
    let (method, cell) = unsafe { (&*method, CallerCell::at(record)) };
    if !ends_counted(method.lanes, began) {
        return;
    }
    let (now, has_failed) = (ticks(), kind == probe_calls::FAIL);
    let took = add(method.lanes, began, now, has_failed);
    if let Some(cell) = cell {
        cell.end(took, has_failed);
    }
    guard(|| {
        let Some(calls) = Calls::of_recording(method.recording) else { return };
        let fill = left.zip(method.values()).map(|((result, addresses), (handing, plan))| {
            let handed = HandedOver { handing, addresses };
            // SAFETY: as in `began`.
            move |buffer: &mut [u8]| unsafe { handed.write_results(plan, result, buffer, calls.types_only) }
        });
        calls.end(kind | method.number, now, began & !OUTERMOST, fill);
    });
}

/// The edits that make a method report its calls.
pub(in crate::instruments::probes) fn edits(
    watched: &'static WatchedMethod,
    signatures: EachSignatures,
    called: Option<(&'static CalledMethod, CallerSignatures)>,
    method: &MethodToWrite<'_>,
) -> Edits {
    let handing = watched.handing.get_or_init(|| handing(watched, method));
    let mut edits = Edits::new();
    let time = edits.new_local(&[I8]);
    let (found, record) = called.map(|called| keep_record(&mut edits, called)).unzip();
    let record_of = |code: Code| match record {
        Some(record) => code.load(record),
        None => nothing(code),
    };
    let found = found.unwrap_or_default();
    let this = Code::new().address(watched_address(watched));
    let end = |function: *const ()| {
        let call = record_of(this.clone().load(time)).address(function_address(function));
        call.call(Opcode::Calli, signatures.leave.as_raw(), 4, 0)
    };
    edits.at_failures(end(fail as *const ()));
    let Some(handing) = handing else {
        let call = record_of(found.address(watched_address(watched))).address(function_address(enter as *const ()));
        edits.at_entry(call.call(Opcode::Calli, signatures.enter.as_raw(), 3, 1).store(time));
        edits.at_results(end(leave as *const ()));
        return edits;
    };
    let places = Places::new(&mut edits, handing);
    let (most, function, signature) = match handing.parameters.len() <= FEW_PARAMETERS {
        true => (FEW_PARAMETERS, enter_few as *const (), signatures.enter_few),
        false => (MOST_PARAMETERS, enter_many as *const (), signatures.enter_many),
    };
    let begin = record_of(places.keep_this(found).address(watched_address(watched)));
    let begin = (0..most).fold(begin, |code, number| places.parameter(code, number)).address(function_address(function));
    edits.at_entry(begin.call(Opcode::Calli, signature.as_raw(), most as u16 + 3, 1).store(time));
    let (most, function, signature) = match handing.again.len() <= FEW_AGAIN {
        true => (FEW_AGAIN, leave_few as *const (), signatures.leave_few),
        false => (MOST_AGAIN, leave_many as *const (), signatures.leave_many),
    };
    let end = places.result(record_of(this.load(time)));
    let end = (0..most).fold(end, |code, at| places.parameter_again(code, at)).address(function_address(function));
    edits.at_results(end.call(Opcode::Calli, signature.as_raw(), most as u16 + 5, 0));
    edits
}

/// Local variables through which a method's values are passed, in addition to the parameters
/// themselves.
struct Places<'h> {
    handing: &'h Handing,
    /// The copy of `this`, where that is a reference.
    copy: Option<NewLocal>,
    /// Typed references to parameters, by their number.
    typed: Vec<Option<NewLocal>>,
    /// The typed reference to the result.
    result: Option<NewLocal>,
}

impl<'h> Places<'h> {
    fn new(edits: &mut Edits, handing: &'h Handing) -> Self {
        let copy = handing.parameters.contains(&Way::Copy).then(|| edits.new_local(&[OBJECT]));
        let mut reference = |is_typed: bool| is_typed.then(|| edits.new_local(&[TYPED_REF]));
        let is_typed = |way: &Way| matches!(way, Way::Typed(_) | Way::TypedTarget(_));
        let typed = handing.parameters.iter().map(|way| reference(is_typed(way))).collect();
        let result = reference(matches!(handing.result, ResultWay::Typed(_)));
        Self { handing, copy, typed, result }
    }

    /// Copies `this`, if it is passed as a copy.
    fn keep_this(&self, code: Code) -> Code {
        match self.copy {
            Some(copy) => code.plain(Opcode::Ldarg0).store(copy),
            None => code,
        }
    }

    /// Pushes the address with which a parameter is passed.
    fn parameter(&self, code: Code, number: usize) -> Code {
        let parameter = Operand::Word(number as u16);
        let reference = self.typed.get(number).copied().flatten();
        match (self.handing.parameters.get(number), self.copy, reference) {
            (Some(Way::Copy), Some(copy), _) => code.address_of(copy),
            (Some(Way::Itself), ..) => code.with(Opcode::Ldarg, parameter),
            (Some(Way::Place), ..) => code.with(Opcode::Ldarga, parameter),
            (Some(Way::Typed(ty)), _, Some(reference)) => {
                typed_reference(code.with(Opcode::Ldarga, parameter), *ty, reference)
            }
            (Some(Way::TypedTarget(ty)), _, Some(reference)) => {
                typed_reference(code.with(Opcode::Ldarg, parameter), *ty, reference)
            }
            _ => nothing(code),
        }
    }

    /// Pushes the address of a parameter that is passed again when the call ends.
    fn parameter_again(&self, code: Code, at: usize) -> Code {
        match self.handing.again.get(at) {
            Some(number) => self.parameter(code, *number),
            None => nothing(code),
        }
    }

    fn result(&self, code: Code) -> Code {
        match (self.handing.result, self.result) {
            (ResultWay::Place, _) => code.address_of_result(),
            (ResultWay::Typed(ty), Some(reference)) => typed_reference(code.address_of_result(), ty, reference),
            _ => nothing(code),
        }
    }
}

/// Makes a typed reference from the address on the stack, and pushes the address of the typed
/// reference.
fn typed_reference(code: Code, ty: Token, reference: NewLocal) -> Code {
    code.with(Opcode::Mkrefany, Operand::Token(ty.as_raw())).store(reference).address_of(reference)
}

/// How the method passes its values, where values are wanted.
fn handing(watched: &WatchedMethod, method: &MethodToWrite<'_>) -> Option<Handing> {
    let body = watched.takes_values.then_some(method.body)?;
    Handing::for_method(method.metadata, method.token, body, &watched.typed)
}

fn watched_address(watched: &'static WatchedMethod) -> u64 {
    std::ptr::from_ref(watched).expose_provenance() as u64
}


/// Pushes a null address.
fn nothing(code: Code) -> Code {
    code.plain(Opcode::LdcI4_0).plain(Opcode::ConvU)
}
