//! Invalid identifiers and tokens that safe code can create: null, and rows that do not exist.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{
    AppDomainId, AssemblyId, ClassId, Error, EventPipeEventId, EventPipeProviderId, EventPipeSessionId, FunctionId,
    ModuleId, ReJitId, Result, ThreadId, Token,
};

use crate::State;

/// Writes the result of each query as `null QUERY: ANSWER`.
struct Asking<'s>(&'s State);

impl Asking<'_> {
    fn said<T>(&self, query: &str, answer: Result<T>) {
        let said = answer.map_or_else(|error: Error| error.name().unwrap_or("?").to_owned(), |_| "ANSWERED".to_owned());
        self.0.line(&format!("null {query}"), said);
    }
}

/// Makes all queries with invalid identifiers, and with invalid tokens of a loaded module. Must not
/// run while objects are lent.
pub(crate) fn ask(state: &State, module: ModuleId, class: ClassId) {
    let asking = Asking(state);
    functions(&asking);
    classes(&asking, class);
    modules(&asking);
    others(&asking);
    for table in [0x01, 0x02, 0x04, 0x06, 0x08, 0x0a, 0x1a, 0x1b, 0x23, 0x2b, 0x70, 0xff] {
        for row in [0, 0x00ff_ffff] {
            tokens(&asking, module, class, Token::new(table << 24 | row));
        }
    }
    state.line("null end", "");
}

fn functions(asking: &Asking<'_>) {
    let (info, function) = (&asking.0.info, FunctionId::NULL);
    asking.said("function_info", info.function_info(function));
    asking.said("function_place", info.function_place(function));
    asking.said("function_metadata", info.function_metadata(function));
    asking.said("is_function_dynamic", info.is_function_dynamic(function));
    asking.said("dynamic_function_info", info.dynamic_function_info(function));
    asking.said("code_info", info.code_info(function));
    asking.said("code_info_of", info.code_info_of(function, ReJitId::NULL));
    asking.said("code_starts", info.code_starts(function, ReJitId::NULL));
    asking.said("rejit_ids", info.rejit_ids(function));
    asking.said("il_map", info.il_map(function, ReJitId::NULL));
    asking.said("set_il_map", info.set_il_map(function, &[]));
}

fn classes(asking: &Asking<'_>, class: ClassId) {
    let (info, null) = (&asking.0.info, ClassId::NULL);
    asking.said("class_info", info.class_info(null));
    asking.said("array_class", info.array_class(null));
    asking.said("class_layout", info.class_layout(null));
    asking.said("box_layout", info.box_layout(null));
    let field = Token::new(0x0400_0001);
    asking.said("static_kind", info.static_kind(null, field));
    asking.said("static_address", info.static_address(null, field, AppDomainId::NULL));
    asking.said("image_static_address", info.image_static_address(null, field));
    asking.said("thread_static_address", info.thread_static_address(null, field, AppDomainId::NULL, ThreadId::NULL));
    asking.said("static_address in no domain", info.static_address(class, field, AppDomainId::NULL));
    let of_nobody = info.thread_static_address(class, field, AppDomainId::NULL, ThreadId::NULL);
    asking.said("thread_static_address of nobody", of_nobody);
}

fn modules(asking: &Asking<'_>) {
    let (info, module, token) = (&asking.0.info, ModuleId::NULL, Token::new(0x0600_0001));
    asking.said("module_info", info.module_info(module));
    asking.said("module_metadata", info.module_metadata(module));
    asking.said("live_metadata", info.live_metadata(module));
    asking.said("app_domains_of_module", info.app_domains_of_module(module));
    asking.said("il_function_body", info.il_function_body(module, token));
    asking.said("original_il_function_body", info.original_il_function_body(module, token));
    asking.said("function_from_token", info.function_from_token(module, token));
    asking.said("class_from_token", info.class_from_token(module, Token::new(0x0200_0002)));
    asking.said("class_from_token_and_type_args", {
        info.class_from_token_and_type_args(module, Token::new(0x0200_0002), &[ClassId::NULL])
    });
    asking.said("apply_metadata", info.apply_metadata(module));
    asking.said("request_rejit", info.request_rejit(&[(module, token)]));
    asking.said("request_rejit_with_inliners", info.request_rejit_with_inliners(&[(module, token)]));
    asking.said("in_memory_symbols", info.in_memory_symbols(module));
    asking.said("frozen_objects", info.frozen_objects(module));
    asking.said("precompiled_inliners", info.precompiled_inliners(module, module, token));
}

