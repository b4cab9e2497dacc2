//! Requests that the program serves. The code is inserted into two methods of `HostingApplication`
//! of ASP.NET Core, which every server calls at the beginning and at the end of each request.
//!
//! Both methods have the request's `Context`, which belongs to a connection and is reused by its
//! next request. Its fields leave a few bytes of the object free, in which the code keeps the
//! request's number. The program can't see the number, and no code of ASP.NET reads it, whatever
//! happens to our code.
//!
//! The method, the path, the endpoint with its route, and the status are read in the same way as in
//! ASP.NET's own request log, which most programs have switched on.

use std::sync::atomic::{AtomicU32, Ordering};

use clr_profiler::il::element::{I4, I8, OBJECT, STRING, UINT, VOID};
use clr_profiler::il::{Body, Code, Edits, Instruction, NewLocal, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::Type;
use clr_profiler::{ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::clock::ticks;
use clrscope_agent_base::hooks::is_stopped;

use super::carrier;
use super::grpc;
use super::inserted::{WANTS, loads_variable, null, unless_urls};
use super::members::{EVERY_OBJECT, Members, NOT_AS_KNOWN, Reason};
use super::names::{Direction, Subject};
use super::objects::{self, KnownField};
use super::recorder::{Outcome, Recorder};
use super::traces::ACTIVITIES;
use super::under_way::{self, RequestStart};
use crate::services::code_address::function_address;

/// Names of the library, and of the library of the server that comes with it.
pub(super) const LIBRARY: &str = "Microsoft.AspNetCore.Hosting";
const SERVER: &str = "Microsoft.AspNetCore.Server.Kestrel.Core";
/// Names of the types and members that are used here.
const APPLICATION: &str = "Microsoft.AspNetCore.Hosting.HostingApplication";
const BEGIN: &str = "CreateContext";
const END: &str = "DisposeContext";
const CONTEXT: &str = "Context";
const HTTP_CONTEXT: &str = "Microsoft.AspNetCore.Http.HttpContext";
const DEFAULT_CONTEXT: &str = "Microsoft.AspNetCore.Http.DefaultHttpContext";
const REQUEST: &str = "Microsoft.AspNetCore.Http.HttpRequest";
const RESPONSE: &str = "Microsoft.AspNetCore.Http.HttpResponse";
const PATH: &str = "Microsoft.AspNetCore.Http.PathString";
const QUERY: &str = "Microsoft.AspNetCore.Http.QueryString";
const ENDPOINT: &str = "Microsoft.AspNetCore.Http.Endpoint";
const METADATA: &str = "Microsoft.AspNetCore.Http.EndpointMetadataCollection";
const ROUTE: &str = "Microsoft.AspNetCore.Http.Metadata.IRouteDiagnosticsMetadata";
const EXTENSIONS: &str = "HttpExtensions";
/// Names in the server: the type that the requests of a connection share, and its field that says
/// that the connection is closed.
const PROTOCOL: &str = "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol";
const GONE: &str = "_connectionAborted";

/// Signature of [`begin`]. In: the context, our server, method, path and activity. Out: an id.
const BEGINS: &[u8] = &[0, 5, I8, OBJECT, UINT, OBJECT, OBJECT, OBJECT];
/// Signature of [`end`]. In: the context, our server, method, path, query, endpoint, template,
/// features, exception, HTTP status and gRPC status.
const ENDS: &[u8] = &[0, 11, VOID, OBJECT, UINT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, I4, OBJECT];

/// A library that serves requests. Inserted code contains the address of this value.
#[derive(Debug)]
pub(super) struct Server {
    module: ModuleId,
    application: Token,
    context: Token,
    /// Offset of free bytes in a context; 0 until it is known.
    free: AtomicU32,
    gone: KnownField,
}

impl Server {
    /// Finds the types and members in a module.
    ///
    /// # Errors
    /// The reason why the module's requests can't be followed, in words.
    pub(super) fn find(module: ModuleId, metadata: &MetadataImport) -> Result<&'static Self, Reason> {
        let members = Members(metadata);
        let application = members.own_type(APPLICATION, None)?;
        let context = members.own_type(CONTEXT, Some(application))?;
        let server = Self { module, application, context, free: AtomicU32::new(0), gone: KnownField::default() };
        // Inserted code contains its address for ever.
        Ok(Box::leak(Box::new(server)))
    }

    /// The methods whose code is changed.
    pub(super) fn methods(&self, metadata: &MetadataImport) -> Result<Vec<Token>, Reason> {
        let members = Members(metadata);
        [BEGIN, END].into_iter().map(|name| members.own(self.application, name)).collect()
    }

    /// Finds the free bytes in objects of `Context`, and the server's field for disconnected
    /// clients. Call it in the callbacks about the compilation of one of the methods, as the types
    /// are loaded then.
    pub(super) fn look_into(&self, info: &ProfilerInfo, names: &NameCache) {
        if self.free.load(Ordering::Relaxed) == 0
            && let Some(free) = self.free_bytes(info, names)
        {
            self.free.store(free, Ordering::Release);
        }
        if !self.gone.is_known()
            && let Some((class, offset)) = field_of_server(info, names)
        {
            self.gone.know(class, offset);
        }
    }

    /// Offset of four bytes in each context that no field uses.
    fn free_bytes(&self, info: &ProfilerInfo, names: &NameCache) -> Option<u32> {
        let metadata = names.metadata(info, self.module).ok()?;
        let layout = info.class_layout(info.class_from_token(self.module, self.context).ok()?).ok()?;
        let ends = layout
            .fields
            .iter()
            .map(|(token, offset)| Some(offset + field_size(&metadata.field(*token).ok()?.signature)?));
        let end = ends.collect::<Option<Vec<u32>>>()?.into_iter().max()?;
        free_behind(end)
    }
}

/// Bytes of a field; `None` for value types, whose size is not looked up.
fn field_size(signature: &[u8]) -> Option<u32> {
    match signature.get(1)? {
        0x02 | 0x04 | 0x05 => Some(1),
        0x03 | 0x06 | 0x07 => Some(2),
        0x08 | 0x09 | 0x0C => Some(4),
        0x11 => None,
        0x15 if signature.get(2) == Some(&0x11) => None,
        _ => Some(8),
    }
}

/// Offset of four free bytes in an object whose last field ends at `end`: object sizes are
/// multiples of 8 bytes.
fn free_behind(end: u32) -> Option<u32> {
    let free = end.next_multiple_of(4);
    (free + 4 <= end.next_multiple_of(8)).then_some(free)
}

/// The class of the server's requests, with the offset of the field that says that the client has
/// disconnected.
fn field_of_server(info: &ProfilerInfo, names: &NameCache) -> Option<(usize, u32)> {
    let is_server = |module: &ModuleId| names.assembly(info, *module).is_ok_and(|name| &*name == SERVER);
    let module = info.modules().ok()?.into_iter().find(is_server)?;
    let metadata = names.metadata(info, module).ok()?;
    let members = Members(&metadata);
    let (class, [offset]) = members.offsets(info, module, members.own_type(PROTOCOL, None).ok()?, [GONE])?;
    Some((class, offset))
}

/// Tokens, in the library, of the members that inserted code names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    object: u32,
    http_context: u32,
    activity: u32,
    default_context: u32,
    request: u32,
    method: u32,
    path: u32,
    path_text: u32,
    query: u32,
    query_type: Token,
    query_text: u32,
    wants_urls: u32,
    response: u32,
    status: u32,
    features: u32,
    endpoint: u32,
    metadata: u32,
    route_metadata: u32,
    route: u32,
    begins: u32,
    ends: u32,
    carrier: carrier::Tokens,
    /// `None` if gRPC responses can't be distinguished from others.
    grpc: Option<grpc::ServedTokens>,
}

