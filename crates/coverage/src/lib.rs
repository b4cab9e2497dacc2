//! The plan of coverage: lines and branches of each method of an assembly that its author wrote and a test could reach.
//!
//! The agent makes it of an assembly that is loaded, to know where to count; whoever reports makes it again of the same
//! files, to know what the counts mean, and what was never run. So the plan is a function of the files alone, and a method's
//! counters are, in this order, its points and its branches; [`MethodPlan::fingerprint`] tells whether both sides saw the
//! same method.
//!
//! - **Points** are the places where a piece of source begins, by the assembly's PDB.
//! - **Branches** are the ways on from a conditional jump or `switch`, each counted by itself. Jumps that the compiler made
//!   and nobody wrote are left out (`branches` says which).
//! - Left out as a whole are methods, types and assemblies with an attribute that says so (`excluded`), and test projects.

mod branches;
mod code;
mod excluded;
mod module;
mod plan;
mod source;

pub use module::{Module, NoPlan, open};
pub use plan::{Branch, MethodPlan, Point};
pub use source::Source;
