//! Frames by numbers: functions with the same name and module are one frame, even if they are
//! different generic instantiations.

use std::collections::HashMap;
use std::rc::Rc;

use clrscope_analysis::{FunctionRef, one_line};

/// A frame as other programs show it, with control characters escaped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Name of the function, with a marker if the code is a part of it such as a lambda.
    pub(crate) name: Rc<str>,
    /// The assembly or library; empty if unknown.
    pub(crate) module: Rc<str>,
}

/// Frames, without duplicates.
#[derive(Default)]
pub(crate) struct Frames {
    all: Vec<Frame>,
    numbers: HashMap<Frame, usize>,
    /// Numbers of functions, by their positions in the recording.
    functions: HashMap<usize, usize>,
}

impl Frames {
    /// Number of a function's frame, from 0.
    pub(crate) fn function(&mut self, function: &FunctionRef<'_>) -> usize {
        let place = std::ptr::from_ref(function.function).addr();
        if let Some(&number) = self.functions.get(&place) {
            return number;
        }
        let [name, module] = [&*function.label(), function.module()].map(|text| one_line(text).into());
        let number = self.number(Frame { name, module });
        self.functions.insert(place, number);
        number
    }

    /// Number of a frame that is not a function.
    pub(crate) fn named(&mut self, name: &str) -> usize {
        self.number(Frame { name: one_line(name).into(), module: "".into() })
    }

    /// The frames in the order of their numbers.
    pub(crate) fn all(&self) -> &[Frame] {
        &self.all
    }

    fn number(&mut self, frame: Frame) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(frame.clone()).or_insert(next);
        if number == next {
            self.all.push(frame);
        }
        number
    }
}
