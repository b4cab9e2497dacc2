//! Services that instruments share, each with a name of its own.
//!
//! - [`context`]: what all of them find when they start
//! - [`threads`]: begin and end of each thread of the program, its record and its names
//! - [`functions`]: index, names and filters of each function; [`patterns`] and [`il`] help to decide
//! - [`object_types`]: number, name and module of each class that objects are of
//! - [`values`]: types, and values read from registers and memory
//! - [`dictionary`]: names of what is no function, noted once
//! - [`event_pipe`]: the runtime's own events, from a session that all instruments share
//! - [`event_log`]: chunks of event records per thread; [`field_cache`] keeps the written form of functions and classes
//! - [`event_ring`]: the last events of calls, in chunks per thread
//! - [`held_exceptions`]: exceptions that no collection may move while the runtime looks for their handlers
//! - [`helper`]: the agent's own thread; [`errand`]: work that needs a thread which may ask the runtime; [`departure`]: how an attached agent leaves, [`leftovers`]: what it then takes away
//! - [`reused`]: data per thread that the next recording of the process takes over
//! - [`thread_own`]: values that only their thread uses
//! - [`stacks`]: call stacks of the calling thread, as numbers in the recording's stack table
//! - [`unwind`]: the step from a place in a compiled method to its caller
//! - [`code`]: the map of code, from addresses to methods, libraries and stubs
//! - [`inlined`]: methods that the compiler put into others, at calls that tell it
//! - [`code_authors`]: who changes the program's methods, and what must be in every body of theirs
//! - [`record_room`]: room for records to which the program's own code adds
//! - [`sampling`]: samples of threads by their CPU time and by the clock
//! - [`clauses`]: which catch blocks belong to clauses with a filter
//! - [`memory`]: memory that hooks use: backed by the helper thread, or a thread's own
//! - [`own_memory`]: what an instrument takes for tables of its own, as the recording gets it
//! - [`faults`]: caught panics and odd callbacks, as the recording gets them; [`developer_log`]: lines for developers
//! - [`clock`]: ticks, times and the CPU time of threads

pub(crate) mod clauses;
pub(crate) mod clock;
pub(crate) mod code;
pub(crate) mod code_authors;
pub(crate) mod code_owner;
pub(crate) mod context;
pub(crate) mod departure;
pub(crate) mod developer_log;
pub(crate) mod dictionary;
pub(crate) mod errand;
pub(crate) mod event_log;
pub(crate) mod event_pipe;
pub(crate) mod event_ring;
pub(crate) mod faults;
pub(crate) mod field_cache;
pub(crate) mod functions;
pub(crate) mod held_exceptions;
pub(crate) mod helper;
pub(crate) mod il;
pub(crate) mod inlined;
pub(crate) mod leftovers;
pub(crate) mod memory;
pub(crate) mod object_types;
pub(crate) mod own_memory;
pub(crate) mod patterns;
pub(crate) mod record_room;
pub(crate) mod reused;
pub(crate) mod sampling;
pub(crate) mod stacks;
pub(crate) mod thread_own;
pub(crate) mod threads;
pub(crate) mod unwind;
pub(crate) mod values;
