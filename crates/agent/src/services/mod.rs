//! Services that instruments share, each with a name of its own. The crate `clrscope_agent_base`
//! has the layer below them.
//!
//! - [`context`]: what all instruments and services need when they start
//! - [`object_types`]: number, name and module of each class of objects
//! - [`no_stack_remark`]: the remark in a recording with missing stacks
//! - [`dictionary`]: names of entities other than functions, noted once
//! - [`rings`]: stores to which threads that end return their chunks
//! - [`event_log`]: chunks of event records per thread; [`field_cache`] keeps encoded functions and
//!   classes
//! - [`event_ring`]: the last events of calls, in chunks per thread
//! - [`gc_events`]: the runtime's own events about collections
//! - [`held_exceptions`]: pins for exceptions while the runtime searches for their handlers
//! - [`detach`]: how an attached agent detaches; [`detach_cleanup`]: what it removes then
//! - [`code_authors`]: the authors of changed methods, and the changes that every body of a method
//!   needs
//! - [`entry_assembly`]: the program's entry assembly
//! - [`fixed_modules`]: modules whose methods can't be changed
//! - [`refused_methods`]: methods that could not be changed, and why
//! - [`changed_methods`]: recompiling methods of a library with inserted code
//! - [`kept_code`]: methods whose code stays changed until the process ends
//! - [`kept_events`]: which events a recording keeps; [`triggers`]: conditions that cause them to
//!   be written out
//! - [`code_marks`]: parts of the recording that the program's own code begins and ends
//! - [`request_work`]: the request for which each thread works
//! - [`stack_rate`]: how many stacks are taken in a second
//! - [`stop_of_threads`]: a suspension of all threads at the end of a recording
//! - [`await_places`]: awaits in the code of async methods
//! - [`numbers`]: numbers for operations under way in the program's code
//! - [`code_address`]: addresses of functions that inserted code calls
//! - [`clauses`]: which catch blocks belong to clauses with a filter

pub(crate) mod await_places;
pub(crate) mod changed_methods;
pub(crate) mod clauses;
pub(crate) mod code_address;
pub(crate) mod code_authors;
pub(crate) mod code_marks;
pub(crate) mod context;
pub(crate) mod detach;
pub(crate) mod detach_cleanup;
pub(crate) mod dictionary;
pub(crate) mod entry_assembly;
pub(crate) mod event_log;
pub(crate) mod event_ring;
pub(crate) mod field_cache;
pub(crate) mod fixed_modules;
pub(crate) mod gc_events;
pub(crate) mod held_exceptions;
pub(crate) mod kept_code;
pub(crate) mod kept_events;
pub(crate) mod no_stack_remark;
pub(crate) mod numbers;
pub(crate) mod object_types;
pub(crate) mod own_code;
pub(crate) mod refused_methods;
pub(crate) mod request_work;
pub(crate) mod rings;
pub(crate) mod stack_rate;
pub(crate) mod stop_of_threads;
pub(crate) mod triggers;
