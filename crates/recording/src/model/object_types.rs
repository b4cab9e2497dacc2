//! Types of the program's objects: the one dictionary that instruments about memory refer to.

use crate::codec::record;

record! {
    /// A type of objects on the heap: a class, a boxed value type, an array.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct ObjectType {
        /// Name as C# writes it, with type arguments: `Shop.Cache<string, Shop.Order>`, `int[]`.
        /// Empty where unknown.
        pub name: String,
        /// Index into [`Process::modules`](super::Process::modules) of the module that declares it,
        /// of an array's elements where it is one; 0 where that is not known.
        pub module: u32,
    }
}