fn others(asking: &Asking<'_>) {
    let info = &asking.0.info;
    asking.said("assembly_info", info.assembly_info(AssemblyId::NULL));
    asking.said("app_domain_info", info.app_domain_info(AppDomainId::NULL));
    asking.said("os_thread", info.os_thread(ThreadId::NULL));
    asking.said("thread_handle", info.thread_handle(ThreadId::NULL));
    asking.said("thread_app_domain", info.thread_app_domain(ThreadId::NULL));
    asking.said("event_pipe_provider_name", info.event_pipe_provider_name(EventPipeProviderId::NULL));
    asking.said("event_pipe_stop_session", info.event_pipe_stop_session(EventPipeSessionId::NULL));
    asking.said("event_pipe_write_event", info.event_pipe_write_event(EventPipeEventId::NULL, &[]));
}

/// Makes queries with a token, about an existing module and class.
fn tokens(asking: &Asking<'_>, module: ModuleId, class: ClassId, token: Token) {
    let info = &asking.0.info;
    let said = |query: &str, is_answered: bool| {
        // Some rows exist.
        asking.0.line(&format!("null token {query}"), if is_answered { "answered" } else { "refused" });
    };
    said("il_function_body", info.il_function_body(module, token).is_ok());
    said("original_il_function_body", info.original_il_function_body(module, token).is_ok());
    said("function_from_token", info.function_from_token(module, token).is_ok());
    said("class_from_token", info.class_from_token(module, token).is_ok());
    said("static_kind", info.static_kind(class, token).is_ok());
    said("static_address", info.static_address(class, token, AppDomainId::NULL).is_ok());
    said("image_static_address", info.image_static_address(class, token).is_ok());
    said("request_rejit", info.request_rejit(&[(module, token)]).is_ok());
    if let Ok(metadata) = info.module_metadata(module) {
        rows(&metadata, token, &said);
    }
}

fn rows(metadata: &MetadataImport, token: Token, said: &impl Fn(&str, bool)) {
    said("contains", metadata.contains(token));
    said("name", metadata.name(token).is_ok());
    said("type_def", metadata.type_def(token).is_ok());
    said("type_ref", metadata.type_ref(token).is_ok());
    said("type_spec", metadata.type_spec(token).is_ok());
    said("enclosing_type", metadata.enclosing_type(token).is_ok());
    said("generic_params", metadata.generic_params(token).is_ok());
    said("custom_attribute", metadata.custom_attribute(token, "System.ObsoleteAttribute").is_ok());
    said("find_type_def", metadata.find_type_def("A", Some(token)).is_ok());
    said("method", metadata.method(token).is_ok());
    said("field", metadata.field(token).is_ok());
    said("member_ref", metadata.member_ref(token).is_ok());
    said("method_spec", metadata.method_spec(token).is_ok());
    said("param", metadata.param(token).is_ok());
    said("pinvoke_map", metadata.pinvoke_map(token).is_ok());
    said("module_ref", metadata.module_ref(token).is_ok());
    said("methods", metadata.methods(token).is_ok());
    said("methods_named", metadata.methods_named(token, "Main").is_ok());
    said("fields", metadata.fields(token).is_ok());
    said("fields_named", metadata.fields_named(token, "A").is_ok());
    said("params", metadata.params(token).is_ok());
    said("interfaces", metadata.interfaces(token).is_ok());
}
