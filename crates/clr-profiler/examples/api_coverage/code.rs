//! Queries about code, made after the compilation of a method.

use clr_profiler::sys::info::ICorProfilerInfo2;
use clr_profiler::sys::windows_core::{BOOL, Interface};
use clr_profiler::{FunctionId, HResult, IlMove, ReJitId, Result, Token};

use crate::State;

/// Sets a method's own IL as new IL.
pub(crate) fn same_il(state: &State, function: FunctionId) -> Result<()> {
    let place = state.info.function_info(function)?;
    let (info, checks) = (&state.info, &state.checks);
    let body = info.il_function_body(place.module, place.token)?;
    checks.same("IL in the image", info.original_il_function_body(place.module, place.token)?, body.clone());
    // The IL with a `nop` in front, and a tiny header.
    checks.same("a tiny header", body[0] & 3, 2);
    let code = &body[1..];
    let longer: Vec<u8> = [(code.len() as u8 + 1) << 2 | 2, 0].into_iter().chain(code.iter().copied()).collect();
    // SAFETY: the method's own code after a `nop`, and then its own code.
    unsafe {
        info.set_il_function_body(place.module, place.token, &longer)?;
        checks.same("IL that was set", info.il_function_body(place.module, place.token)?, longer);
        checks.same("IL in the image still", info.original_il_function_body(place.module, place.token)?, body.clone());
        let empty = info.set_il_function_body(place.module, place.token, &[]);
        checks.same("no empty IL", empty.map_err(|error| error.name().unwrap_or_default()), Err("E_INVALIDARG"));
        info.set_il_function_body(place.module, place.token, &body)?;
    }
    // An int and a string.
    let locals = [7, 2, 8, 14];
    let token = info.signature_token(place.module, &locals)?;
    checks.same("a signature", info.live_metadata(place.module)?.signature(token)?, locals.to_vec());
    checks.same("the same signature", info.signature_token(place.module, &locals)?, token);
    // The first type parameter of a type.
    let parameter = [0x13, 0];
    let token = info.type_token(place.module, &parameter)?;
    checks.same("a type", info.live_metadata(place.module)?.type_spec(token)?, parameter.to_vec());
    checks.same("the same type", info.type_token(place.module, &parameter)?, token);
    state.info.set_il_map(function, &[IlMove { old: 0, new: 0, is_exact: true }])
}

pub(crate) fn ask(state: &State, function: FunctionId) -> Result<()> {
    let (info, checks) = (&state.info, &state.checks);
    let place = info.function_info(function)?;
    let original = ReJitId::NULL;
    checks.same("code of a version", info.code_info_of(function, original)?, info.code_info(function)?);
    for start in info.code_starts(function, original)? {
        checks.same("IL map of a version", info.il_map(function, original)?, info.il_map_at(start)?);
    }
    checks.same("versions", info.rejit_ids(function)?, vec![original]);
    let (token, metadata) = info.function_metadata(function)?;
    checks.same("metadata of a function", (token, metadata.method(token)?.name.as_str()), (place.token, "Main"));
    checks.holds("modules", (), info.modules()?.contains(&place.module));
    checks.holds("compiled", (), info.compiled_functions()?.contains(&(function, original)));
    let thread = info.current_thread()?;
    checks.holds("threads", (), info.threads()?.contains(&thread));
    let domain = info.thread_app_domain(thread)?;
    checks.same("domains of a module", info.app_domains_of_module(place.module)?, vec![domain]);
    checks.same(
        "domain of the assembly",
        info.assembly_info(info.module_info(place.module)?.assembly)?.app_domain,
        domain,
    );
    checks.same("no symbols in memory", info.in_memory_symbols(place.module).map(|bytes| bytes.len()), Ok(0));
    checks.same("no frozen objects", info.frozen_objects(place.module).map(|objects| objects.len()), Ok(0));
    checks.outcome("apply metadata", info.apply_metadata(place.module));
    // This program is not precompiled, so nothing was inlined ahead of time.
    let inliners = info.precompiled_inliners(place.module, place.module, place.token);
    checks.holds("inliners", &inliners, inliners.as_ref().map_or(true, |found| found.methods.is_empty()));
    checks.same("no such method", info.function_from_token(place.module, Token::new(0x06ff_ffff)).is_err(), true);
    let detach = info.request_detach(0).map_err(|error| error.name().unwrap_or_default());
    checks.same("no detach with allocations on", detach, Err("CORPROF_E_IMMUTABLE_FLAGS_SET"));
    let refused = info.force_gc().map_err(|error| error.hresult());
    checks.same("no forced collection here", refused, Err(HResult::UNSUPPORTED_CALL_SEQUENCE));
    checks.outcome("set a variable", info.set_environment_variable("QUESTIONS_TEST", Some(&"x".repeat(300))));
    checks.same("variable", info.environment_variable("QUESTIONS_TEST")?.map(|value| value.len()), Some(300));
    checks.outcome("remove a variable", info.set_environment_variable("QUESTIONS_TEST", None));
    checks.same("removed", info.environment_variable("QUESTIONS_TEST")?, None);
    gone(state, function);
    Ok(())
}

/// Makes requests that the runtime no longer supports, according to the documentation of
/// `ProfilerInfo`.
fn gone(state: &State, function: FunctionId) {
    let raw = state.info.as_raw();
    // SAFETY: borrowed from the framework, which keeps it; the levels inherit.
    let Some(raw) = (unsafe { ICorProfilerInfo2::from_raw_borrowed(&raw) }) else { return };
    let (mut pointer, mut number) = (std::ptr::null_mut(), 0);
    // SAFETY: valid out-parameters; identifiers are only compared.
    let answers = unsafe {
        [
            raw.SetFunctionReJIT(function.as_raw()),
            raw.GetInprocInspectionInterface(&mut pointer),
            raw.GetInprocInspectionIThisThread(&mut pointer),
            raw.BeginInprocDebugging(BOOL(0), &mut number),
            raw.EndInprocDebugging(number),
            raw.GetContextStaticAddress(0, 0, 0, &mut pointer),
        ]
    };
    state.checks.same("gone", answers.map(|answer| HResult(answer.0)), [HResult::NOT_IMPLEMENTED; 6]);
}
