//! What became of profiles.

use std::ops::AddAssign;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::target::Target;

/// Numbers of what was sent, or was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests, or files.
    pub requests: u64,
    /// Profiles in them.
    pub profiles: u64,
    /// Samples of these profiles.
    pub samples: u64,
    /// Bytes, compressed.
    pub bytes: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.requests = self.requests.saturating_add(more.requests);
        self.profiles = self.profiles.saturating_add(more.profiles);
        self.samples = self.samples.saturating_add(more.samples);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// What became of the profiles for one target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The target.
    pub to: String,
    /// Made of the recordings of this push.
    pub made: Tally,
    /// Accepted, with those that waited in the spool.
    pub sent: Tally,
    /// Refused for what they are: sending them again would not help.
    pub refused: Tally,
    /// Still in the spool, or not written to the folder.
    pub waiting: Tally,
    /// Requests that were sent again.
    pub retries: u64,
    /// Requests that were divided because the receiver found them too large.
    pub divided: u64,
    /// Reasons of the receiver, each once.
    pub reasons: Vec<String>,
}

impl Outcome {
    /// Adds a reason, unless it is known.
    pub(crate) fn reason(&mut self, reason: String) {
        /// Reasons that are kept: each request could have its own.
        const MOST: usize = 5;
        if self.reasons.len() < MOST && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// What became of all profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// By target.
    pub targets: Vec<Outcome>,
    /// Dropped from the spool in this push, to keep it within its bound.
    pub lost: Tally,
    /// Dropped from this spool since it exists.
    pub lost_ever: Tally,
    /// The spool.
    pub spool: PathBuf,
    /// In the spool for other targets.
    pub waiting_for_others: Tally,
}

impl Report {
    /// A report on these targets, without a spool, before anything is pushed.
    #[must_use]
    pub fn new(targets: &[Target]) -> Self {
        let outcome = |target: &Target| Outcome { to: target.to_string(), ..Outcome::default() };
        Self { targets: targets.iter().map(outcome).collect(), ..Self::default() }
    }

    /// Whether something was refused or lost.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.lost.requests > 0 || self.targets.iter().any(|target| target.refused != Tally::default())
    }

    /// Whether something waits for the next push.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.targets.iter().any(|target| target.waiting.requests > 0)
    }
}
