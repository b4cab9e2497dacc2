//! Frames of a stack that was walked, and what they say of the whole of it.

use clrscope_recording::model::{Inlining, StackFrame};

use super::raw::Registers;
use crate::awaiters::AsyncPart;
use crate::inlined::InlinedFrames;

/// A frame of a stack that was walked.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkedFrame {
    /// Registers in the frame; the stack pointer is 0 where a chain of return addresses was
    /// followed.
    pub(super) registers: Registers,
    pub(super) frame: StackFrame,
    /// Methods that were put into that of the frame, and were called by it.
    pub(super) inlined: InlinedFrames,
    /// Part that the method plays in running asynchronous code.
    pub(super) part: AsyncPart,
    pub(super) marks: Marks,
}

/// Marks of a frame, which say something of the whole stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The just-in-time compiler.
    pub(super) compiler: bool,
    /// The library of the collector, where that is one of its own.
    pub(super) collector: bool,
    /// The agent.
    pub(super) agent: bool,
    /// A function of the runtime in which types are loaded.
    pub(super) loads_types: bool,
    /// The program that was started: the runtime's host, and in a single file the runtime itself.
    pub(super) main_program: bool,
    /// A library that is neither the runtime's nor the C library.
    pub(super) other_library: bool,
    /// A method, and one that is not the framework's.
    pub(super) method: bool,
    pub(super) own_code: bool,
    /// The frame was found by a guess from the one that it called.
    pub(super) guessed: bool,
    /// Knowledge of what the compiler put into the method there; nothing is said of the
    /// framework's.
    pub(super) inlining: Inlining,
}

/// Properties of a stack, by the frames that are on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FrameMarks {
    /// The just-in-time compiler.
    pub compiler: bool,
    /// The library of the collector, where that is one of its own.
    pub collector: bool,
    /// The agent: what it calls it calls for the profiler.
    pub agent: bool,
    /// The runtime, which loads a type, and no method that it called for that.
    pub(crate) type_load: bool,
    /// A method that is not the framework's.
    pub(crate) own_code: bool,
    /// A library that is not the runtime's, which the innermost method called.
    pub(crate) called_library: bool,
    /// Nothing but the runtime and the C library.
    pub(crate) runtime_alone: bool,
    /// A frame was found by a guess.
    pub(crate) guessed: bool,
    /// The least that is known of what the compiler put into the methods.
    pub inlining: Inlining,
}

impl FrameMarks {
    /// Of the marks of a stack's frames, innermost first.
    pub(super) fn by(marks: impl Iterator<Item = Marks>) -> Self {
        let (mut all, mut in_method) = (Self { runtime_alone: true, ..Self::default() }, false);
        for frame in marks {
            all.compiler |= frame.compiler;
            all.guessed |= frame.guessed;
            all.inlining = all.inlining.max(frame.inlining);
            all.collector |= frame.collector;
            all.agent |= frame.agent;
            all.own_code |= frame.own_code;
            all.type_load |= frame.loads_types && !in_method;
            all.called_library |= frame.other_library && !in_method;
            all.runtime_alone &= !frame.other_library && !frame.main_program && !frame.method;
            in_method |= frame.method;
        }
        all
    }
}
