//! Frames of a walked stack, and conclusions from them about the whole stack.

use clrscope_recording::model::{Inlining, StackFrame};

use super::raw::Registers;
use crate::awaiters::AsyncPart;
use crate::inlined::InlinedFrames;

/// A frame of a walked stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkedFrame {
    /// Registers of the frame. The stack pointer is 0 for a frame from a chain of return addresses.
    pub(super) registers: Registers,
    pub(super) frame: StackFrame,
    /// Methods inlined into the frame's method that lead to the call there.
    pub(super) inlined: InlinedFrames,
    /// The role of the method in asynchronous code.
    pub(super) part: AsyncPart,
    pub(super) marks: Marks,
}

/// Properties of a frame, from which conclusions about the whole stack are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The frame belongs to the just-in-time compiler.
    pub(super) compiler: bool,
    /// The frame belongs to the library of the collector, if that is a separate library.
    pub(super) collector: bool,
    /// The frame belongs to the agent.
    pub(super) agent: bool,
    /// The frame's function is one of the runtime's that load types.
    pub(super) loads_types: bool,
    /// The frame belongs to the program's executable: the runtime's host, or in a single-file
    /// program the runtime itself.
    pub(super) main_program: bool,
    /// The frame belongs to a library other than the runtime and the C library.
    pub(super) other_library: bool,
    /// `method`: the frame is a compiled method. `own_code`: the method is outside the framework.
    pub(super) method: bool,
    pub(super) own_code: bool,
    /// The frame was guessed from its callee.
    pub(super) guessed: bool,
    /// Whether the methods inlined there are known. Unused for the framework's methods.
    pub(super) inlining: Inlining,
}

/// Properties of a stack, derived from the marks of its frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FrameMarks {
    /// The just-in-time compiler is on the stack.
    pub compiler: bool,
    /// The library of the collector is on the stack, if that is a separate library.
    pub collector: bool,
    /// The agent is on the stack. Everything that the agent calls is work for the profiler.
    pub agent: bool,
    /// The runtime loads a type, and has called no method to do so.
    pub(crate) type_load: bool,
    /// A method outside the framework is on the stack.
    pub(crate) own_code: bool,
    /// The innermost method called a library other than the runtime.
    pub(crate) called_library: bool,
    /// No frames except those of the runtime and the C library.
    pub(crate) runtime_alone: bool,
    /// A frame was guessed.
    pub(crate) guessed: bool,
    /// The least known inlining of any method on the stack.
    pub inlining: Inlining,
}

impl FrameMarks {
    /// Derives the properties of a stack from the marks of its frames, given innermost first.
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
