//! Values of the program: arguments, `this`, fields, results.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kinds`] | how to read a value in memory |
//! | [`types`] | from the runtime's types to kinds, asked when a function is compiled |
//! | [`completion`] | completion of async methods, with their results |
//! | `state_machine` | async methods and iterators, which are shown by their source arguments |
//! | `bindings` | the meaning of type parameters in code |
//! | [`plan`] | the locations of a function's arguments and result |
//! | [`arch`] | the registers and stack words that hold them |
//! | [`plans`] | the plan of each function |
//! | [`probed`] | the values of calls of probed methods, whose IL passes them by address |
//! | [`overhead_advice`] | advice if reading values makes a program slow |
//! | `callbacks` | updates of the types by the runtime's callbacks |
//! | [`arguments`] | taking the arguments, in a hook |
//! | [`read`] | reading them, in a hook |
//! | [`memory`] | guarantees for memory before it is read |
//! | [`object_size`] | sizes of objects on the heap |
//! | `delegates` | the methods that delegates call |
//! | `known_pages` | pages that can be read without asking the system |
//! | [`collections`] | the times when objects move and memory disappears |
//! | [`evidence`] | evidence that a plan is right |
//! | `own_text` | whether texts that objects produce of themselves contain hidden values |
//! | `source_names` | names as in the source |
//! | [`check`] | plans compared with the runtime's own argument ranges, for tests |
//! | [`unread`] | reports of values that were left unread |
//!
//! The runtime is asked when a function is compiled or a class is loaded. Hooks follow plans that
//! are ready: they read memory of live objects directly, within bounds. Any other memory may be
//! unmapped, so the system copies it, and reports if it is unmapped.

pub mod arch;
pub mod arguments;
mod bindings;
mod callbacks;
pub mod check;
pub mod collections;
pub mod completion;
mod delegates;
pub mod evidence;
pub mod kinds;
mod known_pages;
pub mod memory;
pub mod object_size;
pub mod open_types;
pub mod overhead_advice;
mod own_text;
pub mod plan;
pub mod plans;
pub mod probed;
pub mod read;
mod source_names;
mod state_machine;
#[cfg(test)]
mod tests;
pub mod types;
pub mod unread;
