//! Threads that work alongside the command until they are told to end.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A thread that works until this value is dropped. Dropping waits for the thread to end.
#[derive(Debug)]
pub(crate) struct Background(Option<(Sender<()>, JoinHandle<()>)>);

impl Background {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(name: &str, work: impl FnOnce(&End) + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let thread = Builder::new().name(name.to_owned()).spawn(move || work(&End(receiver)))?;
        Ok(Self(Some((sender, thread))))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

/// The thread's side of the end signal.
#[derive(Debug)]
pub(crate) struct End(Receiver<()>);

impl End {
    /// Waits for the signal to end, for at most `time`. Returns whether the thread should go on.
    pub(crate) fn is_not_within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }
}
