//! Types of the program's objects: the dictionary shared by all instruments that record memory.

use crate::codec::record;

record! {
    /// A type of objects on the heap: a class, a boxed value type, an array.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct ObjectType {
        /// Name in C# form, with type arguments: `Shop.Cache<string, Shop.Order>`, `int[]`. Empty
        /// if unknown.
        pub name: String,
        /// Index into [`Process::modules`](super::Process::modules) of the module that declares the
        /// type (for an array, its element type); 0 if unknown.
        pub module: u32,
    }
}
