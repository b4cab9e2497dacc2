//! The authors of changes to the program's methods, from all instruments.
//!
//! The runtime accepts one body for each version of a method. When an instrument changes methods at
//! the load of their module, these changes must also be in every body that another instrument makes
//! of the methods later. So the authors that change methods at load are registered here for the
//! instruments that recompile them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{BodyWriter, BodyWriters, ProfilerInfo};

/// Authors that change methods when their module is loaded.
#[derive(Default)]
pub(crate) struct CodeAuthors {
    authors: Mutex<Vec<Arc<dyn BodyWriter>>>,
    /// Whether there is any author.
    change: Arc<AtomicBool>,
}

impl CodeAuthors {
    /// Adds an author, and returns the arbiter of the bodies that methods get when their module is
    /// loaded.
    pub(crate) fn at_load(&self, info: &ProfilerInfo, author: Arc<dyn BodyWriter>) -> BodyWriters {
        self.authors.lock().unwrap_or_else(PoisonError::into_inner).push(author);
        self.change.store(true, Ordering::Release);
        self.all(info)
    }

    /// Whether methods may have inserted code from the load of their module on.
    pub(crate) fn change_at_load(&self) -> bool {
        self.change.load(Ordering::Acquire)
    }

    /// Whether methods may have inserted code from the load of their module on, as a flag for
    /// callers that ask before all authors are registered.
    pub(crate) fn changes_at_load(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.change)
    }

    /// Arbiter of the bodies of recompiled methods: with the changes made when their module was
    /// loaded, and an author's changes within those.
    pub(crate) fn anew(&self, info: &ProfilerInfo, author: Arc<dyn BodyWriter>) -> BodyWriters {
        self.all(info).with(author)
    }

    fn all(&self, info: &ProfilerInfo) -> BodyWriters {
        let authors = self.authors.lock().unwrap_or_else(PoisonError::into_inner);
        authors.iter().cloned().fold(BodyWriters::new(info), BodyWriters::with)
    }
}
