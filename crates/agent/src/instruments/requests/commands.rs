//! Commands that the program sends to databases. The code is inserted into the commands of
//! ADO.NET's providers, which are the types derived from `System.Data.Common.DbCommand`. Providers
//! are not identified by name.
//!
//! | a method that | ends |
//! |---|---|
//! | returns its result directly | with the method |
//! | is async | where its task gets its result, in the code of its state machine, as in [`made`](super::made) |
//! | returns a task made by other code | with the method, if the task is complete by then; otherwise unknown |
//!
//! Async methods of such a type that send no command themselves, but are part of one, keep this
//! fact over their awaits.

use std::collections::{HashMap, HashSet};

use clr_profiler::il::element::{I4, I8, OBJECT, STRING, VOID};
use clr_profiler::il::{Body, Code, Edits, Instruction, NewLocal, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Type};
use clr_profiler::{ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::clock::ticks;
use clrscope_agent_base::hooks::is_stopped;

use super::inserted::null;
use super::kept_number::{KeptNumber, constant};
use super::members::{EVERY_OBJECT, Members, NOT_AS_KNOWN, Reason, getter};
use super::names::{Direction, Subject};
use super::recorder::{Outcome, Recorder};
use super::traces::{ACTIVITIES, ACTIVITY};
use super::under_way::{self, RequestStart};
use super::{nesting, objects, statements};
use crate::services::await_places::AsyncCode;
use crate::services::code_address::function_address;
use crate::services::numbers::MOST;

/// Names of the types and members that are used here.
const COMMAND: &str = "System.Data.Common.DbCommand";
const CONNECTION: &str = "System.Data.Common.DbConnection";
const TASK: &str = "System.Threading.Tasks.Task";
/// Methods that send a command; methods that return tasks have the suffix `Async`.
const METHODS: [&str; 5] =
    ["ExecuteNonQuery", "ExecuteScalar", "ExecuteReader", "ExecuteDbDataReader", "ExecuteXmlReader"];
const ASYNC: &str = "Async";
/// Names that compilers give to the state machine of an async method, and to its fields.
const MACHINE: &str = ">d__";
const BUILDER: &str = "<>t__builder";
const COMMAND_FIELD: &str = "<>4__this";
/// Libraries of the runtime and of ASP.NET; none of them has commands.
const WITHOUT: [&str; 3] = ["System.Private.", "Microsoft.AspNetCore.", "Microsoft.Extensions."];

/// `bool` in signatures (ECMA-335, II.23.1.16).
const BOOL: u8 = 0x02;
/// Table of types of other modules.
const TYPE_REF: u32 = 0x01;

/// Signature of [`is_within`] and [`begun`].
const TELLS: &[u8] = &[0, 0, I4];
/// Signature of [`enter`] and [`carry`]. In: whether the thread is within a command. Out: a number.
const ENTERS: &[u8] = &[0, 1, I4, I4];
/// Signature of [`begin`]. In: the statement, database, source and activity. Out: a number.
const BEGINS: &[u8] = &[0, 4, I4, OBJECT, OBJECT, OBJECT, OBJECT];
/// Signature of [`wait`] and [`end`]. In: the number, whether the thread was within a command, and
/// whether the command failed.
const ENDS: &[u8] = &[0, 3, VOID, I4, I4, I4];
/// Signature of [`settle`]. In: whether the thread is within a command. Out: ticks.
const SETTLES: &[u8] = &[0, 1, I8, I4];
/// Signature of [`settled`]. In: ticks, number of commands begun before, statement, database,
/// source, activity, and outcome.
const SETTLED: &[u8] = &[0, 7, VOID, I8, I4, OBJECT, OBJECT, OBJECT, OBJECT, I4];

/// Number of a command within another.
const NESTED: u32 = MOST - 1;
/// Number of an outermost command that is not recorded, or not recorded yet.
const UNRECORDED: u32 = MOST - 2;
/// Outcome of a method that returns a task: success, failure, or later.
const WELL: u32 = 0;
const FAILED: u32 = 1;
const LATER: u32 = 2;

/// Kind of a method, by its role for commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The method sends a command, and returns the result directly.
    Returns,
    /// The method returns a task.
    ReturnsTask,
    /// The code of an async method that sends a command.
    Sends,
    /// The code of another async method of a command type. It keeps over its awaits that it is part
    /// of a command.
    Carries,
}

/// A module with types of commands.
#[derive(Debug)]
pub(super) struct Provider {
    methods: HashMap<Token, Kind>,
    tokens: Tokens,
}

