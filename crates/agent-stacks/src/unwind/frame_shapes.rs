//! Frames of compiled methods, for callers that ask the runtime about single addresses and have no
//! map of code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{CodeRange, FunctionId, ProfilerInfo};

use super::arch::{Base, FrameStep};
use super::images::{Image, image_at};
use super::tables::{BodyCode, BodyStep, BodyUnwind, OwnMemory};

/// The layout of a compiled method's frame after its prolog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameShape {
    /// Bytes from the method's stack pointer to the caller's stack pointer after the return. Not
    /// valid in a method that allocates on the stack.
    pub bytes: usize,
    /// Whether the caller's frame pointer is the word below the return address.
    pub(crate) keeps_frame_pointer: bool,
}

impl FrameShape {
    pub(crate) fn from_step(step: FrameStep) -> Self {
        let bytes = usize::try_from(step.to_caller).unwrap_or(0);
        Self { bytes, keeps_frame_pointer: step.keeps_frame_pointer() }
    }
}

/// Images that contained requested frames, by start address.
#[derive(Default)]
pub(crate) struct FrameShapes(Mutex<HashMap<usize, Option<Arc<Image>>>>);

impl FrameShapes {
    fn images(&self) -> MutexGuard<'_, HashMap<usize, Option<Arc<Image>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it when code was unloaded, as other code may be placed at its addresses.
    pub(crate) fn forget(&self) {
        self.images().clear();
    }

    /// The frame layout of the method whose code begins at `start`, outside of its handler blocks;
    /// `None` if unknown.
    pub(crate) fn of_method(
        &self,
        info: &ProfilerInfo,
        function: FunctionId,
        (start, ranges): (usize, &[CodeRange]),
    ) -> Option<FrameShape> {
        let range = ranges.iter().find(|range| range.start == start)?;
        self.find(info, function, range)?.0.frame().map(FrameShape::from_step)
    }

    /// The frame layout at a return address. `None` if the stack pointer alone does not lead to the
    /// caller: in handler blocks, and in methods that allocate on the stack. Also `None` if nothing
    /// certain is known.
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

    /// The unwind information of a piece of code, and its image if it was compiled at build time.
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
        // Code with types of several modules may lie in another module's image, which is not found
        // here.
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
