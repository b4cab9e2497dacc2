//! The status of gRPC responses. Their HTTP status is 200 whether or not the call failed. The
//! status that counts is `grpc-status`, which is in the trailers, or in the headers of a response
//! without a body. Source: the protocol, `doc/PROTOCOL-HTTP2.md` of grpc/grpc, "Responses".

use clr_profiler::il::element::{I4, OBJECT, STRING};
use clr_profiler::il::{Code, NewLocal, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::Type;
use clr_profiler::{ModuleId, ProfilerInfo, Token};

use super::members::{Members, Reason, getter};
use super::objects;
use crate::services::code_address::function_address;

/// Names of the types and members of ASP.NET Core that are used here.
const RESPONSE: &str = "Microsoft.AspNetCore.Http.HttpResponse";
const HEADERS: &str = "Microsoft.AspNetCore.Http.IHeaderDictionary";
const TRAILERS: &str = "Microsoft.AspNetCore.Http.Features.IHttpResponseTrailersFeature";
const FEATURES: &str = "Microsoft.AspNetCore.Http.Features.IFeatureCollection";
const TEXTS: &str = "Microsoft.Extensions.Primitives.StringValues";
const TYPE: &str = "System.Type";
/// Types of `HttpClient`'s library.
const ANSWER: &str = "System.Net.Http.HttpResponseMessage";
const CONTENT: &str = "System.Net.Http.HttpContent";
const CLIENT_HEADERS: &str = "System.Net.Http.Headers.HttpHeaders";
const KNOWN_HEADER: &str = "System.Net.Http.Headers.KnownHeader";
const KNOWN_HEADERS: &str = "System.Net.Http.Headers.KnownHeaders";

/// Signature of [`is_grpc`].
const ASKS: &[u8] = &[0, 1, I4, OBJECT];

/// The content type of gRPC. A suffix may follow: `application/grpc+proto`.
const CONTENT_TYPE: &str = "application/grpc";
/// The status of a successful call.
const WELL: u16 = b'0' as u16;

/// The signature of an instance method without parameters that returns a named type.
fn gives(token: Token, is_value: bool) -> Vec<u8> {
    getter(&Type::Named { token, is_value }.to_bytes().unwrap_or_default())
}

/// Tokens for gRPC responses that the program sends, in the library that serves requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServedTokens {
    response: u32,
    content_type: u32,
    headers: u32,
    status: u32,
    text: u32,
    trailers_type: u32,
    type_from_handle: u32,
    feature: u32,
    trailers: u32,
    asks: u32,
}

impl ServedTokens {
    /// Finds the tokens, and adds references that the library does not have itself.
    ///
    /// # Errors
    /// The runtime's error, or the reason why the tokens can't be found.
    pub(super) fn find(
        info: &ProfilerInfo,
        module: ModuleId,
        metadata: &MetadataImport,
        response: u32,
    ) -> clr_profiler::Result<Self> {
        let refused = |why: Reason| clr_profiler::Error::refused("requests", why);
        let members = Members(metadata);
        let any = |_: &[u8]| true;
        let gives_text = |signature: &[u8]| signature.get(2) == Some(&STRING);
        let headers_type = Token::new(members.other_type(HEADERS).map_err(refused)?);
        let texts = Token::new(members.other_type(TEXTS).map_err(refused)?);
        let features = Token::new(members.other_type(FEATURES).map_err(refused)?);
        let ty = Token::new(members.other_type(TYPE).map_err(refused)?);
        let scope = metadata.type_ref(headers_type)?.scope;
        let trailers = info.type_reference(module, scope, TRAILERS)?;
        let member = |ty, name, signature: &[u8]| info.member_reference(module, ty, name, signature).map(Token::as_raw);
        let mut by_type = gives(ty, false);
        // One parameter, and an object as the result.
        by_type.splice(1..2, [1, OBJECT]);
        Ok(Self {
            response,
            content_type: members.other(RESPONSE, "get_ContentType", any).map_err(refused)?,
            headers: members.other(RESPONSE, "get_Headers", any).map_err(refused)?,
            status: member(headers_type, "get_GrpcStatus", &gives(texts, true))?,
            text: members.other(TEXTS, "op_Implicit", gives_text).map_err(refused)?,
            trailers_type: trailers.as_raw(),
            type_from_handle: members.other(TYPE, "GetTypeFromHandle", any).map_err(refused)?,
            feature: member(features, "get_Item", &by_type)?,
            trailers: member(trailers, "get_Trailers", &gives(headers_type, false))?,
            asks: info.signature_token(module, ASKS)?.as_raw(),
        })
    }

    /// Code that stores the status of a request's response, if it is a gRPC response. `http` holds
    /// the request's context, and `features` its features or null.
    pub(super) fn read(self, http: NewLocal, features: NewLocal, status: NewLocal, found: NewLocal) -> Code {
        let mut code = Code::new();
        let behind = code.new_mark();
        let text = |code: Code| {
            code.call(Opcode::Callvirt, self.status, 1, 1).call(Opcode::Call, self.text, 1, 1).store(status)
        };
        let response = |code: Code| code.load(http).call(Opcode::Callvirt, self.response, 1, 1);
        let code = code.load(http).branch(Opcode::Brfalse, behind);
        let code = response(code).call(Opcode::Callvirt, self.content_type, 1, 1);
        let code = asks(code, self.asks).branch(Opcode::Brfalse, behind);
        let code = text(response(code).call(Opcode::Callvirt, self.headers, 1, 1));
        let code = code.load(status).branch(Opcode::Brtrue, behind);
        let code = code.load(features).branch(Opcode::Brfalse, behind);
        let code = code.load(features).with(Opcode::Ldtoken, Operand::Token(self.trailers_type));
        let code = code.call(Opcode::Call, self.type_from_handle, 1, 1).call(Opcode::Callvirt, self.feature, 2, 1);
        let code = code.store(found).load(found).branch(Opcode::Brfalse, behind);
        let code = code.load(found).call(Opcode::Callvirt, self.trailers, 1, 1).store(found);
        text(code.load(found).branch(Opcode::Brfalse, behind).load(found)).mark(behind)
    }
}

