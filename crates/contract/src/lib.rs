//! The contract between the launcher, the agent inside the profiled process and the readers of
//! recordings.
//!
//! - [`developer_log`] is what the agent says to its developers, and where.
//! - [`instruments`] declares every instrument with its options, once.
//! - [`request`] is the grammar in which a user says what is to be recorded.
//! - [`trust`] says whether others could change a file that launcher and agent rely on.
//! - [`async_code`] names the framework's methods that run asynchronous code.
//! - [`command`] reads command lines as the `dotnet` host does.
//! - [`control_socket`] is what the launcher says to an agent that sleeps in a program.
//! - [`words`] guesses what the writer of a misspelt word meant.

/// Name of the agent's file, by which its code is known in the programs that it records.
pub const AGENT_LIBRARY: &str = "libclrscope_agent.so";

pub mod async_code;
pub mod command;
pub mod control_socket;
pub mod developer_log;
pub mod instruments;
pub mod labels;
pub mod request;
pub mod trust;
pub mod words;
