//! Composition: notifies several [`Callbacks`] one after another. Generated from the table of
//! callbacks.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use crate::callback_args::Inlining;
use crate::current_stack::NativeFrame;
use crate::{Callbacks, ClassId, ObjectId, Result};

/// An answer to the runtime. Combines the answers of several parts into one.
pub trait Answer: Sized {
    /// The answer that changes no other answer when combined: the default of every callback with
    /// this answer type.
    const NEUTRAL: Self;

    /// Combines the answers of two parts; `self` is the answer of the first.
    #[must_use]
    fn and(self, other: Self) -> Self;
}

/// Notifications have no answer.
impl Answer for () {
    const NEUTRAL: Self = ();

    #[inline]
    fn and(self, _other: Self) -> Self {}
}

/// Any [`Inlining::Forbid`] wins: a part that counts a call relies on it.
impl Answer for Inlining {
    const NEUTRAL: Self = Self::Allow;

    #[inline]
    fn and(self, other: Self) -> Self {
        if self == Self::Forbid { self } else { other }
    }
}

/// All parts must accept.
impl Answer for bool {
    const NEUTRAL: Self = true;

    #[inline]
    fn and(self, other: Self) -> Self {
        self && other
    }
}

/// The first error is returned.
impl Answer for Result<()> {
    const NEUTRAL: Self = Ok(());

    #[inline]
    fn and(self, other: Self) -> Self {
        // Not `Result::and`, which is this method's name.
        if self.is_err() { self } else { other }
    }
}

/// Combines the answers of all parts. Building the array calls every part, in order.
#[doc(hidden)]
#[inline]
pub fn together<A: Answer, const PARTS: usize>(answers: [A; PARTS]) -> A {
    answers.into_iter().fold(A::NEUTRAL, A::and)
}

/// Implements [`Callbacks`] for a type that has several parts. Each part gets every callback, in
/// the order given, and [`Answer`](crate::callbacks::Answer) combines the answers.
///
/// The parts are fields (or field numbers of a tuple) whose types implement [`Callbacks`]. Generic
/// parameters go first, in brackets.
///
/// ```
/// use clr_profiler::Callbacks;
///
/// struct Both<A, B> {
///     first: A,
///     second: Option<B>,
///     started_ns: u64,
/// }
///
/// clr_profiler::compose_callbacks! { [A: Callbacks, B: Callbacks] Both<A, B> { first, second } }
/// ```
#[macro_export]
macro_rules! compose_callbacks {
    ([$($generics:tt)*] $composed:ty { $($part:tt),* $(,)? }) => {
        impl<$($generics)*> $crate::Callbacks for $composed {
            $crate::__callbacks! { {$crate::__notify_parts} {[$($part)*]} }
        }
    };
    ($composed:ty { $($part:tt),* $(,)? }) => {
        $crate::compose_callbacks! { [] $composed { $($part),* } }
    };
}

/// Writes the methods of a composition with these parts.
#[doc(hidden)]
#[macro_export]
macro_rules! __notify_parts {
    ($parts:tt $($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        $(
            #[inline]
            fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
                $crate::__answers_of!(self $parts $name ($(::core::clone::Clone::clone(&$argument)),*))
            }
        )*

        #[inline]
        fn exception_thrown_in(&self, exception: $crate::ObjectId<'_>, frame: $crate::internals::NativeFrame) {
            $crate::__answers_of!(self $parts exception_thrown_in (exception, frame))
        }

        #[inline]
        fn object_allocated_in(
            &self,
            object: $crate::ObjectId<'_>,
            class: $crate::ClassId,
            frame: $crate::internals::NativeFrame,
        ) {
            $crate::__answers_of!(self $parts object_allocated_in (object, class, frame))
        }
    };
}

/// Combined answer of all parts to one callback.
#[doc(hidden)]
#[macro_export]
macro_rules! __answers_of {
    ($this:ident [$($part:tt)*] $name:ident $arguments:tt) => {
        $crate::callbacks::together([$($this.$part.$name $arguments),*])
    };
}

crate::compose_callbacks! { [A: Callbacks] (A,) { 0 } }
crate::compose_callbacks! { [A: Callbacks, B: Callbacks] (A, B) { 0, 1 } }
crate::compose_callbacks! { [A: Callbacks, B: Callbacks, C: Callbacks] (A, B, C) { 0, 1, 2 } }
crate::compose_callbacks! { [A: Callbacks, B: Callbacks, C: Callbacks, D: Callbacks] (A, B, C, D) { 0, 1, 2, 3 } }
crate::compose_callbacks! { [A: Callbacks, B: Callbacks, C: Callbacks, D: Callbacks, E: Callbacks] (A, B, C, D, E) { 0, 1, 2, 3, 4 } }
crate::compose_callbacks! { [A: Callbacks, B: Callbacks, C: Callbacks, D: Callbacks, E: Callbacks, F: Callbacks] (A, B, C, D, E, F) { 0, 1, 2, 3, 4, 5 } }
crate::compose_callbacks! { [A: Callbacks, B: Callbacks, C: Callbacks, D: Callbacks, E: Callbacks, F: Callbacks, G: Callbacks] (A, B, C, D, E, F, G) { 0, 1, 2, 3, 4, 5, 6 } }
crate::compose_callbacks! { [A: Callbacks, B: Callbacks, C: Callbacks, D: Callbacks, E: Callbacks, F: Callbacks, G: Callbacks, H: Callbacks] (A, B, C, D, E, F, G, H) { 0, 1, 2, 3, 4, 5, 6, 7 } }