impl Tokens {
    /// Finds the tokens, and makes the signatures.
    ///
    /// # Errors
    /// The runtime's error, or the reason why the tokens can't be found.
    pub(super) fn find(info: &ProfilerInfo, server: &Server, metadata: &MetadataImport) -> clr_profiler::Result<Self> {
        let signature = |bytes| info.signature_token(server.module, bytes).map(Token::as_raw);
        let (begins, ends, wants_urls) = (signature(BEGINS)?, signature(ENDS)?, signature(WANTS)?);
        let carrier = carrier::Tokens::add(info, server.module)?;
        let members = Members(metadata);
        let response = members.other(HTTP_CONTEXT, "get_Response", |_| true);
        let grpc = response
            .as_ref()
            .ok()
            .and_then(|response| grpc::ServedTokens::find(info, server.module, metadata, *response).ok());
        let find = || {
            let any = |_: &[u8]| true;
            let gives_text = |signature: &[u8]| signature.get(2) == Some(&STRING);
            Ok(Self {
                object: members.other_type(EVERY_OBJECT)?,
                http_context: members.own(server.context, "get_HttpContext")?.as_raw(),
                activity: members.own(server.context, "get_Activity")?.as_raw(),
                default_context: members.other_type(DEFAULT_CONTEXT)?,
                request: members.other(HTTP_CONTEXT, "get_Request", any)?,
                method: members.other(REQUEST, "get_Method", any)?,
                path: members.other(REQUEST, "get_Path", any)?,
                path_text: members.other(PATH, "op_Implicit", gives_text)?,
                query: members.other(REQUEST, "get_QueryString", any)?,
                query_type: Token::new(members.other_type(QUERY)?),
                query_text: members.other(QUERY, "get_Value", any)?,
                wants_urls,
                response: response?,
                status: members.other(RESPONSE, "get_StatusCode", any)?,
                features: members.other(HTTP_CONTEXT, "get_Features", any)?,
                endpoint: members.own_named(EXTENSIONS, "GetOriginalEndpoint")?,
                metadata: members.other(ENDPOINT, "get_Metadata", any)?,
                route_metadata: members.generic(METADATA, "GetMetadata", ROUTE)?,
                route: members.other(ROUTE, "get_Route", any)?,
                begins,
                ends,
                carrier,
                grpc,
            })
        };
        find().map_err(|why: Reason| clr_profiler::Error::refused("requests", why))
    }

