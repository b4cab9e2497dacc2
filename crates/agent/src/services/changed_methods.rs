//! Methods of a library that are compiled again with code of an instrument's.

use clr_profiler::{BodyWriters, Error, ModuleId, ProfilerInfo, Token};

use super::kept_code::{self, Method};

/// What depends on a method's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// The others: one would begin what no other ends. All are changed or none.
    Together,
    /// Nothing: the others are changed where this one can't be.
    Alone,
}

/// What became of methods.
#[derive(Default)]
pub(crate) struct ChangedMethods {
    /// Those that are compiled again: all that have something else to say than before.
    pub(crate) changed: Vec<Method>,
    /// Those that can't be, with the reason.
    pub(crate) refused: Vec<(Method, Error)>,
}

/// Has methods of a module compiled again with what an author puts into them, and with them callers
/// that have them inlined. What was changed before stays as it is.
///
/// # Errors
/// The runtime's.
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
