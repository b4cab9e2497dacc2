//! The heap of the fake runtime: objects, their generations and references.

use std::collections::BTreeMap;

use clr_profiler_sys::enums::COR_PRF_GC_GENERATION;
use clr_profiler_sys::structs::COR_PRF_GC_GENERATION_RANGE;

use clr_profiler::callback_args::Generation;
use clr_profiler::{ClassId, HResult};

/// The address of an object of a fake runtime, see
/// [`FakeRuntime::object`](super::FakeRuntime::object). The address points to zeroed memory of the
/// object's size, so a profiler reads zeros and the references that the test has set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FakeObject(pub(crate) usize);

impl FakeObject {
    /// The address, as the runtime passes it to the profiler.
    #[must_use]
    pub const fn address(self) -> usize {
        self.0
    }
}

pub(super) struct Object {
    pub(super) class: ClassId,
    pub(super) bytes: usize,
    generation: Generation,
    /// Offsets of the object's references.
    pub(super) references: Vec<usize>,
}

/// The objects, by address.
#[derive(Default)]
pub(super) struct Heap(BTreeMap<usize, Object>);

impl Heap {
    pub(super) fn allocate(&mut self, class: ClassId, bytes: usize) -> FakeObject {
        let bytes = bytes.max(super::field::LEAST);
        let memory: &'static mut [u64] = Box::leak(vec![0; bytes.div_ceil(8)].into_boxed_slice());
        let address = memory.as_mut_ptr().expose_provenance();
        self.0.insert(address, Object { class, bytes, generation: Generation::Gen0, references: Vec::new() });
        FakeObject(address)
    }

    pub(super) fn get(&self, address: usize) -> Result<&Object, HResult> {
        self.0.get(&address).ok_or(HResult::INVALID_ARGUMENT)
    }

    pub(super) fn addresses(&self) -> Vec<usize> {
        self.0.keys().copied().collect()
    }

    fn known(&mut self, object: FakeObject) -> &mut Object {
        self.0.get_mut(&object.0).unwrap_or_else(|| panic!("there is no object {object:?}"))
    }

    pub(super) fn refer(&mut self, from: FakeObject, offset: usize, to: FakeObject) {
        self.known(to);
        let object = self.known(from);
        let fits = offset.is_multiple_of(8) && (8..=object.bytes - 8).contains(&offset);
        assert!(fits, "an object of {} bytes has no reference at {offset}", object.bytes);
        object.references.push(offset);
        // SAFETY: the offset lies in the object's memory, which is aligned, never freed, and used
        // by nothing else.
        unsafe { std::ptr::with_exposed_provenance_mut::<usize>(from.0 + offset).write(to.0) };
    }

    pub(super) fn set_generation(&mut self, object: FakeObject, generation: Generation) {
        self.known(object).generation = generation;
    }

    /// Returns one range per object: the objects are scattered over the test's memory.
    pub(super) fn bounds(&self) -> Vec<COR_PRF_GC_GENERATION_RANGE> {
        self.0.iter().map(|(address, object)| range(*address, object)).collect()
    }

    pub(super) fn range_of(&self, object: usize) -> Result<COR_PRF_GC_GENERATION_RANGE, HResult> {
        self.get(object).map(|known| range(object, known))
    }
}

fn range(address: usize, object: &Object) -> COR_PRF_GC_GENERATION_RANGE {
    COR_PRF_GC_GENERATION_RANGE {
        generation: COR_PRF_GC_GENERATION(object.generation.as_raw()),
        range_start: address,
        range_length: object.bytes,
        range_length_reserved: object.bytes,
    }
}
