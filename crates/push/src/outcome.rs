//! What happened to profiles that were to be pushed.

use std::ops::AddAssign;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::target::Target;

/// How much was sent, refused or kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of requests, or of files.
    pub requests: u64,
    /// Number of profiles in the requests or files.
    pub profiles: u64,
    /// Number of samples in the profiles.
    pub samples: u64,
    /// Number of bytes, compressed.
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

/// What happened to the profiles for one target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The target, as text.
    pub to: String,
    /// What was made from the recordings of this push.
    pub made: Tally,
    /// What the target accepted, including parcels that had waited in the spool.
    pub sent: Tally,
    /// What the target refused because of its content: sending it again would not help.
    pub refused: Tally,
    /// What is still in the spool, or was not written to the folder.
    pub waiting: Tally,
    /// Number of requests that were sent again.
    pub retries: u64,
    /// Number of requests that were divided because the receiver found them too large.
    pub divided: u64,
    /// The receiver's reasons, without duplicates; only the first few are kept.
    pub reasons: Vec<String>,
}

impl Outcome {
    /// Adds a reason, unless it is already in the list or the list is full.
    pub(crate) fn reason(&mut self, reason: String) {
        /// Reasons that are kept: each request could have its own.
        const MOST: usize = 5;
        if self.reasons.len() < MOST && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// What happened to all profiles of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What happened to the profiles for each target.
    pub targets: Vec<Outcome>,
    /// What this push dropped from the spool, to keep the spool within its size limit.
    pub lost: Tally,
    /// What was ever dropped from this spool, in this push and in earlier ones.
    pub lost_ever: Tally,
    /// Path of the spool.
    pub spool: PathBuf,
    /// What waits in the spool for other targets.
    pub waiting_for_others: Tally,
}

impl Report {
    /// A report on these targets, without a spool, before anything is pushed.
    #[must_use]
    pub fn new(targets: &[Target]) -> Self {
        let outcome = |target: &Target| Outcome { to: target.to_string(), ..Outcome::default() };
        Self { targets: targets.iter().map(outcome).collect(), ..Self::default() }
    }

    /// Whether profiles were refused or dropped.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.lost.requests > 0 || self.targets.iter().any(|target| target.refused != Tally::default())
    }

    /// Whether profiles wait for the next push.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.targets.iter().any(|target| target.waiting.requests > 0)
    }
}
