//! Events about collections, decoded from the payloads of the runtime's provider.

use clrscope_agent_base::event_pipe::{Fields, RuntimeEvent};

/// The provider's keyword for events about collections.
pub(crate) const GC_KEYWORD: u64 = 1;

/// Number of generations, including large and pinned objects.
pub(crate) const GENERATIONS: usize = 5;

/// Bytes of a generation in the payload: ten numbers.
const GENERATION_BYTES: usize = 80;

/// An event about collections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GcEvent {
    /// A thread asks for a collection.
    Triggered { reason: u32 },
    /// A collection begins.
    Started { number: u32, generation: u32, reason: u32, kind: u32 },
    /// A collection ends.
    Ended { number: u32, generation: u32 },
    /// State of all heaps after a collection.
    Statistics { promoted: [u64; GENERATIONS], pinned: u32, handles: u32 },
    /// Sizes of one heap.
    Heap { heap: u32, generations: [Option<GenerationSizes>; GENERATIONS] },
    /// Mechanisms that a collection used.
    Mechanisms { generation: u32, mechanisms: u32, memory_load: Option<u32> },
    /// A step of a suspension. `step` is the number of the event; only the first step has a reason.
    Suspension { step: u32, reason: Option<u32> },
    /// Finalizers have run.
    Finalizers { count: u32 },
    /// The heap has a new range: its objects begin at `start`, and its size is `bytes`.
    Range { start: u64, bytes: u64 },
}

/// Sizes of a generation of one heap, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GenerationSizes {
    pub(crate) before: u64,
    pub(crate) free_before: u64,
    pub(crate) after: u64,
    pub(crate) free_after: u64,
}

impl GcEvent {
    /// Decodes the event; `None` for other events and for payloads that are too short.
    pub(crate) fn read(event: RuntimeEvent<'_>) -> Option<Self> {
        let mut fields = event.fields;
        match event.id {
            1 => started(&mut fields, event.version),
            2 => Some(Self::Ended { number: fields.u32()?, generation: fields.u32()? }),
            4 => statistics(&mut fields),
            5 => Some(Self::Range { start: fields.u64()?, bytes: fields.u64()? }),
            step @ (3 | 7 | 8) => Some(Self::Suspension { step, reason: None }),
            step @ 9 => Some(Self::Suspension { step, reason: Some(fields.u32()?) }),
            13 => Some(Self::Finalizers { count: fields.u32()? }),
            35 => Some(Self::Triggered { reason: fields.u32()? }),
            204 => heap(&mut fields),
            205 => mechanisms(&mut fields),
            _ => None,
        }
    }
}

