//! Enums whose numbers are part of the format.

/// Declares an enum whose numbers are part of the format: variants may only be appended.
macro_rules! by_number {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(u32)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// All variants, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The variant with this number; the default for an unknown number.
            #[inline]
            #[must_use]
            pub fn from_number(number: u32) -> Self {
                match number {
                    $($number => Self::$variant,)*
                    _ => Self::default(),
                }
            }

            /// The name in JSON and in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}
