//! The plan of coverage: lines and branches of each method of an assembly that its author wrote and
//! a test could reach.
//!
//! The agent makes it of an assembly that is loaded, to know where to count; the reporting side
//! makes it again of the same files, to know what the hits mean, and what was never run. So the
//! plan is a function of the files and of options alone, and a method's hits are, in this order,
//! those of its points and of its branches; [`MethodPlan::fingerprint`] tells whether both sides
//! saw the same method.
//!
//! - **Points** are the places where a piece of source begins, by the assembly's PDB.
//! - **Branches** are the ways on from a conditional jump or `switch`, each counted by itself.
//!   Jumps that the compiler made and that are not in the source are left out (`branches` says
//!   which).
//! - **Counters** are fewer than points and branches together: [`Module::counters`] says where they
//!   are to be put and how hits follow from them. The agent alone asks for it; recordings hold the
//!   sums next to the counters.
//! - Left out as a whole are methods, types and assemblies with an attribute that says so
//!   (`excluded`), and test projects.
//! - Left out on demand ([`PlanOptions`]) are properties that the compiler implements
//!   (`auto_props`), and code that only the return of methods could reach that do not return
//!   (`reach`); which those are is told by the files of other assemblies too (`libraries`).

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
