//! Services that instruments share, each with a name of its own; what these stand on is in
//! `clrscope_agent_base`.
//!
//! - [`context`]: what all of them find when they start
//! - [`object_types`]: number, name and module of each class that objects are of
//! - [`no_stack_remark`]: the remark of a recording in which stacks are missing
//! - [`dictionary`]: names of what is no function, noted once
//! - [`event_log`]: chunks of event records per thread; [`field_cache`] keeps the written form of
//!   functions and classes
//! - [`event_ring`]: the last events of calls, in chunks per thread
//! - [`gc_events`]: what the runtime's own events say about collections
//! - [`held_exceptions`]: exceptions that no collection may move while the runtime looks for their
//!   handlers
//! - [`detach`]: how an attached agent leaves; [`detach_cleanup`]: what it then takes away
//! - [`code_authors`]: who changes the program's methods, and what must be in every body of theirs
//! - [`entry_assembly`]: the assembly that the program begins in
//! - [`fixed_modules`]: modules whose methods can't be changed
//! - [`refused_methods`]: methods that could not be changed, and why
//! - [`changed_methods`]: methods of a library that get other code
//! - [`kept_code`]: methods whose code stays changed to the end of the process
//! - [`kept_events`]: which events a recording keeps; [`triggers`]: what has them written out
//! - [`code_marks`]: parts of the recording that the program's own code begins and ends
//! - [`request_work`]: the request for which each thread works
//! - [`stack_rate`]: how many stacks are taken in a second
//! - [`stop_of_threads`]: a stop of all threads at the end of a recording
//! - [`await_places`]: awaits in the code of async methods
//! - [`numbers`]: numbers for what is under way in code of the program
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
pub(crate) mod stack_rate;
pub(crate) mod stop_of_threads;
pub(crate) mod triggers;