/// Whether a library with this name may have commands.
pub(super) fn may_have_commands(assembly: &str) -> bool {
    !WITHOUT.iter().any(|prefix| assembly.starts_with(prefix))
}

/// The token of `DbCommand`, the base of all commands; `None` if the module does not name it.
pub(super) fn base(metadata: &MetadataImport) -> Option<Token> {
    Members(metadata).other_type(COMMAND).ok().map(Token::new)
}

/// Types of the module itself that are derived from a type.
fn derived(metadata: &MetadataImport, types: &[Token], base: Token) -> HashSet<Token> {
    let bases: HashMap<Token, Token> =
        types.iter().filter_map(|ty| Some((*ty, metadata.type_def(*ty).ok()?.extends))).collect();
    let is_derived = |ty: &&Token| {
        let chain = std::iter::successors(bases.get(ty).copied(), |above| bases.get(above).copied());
        // No chain of bases is longer, unless the bases form a cycle.
        chain.take(types.len()).any(|above| above == base)
    };
    types.iter().filter(is_derived).copied().collect()
}

/// Whether a method with this name sends a command. For async methods the name is part of the state
/// machine's name.
fn sends(name: &str) -> bool {
    METHODS.contains(&name.strip_suffix(ASYNC).unwrap_or(name))
}

/// The method's name in the name of its state machine.
fn method_of_machine(name: &str) -> Option<&str> {
    name.strip_prefix('<')?.split_once(MACHINE).map(|(method, _)| method)
}

/// Kind of a command's sending method; `None` for methods that are not followed.
fn kind(metadata: &MetadataImport, method: Token) -> Option<Kind> {
    let about = metadata.method(method).ok()?;
    if !sends(&about.name) || about.attributes.is_static() || !metadata.has_il(method) {
        return None;
    }
    let signature = signature::method(&about.signature).ok()?;
    let (Type::Named { token, .. } | Type::Generic { token, .. }) = signature.return_type else {
        return Some(Kind::Returns);
    };
    let name = if token.as_raw() >> 24 == TYPE_REF {
        metadata.type_ref(token).map(|ty| ty.name)
    } else {
        metadata.type_def(token).map(|ty| ty.name)
    };
    match name.ok()?.split('`').next()? {
        TASK => Some(Kind::ReturnsTask),
        // The contents can be read only once, by the caller.
        "System.Threading.Tasks.ValueTask" => None,
        _ => Some(Kind::Returns),
    }
}

impl Provider {
    /// Searches a module for types of commands.
    ///
    /// # Errors
    /// The runtime's error. `Ok(None)` where there are none.
    pub(super) fn find(
        info: &ProfilerInfo,
        module: ModuleId,
        metadata: &MetadataImport,
    ) -> clr_profiler::Result<Option<Self>> {
        let Some(base) = base(metadata) else { return Ok(None) };
        let types = metadata.type_defs()?;
        let commands = derived(metadata, &types, base);
        let mut methods = HashMap::new();
        for command in &commands {
            let own = metadata.methods(*command).unwrap_or_default();
            methods.extend(own.into_iter().filter_map(|method| Some((method, kind(metadata, method)?))));
        }
        for ty in types.into_iter().filter(|_| !commands.is_empty()) {
            let Ok(name) = metadata.type_def(ty).map(|about| about.name) else { continue };
            let Some(method) = method_of_machine(&name) else { continue };
            let is_commands = metadata.enclosing_type(ty).ok().flatten().is_some_and(|outer| commands.contains(&outer));
            if is_commands && metadata.fields_named(ty, BUILDER).is_ok_and(|fields| !fields.is_empty()) {
                let kind = if sends(method) { Kind::Sends } else { Kind::Carries };
                methods.extend(Members(metadata).own(ty, "MoveNext").ok().map(|code| (code, kind)));
            }
        }
        if methods.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { methods, tokens: Tokens::add(info, module, metadata, base)? }))
    }

    /// The methods whose code is changed.
    pub(super) fn methods(&self) -> Vec<Token> {
        self.methods.keys().copied().collect()
    }

    /// The edits to the code of a method.
    pub(super) fn edits(&self, method: Token, body: &Body, metadata: &MetadataImport) -> Result<Edits, Reason> {
        let mut edits = match self.methods.get(&method) {
            Some(Kind::Returns) => self.tokens.of_method(),
            // An async method's own code counts.
            Some(Kind::ReturnsTask) if starts_machine(body, metadata) => Edits::new(),
            Some(Kind::ReturnsTask) => self.tokens.of_task(),
            Some(kind) => self.tokens.of_machine(body, metadata, *kind == Kind::Sends)?,
            None => Edits::new(),
        };
        edits.drop_tail_calls();
        Ok(edits)
    }
}

