//! Sends the profiles of recordings to receivers: Pyroscope, OpenTelemetry collectors, folders.
//!
//! A recording becomes [parcels](Parcel), each within the limits of receivers. Parcels for servers
//! go to a [`Spool`] on disk first and leave it when the server has answered, so that a receiver
//! that is away and a killed sender lose nothing. [`Pusher`] does all of it.

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
