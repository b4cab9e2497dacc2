//! Makes the changed code of methods that report requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::il::Edits;
use clr_profiler::metadata::MetadataImport;
use clr_profiler::{BodyWriter, Error, MethodToWrite, ModuleId, ProfilerInfo, Token};
use clrscope_contract::async_code::CORE_LIBRARY;

use super::served::Server;
use super::{commands, made, served, switches};

/// A library whose methods report requests.
#[derive(Clone)]
enum Library {
    /// The library serves requests.
    Serves(&'static Server, served::Tokens),
    /// The library makes requests.
    Makes(made::Tokens),
    /// The library sends commands to databases.
    Sends(Arc<commands::Provider>),
    /// The library is that of the runtime's own types.
    Runs(switches::Tokens),
}

/// Makes the changed code for the methods of libraries.
pub(super) struct Author {
    libraries: Mutex<HashMap<ModuleId, Library>>,
}

impl Author {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { libraries: Mutex::default() })
    }

    fn libraries(&self) -> MutexGuard<'_, HashMap<ModuleId, Library>> {
        self.libraries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Examines a library with this name. Returns the methods whose code is to be changed.
    ///
    /// # Errors
    /// The reason why its requests can't be followed.
    pub(super) fn prepare(
        &self,
        (info, module): (&ProfilerInfo, ModuleId),
        assembly: &str,
        metadata: &MetadataImport,
    ) -> clr_profiler::Result<Vec<Token>> {
        let refused = |why| Error::refused("requests", why);
        let (library, methods) = if assembly == served::LIBRARY {
            let server = Server::find(module, metadata).map_err(refused)?;
            let tokens = served::Tokens::find(info, server, metadata)?;
            (Library::Serves(server, tokens), server.methods(metadata).map_err(refused)?)
        } else if assembly == CORE_LIBRARY {
            let tokens = switches::Tokens::find(info, module, metadata)?;
            (Library::Runs(tokens), switches::methods(metadata).map_err(refused)?)
        } else if assembly != made::LIBRARY {
            match commands::Provider::find(info, module, metadata)? {
                Some(provider) => {
                    let methods = provider.methods();
                    (Library::Sends(Arc::new(provider)), methods)
                }
                None => return Ok(Vec::new()),
            }
        } else {
            let tokens = made::Tokens::find(info, module, metadata)?;
            (Library::Makes(tokens), vec![made::method(metadata).map_err(refused)?])
        };
        self.libraries().insert(module, library);
        Ok(methods)
    }

    /// The server in a module; `None` if the module has none.
    pub(super) fn server(&self, module: ModuleId) -> Option<&'static Server> {
        match self.libraries().get(&module)? {
            Library::Serves(server, _) => Some(server),
            Library::Makes(_) | Library::Sends(_) | Library::Runs(_) => None,
        }
    }

    /// Whether each of a module's methods can be changed without the others. If not, all methods
    /// must have the code, as one method begins a request that another one ends.
    pub(super) fn are_alone(&self, module: ModuleId) -> bool {
        matches!(self.libraries().get(&module), Some(Library::Sends(_)))
    }

    /// Whether a module's methods report that a thread gets another context.
    pub(super) fn switches_threads(&self, module: ModuleId) -> bool {
        matches!(self.libraries().get(&module), Some(Library::Runs(_)))
    }
}

impl BodyWriter for Author {
    fn edits(&self, method: &MethodToWrite<'_>) -> clr_profiler::Result<Edits> {
        let library = self.libraries().get(&method.module).cloned();
        let edits = match library {
            None => return Ok(Edits::new()),
            Some(Library::Serves(server, tokens)) => {
                let name = method.metadata.method(method.token)?.name;
                tokens.edits((&name, method.body), server)
            }
            Some(Library::Makes(tokens)) => tokens.edits(method.body, method.metadata),
            Some(Library::Sends(provider)) => provider.edits(method.token, method.body, method.metadata),
            Some(Library::Runs(tokens)) => Ok(tokens.edits(method.body)),
        };
        edits.map_err(|why| Error::refused("requests", why))
    }
}
