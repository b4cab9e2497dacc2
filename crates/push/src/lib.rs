//! Sends the profiles of recordings to receivers: Pyroscope, OpenTelemetry collectors, folders.
//!
//! A recording becomes [parcels](Parcel), each within the limits of receivers. Parcels for servers
//! first go to a [`Spool`] on disk, and leave it when the server has answered. So nothing is lost
//! if a receiver can't be reached or the sender is killed. [`Pusher`] does all of this.

mod answer;
mod connection;
mod folder;
mod grpc;
mod headers;
mod outcome;
mod parcel;
mod pusher;
mod request;
mod spool;
mod target;

pub use headers::{HEADERS_VARIABLE, HeaderError, Headers};
pub use outcome::{Outcome, Report, Tally};
pub use parcel::{LIMITS, Parcel, parcels};
pub use pusher::{Patience, PushError, Pusher};
pub use spool::Spool;
pub use target::{Protocol, Server, Target, TargetError};