    /// Reads the request's method and path, if the context's class is the known one. The server may
    /// be the program's own code, and may throw.
    fn method_and_path(&self, context: impl Fn(Code) -> Code, about: RequestVariables) -> Code {
        let mut code = Code::new();
        let unknown = code.new_mark();
        let code = context(code).call(Opcode::Callvirt, self.http_context, 1, 1);
        let code = code.with(Opcode::Isinst, Operand::Token(self.default_context)).store(about.http);
        let code = code.load(about.http).branch(Opcode::Brfalse, unknown);
        let request = |code: Code| code.load(about.http).call(Opcode::Callvirt, self.request, 1, 1);
        let code = request(code).call(Opcode::Callvirt, self.path, 1, 1).call(Opcode::Call, self.path_text, 1, 1);
        let code = request(code.store(about.path)).call(Opcode::Callvirt, self.method, 1, 1);
        code.store(about.method).mark(unknown)
    }

    /// The edits of the method that begins a request.
    fn begin_edits(&self, body: &Body, server: &'static Server) -> Result<Edits, Reason> {
        let result = loaded_result(body.instructions()).ok_or(NOT_AS_KNOWN)?;
        let mut edits = Edits::new();
        let about = RequestVariables::new(&mut edits);
        let context = |code: Code| code.with(result.opcode(), result.operand().clone());
        let activity = edits.new_local(&[OBJECT]);
        let read = context(self.method_and_path(context, about)).call(Opcode::Callvirt, self.activity, 1, 1);
        let code = null(about.cleared(Code::new()), activity).catching(self.object, read.store(activity));
        let code = context(code).address(address_of(server)).load(about.method).load(about.path).load(activity);
        let id = edits.new_local(carrier::ID);
        let code = code.address(function_address(begin as *const ())).call(Opcode::Calli, self.begins, 6, 1).store(id);
        let carried = self.carrier.set(&mut edits, id, self.object);
        edits.before(result.label(), code);
        edits.before(result.label(), carried);
        Ok(edits)
    }

