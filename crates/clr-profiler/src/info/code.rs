//! Native code of functions.

use clr_profiler_sys::info::{ICorProfilerInfo8, ICorProfilerInfo9};
use clr_profiler_sys::structs::{COR_DEBUG_IL_TO_NATIVE_MAP, COR_PRF_CODE_INFO};

use super::{ProfilerInfo, ask_array, ask_array_of};
use crate::call_context::{outside_collections, outside_hooks};
use crate::error::check;
use crate::{FunctionId, ReJitId, Result};

/// A range of native code; a function may have a hot and a cold range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct CodeRange {
    /// Address of its first byte.
    pub start: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl CodeRange {
    /// Whether `address` is in the range.
    #[must_use]
    pub const fn contains(&self, address: usize) -> bool {
        address >= self.start && address - self.start < self.bytes
    }
}

/// Start of the code of one version of a function, as the runtime returned it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CodeStart {
    function: FunctionId,
    address: usize,
}

impl CodeStart {
    /// Address of the first byte.
    #[must_use]
    pub const fn address(self) -> usize {
        self.address
    }
}

/// A range of native code and the IL offset that it was compiled from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct IlRange {
    /// Offset in the IL; `None` for prologs, epilogs and code without IL.
    pub il: Option<u32>,
    /// Offset of the first byte from the code's start.
    pub start: u32,
    /// Offset past the last byte.
    pub end: u32,
    /// Whether the code is an epilog of the method or of a block in the method.
    pub is_epilog: bool,
}

/// Place in a method's IL, as precise as the IL map of its code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct IlPlace {
    /// Offset of the statement.
    pub offset: u32,
    /// Number of IL bytes from `offset` to the next statement that has code in the map; `None` if
    /// there is no such statement. Other statements that begin within these bytes have no code in
    /// the map: the compiler removed them, or their code is part of this statement's code.
    pub span: Option<u32>,
}

impl IlRange {
    /// The IL range of the code byte at offset `at`, according to the IL map; `None` if unknown. A
    /// prolog belongs to the method's first statement, an epilog to the statement before it.
    ///
    /// An optimising compiler maps only the beginning of a statement's code, and not for every
    /// statement. It maps inlined code to no IL, in large ranges. A range without IL can lie
    /// between the code of one statement and the code of the next statement in the map. Then it
    /// belongs to the former statement, or to a statement between the two. Elsewhere the compiler
    /// has moved blocks, and the place is not known.
    #[must_use]
    pub fn statement_at(map: &[Self], at: u32) -> Option<IlPlace> {
        let holding = || map.iter().filter(|range| (range.start..range.end).contains(&at));
        let offset =
            holding().find_map(|range| range.il).or_else(|| holding().find_map(|piece| piece.statement_around(map)))?;
        Some(IlPlace { offset, span: Self::after(map, offset).map(|next| next - offset) })
    }

    /// The smallest IL range that contains the statements of all code bytes at `offsets`, according
    /// to the IL map. `None` if there are no offsets, or if the range of one byte is unknown.
    #[must_use]
    pub fn statement_around_all(map: &[Self], offsets: impl IntoIterator<Item = u32>) -> Option<IlPlace> {
        let mut places = offsets.into_iter().map(|at| Self::statement_at(map, at));
        let first = places.next()??;
        let end = |place: IlPlace| Some(place.offset + place.span?);
        let (offset, end) = places.try_fold((first.offset, end(first)), |(offset, last), place| {
            let place = place?;
            Some((offset.min(place.offset), last.and_then(|last| Some(last.max(end(place)?)))))
        })?;
        Some(IlPlace { offset, span: end.map(|end| end - offset) })
    }

    /// The next statement with code in the map.
    fn after(map: &[Self], offset: u32) -> Option<u32> {
        map.iter().filter_map(|range| range.il).filter(|il| *il > offset).min()
    }

