//! Requests that the program makes. The code is inserted into the method of `HttpClient`'s library
//! that sends a request over a connection and waits for the response headers. All requests go
//! through this method: requests of `HttpClient`, of gRPC, of the program's own handlers, and
//! synchronous ones.
//!
//! The method is async. As in [`awaits`](crate::instruments::awaits), the code keeps the request's
//! number in the field for the number of the await while the method waits, and removes it before
//! the method reads the field.

use clr_profiler::il::element::{I4, OBJECT, VOID};
use clr_profiler::il::{Body, Code, Edits, Instruction, NewLocal, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::{Error, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::clock::ticks;
use clrscope_agent_base::hooks::is_stopped;

use super::grpc;
use super::inserted::{WANTS, loads_variable, null, unless_urls};
use super::kept_number::KeptNumber;
use super::members::{EVERY_OBJECT, Members, NOT_AS_KNOWN, Reason, missing};
use super::names::{Direction, Subject};
use super::objects;
use super::recorder::{Outcome, Recorder};
use super::traces::{ACTIVITIES, ACTIVITY};
use super::under_way::{self, RequestStart};
use crate::services::await_places::AsyncCode;
use crate::services::code_address::function_address;
use crate::services::numbers::MOST;

/// Name of the library.
pub(super) const LIBRARY: &str = "System.Net.Http";
/// Names of the types and members that are used here.
const POOL: &str = "System.Net.Http.HttpConnectionPool";
const SEND: &str = "<SendWithVersionDetectionAndRetryAsync>d__";
const REQUEST: &str = "System.Net.Http.HttpRequestMessage";
const RESPONSE: &str = "System.Net.Http.HttpResponseMessage";
const METHOD: &str = "System.Net.Http.HttpMethod";
const URI: &str = "System.Uri";

/// Signature of [`begin`]. In: the number that the method keeps, the request's method, host, port,
/// path with query, and activity. Out: a number.
const BEGINS: &[u8] = &[0, 6, I4, I4, OBJECT, OBJECT, I4, OBJECT, OBJECT];
/// Signature of [`end`]. In: the number, the HTTP status and the gRPC status.
const ENDS: &[u8] = &[0, 3, VOID, I4, I4, OBJECT];

/// The method whose code is changed.
///
/// # Errors
/// The reason why the method can't be found, in words.
pub(super) fn method(metadata: &MetadataImport) -> Result<Token, Reason> {
    let members = Members(metadata);
    let pool = members.own_type(POOL, None)?;
    let types = metadata.type_defs().unwrap_or_default();
    let is_it = |ty: &Token| {
        metadata.type_def(*ty).is_ok_and(|about| about.name.starts_with(SEND))
            && metadata.enclosing_type(*ty).is_ok_and(|outer| outer == Some(pool))
    };
    members.own(types.into_iter().find(is_it).ok_or(NOT_AS_KNOWN)?, "MoveNext")
}

/// Tokens, in the library, of the members that inserted code names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    object: u32,
    request: u32,
    activity: u32,
    method: u32,
    method_name: u32,
    uri: u32,
    host: u32,
    port: u32,
    has_default_port: u32,
    path: u32,
    wants_urls: u32,
    status: u32,
    begins: u32,
    ends: u32,
    /// `None` if gRPC responses can't be distinguished from others.
    grpc: Option<grpc::MadeTokens>,
}

impl Tokens {
    /// Finds the tokens, and makes the signatures.
    ///
    /// # Errors
    /// The runtime's error, or the reason why the tokens can't be found.
    pub(super) fn find(info: &ProfilerInfo, module: ModuleId, metadata: &MetadataImport) -> clr_profiler::Result<Self> {
        let signature = |bytes| info.signature_token(module, bytes).map(Token::as_raw);
        let (begins, ends, wants_urls) = (signature(BEGINS)?, signature(ENDS)?, signature(WANTS)?);
        let grpc = grpc::MadeTokens::find(info, module, metadata).ok();
        let members = Members(metadata);
        let find = || {
            let any = |_: &[u8]| true;
            let own = |ty, name| members.own_named(ty, name);
            let machine = metadata.method(method(metadata)?).map_err(|_| NOT_AS_KNOWN)?.class;
            Ok(Self {
                object: members.other_type(EVERY_OBJECT)?,
                request: members.field(machine, "request")?,
                activity: members.other(ACTIVITY, "get_Current", any)?,
                method: own(REQUEST, "get_Method")?,
                method_name: own(METHOD, "get_Method")?,
                uri: own(REQUEST, "get_RequestUri")?,
                host: members.other(URI, "get_IdnHost", any)?,
                port: members.other(URI, "get_Port", any)?,
                has_default_port: members.other(URI, "get_IsDefaultPort", any)?,
                path: members.other(URI, "get_PathAndQuery", any)?,
                wants_urls,
                status: own(RESPONSE, "get_StatusCode")?,
                begins,
                ends,
                grpc,
            })
        };
        find().map_err(|why: Reason| Error::refused("requests", why))
    }

    /// The edits to the method's code.
    pub(super) fn edits(&self, body: &Body, metadata: &MetadataImport) -> Result<Edits, Reason> {
        let code = AsyncCode::read(body, metadata)?.ok_or(NOT_AS_KNOWN)?;
        let ends = Ends::find(body.instructions(), metadata)?;
        let mut edits = Edits::new();
        let [stored, number] = [(); 2].map(|()| edits.new_local(&[I4]));
        let [uri, method, host, path, activity, grpc, found] = [(); 7].map(|()| edits.new_local(&[OBJECT]));
        let port = edits.new_local(&[I4]);
        let kept = KeptNumber { state: code.state, stored, number };

        let mut read = Code::new();
        let [unknown, without_path] = [(); 2].map(|()| read.new_mark());
        let request = |code: Code| code.plain(Opcode::Ldarg0).with(Opcode::Ldfld, Operand::Token(self.request));
        let read = request(read).call(Opcode::Callvirt, self.uri, 1, 1).store(uri);
        let read = read.load(uri).branch(Opcode::Brfalse, unknown);
        let read = read.call(Opcode::Call, self.activity, 0, 1).store(activity);
        let read = read.load(uri).call(Opcode::Callvirt, self.host, 1, 1).store(host);
        let read = request(read).call(Opcode::Callvirt, self.method, 1, 1);
        let read = read.call(Opcode::Callvirt, self.method_name, 1, 1).store(method);
        let read = unless_urls(read, self.wants_urls, without_path);
        let read = read.load(uri).call(Opcode::Callvirt, self.path, 1, 1).store(path).mark(without_path);
        let read = read.load(uri).call(Opcode::Callvirt, self.has_default_port, 1, 1);
        let read = read.branch(Opcode::Brtrue, unknown);
        let read = read.load(uri).call(Opcode::Callvirt, self.port, 1, 1).store(port).mark(unknown);

        let mut entry = Code::new();
        let [numbered, behind] = [(); 2].map(|()| entry.new_mark());
        let entry = kept.read(entry.plain(Opcode::LdcI4_0).store(number), numbered);
        // A method that has ended is ignored.
        let entry = entry.load(stored).plain(Opcode::LdcI4M1).branch(Opcode::Blt, behind);
        let entry = entry.plain(Opcode::LdcI4_0).store(port);
        let entry = [uri, method, host, path, activity].into_iter().fold(entry, null).catching(self.object, read);
        let entry = entry.load(host).branch(Opcode::Brfalse, behind);
        let entry = entry.load(stored).load(method).load(host).load(port).load(path).load(activity);
        let entry =
            entry.address(function_address(begin as *const ())).call(Opcode::Calli, self.begins, 7, 1).store(number);
        let entry = entry.branch(Opcode::Br, behind).mark(numbered);
        edits.at_entry(kept.take_out(entry).mark(behind));

        for place in &code.awaits {
            edits.after(place.store, kept.put_in(place.number, |code| code));
        }
        let end =
            |inserted: Code| inserted.address(function_address(end as *const ())).call(Opcode::Calli, self.ends, 4, 0);
        let (result, at) = (ends.result, ends.returns);
        let mut answered = Code::new();
        let [none, known] = [(); 2].map(|()| answered.new_mark());
        let load = |inserted: Code| inserted.with(result.opcode(), result.operand().clone());
        let answered = load(answered.load(number)).branch(Opcode::Brfalse, none);
        let answered = load(answered).call(Opcode::Callvirt, self.status, 1, 1).branch(Opcode::Br, known);
        let answered = answered.mark(none).plain(Opcode::LdcI4_0).mark(known);
        edits.before(ends.statement.label(), self.grpc_status(number, load, grpc, found));
        edits.before(at.label(), end(answered.load(grpc)));
        edits.before(ends.fails.label(), end(Code::new().load(number).plain(Opcode::LdcI4_0).plain(Opcode::Ldnull)));
        Ok(edits)
    }

    /// Code that stores the gRPC status of the response to a recorded request, or null.
    fn grpc_status(&self, number: NewLocal, load: impl Fn(Code) -> Code, grpc: NewLocal, found: NewLocal) -> Code {
        let mut code = null(Code::new(), grpc);
        let Some(tokens) = self.grpc else { return code };
        let behind = code.new_mark();
        let code = code.load(number).branch(Opcode::Brfalse, behind);
        code.catching(self.object, tokens.read(load, grpc, found)).mark(behind)
    }
}

/// Instructions at the place where the method's task gets its result.
struct Ends<'c> {
    /// Loads the result.
    result: &'c Instruction,
    /// First instruction of the statement.
    statement: &'c Instruction,
    returns: &'c Instruction,
    fails: &'c Instruction,
}

