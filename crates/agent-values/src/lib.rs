//! Values of the program: arguments, `this`, fields, results.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kinds`] | how a value in memory is to be read |
//! | [`types`] | from the runtime's types to kinds, asked when a function is compiled |
//! | [`completion`] | how async methods come by their results |
//! | `state_machine` | async methods and iterators, which are shown by their source arguments |
//! | `bindings` | what type parameters stand for in code |
//! | [`plan`] | where a function's arguments and result lie |
//! | [`arch`] | which registers and which words of the stack hold them |
//! | [`plans`] | the plan of each function |
//! | [`probed`] | the values of calls of probed methods, whose IL hands them over by address |
//! | [`overhead_advice`] | advice where reading values makes a program slow |
//! | `callbacks` | what the types learn from the runtime |
//! | [`arguments`] | taking the arguments, in a hook |
//! | [`read`] | reading them, in a hook |
//! | [`memory`] | what is known of memory before it is read |
//! | [`object_size`] | what objects take on the heap |
//! | `delegates` | the methods that delegates call |
//! | `known_pages` | pages that need not be asked for again |
//! | [`collections`] | when objects move and memory goes |
//! | [`evidence`] | whether a plan has turned out to be right |
//! | `own_text` | whether texts that objects make of themselves have hidden values |
//! | `source_names` | names as the source has them |
//! | [`check`] | plans compared with the runtime's own argument ranges, for tests |
//! | [`unread`] | reports of values that were left unread |
//!
//! Queries of the runtime are made when a function is compiled or a class loaded. Hooks follow
//! plans that are ready: they read memory of objects that are alive, within bounds; whatever else
//! they read may not be there, and is copied by the system, which says so.

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
