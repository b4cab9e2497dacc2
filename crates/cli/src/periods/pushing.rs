//! Pushes the recordings of periods (`--push`) on a thread of its own: a receiver that is away
//! holds up no period.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::unpushed::Unpushed;
use crate::push::{self, PushPlan};

/// The thread that pushes. Dropping the value pushes what is left and ends the thread.
#[derive(Debug)]
pub(crate) struct Pushing(Option<(Sender<Unpushed>, JoinHandle<()>)>);

impl Pushing {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(plan: PushPlan) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let thread = Builder::new().name("push".to_owned()).spawn(move || push_all(&receiver, &plan))?;
        Ok(Self(Some((sender, thread))))
    }

    /// Adds a recording, which is pushed after the recordings added before.
    pub(super) fn add(&self, recording: Unpushed) {
        if let Some((sender, _)) = &self.0 {
            // The thread ends only when it is told to.
            let _ = sender.send(recording);
        }
    }

    /// Adds the recordings in `folder` that a killed launcher has not pushed.
    pub(crate) fn add_left_in(&self, folder: &Path) {
        Unpushed::left_in(folder).into_iter().for_each(|recording| self.add(recording));
    }
}

impl Drop for Pushing {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

fn push_all(receiver: &Receiver<Unpushed>, plan: &PushPlan) {
    while let Ok(first) = receiver.recv() {
        // What was written while a receiver was away is pushed together, unless it is deleted by
        // now.
        let unpushed: Vec<Unpushed> = [first].into_iter().chain(receiver.try_iter()).collect();
        let mut recordings: Vec<PathBuf> = unpushed.iter().map(|one| one.recording().to_owned()).collect();
        recordings.retain(|recording| recording.exists());
        if recordings.is_empty() || push::recordings(&recordings, plan, true) {
            unpushed.into_iter().for_each(Unpushed::done);
        }
    }
}