    /// The edits of the method that ends a request.
    fn end_edits(&self, server: &'static Server) -> Result<Edits, Reason> {
        let mut edits = Edits::new();
        let about = RequestVariables::new(&mut edits);
        let [endpoint, route, features, grpc, found, query] = [(); 6].map(|()| edits.new_local(&[OBJECT]));
        let status = edits.new_local(&[I4]);
        let query_type = Type::Named { token: self.query_type, is_value: true }.to_bytes().ok_or(NOT_AS_KNOWN)?;
        let query_value = edits.new_local(&query_type);
        let context = |code: Code| code.plain(Opcode::Ldarg1);
        let mut code = self.method_and_path(context, about);
        let [behind, without_query] = [(); 2].map(|()| code.new_mark());
        let code = code.load(about.http).branch(Opcode::Brfalse, behind);
        let code = unless_urls(code, self.wants_urls, without_query);
        let code = code.load(about.http).call(Opcode::Callvirt, self.request, 1, 1);
        let code = code.call(Opcode::Callvirt, self.query, 1, 1).store(query_value).address_of(query_value);
        let code = code.call(Opcode::Call, self.query_text, 1, 1).store(query).mark(without_query);
        let code = code.load(about.http).call(Opcode::Callvirt, self.features, 1, 1).store(features);
        let code = code.load(about.http).call(Opcode::Callvirt, self.response, 1, 1);
        let code = code.call(Opcode::Callvirt, self.status, 1, 1).store(status);
        let code = code.load(about.http).call(Opcode::Call, self.endpoint, 1, 1).store(endpoint);
        let code = code.load(endpoint).branch(Opcode::Brfalse, behind);
        let code = code.load(endpoint).call(Opcode::Callvirt, self.metadata, 1, 1);
        let code = code.call(Opcode::Callvirt, self.route_metadata, 1, 1).store(route);
        let code = code.load(route).branch(Opcode::Brfalse, behind);
        let read = code.load(route).call(Opcode::Callvirt, self.route, 1, 1).store(route).mark(behind);

        let cleared = about.cleared(Code::new()).plain(Opcode::LdcI4_0).store(status);
        let cleared = [endpoint, route, features, grpc, query].into_iter().fold(cleared, null);
        let code = cleared.catching(self.object, read);
        let code = match self.grpc {
            Some(tokens) => code.catching(self.object, tokens.read(about.http, features, grpc, found)),
            None => code,
        };
        let code = context(code).address(address_of(server));
        let code = code.load(about.method).load(about.path).load(query).load(endpoint).load(route).load(features);
        let code = code.plain(Opcode::Ldarg2).load(status).load(grpc);
        edits.at_entry(code.address(function_address(end as *const ())).call(Opcode::Calli, self.ends, 12, 0));
        Ok(edits)
    }

    /// The edits to the code of one of the server's methods.
    pub(super) fn edits(&self, (name, body): (&str, &Body), server: &'static Server) -> Result<Edits, Reason> {
        if name == BEGIN { self.begin_edits(body, server) } else { self.end_edits(server) }
    }
}

/// Variables of the method for the values that are read from a request.
#[derive(Clone, Copy)]
struct RequestVariables {
    http: NewLocal,
    method: NewLocal,
    path: NewLocal,
}

impl RequestVariables {
    fn new(edits: &mut Edits) -> Self {
        let [http, method, path] = [(); 3].map(|()| edits.new_local(&[OBJECT]));
        Self { http, method, path }
    }

    /// Clears the variables, since nothing is read yet: methods need not initialize their
    /// variables.
    fn cleared(self, code: Code) -> Code {
        [self.http, self.method, self.path].into_iter().fold(code, null)
    }
}

/// The instruction that loads a method's result, in front of its only return.
fn loaded_result(code: &[Instruction]) -> Option<&Instruction> {
    let mut returns = code.iter().enumerate().filter(|(_, instruction)| instruction.opcode() == Opcode::Ret);
    let (at, _) = returns.next()?;
    let result = &code[at.checked_sub(1)?];
    (returns.next().is_none() && loads_variable(result.opcode())).then_some(result)
}

fn address_of(server: &'static Server) -> u64 {
    (&raw const *server).expose_provenance() as u64
}

/// Place of the number in a context; `None` as long as it is not known.
///
/// # Safety
/// The address must be that of a live context, which does not move for `'c`.
unsafe fn number_in<'c>(context: usize, server: &Server) -> Option<&'c AtomicU32> {
    let free = server.free.load(Ordering::Acquire) as usize;
    // SAFETY: the caller's promise; the place is within the object, and no field uses it.
    (context != 0 && free != 0).then(|| unsafe { &*std::ptr::with_exposed_provenance(context + free) })
}

