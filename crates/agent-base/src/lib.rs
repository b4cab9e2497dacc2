//! What all parts of the agent stand on. It decides nothing: instruments do.
//!
//! - [`arch`] and [`os`]: everything specific to the processor and to the system
//! - [`boundary`]: the edge that no panic crosses; [`faults`]: caught panics and odd callbacks, as
//!   the recording gets them; [`developer_log`]: lines for developers
//! - [`hooks`]: the words that hooks keep of each thread
//! - [`helper`]: the agent's own thread; [`runtime_thread`]: work that needs a thread which may ask
//!   the runtime
//! - [`memory`]: memory that hooks use: backed by the helper thread, or a thread's own
//! - [`recording_lifetime`]: objects that live as long as a recording; [`reused`]: data per thread
//!   that the next recording of the process takes over; [`thread_own`]: values that only their
//!   thread uses
//! - [`record_room`]: room for records to which the program's own code adds; [`own_memory`]: what
//!   an instrument takes for tables of its own, as the recording gets it
//! - [`threads`]: begin and end of each thread of the program, its record and its names
//! - [`functions`]: index, names and filters of each function; [`patterns`] and [`il`] help to
//!   decide
//! - [`class_parents`]: what a class is derived from
//! - [`code_owner`]: the function that code belongs to
//! - [`event_pipe`]: the runtime's own events, from a session that all instruments share
//! - [`clock`]: ticks, times and the CPU time of threads

pub mod arch;
pub mod boundary;
pub mod class_parents;
pub mod clock;
pub mod code_owner;
pub mod developer_log;
pub mod event_pipe;
pub mod faults;
pub mod functions;
pub mod helper;
pub mod hooks;
pub mod il;
pub mod memory;
pub mod os;
pub mod own_memory;
pub mod patterns;
pub mod record_room;
pub mod recording_lifetime;
pub mod reused;
pub mod runtime_thread;
pub mod thread_own;
pub mod threads;
pub mod tick_scale;
pub mod unloads;
