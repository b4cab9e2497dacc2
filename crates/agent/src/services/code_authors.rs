//! The authors of changes to the program's methods. Instruments register them here.
//!
//! The runtime accepts one body for each version of a method. When an instrument changes methods at
//! the load of their module, every body that another instrument makes of these methods later must
//! contain the changes, too. So the authors that change methods at load are registered here for the
//! instruments that recompile them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{BodyWriter, BodyWriters, ProfilerInfo};

/// Authors that change methods as soon as their module is loaded.
#[derive(Default)]
pub(crate) struct CodeAuthors {
    authors: Mutex<Vec<Arc<dyn BodyWriter>>>,
    /// Whether there is any author.
    change: Arc<AtomicBool>,
}

impl CodeAuthors {
    /// Adds an author that changes methods when their module is loaded. Returns the [`BodyWriters`]
    /// that make the bodies of these methods.
    pub(crate) fn at_load(&self, info: &ProfilerInfo, author: Arc<dyn BodyWriter>) -> BodyWriters {
        self.authors.lock().unwrap_or_else(PoisonError::into_inner).push(author);
        self.change.store(true, Ordering::Release);
        self.all(info)
    }

    /// Whether instruments may change methods as soon as their module is loaded.
    pub(crate) fn change_at_load(&self) -> bool {
        self.change.load(Ordering::Acquire)
    }

    /// Like [`change_at_load`](Self::change_at_load), as a flag for callers that ask before all
    /// authors are registered.
    pub(crate) fn changes_at_load(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.change)
    }

    /// The [`BodyWriters`] that make the bodies of methods that are recompiled later. A body
    /// contains the changes made when the module was loaded, and within them the changes of
    /// `author`.
    pub(crate) fn for_recompilation(&self, info: &ProfilerInfo, author: Arc<dyn BodyWriter>) -> BodyWriters {
        self.all(info).with(author)
    }

    fn all(&self, info: &ProfilerInfo) -> BodyWriters {
        let authors = self.authors.lock().unwrap_or_else(PoisonError::into_inner);
        authors.iter().cloned().fold(BodyWriters::new(info), BodyWriters::with)
    }
}
