//! Values of the program: arguments, `this`, fields, results.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kinds`] | how a value in memory is to be read |
//! | [`types`] | from the runtime's types to kinds, asked when a function is compiled |
//! | [`tasks`] | tasks, which are shown as what they come to |
//! | [`completion`] | how async methods come by their results |
//! | [`machine`] | async methods and iterators, which are shown by their source arguments |
//! | [`plan`] | where a function's arguments and result lie |
//! | [`system_v`] | which registers and which words of the stack hold them |
//! | [`plans`] | the plan of each function |
//! | [`costly`] | a word where all of it makes a program slow |
//! | [`callbacks`] | what the types learn from the runtime |
//! | [`entered`] | taking the arguments, in a hook |
//! | [`read`] | reading them, in a hook |
//! | [`memory`] | what is known of memory before it is read |
//! | [`proof`] | whether a plan has turned out to be right |
//! | [`unread`] | a word where one has not |
//!
//! What is asked of the runtime is asked when a function is compiled or a class loaded. Hooks follow
//! plans that are ready: they read memory of objects that are alive, within bounds; whatever else they read may not be
//! there, and is copied by the system, which says so.

mod callbacks;
pub(crate) mod completion;
pub(crate) mod costly;
pub(crate) mod entered;
pub(crate) mod kinds;
mod machine;
pub(crate) mod memory;
pub(crate) mod plan;
pub(crate) mod plans;
pub(crate) mod proof;
pub(crate) mod read;
mod system_v;
mod tasks;
pub(crate) mod types;
pub(crate) mod unread;