fn started(fields: &mut Fields<'_>, version: u32) -> Option<GcEvent> {
    // The first version has neither generation nor type.
    if version == 0 {
        return None;
    }
    let [number, generation, reason, kind] = [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
    Some(GcEvent::Started { number, generation, reason, kind })
}

fn statistics(fields: &mut Fields<'_>) -> Option<GcEvent> {
    let mut promoted = [0; GENERATIONS];
    for generation in &mut promoted[..4] {
        let _size = fields.u64()?;
        *generation = fields.u64()?;
    }
    let _finalizable = (fields.u64()?, fields.u64()?);
    let pinned = fields.u32()?;
    let _sync_blocks = fields.u32()?;
    let handles = fields.u32()?;
    // The heap of pinned objects came with the second version.
    let last = (fields.u16(), fields.u64(), fields.u64());
    promoted[4] = last.2.unwrap_or(0);
    Some(GcEvent::Statistics { promoted, pinned, handles })
}

fn heap(fields: &mut Fields<'_>) -> Option<GcEvent> {
    let _runtime = fields.u16()?;
    fields.read_bytes(6 * size_of::<u64>() + 5 * size_of::<u32>())?;
    let heap = fields.u32()?;
    let _committed = fields.u64()?;
    let count = fields.u32()? as usize;
    let mut generations = [None; GENERATIONS];
    for generation in generations.iter_mut().take(count) {
        *generation = Some(sizes(Fields::new(fields.read_bytes(GENERATION_BYTES)?))?);
    }
    Some(GcEvent::Heap { heap, generations })
}

fn sizes(mut fields: Fields<'_>) -> Option<GenerationSizes> {
    let mut of_moment = || {
        let [size, free_list, free_objects] = [fields.u64()?, fields.u64()?, fields.u64()?];
        Some((size, free_list.saturating_add(free_objects)))
    };
    let ((before, free_before), (after, free_after)) = (of_moment()?, of_moment()?);
    Some(GenerationSizes { before, free_before, after, free_after })
}

fn mechanisms(fields: &mut Fields<'_>) -> Option<GcEvent> {
    let _budget = fields.u64()?;
    let _heaps = fields.u32()?;
    let generation = fields.u32()?;
    let _reductions = (fields.u32()?, fields.u32()?);
    let mechanisms = fields.u32()?;
    let (_runtime, _pause_mode, memory_load) = (fields.u16(), fields.u32(), fields.u32());
    Some(GcEvent::Mechanisms { generation, mechanisms, memory_load })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u32, version: u32, bytes: &[u8]) -> Option<GcEvent> {
        GcEvent::read(RuntimeEvent { id, version, fields: Fields::new(bytes) })
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Sizes of one heap as .NET stores them: generation `n` has `n` thousand bytes before the
    /// collection and `n` hundred after.
    fn heap_event(generations: u64) -> Vec<u8> {
        let mut bytes = 9_u16.to_le_bytes().to_vec();
        bytes.extend([0; 48]);
        bytes.extend(words(&[0, 0, 0, 0, 0, 3]));
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend((generations as u32).to_le_bytes());
        for generation in 0..generations {
            let numbers = [generation * 1_000, 10, 1, generation * 100, 5, 1, 0, 0, 0, 0];
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn events_are_read_as_the_runtime_packs_them() {
        let started = GcEvent::Started { number: 7, generation: 2, reason: 1, kind: 1 };
        assert_eq!(event(1, 2, &words(&[7, 2, 1, 1, 9])), Some(started));
        assert_eq!(event(2, 1, &words(&[7, 2])), Some(GcEvent::Ended { number: 7, generation: 2 }));
        assert_eq!(event(9, 1, &words(&[6, 7])), Some(GcEvent::Suspension { step: 9, reason: Some(6) }));
        assert_eq!(event(3, 1, &[9, 0]), Some(GcEvent::Suspension { step: 3, reason: None }));
        assert_eq!(event(13, 1, &words(&[12])), Some(GcEvent::Finalizers { count: 12 }));
        let range = GcEvent::Range { start: 0x7_0000_0028, bytes: 1 << 22 };
        assert_eq!(event(5, 1, &words(&[0x28, 7, 1 << 22, 0, 0])), Some(range));
        assert_eq!(event(35, 0, &words(&[4])), Some(GcEvent::Triggered { reason: 4 }));
        let Some(GcEvent::Heap { heap: 3, generations }) = event(204, 3, &heap_event(5)) else { panic!("a heap") };
        let second = GenerationSizes { before: 2_000, free_before: 11, after: 200, free_after: 6 };
        assert_eq!(generations[2], Some(second));
        let mut global = 0_u64.to_le_bytes().to_vec();
        global.extend(words(&[1, 2, 0, 1, 6]));
        let expected = |memory_load| Some(GcEvent::Mechanisms { generation: 2, mechanisms: 6, memory_load });
        assert_eq!(event(205, 1, &global), expected(None));
        global.extend(9_u16.to_le_bytes());
        global.extend(words(&[1, 55]));
        assert_eq!(event(205, 2, &global), expected(Some(55)));
    }

    #[test]
    fn promoted_bytes_are_those_of_all_five_generations() {
        let mut bytes: Vec<u8> = (0..4_u64).flat_map(|n| [n * 1_000, n]).flat_map(u64::to_le_bytes).collect();
        bytes.extend([0; 16]);
        bytes.extend(words(&[3, 0, 40]));
        let old = GcEvent::Statistics { promoted: [0, 1, 2, 3, 0], pinned: 3, handles: 40 };
        assert_eq!(event(4, 1, &bytes), Some(old));
        bytes.extend(9_u16.to_le_bytes());
        bytes.extend([4_000_u64, 4].iter().flat_map(|number| number.to_le_bytes()));
        let new = GcEvent::Statistics { promoted: [0, 1, 2, 3, 4], pinned: 3, handles: 40 };
        assert_eq!(event(4, 2, &bytes), Some(new));
    }

    #[test]
    fn a_cut_event_is_none_and_one_that_promises_more_than_it_has_too() {
        let whole = heap_event(5);
        for length in 0..whole.len() {
            assert_eq!(event(204, 3, &whole[..length]), None, "{length} bytes");
        }
        let mut bytes = heap_event(1);
        let count = bytes.len() - GENERATION_BYTES - 4;
        bytes[count..count + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(event(204, 3, &bytes), None);
        for id in [1, 2, 4, 5, 9, 13, 35, 205] {
            assert_eq!(event(id, 1, &[1, 0, 0]), None, "event {id}");
        }
        assert_eq!(event(10, 4, &[0; 200]), None, "an event that is of no interest");
    }

    /// The payload comes from a runtime of any version: arbitrary bytes decode to an event or to
    /// `None`.
    #[test]
    fn any_bytes_are_an_event_or_none() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut read = 0;
        for _ in 0..50_000 {
            let mut bytes: Vec<u8> = if random() % 3 == 0 { heap_event(5) } else { vec![0; random() % 600] };
            (0..1 + random() % 64).for_each(|_| {
                let (at, length) = (random(), bytes.len());
                bytes.get_mut(at % length.max(1)).into_iter().for_each(|byte| *byte = random() as u8);
            });
            let id = [1, 2, 3, 4, 5, 7, 8, 9, 13, 35, 204, 205, 206][random() % 13];
            if let Some(GcEvent::Heap { ref generations, .. }) = event(id, random() as u32 % 5, &bytes) {
                read += usize::from(generations.iter().any(Option::is_some));
            }
        }
        assert!(read > 100, "{read} heaps are read");
    }
}
