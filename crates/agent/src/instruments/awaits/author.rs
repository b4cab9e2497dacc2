//! Makes the changed code of methods whose awaits are followed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::il::Edits;
use clr_profiler::{BodyWriter, Error, MethodToWrite, ModuleId, ProfilerInfo};

use super::code::{self, Signatures};
use super::methods;
use super::place::MethodPlaces;
use crate::services::await_places::AsyncCode;

/// Makes the changed code for the async methods of modules.
pub(super) struct Author {
    /// Tokens of signatures, by module.
    signatures: Mutex<HashMap<ModuleId, Signatures>>,
}

impl Author {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { signatures: Mutex::default() })
    }

    /// Prepares a module: makes the signatures that its changed code needs.
    ///
    /// # Errors
    /// The runtime's error.
    pub(super) fn prepare(&self, info: &ProfilerInfo, module: ModuleId) -> clr_profiler::Result<()> {
        let signatures = Signatures {
            begin: info.signature_token(module, code::BEGIN)?,
            resume: info.signature_token(module, code::RESUME)?,
            succeed: info.signature_token(module, code::SUCCEED)?,
        };
        self.signatures.lock().unwrap_or_else(PoisonError::into_inner).insert(module, signatures);
        Ok(())
    }
}

impl BodyWriter for Author {
    fn edits(&self, method: &MethodToWrite<'_>) -> clr_profiler::Result<Edits> {
        let signatures = self.signatures.lock().unwrap_or_else(PoisonError::into_inner).get(&method.module).copied();
        let Some(signatures) = signatures else { return Ok(Edits::new()) };
        let code = AsyncCode::read(method.body, method.metadata);
        let Some(code) = code.map_err(|why| Error::refused("awaits", why))? else { return Ok(Edits::new()) };
        // The method's code contains the addresses of its places for ever.
        let places: &'static MethodPlaces = Box::leak(Box::new(MethodPlaces::new(&code)));
        methods::insert((method.module, method.token), places);
        Ok(code::edits(&code, places, signatures))
    }
}
