//! Frames of a walked stack, and conclusions from them about the whole stack.

use clrscope_recording::model::{Inlining, StackFrame};

use super::raw::Registers;
use crate::awaiters::AsyncPart;
use crate::inlined::InlinedFrames;

/// A frame of a walked stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkedFrame {
    /// Registers in the frame. The stack pointer is 0 for a frame from a chain of return addresses.
    pub(super) registers: Registers,
    pub(super) frame: StackFrame,
    /// Methods inlined into the frame's method, and called by it.
    pub(super) inlined: InlinedFrames,
    /// The role of the method in asynchronous code.
    pub(super) part: AsyncPart,
    pub(super) marks: Marks,
}

/// Marks of a frame, for conclusions about the whole stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The just-in-time compiler.
    pub(super) compiler: bool,
    /// The library of the collector, if it is separate.
    pub(super) collector: bool,
    /// The agent.
    pub(super) agent: bool,
    /// A function of the runtime that loads types.
    pub(super) loads_types: bool,
    /// The program's executable: the runtime's host, or in a single-file program the runtime
    /// itself.
    pub(super) main_program: bool,
    /// A library other than the runtime and the C library.
    pub(super) other_library: bool,
    /// A method; a method outside the framework.
    pub(super) method: bool,
    pub(super) own_code: bool,
    /// The frame was guessed from its callee.
    pub(super) guessed: bool,
    /// Whether the methods inlined there are known. Unused for the framework's methods.
    pub(super) inlining: Inlining,
}

/// Properties of a stack, from the marks of its frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FrameMarks {
    /// The just-in-time compiler.
    pub compiler: bool,
    /// The library of the collector, if it is separate.
    pub collector: bool,
    /// The agent: everything that it calls is for the profiler.
    pub agent: bool,
    /// The runtime loads a type, without a method that it called for that.
    pub(crate) type_load: bool,
    /// A method outside the framework.
    pub(crate) own_code: bool,
    /// The innermost method called a library other than the runtime.
    pub(crate) called_library: bool,
    /// No frames except those of the runtime and the C library.
    pub(crate) runtime_alone: bool,
    /// A frame was guessed.
    pub(crate) guessed: bool,
    /// The least that is known about inlining of any of the methods.
    pub inlining: Inlining,
}

impl FrameMarks {
    /// Combines the marks of a stack's frames, given innermost first.
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