    /// The statement before a range without IL, if the range belongs to it or to a statement
    /// between it and the next statement in the map.
    fn statement_around(&self, map: &[Self]) -> Option<u32> {
        if self.start == 0 {
            return Some(0);
        }
        let before =
            map.iter().find(|range| range.end == self.start && range.start != range.end).and_then(|range| range.il)?;
        let behind = map.iter().find(|range| range.start == self.end).and_then(|range| range.il);
        let is_in_place = behind == Some(before) || (behind.is_some() && behind == Self::after(map, before));
        (self.is_epilog || is_in_place).then_some(before)
    }
}

/// Value that marks an epilog instead of an offset.
const EPILOG: u32 = u32::MAX - 2;
/// Number of map ranges of a method of usual length.
const IL_RANGES: usize = 256;

pub(super) fn ranges(infos: Vec<COR_PRF_CODE_INFO>) -> Vec<CodeRange> {
    infos.into_iter().map(|info| CodeRange { start: info.start_address, bytes: info.size }).collect()
}

pub(super) fn il_ranges(map: Vec<COR_DEBUG_IL_TO_NATIVE_MAP>) -> Vec<IlRange> {
    // The highest numbers are markers: no mapping, prolog, epilog.
    let il = |offset: u32| (offset < u32::MAX - 2).then_some(offset);
    let range = |m: COR_DEBUG_IL_TO_NATIVE_MAP| IlRange {
        il: il(m.il_offset),
        start: m.native_start_offset,
        end: m.native_end_offset,
        is_epilog: m.il_offset == EPILOG,
    };
    map.into_iter().map(range).collect()
}

impl ProfilerInfo {
    /// The code of a function's first version. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_FUNCTION_NOT_COMPILED` before the function is compiled.
    pub fn code_info(&self, function: FunctionId) -> Result<Vec<CodeRange>> {
        outside_collections("GetCodeInfo2")?;
        let runtime = self.base("GetCodeInfo2")?;
        let _function_stays = function.enter("GetCodeInfo2")?;
        // SAFETY: valid out-parameters.
        ask_array("GetCodeInfo2", |capacity, needed, infos| unsafe {
            runtime.GetCodeInfo2(function.0, capacity, needed, infos)
        })
        .map(ranges)
    }