/// The name of the field that an instruction accesses.
fn field_name(instruction: &Instruction, metadata: &MetadataImport) -> Option<String> {
    let Operand::Token(token) = instruction.operand() else { return None };
    let token = Token::new(*token);
    match token.as_raw() >> 24 {
        0x04 => metadata.field(token).ok().map(|field| field.name),
        0x0A => metadata.member_ref(token).ok().map(|member| member.name),
        _ => None,
    }
}

fn is_field(instruction: &Instruction, opcode: Opcode, name: &str, metadata: &MetadataImport) -> bool {
    instruction.opcode() == opcode && field_name(instruction, metadata).is_some_and(|found| found == name)
}

/// Whether a method makes the state machine of an async method and starts it.
fn starts_machine(body: &Body, metadata: &MetadataImport) -> bool {
    body.instructions().iter().any(|instruction| is_field(instruction, Opcode::Stfld, BUILDER, metadata))
}

/// The single call by which a state machine's task gets its result, or its exception.
fn settles<'b>(body: &'b Body, metadata: &MetadataImport, name: &str) -> Result<&'b Instruction, Reason> {
    let code = body.instructions();
    let members = Members(metadata);
    let is_builder = |at: Option<usize>| at.is_some_and(|at| is_field(&code[at], Opcode::Ldflda, BUILDER, metadata));
    let mut found = (0..code.len()).filter(|at| {
        // With the result in between, where there is one.
        code[*at].opcode() == Opcode::Call
            && members.is_named(&code[*at], name)
            && (is_builder(at.checked_sub(1)) || is_builder(at.checked_sub(2)))
    });
    found.next().filter(|_| found.next().is_none()).map(|at| &code[at]).ok_or(NOT_AS_KNOWN)
}

/// Tokens, in the module, of the members that inserted code names.
#[derive(Debug, Clone, Copy)]
struct Tokens {
    object: u32,
    text: u32,
    connection: u32,
    database: u32,
    source: u32,
    /// `None` if the module has nothing to do with activities.
    activity: Option<u32>,
    is_completed: u32,
    is_well: u32,
    tells: u32,
    enters: u32,
    begins: u32,
    ends: u32,
    settles: u32,
    settled: u32,
}

/// Variables of the method for the properties that are read from a command.
#[derive(Clone, Copy)]
struct About {
    command: NewLocal,
    text: NewLocal,
    database: NewLocal,
    source: NewLocal,
    activity: NewLocal,
}

impl About {
    fn new(edits: &mut Edits) -> Self {
        let [command, text, database, source, activity] = [(); 5].map(|()| edits.new_local(&[OBJECT]));
        Self { command, text, database, source, activity }
    }

    fn cleared(self, code: Code) -> Code {
        [self.text, self.database, self.source, self.activity].into_iter().fold(code, null)
    }

    fn load(self, code: Code) -> Code {
        [self.text, self.database, self.source, self.activity].into_iter().fold(code, Code::load)
    }
}

fn calls(code: Code, function: *const (), signature: u32, takes: u16, gives: u16) -> Code {
    code.address(function_address(function)).call(Opcode::Calli, signature, takes + 1, gives)
}

impl Tokens {
    fn add(
        info: &ProfilerInfo,
        module: ModuleId,
        metadata: &MetadataImport,
        command: Token,
    ) -> clr_profiler::Result<Self> {
        let members = Members(metadata);
        let class = |token| Type::Named { token, is_value: false }.to_bytes().unwrap_or_default();
        let member = |ty, name, result: &[u8]| info.member_reference(module, ty, name, &getter(result));
        let raw = |token: clr_profiler::Result<Token>| token.map(Token::as_raw);
        let signature = |bytes| raw(info.signature_token(module, bytes));
        let connection = info.type_reference(module, metadata.type_ref(command)?.scope, CONNECTION)?;
        let core = info.core_library_reference(module)?;
        let task = info.type_reference(module, core, TASK)?;
        let activity = match members.other_type(ACTIVITY) {
            Ok(activity) => {
                let activity = Token::new(activity);
                let current = [&[0, 0][..], &class(activity)].concat();
                Some(info.member_reference(module, activity, "get_Current", &current)?.as_raw())
            }
            Err(_) => None,
        };
        Ok(Self {
            object: info.type_reference(module, core, EVERY_OBJECT)?.as_raw(),
            text: raw(member(command, "get_CommandText", &[STRING]))?,
            connection: raw(member(command, "get_Connection", &class(connection)))?,
            database: raw(member(connection, "get_Database", &[STRING]))?,
            source: raw(member(connection, "get_DataSource", &[STRING]))?,
            activity,
            is_completed: raw(member(task, "get_IsCompleted", &[BOOL]))?,
            is_well: raw(member(task, "get_IsCompletedSuccessfully", &[BOOL]))?,
            tells: signature(TELLS)?,
            enters: signature(ENTERS)?,
            begins: signature(BEGINS)?,
            ends: signature(ENDS)?,
            settles: signature(SETTLES)?,
            settled: signature(SETTLED)?,
        })
    }