/// Tokens for gRPC responses that the program receives, in `HttpClient`'s library.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeTokens {
    headers: u32,
    content: u32,
    content_headers: u32,
    text: u32,
    descriptor: u32,
    status: u32,
    content_type: u32,
    asks: u32,
}

impl MadeTokens {
    /// Finds the tokens, and makes the signature.
    ///
    /// # Errors
    /// The runtime's error, or the reason why the tokens can't be found.
    pub(super) fn find(info: &ProfilerInfo, module: ModuleId, metadata: &MetadataImport) -> clr_profiler::Result<Self> {
        let asks = info.signature_token(module, ASKS)?.as_raw();
        let members = Members(metadata);
        let find = || {
            let own = |ty, name| members.own_named(ty, name);
            let known = members.own_type(KNOWN_HEADERS, None)?;
            Ok(Self {
                headers: own(ANSWER, "get_Headers")?,
                content: own(ANSWER, "get_Content")?,
                content_headers: own(CONTENT, "get_Headers")?,
                text: own(CLIENT_HEADERS, "GetHeaderString")?,
                descriptor: own(KNOWN_HEADER, "get_Descriptor")?,
                status: members.field(known, "GrpcStatus")?,
                content_type: members.field(known, "ContentType")?,
                asks,
            })
        };
        find().map_err(|why: Reason| clr_profiler::Error::refused("requests", why))
    }

    /// Code that stores the status of a response, if its headers have one. The code reads the raw
    /// value, because properties would parse the headers.
    pub(super) fn read(self, load: impl Fn(Code) -> Code, status: NewLocal, found: NewLocal) -> Code {
        let mut code = Code::new();
        let behind = code.new_mark();
        let header = |code: Code, known| {
            let code = code.with(Opcode::Ldsfld, Operand::Token(known)).call(Opcode::Callvirt, self.descriptor, 1, 1);
            code.call(Opcode::Callvirt, self.text, 2, 1)
        };
        let code = load(code).branch(Opcode::Brfalse, behind);
        let code = header(load(code).call(Opcode::Callvirt, self.headers, 1, 1), self.status).store(found);
        let code = code.load(found).branch(Opcode::Brfalse, behind);
        let code = load(code).call(Opcode::Callvirt, self.content, 1, 1);
        let code = header(code.call(Opcode::Callvirt, self.content_headers, 1, 1), self.content_type);
        asks(code, self.asks).branch(Opcode::Brfalse, behind).load(found).store(status).mark(behind)
    }
}

/// Code that asks whether the text on the stack is a gRPC content type.
fn asks(code: Code, signature: u32) -> Code {
    code.address(function_address(is_grpc as *const ())).call(Opcode::Calli, signature, 2, 1)
}

/// Whether a text is a gRPC content type.
unsafe extern "C" fn is_grpc(content_type: usize) -> u32 {
    // SAFETY: the value that the code of `asks` passes: a text or null.
    let text = unsafe { objects::text(content_type) };
    is_content_type(text).into()
}

fn is_content_type(text: &[u16]) -> bool {
    let small = |unit: &u16| u8::try_from(*unit).map_or(0, |byte| byte.to_ascii_lowercase());
    text.len() >= CONTENT_TYPE.len()
        && text.iter().zip(CONTENT_TYPE.bytes()).all(|(unit, wanted)| small(unit) == wanted)
}

/// Whether a status means that the call has failed. `false` for an empty status.
pub(super) fn has_failed(status: &[u16]) -> bool {
    !status.is_empty() && status != [WELL]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::requests::members::HAS_THIS;

    fn wide(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn content_types_of_grpc_are_known_with_what_follows() {
        let is_one = |text: &str| is_content_type(&wide(text));
        assert!(["application/grpc", "Application/gRPC+proto", "application/grpc-web"].into_iter().all(is_one));
        assert!(!["", "application/grp", "application/json", "text/application/grpc"].into_iter().any(is_one));
        assert!(!is_content_type(&[0x161; 20]), "no other character is taken for a letter");
    }

    #[test]
    fn a_status_that_is_not_zero_is_a_failure() {
        assert_eq!(
            ["", "0", "5", "16", "00", "x"].map(|text| has_failed(&wide(text))),
            [false, false, true, true, true, true]
        );
    }

    #[test]
    fn signatures_say_as_many_values_as_the_code_hands_over() {
        let shape = clr_profiler::il::method_shape(ASKS).expect("a signature");
        assert_eq!((shape.takes, shape.result), (1, Some(&[I4][..])));
        assert_eq!(gives(Token::new(0x0100_0040), false), [HAS_THIS, 0, 0x12, 0x81, 0x01]);
    }
}
