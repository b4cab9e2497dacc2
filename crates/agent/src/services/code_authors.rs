//! Authors of changes in the program's methods, those of all instruments.
//!
//! The runtime takes one body for each version of a method. What one instrument has put into
//! methods when their module was loaded must be in every body that another makes of them later, so
//! the authors of the former stand here for the latter.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{BodyWriter, BodyWriters, ProfilerInfo};

/// Authors of what methods have from the load of their module on.
#[derive(Default)]
pub(crate) struct CodeAuthors {
    authors: Mutex<Vec<Arc<dyn BodyWriter>>>,
    /// There is one.
    change: Arc<AtomicBool>,
}

impl CodeAuthors {
    /// Arbiter of the bodies that methods have from the load of their module on, with another
    /// author.
    pub(crate) fn at_load(&self, info: &ProfilerInfo, author: Arc<dyn BodyWriter>) -> BodyWriters {
        self.authors.lock().unwrap_or_else(PoisonError::into_inner).push(author);
        self.change.store(true, Ordering::Release);
        self.all(info)
    }

    /// Whether methods may have code from the load of their module on that is not their own.
    pub(crate) fn change_at_load(&self) -> bool {
        self.change.load(Ordering::Acquire)
    }

    /// Whether methods may have code from the load of their module on that is not their own, for
    /// who asks before all authors have come.
    pub(crate) fn changes_at_load(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.change)
    }

    /// Arbiter of the bodies of methods that are recompiled: with what they have from the load of
    /// their module on, and an author's changes within that.
    pub(crate) fn anew(&self, info: &ProfilerInfo, author: Arc<dyn BodyWriter>) -> BodyWriters {
        self.all(info).with(author)
    }

    fn all(&self, info: &ProfilerInfo) -> BodyWriters {
        let authors = self.authors.lock().unwrap_or_else(PoisonError::into_inner);
        authors.iter().cloned().fold(BodyWriters::new(info), BodyWriters::with)
    }
}