    /// Adds code that reads the properties of a command. They are the provider's own code, and may
    /// throw. `load` loads the command.
    fn read(self, before: Code, about: About, load: impl Fn(Code) -> Code) -> Code {
        let mut code = Code::new();
        let behind = code.new_mark();
        let code = match self.activity {
            Some(current) => code.call(Opcode::Call, current, 0, 1).store(about.activity),
            None => code,
        };
        let get = |code: Code, token| code.load(about.command).call(Opcode::Callvirt, token, 1, 1);
        let code = load(code).store(about.command).load(about.command).branch(Opcode::Brfalse, behind);
        let code = get(get(code, self.text).store(about.text), self.connection).store(about.command);
        let code = code.load(about.command).branch(Opcode::Brfalse, behind);
        let code = get(get(code, self.database).store(about.database), self.source).store(about.source);
        about.cleared(before).catching(self.object, code.mark(behind))
    }

    /// Adds code that begins a command if the thread is not within one. `load` loads the command.
    fn begin(self, before: Code, about: About, load: impl Fn(Code) -> Code, [was, number]: [NewLocal; 2]) -> Code {
        let mut code = calls(before, is_within as *const (), self.tells, 0, 1).store(was);
        let behind = code.new_mark();
        let code = calls(code.load(was), enter as *const (), self.enters, 1, 1).store(number);
        let code = constant(code.load(number), UNRECORDED).branch(Opcode::BneUn, behind);
        let code = about.load(self.read(code, about, load));
        calls(code, begin as *const (), self.begins, 4, 1).store(number).mark(behind)
    }

    fn end(self, code: Code, was: NewLocal, number: NewLocal, outcome: u32) -> Code {
        calls(constant(code.load(number).load(was), outcome), end as *const (), self.ends, 3, 0)
    }

    /// The edits of a method that returns its result directly.
    fn of_method(self) -> Edits {
        let mut edits = Edits::new();
        let about = About::new(&mut edits);
        let [was, number] = [(); 2].map(|()| edits.new_local(&[I4]));
        edits.at_entry(self.begin(Code::new(), about, |code| code.plain(Opcode::Ldarg0), [was, number]));
        edits.at_results(self.end(Code::new(), was, number, WELL));
        edits.at_failures(self.end(Code::new(), was, number, FAILED));
        edits
    }

    /// The edits of a method that returns a task made by other code.
    fn of_task(self) -> Edits {
        let mut edits = Edits::new();
        let about = About::new(&mut edits);
        let [began, task] = [&[I8], &[OBJECT]].map(|ty| edits.new_local(ty));
        let [before, outcome] = [(); 2].map(|()| edits.new_local(&[I4]));
        let mut code = Code::new();
        let behind = code.new_mark();
        let code = calls(code, is_within as *const (), self.tells, 0, 1);
        let code = calls(code, settle as *const (), self.settles, 1, 1).store(began);
        let code = calls(code, begun as *const (), self.tells, 0, 1).store(before);
        let code = code.load(began).branch(Opcode::Brfalse, behind);
        edits.at_entry(self.read(code, about, |code| code.plain(Opcode::Ldarg0)).mark(behind));

        let settled = |code: Code| {
            let code = about.load(code.load(began).load(before)).load(outcome);
            calls(code, settled as *const (), self.settled, 7, 0)
        };
        let mut code = Code::new();
        let [behind, known] = [(); 2].map(|()| code.new_mark());
        let code = code.load(began).branch(Opcode::Brfalse, behind);
        let code = code.address_of_result().plain(Opcode::LdindRef).store(task);
        let code = constant(code, FAILED).store(outcome).load(task).branch(Opcode::Brfalse, known);
        let code = constant(code, LATER).store(outcome);
        let code = code.load(task).call(Opcode::Callvirt, self.is_completed, 1, 1).branch(Opcode::Brfalse, known);
        let code = constant(code, WELL).store(outcome);
        let code = code.load(task).call(Opcode::Callvirt, self.is_well, 1, 1).branch(Opcode::Brtrue, known);
        let code = constant(code, FAILED).store(outcome).mark(known);
        edits.at_results(settled(code).mark(behind));

        let mut code = Code::new();
        let behind = code.new_mark();
        let code = code.load(began).branch(Opcode::Brfalse, behind);
        edits.at_failures(settled(constant(code, FAILED).store(outcome)).mark(behind));
        edits
    }

