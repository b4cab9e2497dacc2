//! Streams of events in the format nettrace (version 4), which runtimes send and `.nettrace` files
//! hold.
//!
//! A stream is a row of objects: one with the clock, then blocks of descriptions, of events, of
//! stacks. [`Reader`] reads it to its end and gives the events in the order in which they come: in
//! that of each thread, not of all threads together.
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