/// Writes the methods of a type that forwards to one part, such as a reference.
macro_rules! lead_on {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        $(
            #[inline]
            fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
                (**self).$name($($argument),*)
            }
        )*

        #[inline]
        fn exception_thrown_in(&self, exception: ObjectId<'_>, frame: NativeFrame) {
            (**self).exception_thrown_in(exception, frame);
        }

        #[inline]
        fn object_allocated_in(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
            (**self).object_allocated_in(object, class, frame);
        }
    };
}

impl<C: Callbacks + ?Sized> Callbacks for &C {
    crate::for_each_callback!(lead_on);
}

impl<C: Callbacks + ?Sized> Callbacks for Box<C> {
    crate::for_each_callback!(lead_on);
}

impl<C: Callbacks + ?Sized> Callbacks for Arc<C> {
    crate::for_each_callback!(lead_on);
}

/// Writes the methods of a type that can be iterated over.
macro_rules! notify_each {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        $(
            #[inline]
            fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
                let answers = self.iter().map(|part| part.$name($(Clone::clone(&$argument)),*));
                answers.fold(Answer::NEUTRAL, Answer::and)
            }
        )*

        #[inline]
        fn exception_thrown_in(&self, exception: ObjectId<'_>, frame: NativeFrame) {
            self.iter().for_each(|part| part.exception_thrown_in(exception, frame));
        }

        #[inline]
        fn object_allocated_in(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
            self.iter().for_each(|part| part.object_allocated_in(object, class, frame));
        }
    };
}

/// Writes the methods of a part that is set later.
macro_rules! notify_set {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        $(
            #[inline]
            fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
                self.get().$name($($argument),*)
            }
        )*

        #[inline]
        fn exception_thrown_in(&self, exception: ObjectId<'_>, frame: NativeFrame) {
            self.get().exception_thrown_in(exception, frame);
        }

        #[inline]
        fn object_allocated_in(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
            self.get().object_allocated_in(object, class, frame);
        }
    };
}

/// A part that can be added and removed while the program runs. Without a part, callbacks do
/// nothing.
///
/// A callback that is running when the part is removed keeps using the part.
/// [`wait_for_callbacks`](crate::ProfilerInfo::wait_for_callbacks) waits until no callback uses it
/// any more.
///
/// ```
/// use clr_profiler::Callbacks;
/// use clr_profiler::callbacks::Replaceable;
///
/// struct Quiet;
/// impl Callbacks for Quiet {}
///
/// let part = Replaceable::default();
/// part.put(Box::leak(Box::new(Quiet)));
/// assert!(part.take_away().is_some() && part.get().is_none());
/// ```
#[derive(Debug)]
pub struct Replaceable<C: 'static>(AtomicPtr<C>);

impl<C> Default for Replaceable<C> {
    fn default() -> Self {
        Self(AtomicPtr::default())
    }
}

impl<C: Sync> Replaceable<C> {
    /// Sets the part and replaces the previous one, if any.
    pub fn put(&self, part: &'static C) {
        self.0.store(ptr::from_ref(part).cast_mut(), Ordering::SeqCst);
    }

    /// The current part.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&'static C> {
        // `SeqCst` orders this load with `take_away` and with the counting of callbacks: either the
        // callback does not find the part, or a wait for callbacks includes this one.
        let part = self.0.load(Ordering::SeqCst);
        // SAFETY: null, or the reference given to `put`, which is never freed and only shared.
        unsafe { part.as_ref() }
    }

    /// Removes the part and returns it.
    pub fn take_away(&self) -> Option<&'static C> {
        let part = self.0.swap(ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: as in `get`.
        unsafe { part.as_ref() }
    }
}

/// `None` ignores all callbacks.
impl<C: Callbacks> Callbacks for Option<C> {
    crate::for_each_callback!(notify_each);
}

/// A part that is set later. Until then, callbacks do nothing.
impl<C: Callbacks> Callbacks for OnceLock<C> {
    crate::for_each_callback!(notify_set);
}

/// A part that can be added and removed. While there is no part, callbacks do nothing.
impl<C: Callbacks> Callbacks for Replaceable<C> {
    crate::for_each_callback!(notify_set);
}

impl<C: Callbacks> Callbacks for [C] {
    crate::for_each_callback!(notify_each);
}

impl<C: Callbacks> Callbacks for Vec<C> {
    crate::for_each_callback!(notify_each);
}