    /// The edits of the code of an async method.
    fn of_machine(self, body: &Body, metadata: &MetadataImport, sends: bool) -> Result<Edits, Reason> {
        let code = AsyncCode::read(body, metadata)?;
        let ends = [(settles(body, metadata, "SetResult")?, WELL), (settles(body, metadata, "SetException")?, FAILED)];
        if code.is_none() && !sends {
            return Ok(Edits::new());
        }
        let mut edits = Edits::new();
        let about = About::new(&mut edits);
        let [was, number, stored] = [(); 3].map(|()| edits.new_local(&[I4]));
        let kept = code.as_ref().map(|code| KeptNumber { state: code.state, stored, number });

        let mut entry = Code::new();
        let [numbered, behind] = [(); 2].map(|()| entry.new_mark());
        let mut entry = entry.plain(Opcode::LdcI4_0).store(number).plain(Opcode::LdcI4_0).store(was);
        if let Some(kept) = kept {
            // Ignored if the method resumes, or has ended.
            entry = kept.read(entry, numbered).load(stored).plain(Opcode::LdcI4M1).branch(Opcode::BneUn, behind);
        }
        if sends {
            let field = body
                .instructions()
                .iter()
                .find(|instruction| is_field(instruction, Opcode::Ldfld, COMMAND_FIELD, metadata));
            // Code that does not use its command has no such field.
            let command = |code: Code| match field {
                Some(field) => code.plain(Opcode::Ldarg0).with(Opcode::Ldfld, field.operand().clone()),
                None => code.plain(Opcode::Ldnull),
            };
            entry = self.begin(entry, about, command, [was, number]);
        } else {
            entry = calls(entry, is_within as *const (), self.tells, 0, 1).store(was);
            entry = calls(entry.load(was), carry as *const (), self.enters, 1, 1).store(number);
        }
        let mut entry = entry.branch(Opcode::Br, behind).mark(numbered);
        if let Some(kept) = kept {
            entry = calls(kept.take_out(entry), go_on as *const (), self.tells, 0, 1).store(was);
        }
        edits.at_entry(entry.mark(behind));

        for (kept, code) in kept.into_iter().zip(&code) {
            for place in &code.awaits {
                let waits = |code: Code| {
                    let code = constant(code.load(number).load(was), WELL);
                    calls(code, wait as *const (), self.ends, 3, 0)
                };
                edits.after(place.store, kept.put_in(place.number, waits));
            }
        }
        for (call, outcome) in ends {
            edits.before(call.label(), self.end(Code::new(), was, number, outcome));
        }
        Ok(edits)
    }
}

/// Whether the calling thread is within a command.
unsafe extern "C" fn is_within() -> u32 {
    nesting::is_within()
}

/// Commands that the calling thread has begun.
unsafe extern "C" fn begun() -> u32 {
    nesting::begun()
}

/// A method that sends a command begins. Returns the number for a command that is not recorded yet,
/// or for a nested command; 0 if nothing is recorded.
unsafe extern "C" fn enter(was: u32) -> u32 {
    if was != 0 {
        return NESTED;
    }
    if is_stopped() || Recorder::current().is_none() {
        return 0;
    }
    // Calls made by the command's properties are part of the command.
    nesting::put(1);
    UNRECORDED
}

/// Another async method of a command begins.
unsafe extern "C" fn carry(was: u32) -> u32 {
    if was == 0 { 0 } else { NESTED }
}

