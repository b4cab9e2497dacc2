//! Methods that delegates call.
//!
//! A delegate holds the address of the method's code, or of a stub that leads to the code and holds
//! the method's identifier. Hooks note the addresses that they see. Later, where the runtime may be
//! queried, the methods are described in the recording under these addresses. A method is known
//! only after it was compiled, so an address may have to wait.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_agent_base::os::memory::copy_if_there;

/// Most addresses that wait for their method.
const MOST_PENDING: usize = 256;
/// Bytes of a stub that are read.
const STUB: usize = 13;
/// `jmp [rip + ...]`
const JUMP: [u8; 2] = [0xff, 0x25];
/// `mov r10, [rip + ...]`: the method's identifier.
const LOAD: [u8; 3] = [0x4c, 0x8b, 0x15];

/// Addresses that were seen, each at the index that its bits give.
static MET: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];
static PENDING: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Whether a new address was seen since the last look.
static IS_NEW: AtomicBool = AtomicBool::new(false);
/// Number of compilations since the last look at waiting addresses.
static COMPILATIONS: AtomicU32 = AtomicU32::new(0);
/// Compilations between two looks.
const COMPILATIONS_PER_LOOK: u32 = 64;

/// Makes room for addresses. Called before any hook.
pub(super) fn prepare() {
    // An earlier recording of the process has its own names for the addresses that it saw.
    forget();
    lock().reserve(MOST_PENDING);
}

/// Notes that a delegate calls this address. For hooks.
pub(super) fn met(address: usize) {
    let slot = &MET[(address >> 3 ^ address >> 13) % MET.len()];
    if address == 0 || slot.load(Ordering::Relaxed) == address {
        return;
    }
    let mut pending = lock();
    // The memory was reserved at the start. An address without room is noted another time.
    if pending.len() < MOST_PENDING.min(pending.capacity()) {
        slot.store(address, Ordering::Relaxed);
        if !pending.contains(&address) {
            pending.push(address);
            IS_NEW.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether it is time to look for methods, during a compilation: there are new addresses, or
/// waiting addresses may belong to methods that were compiled in the meantime.
pub(super) fn is_time() -> bool {
    let is_new = IS_NEW.swap(false, Ordering::Relaxed);
    COMPILATIONS.fetch_add(1, Ordering::Relaxed).is_multiple_of(COMPILATIONS_PER_LOOK) || is_new
}

/// Addresses whose methods are not described yet.
pub(super) fn pending() -> Vec<usize> {
    lock().clone()
}

/// Stops looking for the methods of these addresses: they are described, or never will be.
pub(super) fn no_longer_pending(done: &[usize]) {
    lock().retain(|address| !done.contains(address));
}

/// Call it when a module is about to be unloaded: other code may take the place of the module's
/// code and stubs.
pub(super) fn forget() {
    lock().clear();
    MET.iter().for_each(|slot| slot.store(0, Ordering::Relaxed));
}

fn lock() -> MutexGuard<'static, Vec<usize>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The word that the stub at this address passes on as its method's identifier; `None` if other
/// code is there. The word may not be a valid identifier.
pub(super) fn method_of_stub(address: usize) -> Option<usize> {
    let mut code = [0; STUB];
    if !copy_if_there(address, &mut code) {
        return None;
    }
    // .NET 8 to 10 have two kinds of stubs: one jumps first, and loads only if the method is not
    // compiled yet; the other loads first.
    let load = if code.starts_with(&JUMP) { JUMP.len() + 4 } else { 0 };
    let displacement = code.get(load..)?.strip_prefix(&LOAD)?.first_chunk::<4>()?;
    let behind = address.checked_add(load + LOAD.len() + 4)?;
    let mut word = [0; 8];
    let at = behind.checked_add_signed(i32::from_le_bytes(*displacement) as isize)?;
    copy_if_there(at, &mut word).then(|| usize::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance to an address where this process has nothing mapped.
    fn distance_to_nothing(from: usize) -> i32 {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("its maps");
        let range = |line: &str| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
        };
        let ranges: Vec<_> = maps.lines().filter_map(range).collect();
        let is_free = |at: usize| !ranges.iter().any(|range| (range.start..range.end + 8).contains(&(at + 8)));
        let distances = (1..32).map(|step| -(step << 26));
        distances.into_iter().find(|&distance| is_free(from.wrapping_add_signed(distance as isize))).expect("a gap")
    }

    #[test]
    fn stubs_of_both_kinds_say_their_method() {
        let mut memory = [0_u8; 64];
        let address = memory.as_ptr().expose_provenance();
        assert_eq!(method_of_stub(address), None);
        memory[48..56].copy_from_slice(&0x1234_5678_u64.to_le_bytes());
        memory[..2].copy_from_slice(&JUMP);
        memory[6..9].copy_from_slice(&LOAD);
        memory[9..13].copy_from_slice(&(48_i32 - 13).to_le_bytes());
        assert_eq!(method_of_stub(memory.as_ptr().expose_provenance()), Some(0x1234_5678));
        memory[..3].copy_from_slice(&LOAD);
        memory[3..7].copy_from_slice(&(48_i32 - 7).to_le_bytes());
        assert_eq!(method_of_stub(memory.as_ptr().expose_provenance()), Some(0x1234_5678));
        memory[3..7].copy_from_slice(&distance_to_nothing(address + 7).to_le_bytes());
        assert_eq!(method_of_stub(memory.as_ptr().expose_provenance()), None);
        assert_eq!(method_of_stub(0), None);
    }
}
