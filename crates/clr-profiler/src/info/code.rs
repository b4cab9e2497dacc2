//! Native code of functions.

use clr_profiler_sys::info::{ICorProfilerInfo8, ICorProfilerInfo9};
use clr_profiler_sys::structs::{COR_DEBUG_IL_TO_NATIVE_MAP, COR_PRF_CODE_INFO};

use super::{ProfilerInfo, ask_array, ask_array_of};
use crate::call_context::{outside_collections, outside_hooks};
use crate::error::check;
use crate::{FunctionId, ReJitId, Result};

/// A piece of native code; a function may have a hot and a cold one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct CodeRange {
    /// Address of its first byte.
    pub start: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl CodeRange {
    /// Whether `address` lies in it.
    #[must_use]
    pub const fn contains(&self, address: usize) -> bool {
        address >= self.start && address - self.start < self.bytes
    }
}

/// Beginning of the code of a version of a function, as the runtime has told it.
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

/// Native code and the IL it was made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct IlRange {
    /// Offset in the IL; `None` for prolog, epilog and what has no IL.
    pub il: Option<u32>,
    /// Offset of the first byte from the code's start.
    pub start: u32,
    /// Offset past the last byte.
    pub end: u32,
    /// The code is an epilog: of a method, or of a block of it.
    pub is_epilog: bool,
}

/// Place in a method's IL, as exactly as the map of its code says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct IlPlace {
    /// Offset of the statement.
    pub offset: u32,
    /// Bytes from there on that are in question, up to the next statement that has code in the map;
    /// `None` where there is none. Those that begin among these bytes have no code in the map: they
    /// are gone, or their code lies in the statement's.
    pub span: Option<u32>,
}

impl IlRange {
    /// Place in the IL that the byte at `at` of the code is of, by the map of that code; `None`
    /// where nothing is known. Prologs are of the method's first statement, epilogs of the one
    /// before them.
    ///
    /// Optimising compilers map only the beginning of a statement's code, not even that of each,
    /// and what they inlined to nothing, in large pieces. A piece between the code of a statement
    /// and that of the next one in the map is of the former, or of one between; elsewhere blocks
    /// were moved, and nothing is known.
    #[must_use]
    pub fn statement_at(map: &[Self], at: u32) -> Option<IlPlace> {
        let holding = || map.iter().filter(|range| (range.start..range.end).contains(&at));
        let offset =
            holding().find_map(|range| range.il).or_else(|| holding().find_map(|piece| piece.statement_around(map)))?;
        Some(IlPlace { offset, span: Self::after(map, offset).map(|next| next - offset) })
    }

    /// The smallest place in the IL that holds the statements of all bytes at `offsets` of the
    /// code, by the map of that code; `None` for no bytes, and where nothing is known of one.
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

    /// Statement that a piece without IL is of, or another one before the next in the map.
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

/// Mark of epilogs in place of an offset.
const EPILOG: u32 = u32::MAX - 2;
/// Ranges of a method of usual length.
const IL_RANGES: usize = 256;

pub(super) fn ranges(infos: Vec<COR_PRF_CODE_INFO>) -> Vec<CodeRange> {
    infos.into_iter().map(|info| CodeRange { start: info.start_address, bytes: info.size }).collect()
}

pub(super) fn il_ranges(map: Vec<COR_DEBUG_IL_TO_NATIVE_MAP>) -> Vec<IlRange> {
    // The highest numbers are marks: no mapping, prolog, epilog.
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
    /// The runtime's error: `CORPROF_E_FUNCTION_NOT_COMPILED` before there is any.
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

    /// Beginnings of the versions (tiers) of a function. Not in hooks.
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
    /// The runtime's error, also where the code is gone.
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
    /// The runtime's error, also where the code is gone; dynamic functions have no map.
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

    /// The function that the code at `address` belongs to, dynamic ones too. Not in signal
    /// handlers.
    ///
    /// In an image with precompiled code the runtime goes down from the address to the first piece
    /// of code whose method it has prepared. So for code that was never called it names another
    /// function, and where it has prepared none further down it reads in front of its table and
    /// ends the program (seen on 9 and 10, in the first milliseconds of programs). Words of stacks
    /// that look like return addresses may be where a method begins that is about to be called:
    /// look first whether a call ends before them.
    ///
    /// # Errors
    /// The runtime's error.
    ///
    /// # Safety
    /// In an image with precompiled code, the address is of code that has run or whose method the
    /// runtime has prepared: where a thread was interrupted, the byte before an address that a call
    /// returns to, or where a call leads.
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

    /// Maps as the runtime gives them of a method that joins texts in a loop (45), with all code in
    /// place, and with blocks that were moved.
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