/// The number of a command's name in a recording.
///
/// # Safety
/// All must be null or addresses of texts that do not move meanwhile.
unsafe fn name(recorder: &Recorder, text: usize, database: usize, source: usize) -> u32 {
    // SAFETY: the caller's promise.
    let [text, database, source] = [text, database, source].map(|address| unsafe { objects::text(address) });
    let verb = statements::verb(text);
    let length = verb.len();
    let mut wide = [0; statements::LONGEST];
    wide.iter_mut().zip(verb.bytes()).for_each(|(unit, byte)| *unit = byte.into());
    recorder.name(Direction::Made, &wide[..length], Subject::Database(database, source))
}

/// An outermost command begins. Returns its number plus one.
unsafe extern "C" fn begin(text: usize, database: usize, source: usize, activity: usize) -> u32 {
    let mut given = UNRECORDED;
    guard(|| {
        nesting::begin();
        let Some((recorder, requests)) = Recorder::current().zip(under_way::of_process()) else { return };
        let ticks = Some(ticks());
        // SAFETY: the values that the code of the tokens' `begin` passes: texts or null.
        let name = unsafe { name(recorder, text, database, source) };
        // SAFETY: as above; an object or null.
        let trace = unsafe { ACTIVITIES.numbers(activity) };
        let number = recorder.begin(requests, RequestStart { name, ticks, trace, ..RequestStart::default() });
        given = number.filter(|number| number + 1 < UNRECORDED).map_or(UNRECORDED, |number| number + 1);
    });
    given
}

/// The code of an async method waits.
unsafe extern "C" fn wait(_number: u32, was: u32, _outcome: u32) {
    nesting::put(was);
}

/// The code of an async method resumes. Returns whether the thread was within a command.
unsafe extern "C" fn go_on() -> u32 {
    nesting::put(1)
}

/// A method that sends a command ends.
unsafe extern "C" fn end(number: u32, was: u32, outcome: u32) {
    if number == 0 {
        return;
    }
    nesting::put(was);
    if number >= UNRECORDED {
        return;
    }
    let said = || (0, if outcome == WELL { Outcome::Answer } else { Outcome::Failure });
    guard(|| Recorder::end_numbered(number, said));
}

/// A method that returns a task begins. Returns ticks; 0 if the method is part of a command, or
/// nothing is recorded.
unsafe extern "C" fn settle(was: u32) -> u64 {
    if was != 0 || is_stopped() || Recorder::current().is_none() { 0 } else { ticks().max(1) }
}

/// A method that returns a task ends. It counts as a command unless the thread has begun another
/// command meanwhile, to which the method delegated.
unsafe extern "C" fn settled(
    began: u64,
    before: u32,
    text: usize,
    database: usize,
    source: usize,
    activity: usize,
    outcome: u32,
) {
    if nesting::begun() != before || is_stopped() {
        return;
    }
    guard(|| {
        nesting::begin();
        let Some(recorder) = Recorder::current() else { return };
        // SAFETY: the values that the code of `of_task` passes: texts or null.
        let name = unsafe { name(recorder, text, database, source) };
        // SAFETY: as above; an object or null.
        let trace = unsafe { ACTIVITIES.numbers(activity) };
        // The duration is known only if the command is over.
        let ticks = Some(began).filter(|_| outcome != LATER);
        let outcome = if outcome == FAILED { Outcome::Failure } else { Outcome::Answer };
        recorder.ended(RequestStart { name, ticks, trace, ..RequestStart::default() }, 0, outcome);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_say_as_many_values_as_the_code_hands_over() {
        let shape = |signature| {
            let shape = clr_profiler::il::method_shape(signature).expect("a signature");
            (shape.takes, shape.result)
        };
        assert_eq!([TELLS, ENTERS, BEGINS].map(shape), [0, 1, 4].map(|takes| (takes, Some(&[I4][..]))));
        assert_eq!([ENDS, SETTLED].map(shape), [(3, None), (7, None)]);
        assert_eq!(shape(SETTLES), (1, Some(&[I8][..])));
    }

    #[test]
    fn methods_that_send_commands_are_known_by_their_names() {
        assert!(["ExecuteScalar", "ExecuteScalarAsync", "ExecuteDbDataReaderAsync"].into_iter().all(sends));
        assert!(!["Execute", "ExecuteAsync", "Prepare", "Async", ""].into_iter().any(sends));
        assert_eq!(method_of_machine("<ExecuteReader>d__12"), Some("ExecuteReader"));
        assert_eq!([method_of_machine("<>c__DisplayClass"), method_of_machine("Own")], [None, None]);
        assert!(may_have_commands("Microsoft.Data.SqlClient") && may_have_commands("System.Data.Odbc"));
        assert!(!may_have_commands("Microsoft.AspNetCore.Http"));
    }
}