    /// Start addresses of the versions (tiers) of a function. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn code_starts(&self, function: FunctionId, rejit: ReJitId) -> Result<Vec<CodeStart>> {
        outside_collections("GetNativeCodeStartAddresses")?;
        let method = "GetNativeCodeStartAddresses";
        let runtime = self.at_level::<ICorProfilerInfo9>(method)?;
        let _function_stays = function.enter(method)?;
        // SAFETY: valid out-parameters.
        ask_array(method, |capacity, needed, starts| unsafe {
            runtime.GetNativeCodeStartAddresses(function.0, rejit.0, capacity, needed, starts)
        })
        .map(|starts| starts.into_iter().map(|address| CodeStart { function, address }).collect())
    }

    /// The code of the version that begins at `start`. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error, also if the code is unloaded.
    pub fn code_info_at(&self, start: CodeStart) -> Result<Vec<CodeRange>> {
        outside_collections("GetCodeInfo4")?;
        let method = "GetCodeInfo4";
        let runtime = self.at_level::<ICorProfilerInfo9>(method)?;
        let _function_stays = start.function.enter(method)?;
        // SAFETY: valid out-parameters.
        ask_array(method, |capacity, needed, infos| unsafe {
            runtime.GetCodeInfo4(start.address, capacity, needed, infos)
        })
        .map(ranges)
    }

    /// Map from IL to the code of the version that begins at `start`. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error, also if the code is unloaded; dynamic functions have no map.
    pub fn il_map_at(&self, start: CodeStart) -> Result<Vec<IlRange>> {
        outside_collections("GetILToNativeMapping3")?;
        let method = "GetILToNativeMapping3";
        let runtime = self.at_level::<ICorProfilerInfo9>(method)?;
        let _function_stays = start.function.enter(method)?;
        // SAFETY: valid out-parameters.
        let map: Vec<COR_DEBUG_IL_TO_NATIVE_MAP> = ask_array_of(method, IL_RANGES, |capacity, needed, map| unsafe {
            runtime.GetILToNativeMapping3(start.address, capacity, needed, map)
        })?;
        Ok(il_ranges(map))
    }

    /// The function whose code contains `address`; may be a dynamic function. Not in signal
    /// handlers.
    ///
    /// In an image with precompiled code the runtime searches downwards from the address for the
    /// nearest code whose method is prepared. So for code that was never called, the runtime
    /// returns another function. If no method at a lower address is prepared, the runtime reads in
    /// front of its table and crashes the program (seen on .NET 9 and 10, in the first milliseconds
    /// of programs). A stack word that looks like a return address may be the start address of a
    /// method that is about to be called: check first that a call instruction ends right before the
    /// address.
    ///
    /// # Errors
    /// The runtime's error.
    ///
    /// # Safety
    /// In an image with precompiled code, the code at the address must have run, or its method must
    /// be prepared. This holds for the address at which a thread was interrupted, for the byte
    /// before a return address, and for the target of a call.
    pub unsafe fn function_at(&self, address: usize) -> Result<(FunctionId, ReJitId)> {
        outside_hooks("GetFunctionFromIP3")?;
        let method = "GetFunctionFromIP3";
        let (mut function, mut rejit) = (0, 0);
        let runtime = self.at_level::<ICorProfilerInfo8>(method)?;
        // SAFETY: valid out-parameters; the caller vouches for the address.
        check(unsafe { runtime.GetFunctionFromIP3(address as *const u8, &mut function, &mut rejit) }, method)?;
        Ok((FunctionId::received(function), ReJitId(rejit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IL maps that the runtime returned for a method that joins texts in a loop (45): one with all
    /// code in order, and one with moved blocks.
    #[test]
    fn code_is_of_the_statement_before_it_or_of_one_without_code_in_the_map() {
        let map = |ranges: &[(Option<u32>, u32, u32)]| -> Vec<IlRange> {
            ranges.iter().map(|&(il, start, end)| IlRange { il, start, end, is_epilog: false }).collect()
        };
        let in_place = map(&[
            (None, 0, 49),
            (Some(5), 49, 167),
            (Some(40), 564, 572),
            (Some(45), 572, 691),
            (Some(45), 701, 1029),
            (Some(85), 1946, 1949),
            (None, 167, 564),
            (None, 691, 701),
            (None, 1029, 1946),
        ]);
        let at = |map: &[IlRange], at| IlRange::statement_at(map, at).map(|place| (place.offset, place.span));
        let found = [20, 49, 166, 502, 695, 800, 1754, 1948, 1949].map(|place| at(&in_place, place));
        let [prolog, first, second, last] =
            [Some((0, Some(5))), Some((5, Some(35))), Some((45, Some(40))), Some((85, None))];
        let expected = [prolog, first, first, first, second, second, second, last, None];
        assert_eq!(found, expected);
        let moved = map(&[
            (Some(5), 45, 117),
            (Some(45), 117, 190),
            (Some(93), 221, 224),
            (Some(5), 239, 300),
            (None, 190, 221),
            (None, 224, 239),
            (None, 300, 320),
        ]);
        assert_eq!([200, 230, 310].map(|place| at(&moved, place)), [Some((45, Some(48))), None, None]);
        let around = |places: &[u32]| {
            let place = IlRange::statement_around_all(&moved, places.iter().copied());
            place.map(|place| (place.offset, place.span))
        };
        assert_eq!(around(&[50, 240]), Some((5, Some(40))));
        assert_eq!([around(&[118, 50]), around(&[118, 222])], [Some((5, Some(88))), Some((45, None))]);
        assert_eq!([around(&[]), around(&[50, 230])], [None; 2]);
        let with_epilog = [
            IlRange { il: Some(9), start: 0, end: 7, is_epilog: false },
            IlRange { il: None, start: 7, end: 9, is_epilog: true },
        ];
        assert_eq!(at(&with_epilog, 8), Some((9, None)));
        assert_eq!(IlRange::statement_at(&[], 0), None);
    }
}
