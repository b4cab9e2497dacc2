//! The common base of all parts of the agent. It makes no decisions: instruments do.
//!
//! - [`arch`] and [`os`]: everything specific to the processor and to the system
//! - [`boundary`]: the boundary that no panic crosses; [`faults`]: recorded caught panics and odd
//!   callbacks; [`developer_log`]: a log for developers
//! - [`hooks`]: per-thread fields of hooks
//! - [`helper`]: the agent's own thread; [`runtime_thread`]: work on a thread that may ask the
//!   runtime
//! - [`memory`]: memory that hooks use, either backed by the helper thread or private to a thread
//! - [`reserve`]: the agent's allocator, which has some memory when the system has none
//! - [`recording_lifetime`]: objects that live as long as a recording; [`reused`]: per-thread data
//!   that the next recording of the process reuses; [`thread_own`]: values that only their own
//!   thread uses
//! - [`record_room`]: room for records that the program's own code extends; [`own_memory`]:
//!   recorded size of the instruments' own tables
//! - [`threads`]: begin and end of each thread of the program, its record and its names
//! - [`functions`]: index, names and filters of each function, with the help of [`patterns`] and
//!   [`il`]
//! - [`class_parents`]: the base class of a class
//! - [`code_owner`]: the function that contains some code
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
pub mod reserve;
pub mod reused;
pub mod runtime_thread;
pub mod thread_own;
pub mod threads;
pub mod tick_scale;
pub mod unloads;
