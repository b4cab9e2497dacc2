//! The contract between the launcher, the agent inside the profiled process and the readers of
//! recordings.
//!
//! - [`developer_log`] is the agent's log for its developers.
//! - [`instruments`] declares every instrument with its options, once.
//! - [`program_names`] has the names by which users choose programs.
//! - [`request`] is the grammar of requests, in which a user writes what to record.
//! - [`trust`] checks whether other users could change a file that launcher and agent rely on.
//! - [`async_code`] names the framework's methods that run asynchronous code.
//! - [`command`] reads command lines as the `dotnet` host does.
//! - [`control_socket`] defines the messages from the launcher to a dormant agent in a program.
//! - [`words`] suggests the known word nearest to a misspelt one.

/// File name of the agent's library, which identifies the agent's code in recorded programs.
pub const AGENT_LIBRARY: &str = "libclrscope_agent.so";

pub mod async_code;
pub mod command;
pub mod control_socket;
pub mod developer_log;
pub mod instruments;
pub mod labels;
pub mod program_names;
pub mod request;
pub mod trust;
pub mod words;
