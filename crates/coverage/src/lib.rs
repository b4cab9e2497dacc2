//! The plan of coverage: for each method of an assembly, the lines and branches that its author
//! wrote and a test could reach.
//!
//! The agent makes the plan of a loaded assembly to know where to count. The reporting side makes
//! it again from the same files to learn what the hits mean and what never ran. So the plan depends
//! on the files and the options alone, and a method's hits are in this order: those of its points,
//! then those of its branches. [`MethodPlan::fingerprint`] tells whether both sides saw the same
//! method.
//!
//! - **Points** are the places where a piece of source begins, by the assembly's PDB.
//! - **Branches** are the edges out of a conditional jump or `switch`, each counted by itself.
//!   Compiler-generated jumps that are not in the source are left out (`branches` says which).
//! - **Counters** are fewer than points and branches together: [`Module::counters`] says where to
//!   place them and how to compute the hits from them. Only the agent calls it; recordings hold the
//!   sums next to the counters.
//! - Always left out are methods, types and assemblies with an excluding attribute (`excluded`),
//!   and test projects.
//! - Left out on demand ([`PlanOptions`]) are auto-implemented properties (`auto_props`), and code
//!   that could run only if a method returned that does not return (`reach`). Files of other
//!   assemblies also tell which methods do not return (`libraries`).

mod auto_props;
mod branches;
mod code;
mod counters;
mod excluded;
mod libraries;
mod module;
mod options;
mod plan;
mod reach;
mod source;

pub use clr_metadata::Files;
pub use counters::{CounterPlace, CounterPlan, has_values};
pub use module::{Module, NoPlan, Opener};
pub use options::PlanOptions;
pub use plan::MethodPlan;
pub use source::Source;
