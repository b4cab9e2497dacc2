//! Methods of a library that are compiled again with code of an instrument's, all of them or none.

use clr_profiler::{BodyWriters, Error, ModuleId, ProfilerInfo, Token};

use super::kept_code::{self, Method};

/// Methods that were asked to be compiled again.
pub(crate) enum ChangedMethods {
    /// These: those that have something else to say than before.
    All(Vec<Method>),
    /// None, because this one can't be.
    None(Method, Error),
}

/// Has methods of a module compiled again with what an author puts into them; callers that have them
/// inlined as well. What was changed before stays as it is.
///
/// # Errors
/// The runtime's.
pub(crate) fn change_methods(
    info: &ProfilerInfo,
    writers: &BodyWriters,
    module: ModuleId,
    methods: Vec<Token>,
) -> clr_profiler::Result<ChangedMethods> {
    let methods: Vec<Token> = methods.into_iter().filter(|method| !kept_code::is_kept((module, *method))).collect();
    let mut bodies = Vec::new();
    for (method, body) in methods.iter().zip(writers.written_bodies(module, &methods)?) {
        match body {
            Ok(Some(body)) => bodies.push(((module, *method), body)),
            Ok(None) => {}
            // One would begin what no other ends.
            Err(error) => return Ok(ChangedMethods::None((module, *method), error)),
        }
    }
    let changed: Vec<Method> = bodies.iter().map(|(method, _)| *method).collect();
    bodies.into_iter().for_each(|(method, body)| kept_code::keep_body(method, body));
    if !changed.is_empty() {
        info.request_rejit_with_inliners(&changed).inspect_err(|_| {
            changed.iter().for_each(|method| kept_code::forget_body(*method));
        })?;
    }
    Ok(ChangedMethods::All(changed))
}
