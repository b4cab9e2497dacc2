//! Event streams in the nettrace format (version 4), as sent by runtimes and stored in `.nettrace`
//! files.
//!
//! A stream is a sequence of objects: first the clock, then blocks of descriptions, events and
//! stacks. [`Reader`] reads a stream to its end and returns the events in stream order. The events
//! of one thread are in order of time; events of different threads are not.
//!
//! ```no_run
//! use clr_diagnostics::nettrace::Reader;
//!
//! let mut stream = Reader::new(std::fs::File::open("app.nettrace").expect("a file"))?;
//! while let Some(event) = stream.next_event()? {
//!     println!("{} {} {:?}", event.description.provider, event.description.name, event.fields());
//! }
//! # Ok::<(), clr_diagnostics::Error>(())
//! ```

mod block;
mod description;
mod reader;
mod value;

pub use description::{EventDescription, Field, FieldType};
pub use reader::{Clock, Event, Reader};
pub use value::Value;
