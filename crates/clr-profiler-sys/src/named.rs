//! Macros for constants with names.

/// Declares a 32-bit enumeration of the interface definitions: a transparent struct, its constants
/// and their names.
macro_rules! named_enum {
    (
        $(#[$meta:meta])* $name:ident
        { $( $(#[$const_meta:meta])* $const:ident = $value:expr; )* }
    ) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// The value as the runtime passes it; not limited to the named values.
            pub u32,
        );

        $( $(#[$const_meta])* pub const $const: $name = $name($value); )*

        impl $name {
            /// The constant's name, `None` for a value without one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $( $const => Some(stringify!($const)), )*
                    _ => None,
                }
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({:#x})"), self.0),
                }
            }
        }
    };
}

/// Declares single-bit flags of one word and the table of their names.
macro_rules! named_flags {
    (
        $(#[$meta:meta])* $table:ident
        { $( $(#[$const_meta:meta])* $const:ident = $value:expr; )* }
    ) => {
        $( $(#[$const_meta])* pub const $const: u32 = $value; )*

        $(#[$meta])*
        pub const $table: &[(u32, &str)] = &[ $( ($const, stringify!($const)), )* ];
    };
}

/// Declares result codes and the function that names them.
macro_rules! named_hresults {
    (
        $(#[$meta:meta])* fn $function:ident;
        $( $(#[$const_meta:meta])* $const:ident = $value:expr; )*
    ) => {
        $( $(#[$const_meta])* pub const $const: HRESULT = HRESULT($value as u32 as i32); )*

        $(#[$meta])*
        #[must_use]
        pub const fn $function(hr: HRESULT) -> Option<&'static str> {
            match hr {
                $( $const => Some(stringify!($const)), )*
                _ => None,
            }
        }
    };
}