impl<'c> Ends<'c> {
    fn find(code: &'c [Instruction], metadata: &MetadataImport) -> Result<Self, Reason> {
        let members = Members(metadata);
        let named = |wanted: &str| {
            let is_it = |instruction: &Instruction| {
                instruction.opcode() == Opcode::Call && members.is_named(instruction, wanted)
            };
            let mut found = code.iter().enumerate().filter(move |(_, instruction)| is_it(instruction));
            found.next().filter(|_| found.next().is_none()).ok_or_else(|| missing(wanted))
        };
        let ((at, returns), (_, fails)) = (named("SetResult")?, named("SetException")?);
        // The state machine's address, the builder's address, and the result.
        let [statement, builder, result] = at.checked_sub(3).map(|first| &code[first..at]).ok_or(NOT_AS_KNOWN)? else {
            return Err(NOT_AS_KNOWN);
        };
        let is_known = statement.opcode() == Opcode::Ldarg0
            && builder.opcode() == Opcode::Ldflda
            && loads_variable(result.opcode());
        is_known.then_some(Self { result, statement, returns, fails }).ok_or(NOT_AS_KNOWN)
    }
}

/// A request begins, or its method resumes a request that began while nothing was recorded. Returns
/// the request's number plus one; 0 if it is not recorded.
unsafe extern "C" fn begin(kept: i32, method: usize, host: usize, port: u32, path: usize, activity: usize) -> u32 {
    if is_stopped() {
        return 0;
    }
    let mut given = 0;
    guard(|| {
        let Some((recorder, requests)) = Recorder::current().zip(under_way::of_process()) else { return };
        let ticks = (kept == -1).then(ticks);
        // SAFETY: the values that the code of `edits` passes: texts or null.
        let [method, host, path] = [method, host, path].map(|address| unsafe { objects::text(address) });
        let name = recorder.name(Direction::Made, method, Subject::Host(host, port, path));
        // SAFETY: as above; an object or null.
        let trace = unsafe { ACTIVITIES.numbers(activity) };
        let number = recorder.begin(requests, RequestStart { name, ticks, trace, ..RequestStart::default() });
        // The highest number plus one has no room next to the mark.
        given = number.filter(|number| number + 1 < MOST).map_or(0, |number| number + 1);
    });
    given
}

/// A request gets a response with a status, or ends without one.
unsafe extern "C" fn end(number: u32, status: u32, grpc_status: usize) {
    let said = || {
        // SAFETY: the value that the code of `edits` passes: a text or null.
        let has_failed = status == 0 || grpc::has_failed(unsafe { objects::text(grpc_status) });
        (status, if has_failed { Outcome::Failure } else { Outcome::Answer })
    };
    guard(|| Recorder::end_numbered(number, said));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_say_as_many_values_as_the_code_hands_over() {
        let shape = |signature| clr_profiler::il::method_shape(signature).expect("a signature");
        assert_eq!((shape(BEGINS).takes, shape(BEGINS).result), (6, Some(&[I4][..])));
        assert_eq!((shape(ENDS).takes, shape(ENDS).result), (3, None));
    }
}
