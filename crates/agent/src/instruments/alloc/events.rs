//! The runtime's own events about allocations, delivered through EventPipe.

use clr_profiler::ClassId;
use clrscope_agent_base::event_pipe::{COLLECTIONS, Fields, SAMPLED_ALLOCATIONS};
use clrscope_recording::model::ObjectHeap;

/// Number of the event for a randomly sampled allocation (.NET 10 and later), and the keyword that
/// switches it on.
pub(super) const SAMPLED: u32 = 303;
pub(super) const SAMPLED_KEYWORD: u64 = SAMPLED_ALLOCATIONS;
/// Number of the event for the allocation tick, which comes every 100 KiB, and the keyword that
/// switches it on.
pub(super) const TICK: u32 = 10;
pub(super) const TICK_KEYWORD: u64 = COLLECTIONS;
/// Mean number of bytes between two samples. The runtime samples each byte with a probability of 1
/// / `MEAN_BYTES`, or ticks after this many bytes.
pub(super) const MEAN_BYTES: u64 = 100 << 10;
/// Objects of at least this many bytes count as large, if the runtime does not say which heap they
/// are on.
pub(super) const LARGE_FROM: u64 = 85_000;

/// A sampled object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SampledObject {
    pub(super) class: ClassId,
    pub(super) heap: ObjectHeap,
    /// Address of the object. The object is not initialized yet.
    pub(super) address: usize,
    pub(super) bytes: u64,
    /// Number of bytes that this sample represents: at least the object's own size.
    pub(super) weight: u64,
}

impl SampledObject {
    /// Reads the fields of the event [`SAMPLED`]; `None` if the data are too short.
    pub(super) fn of_sampled(mut fields: Fields<'_>) -> Option<Self> {
        let heap = ObjectHeap::from_number(fields.u32()?);
        fields.u16()?;
        let class = fields.u64()?;
        _ = fields.text()?;
        let (address, size) = (fields.u64()?, fields.u64()?);
        let bytes = on_heap(size);
        Some(Self { class: class_id(class)?, heap, address: address as usize, bytes, weight: weight(size).max(bytes) })
    }

    /// Reads the fields of the event [`TICK`], version 4; `None` if the data are too short.
    pub(super) fn of_tick(mut fields: Fields<'_>) -> Option<Self> {
        fields.u32()?;
        let heap = ObjectHeap::from_number(fields.u32()?);
        fields.u16()?;
        let (amount, class) = (fields.u64()?, fields.u64()?);
        _ = fields.text()?;
        fields.u32()?;
        let (address, size) = (fields.u64()?, fields.u64()?);
        let bytes = on_heap(size);
        Some(Self { class: class_id(class)?, heap, address: address as usize, bytes, weight: amount.max(bytes) })
    }
}

/// Bytes that an object of this size takes.
fn on_heap(size: u64) -> u64 {
    size.saturating_add(7) & !7
}

/// Bytes that a randomly sampled object represents: its size, divided by the probability that one
/// of its bytes is sampled.
fn weight(size: u64) -> u64 {
    let chance = -(size as f64 * (-1.0 / MEAN_BYTES as f64).ln_1p()).exp_m1();
    if chance > 0.0 { (size as f64 / chance) as u64 } else { MEAN_BYTES }
}

fn class_id(raw: u64) -> Option<ClassId> {
    // SAFETY: the runtime has just said in an event that it allocates an object of this class, so
    // the class is there; the owner of the number forgets it when a module unloads.
    unsafe { ClassId::from_raw(raw as usize) }.non_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn events_are_read_and_cut_ones_are_none() {
        let mut sampled =
            [0_u32.to_le_bytes().as_slice(), &[9, 0], &0x7000_u64.to_le_bytes(), &text("Shop.Order")].concat();
        sampled.extend([0x8000_u64, 41, 7].iter().flat_map(|number| number.to_le_bytes()));
        let read = SampledObject::of_sampled(Fields::new(&sampled)).expect("an object");
        assert_eq!((read.class.as_raw(), read.heap, read.address, read.bytes), (0x7000, ObjectHeap::Small, 0x8000, 48));
        assert!(read.weight.abs_diff(102_400) < 60, "{}", read.weight);
        let mut tick = [5_u32.to_le_bytes(), 2_u32.to_le_bytes()].concat();
        tick.extend([9, 0]);
        tick.extend([106_504_u64, 0x7000].iter().flat_map(|number| number.to_le_bytes()));
        tick.extend(text("Shop.Order"));
        tick.extend(3_u32.to_le_bytes());
        tick.extend([0x8000_u64, 48].iter().flat_map(|number| number.to_le_bytes()));
        let read = SampledObject::of_tick(Fields::new(&tick)).expect("an object");
        assert_eq!((read.heap, read.bytes, read.weight), (ObjectHeap::Pinned, 48, 106_504));
        for cut in 0..tick.len() {
            assert_eq!(SampledObject::of_tick(Fields::new(&tick[..cut])), None);
        }
        for cut in 0..sampled.len() - 8 {
            assert_eq!(SampledObject::of_sampled(Fields::new(&sampled[..cut])), None);
        }
    }

    /// The payload comes from a runtime of any version. Any bytes must decode to an object or to
    /// `None`, and no object may represent less than its own size.
    #[test]
    fn any_bytes_are_an_object_or_none() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut read = 0;
        for _ in 0..50_000 {
            let mut bytes = vec![0_u8; random() % 80];
            bytes.iter_mut().for_each(|byte| *byte = if random() % 2 == 0 { 0 } else { random() as u8 });
            for object in [SampledObject::of_sampled(Fields::new(&bytes)), SampledObject::of_tick(Fields::new(&bytes))]
            {
                read += usize::from(object.is_some());
                assert!(
                    object.is_none_or(|object| object.weight >= object.bytes && object.class.as_raw() != 0),
                    "{bytes:?}"
                );
            }
        }
        assert!(read > 1_000, "{read} are read");
    }

    #[test]
    fn what_an_object_stands_for_is_its_size_by_its_chance() {
        assert_eq!(weight(0), MEAN_BYTES);
        assert!(weight(24).abs_diff(MEAN_BYTES) < 20);
        assert!(weight(10 << 20).abs_diff(10 << 20) < 2, "what is surely sampled stands for itself");
    }
}
