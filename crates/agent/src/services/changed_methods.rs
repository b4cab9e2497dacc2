//! Recompiles methods of a library with code of an instrument.

use clr_profiler::{BodyWriters, Error, ModuleId, ProfilerInfo, Token};

use super::kept_code::{self, Method};

/// How the change of a method depends on the changes of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// It depends on all others: code in one method begins something that code in another method
    /// ends. Either all methods are changed or none.
    Together,
    /// It does not depend on them: the other methods are changed even if this one can't be.
    Alone,
}

/// The result of changing methods.
#[derive(Default)]
pub(crate) struct ChangedMethods {
    /// Methods that are recompiled because their code changes.
    pub(crate) changed: Vec<Method>,
    /// Methods that can't be changed, with the reason.
    pub(crate) refused: Vec<(Method, Error)>,
}

/// Recompiles methods of a module with inserted code, and also the callers that have inlined these
/// methods. Changes that were made earlier stay.
///
/// # Errors
/// The error of the runtime.
pub(crate) fn change_methods(
    info: &ProfilerInfo,
    writers: &BodyWriters,
    module: ModuleId,
    (methods, belongs): (Vec<Token>, Belongs),
) -> clr_profiler::Result<ChangedMethods> {
    let methods: Vec<Token> = methods.into_iter().filter(|method| !kept_code::is_kept((module, *method))).collect();
    let (mut bodies, mut refused) = (Vec::new(), Vec::new());
    for (method, body) in methods.iter().zip(writers.written_bodies(module, &methods)?) {
        match body {
            Ok(Some(body)) => bodies.push(((module, *method), body)),
            Ok(None) => {}
            Err(error) => refused.push(((module, *method), error)),
        }
    }
    if belongs == Belongs::Together && !refused.is_empty() {
        refused.truncate(1);
        return Ok(ChangedMethods { changed: Vec::new(), refused });
    }
    let changed: Vec<Method> = bodies.iter().map(|(method, _)| *method).collect();
    bodies.into_iter().for_each(|(method, body)| kept_code::keep_body(method, body));
    if !changed.is_empty() {
        info.request_rejit_with_inliners(&changed).inspect_err(|_| {
            changed.iter().for_each(|method| kept_code::forget_body(*method));
        })?;
    }
    Ok(ChangedMethods { changed, refused })
}
