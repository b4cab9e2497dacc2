//! Frames of compiled methods, for those who ask the runtime about single addresses and have no map
//! of code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{CodeRange, FunctionId, ProfilerInfo};

use super::arch::{Base, FrameStep};
use super::images::{Image, image_at};
use super::tables::{BodyCode, BodyStep, BodyUnwind, OwnMemory};

/// The frame of a compiled method behind its prolog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameShape {
    /// From the stack pointer in the method's body to that of its caller after the return. Not so
    /// in a method that allocates on the stack.
    pub bytes: usize,
    /// The caller's frame pointer is the word below the return address.
    pub(crate) keeps_frame_pointer: bool,
}

impl FrameShape {
    pub(crate) fn from_step(step: FrameStep) -> Self {
        let bytes = usize::try_from(step.to_caller).unwrap_or(0);
        Self { bytes, keeps_frame_pointer: step.keeps_frame_pointer() }
    }
}

/// Images that frames were asked about in, by where they begin.
#[derive(Default)]
pub(crate) struct FrameShapes(Mutex<HashMap<usize, Option<Arc<Image>>>>);

impl FrameShapes {
    fn images(&self) -> MutexGuard<'_, HashMap<usize, Option<Arc<Image>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Code is gone; other code may come to lie at its addresses.
    pub(crate) fn forget(&self) {
        self.images().clear();
    }

    /// The frame of the method itself whose code begins at `start`; `None` where that is not known.
    pub(crate) fn of_method(
        &self,
        info: &ProfilerInfo,
        function: FunctionId,
        (start, ranges): (usize, &[CodeRange]),
    ) -> Option<FrameShape> {
        let range = ranges.iter().find(|range| range.start == start)?;
        self.find(info, function, range)?.0.frame().map(FrameShape::from_step)
    }

    /// The frame at an address that a call returns to, where the stack pointer alone leads to the
    /// caller; `None` in blocks of handlers, in methods that allocate on the stack, and where
    /// nothing certain is known.
    pub(crate) fn at_return(
        &self,
        info: &ProfilerInfo,
        (function, address): (FunctionId, usize),
        ranges: &[CodeRange],
    ) -> Option<FrameShape> {
        let range = ranges.iter().find(|range| range.contains(address - 1))?;
        let (unwind, image) = self.find(info, function, range)?;
        let code = range.start..range.start + range.bytes;
        let body = BodyCode { code: &code, image: image.as_deref(), memory: &OwnMemory };
        let BodyStep { step, is_certain } = unwind.step(body, address, true);
        (is_certain && step.base == Base::StackPointer).then(|| FrameShape::from_step(step))
    }

    /// The unwind information of a piece of code, and the image that it lies in, if it was compiled
    /// at build time.
    fn find(
        &self,
        info: &ProfilerInfo,
        function: FunctionId,
        range: &CodeRange,
    ) -> Option<(BodyUnwind, Option<Arc<Image>>)> {
        let code = range.start..range.start + range.bytes;
        let find = |image: Option<&Image>| BodyUnwind::find(BodyCode { code: &code, image, memory: &OwnMemory });
        let compiled = find(None);
        if compiled != BodyUnwind::Unknown {
            return Some((compiled, None));
        }
        // Code over types of several modules may lie in another module's image: of that nothing is
        // known here.
        let base = info.module_info(info.function_info(function).ok()?.module).ok()?.base_address;
        let known = self.images().get(&base).cloned();
        let image = known.unwrap_or_else(|| {
            let image = image_at(base).map(Arc::new);
            self.images().insert(base, image.clone());
            image
        })?;
        let unwind = find(Some(&image));
        Some((unwind, Some(image)))
    }
}
