//! Recompiling methods of a library with code of an instrument.

use clr_profiler::{BodyWriters, Error, ModuleId, ProfilerInfo, Token};

use super::kept_code::{self, Method};

/// How the changes of several methods depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// On all others: a change of one method begins something that a change of another ends. Either
    /// all methods are changed or none.
    Together,
    /// On nothing: the other methods are changed even where this one can't be.
    Alone,
}

/// The result of changing methods.
#[derive(Default)]
pub(crate) struct ChangedMethods {
    /// Methods that are recompiled: all whose code differs from before.
    pub(crate) changed: Vec<Method>,
    /// Methods that can't be changed, with the reason.
    pub(crate) refused: Vec<(Method, Error)>,
}

/// Recompiles methods of a module with the code that an author inserts, and also the callers that
/// have inlined these methods. Earlier changes stay.
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