/// A request begins. Returns its id.
unsafe extern "C" fn begin(context: usize, server: *const Server, method: usize, path: usize, activity: usize) -> u64 {
    // SAFETY: the values that the code of `begin_edits` passes: objects, and an address that is
    // never freed.
    let Some(number) = (unsafe { number_in(context, &*server) }) else { return 0 };
    // A context is reused, and its number may belong to an older request.
    number.store(0, Ordering::Relaxed);
    if is_stopped() {
        return 0;
    }
    let mut carried = 0;
    guard(|| {
        let Some((recorder, requests)) = Recorder::current().zip(under_way::of_process()) else { return };
        let ticks = Some(ticks());
        // SAFETY: as above; both are texts or null.
        let (method, path) = unsafe { (objects::text(method), objects::text(path)) };
        // The endpoint is not known yet; this name matters only if the request does not end.
        let subject = if method.is_empty() { Subject::Unknown } else { Subject::Path(path, true) };
        let name = recorder.name(Direction::Served, method, subject);
        // SAFETY: as above; an object or null.
        let trace = unsafe { ACTIVITIES.numbers(activity) };
        let id = under_way::next_id();
        let given = recorder.begin(requests, RequestStart { name, ticks, trace, id, copied: 0 });
        number.store(given.map_or(0, |given| given + 1), Ordering::Relaxed);
        carried = id;
    });
    carried
}

/// A request ends.
unsafe extern "C" fn end(
    context: usize,
    server: *const Server,
    method: usize,
    path: usize,
    query: usize,
    endpoint: usize,
    template: usize,
    features: usize,
    exception: usize,
    status: u32,
    grpc_status: usize,
) {
    // SAFETY: the values that the code of `end_edits` passes: objects, and an address that is never
    // freed.
    let server = unsafe { &*server };
    // SAFETY: as above.
    let number = unsafe { number_in(context, server) }.map_or(0, |number| number.swap(0, Ordering::Relaxed));
    guard(|| {
        let Some(requests) = under_way::of_process() else { return };
        let request = number.checked_sub(1).and_then(|number| requests.known(number));
        if let Some(recorder) = Recorder::current().filter(|_| !is_stopped()) {
            // SAFETY: as above; texts or null.
            let [method, path, query, template, grpc_status] =
                [method, path, query, template, grpc_status].map(|address| unsafe { objects::text(address) });
            let subject = match () {
                () if method.is_empty() => Subject::Unknown,
                () if !template.is_empty() => Subject::Template(template),
                () if recorder.has_urls => Subject::Url(path, query, endpoint != 0),
                () => Subject::Path(path, endpoint != 0),
            };
            let name = recorder.name(Direction::Served, method, subject);
            // SAFETY: as above; an object or null.
            let is_gone = unsafe { server.gone.is_set(features) };
            let outcome = match exception {
                _ if is_gone => Outcome::Abortion,
                0 if !grpc::has_failed(grpc_status) => Outcome::Answer,
                _ => Outcome::Failure,
            };
            let start = request.and_then(|request| recorder.claim(request)).unwrap_or_default();
            recorder.ended(RequestStart { name, ..start }, status, outcome);
        }
        if let Some(number) = number.checked_sub(1) {
            requests.give_back(number);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_say_as_many_values_as_the_code_hands_over() {
        let shape = |signature| clr_profiler::il::method_shape(signature).expect("a signature");
        assert_eq!((shape(BEGINS).takes, shape(BEGINS).result), (5, Some(&[I8][..])));
        assert_eq!((shape(ENDS).takes, shape(ENDS).result), (11, None));
    }

    #[test]
    fn free_bytes_lie_behind_the_last_field() {
        assert_eq!([59, 60, 61, 64].map(free_behind), [Some(60), Some(60), None, None]);
        assert_eq!(field_size(&[6, 0x02]), Some(1));
        assert_eq!(
            [&[6, 0x0A][..], &[6, 0x12, 9], &[6, 0x11, 9], &[6]].map(field_size),
            [Some(8), Some(8), None, None]
        );
    }
}
