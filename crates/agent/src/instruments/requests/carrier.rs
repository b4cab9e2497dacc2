//! The request's id in the `ExecutionContext`. The runtime itself carries the context along with
//! the program's work for the request, as it carries `Activity.Current`: across awaits, `Task.Run`,
//! timers and threads.
//!
//! The id is the value of an `AsyncLocal` of our own, which the code that begins a request makes
//! once. No code of the program knows this `AsyncLocal`. Servers restore the context after each
//! request.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::members::HAS_THIS;
use crate::services::code_address::function_address;
use clr_profiler::il::element::{I8, INT, OBJECT, VAR, VOID};
use clr_profiler::il::{Code, Edits, NewLocal, Opcode, Operand};
use clr_profiler::metadata::signature::{Primitive, Type};
use clr_profiler::{ModuleId, ProfilerInfo, Token};

/// Names of the types and members that are used here.
const LOCAL_TYPE: &str = "System.Threading.AsyncLocal`1";
const HANDLE_TYPE: &str = "System.Runtime.InteropServices.GCHandle";
const NUMBER_TYPE: &str = "System.Int64";

/// Signature of [`keep`].
const KEEPS: &[u8] = &[0, 1, VOID, INT];

/// The handle of the `AsyncLocal`: the address of a word that holds its address; 0 until there is
/// one.
static LOCAL: AtomicUsize = AtomicUsize::new(0);

/// The current address of the `AsyncLocal`; `None` if it was not created yet. No collection may
/// begin while the address is used.
#[inline]
pub(super) fn local() -> Option<usize> {
    let handle = LOCAL.load(Ordering::Acquire);
    // SAFETY: a handle that is never freed is the address of a word.
    (handle != 0).then(|| unsafe { std::ptr::with_exposed_provenance::<usize>(handle).read() })
}

/// Tokens, in a module, of the members that inserted code names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    number: u32,
    new_local: u32,
    new_handle: u32,
    handle_word: u32,
    set_value: u32,
    keeps: u32,
}

impl Tokens {
    /// Adds references to a module.
    ///
    /// # Errors
    /// The runtime's error.
    pub(super) fn add(info: &ProfilerInfo, module: ModuleId) -> clr_profiler::Result<Self> {
        let core = info.core_library_reference(module)?;
        let generic = info.type_reference(module, core, LOCAL_TYPE)?;
        let arguments = vec![Type::Primitive(Primitive::Object)];
        let local = info.type_token(module, &bytes(&Type::Generic { token: generic, is_value: false, arguments }))?;
        let handle = info.type_reference(module, core, HANDLE_TYPE)?;
        let handle_type = bytes(&Type::Named { token: handle, is_value: true });
        let member = |ty, name, signature: &[u8]| info.member_reference(module, ty, name, signature).map(Token::as_raw);
        Ok(Self {
            number: info.type_reference(module, core, NUMBER_TYPE)?.as_raw(),
            new_handle: member(handle, "Alloc", &[&[0, 1], &handle_type[..], &[OBJECT]].concat())?,
            handle_word: member(handle, "ToIntPtr", &[&[0, 1, INT], &handle_type[..]].concat())?,
            new_local: member(local, ".ctor", &[HAS_THIS, 0, VOID])?,
            set_value: member(local, "set_Value", &[HAS_THIS, 1, VOID, VAR, 0])?,
            keeps: info.signature_token(module, KEEPS)?.as_raw(),
        })
    }

    /// Code that sets the id in the context from a variable, unless the id is 0. `object` is the
    /// token of `System.Object`.
    pub(super) fn set(self, edits: &mut Edits, id: NewLocal, object: u32) -> Code {
        let handle = edits.new_local(&[INT]);
        let read = |code: Code| {
            let place = (&raw const LOCAL).expose_provenance() as u64;
            code.address(place).plain(Opcode::LdindI).store(handle)
        };
        let mut code = Code::new();
        let [known, behind] = [(); 2].map(|()| code.new_mark());
        let code = read(code.load(id).branch(Opcode::Brfalse, behind));
        let code = code.load(handle).branch(Opcode::Brtrue, known);
        let code = code.call(Opcode::Newobj, self.new_local, 0, 1);
        let code = code.call(Opcode::Call, self.new_handle, 1, 1).call(Opcode::Call, self.handle_word, 1, 1);
        let code = code.address(function_address(keep as *const ())).call(Opcode::Calli, self.keeps, 2, 0);
        let code = read(code).load(handle).branch(Opcode::Brfalse, behind).mark(known);
        let code = code.load(handle).plain(Opcode::LdindRef).load(id);
        let code = code.with(Opcode::Box, Operand::Token(self.number));
        let code = code.call(Opcode::Callvirt, self.set_value, 2, 0).mark(behind);
        Code::new().catching(object, code)
    }
}

/// The bytes of a type that is valid in each signature.
fn bytes(ty: &Type) -> Vec<u8> {
    ty.to_bytes().unwrap_or_default()
}

/// Keeps the handle of the `AsyncLocal` for good, unless another thread has made one at the same
/// time.
unsafe extern "C" fn keep(handle: usize) {
    let _ = LOCAL.compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed);
}

/// Type of the variable that holds an id.
pub(super) const ID: &[u8] = &[I8];
