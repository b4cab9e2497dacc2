//! Enums whose values have a name in JSON and a title for display.

/// Declares an enum with names and titles. Its values are in the order in which they are shown.
macro_rules! titled {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal $title:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All values, in display order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The title for display.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $title,)*
                }
            }
        }
    };
}

pub(crate) use titled;
