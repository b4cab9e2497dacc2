//! Composition: several [`Callbacks`] that are notified one after another, made from the table of
//! callbacks.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use crate::callback_args::Inlining;
use crate::current_stack::NativeFrame;
use crate::{Callbacks, ClassId, ObjectId, Result};

/// An answer to the runtime, and how those of several parts become one.
pub trait Answer: Sized {
    /// The answer of a part that has nothing to say, which changes no other: the default of every
    /// callback of this type.
    const NEUTRAL: Self;

    /// The answer of two parts, the first being `self`.
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

/// One answer of all parts'. The array is what makes every part be asked, in order.
#[doc(hidden)]
#[inline]
pub fn together<A: Answer, const PARTS: usize>(answers: [A; PARTS]) -> A {
    answers.into_iter().fold(A::NEUTRAL, A::and)
}

/// Makes a type of several parts [`Callbacks`]: each part gets every callback, in the order given,
/// and the answers become one by [`Answer`](crate::callbacks::Answer).
///
/// The parts are fields (or numbers of a tuple's) that are [`Callbacks`] themselves. Generic
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

/// The methods of a composition with these parts.
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

/// The methods of what leads to one part.
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

/// The methods of what can be gone through.
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

/// The methods of a part that is made later.
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

/// A part that is put in while the program runs, and taken away again: nothing is notified while
/// there is none.
///
/// A callback that is under way when the part is taken away goes on with it:
/// [`wait_for_callbacks`](crate::ProfilerInfo::wait_for_callbacks) says when none does any more.
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
    /// Puts a part in, in the place of the one that is there.
    pub fn put(&self, part: &'static C) {
        self.0.store(ptr::from_ref(part).cast_mut(), Ordering::SeqCst);
    }

    /// The part.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&'static C> {
        // In one order with `take_away` and with the counting of callbacks: either a callback does
        // not find the part, or who waits for callbacks waits for this one.
        let part = self.0.load(Ordering::SeqCst);
        // SAFETY: null, or what `put` was given, which is never freed and shared alone.
        unsafe { part.as_ref() }
    }

    /// Takes the part away, and gives it.
    pub fn take_away(&self) -> Option<&'static C> {
        let part = self.0.swap(ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: as in `get`.
        unsafe { part.as_ref() }
    }
}

/// With `None`, nothing is notified.
impl<C: Callbacks> Callbacks for Option<C> {
    crate::for_each_callback!(notify_each);
}

/// A part that is made later: nothing is notified before.
impl<C: Callbacks> Callbacks for OnceLock<C> {
    crate::for_each_callback!(notify_set);
}

/// A part that comes and goes: nothing is notified while there is none.
impl<C: Callbacks> Callbacks for Replaceable<C> {
    crate::for_each_callback!(notify_set);
}

impl<C: Callbacks> Callbacks for [C] {
    crate::for_each_callback!(notify_each);
}

impl<C: Callbacks> Callbacks for Vec<C> {
    crate::for_each_callback!(notify_each);
}
