//! Memory from which values are read, and its guarantees.
//!
//! A program may pass addresses that must not be followed: a `ref` one past the end of an array, a
//! span over freed memory, an uninitialised variable. So each address comes with its [`Ground`].
//! Memory that may be unmapped is copied by the system, which refuses to copy unmapped memory. For
//! `known_pages` the system need not be asked again. No other code in this crate follows addresses
//! of the program.

use std::cell::Cell;
use std::sync::OnceLock;

use clrscope_agent_base::os::memory::{PAGE, copy_if_there};

use super::{collections, known_pages};

/// What is guaranteed about the memory at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Part of an object or variable that the runtime keeps alive, together with the objects that
    /// its references lead to.
    Alive,
    /// Mapped memory (our own, or the thread's stack) with any contents: words that look like
    /// references may not be.
    Held,
    /// No guarantee: the memory may be unmapped.
    Unknown,
}

/// An address with its ground.
#[derive(Debug, Clone, Copy)]
pub struct At {
    address: usize,
    ground: Ground,
}

impl At {
    /// An address on ground of this kind.
    ///
    /// # Safety
    /// The guarantee of [`Ground`] must hold for all bytes that are read.
    #[inline]
    pub unsafe fn on(ground: Ground, address: *const u8) -> Self {
        Self { address: address.expose_provenance(), ground }
    }

    /// Any address. Its ground is held if at least `bytes` bytes from there are on the calling
    /// thread's stack, and otherwise unknown.
    pub fn somewhere(address: usize, bytes: usize) -> Self {
        let ground = if is_on_stack(address, bytes) { Ground::Held } else { Ground::Unknown };
        Self { address, ground }
    }

    /// An address on unknown ground.
    #[inline]
    pub fn unknown(address: usize) -> Self {
        Self { address, ground: Ground::Unknown }
    }

    /// The address `offset` bytes further on in the same object or memory, with the same ground.
    #[inline]
    pub fn behind(self, offset: usize) -> Self {
        Self { address: self.address.wrapping_add(offset), ..self }
    }

    /// Returns the address.
    #[inline]
    pub fn address(self) -> usize {
        self.address
    }

    /// Returns the ground of the address.
    #[inline]
    pub fn ground(self) -> Ground {
        self.ground
    }
}

/// Bytes that are copied at once.
const WINDOW: usize = 256;

/// Reads memory for one hook. Keeps copies that the system made, since nearby memory is likely to
/// be read next.
pub struct MemoryReader {
    window: [u8; WINDOW],
    /// Address from which the window was copied, and its length.
    start: usize,
    bytes: usize,
    /// Whether some of the memory was unmapped.
    has_failed: bool,
}

impl Default for MemoryReader {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryReader {
    /// Creates a reader that has copied nothing yet.
    #[inline]
    pub fn new() -> Self {
        Self { window: [0; WINDOW], start: 0, bytes: 0, has_failed: false }
    }

    /// The bytes at an address; `None` if they are unmapped.
    #[inline]
    pub fn read<const N: usize>(&mut self, at: At) -> Option<[u8; N]> {
        let mut found = [0; N];
        self.copy(at, &mut found).then_some(found)
    }

    /// The word at an address; `None` if it is unmapped.
    #[inline]
    pub fn word(&mut self, at: At) -> Option<usize> {
        self.read(at).map(usize::from_ne_bytes)
    }

    /// Copies the bytes at an address. Returns whether they were mapped.
    #[inline]
    pub fn copy(&mut self, at: At, into: &mut [u8]) -> bool {
        if at.ground == Ground::Unknown {
            let is_there = self.copy_unknown(at.address, into);
            self.has_failed |= !is_there;
            return is_there;
        }
        let from = std::ptr::with_exposed_provenance::<u8>(at.address);
        // SAFETY: the code that gave the ground guarantees it for the bytes read, and `into` is our
        // own.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        true
    }

    /// Whether some memory was left unread because the system refuses to copy memory for us.
    pub(super) fn was_refused(&self) -> bool {
        self.has_failed && !can_copy()
    }

    #[cold]
    fn copy_unknown(&mut self, address: usize, into: &mut [u8]) -> bool {
        let epoch = collections::epoch();
        if known_pages::are_there(address, into.len(), epoch) {
            let from = std::ptr::with_exposed_provenance::<u8>(address);
            // SAFETY: the system has read these pages before, and they stay until the next
            // collection, or for good. Hooks read here, and no collection begins while a hook runs.
            // `into` is our own.
            unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
            return true;
        }
        if into.len() > WINDOW || address % PAGE + into.len() > PAGE {
            let is_there = copy_if_there(address, into);
            if is_there {
                known_pages::found(address, into.len(), epoch);
            }
            return is_there;
        }
        let end_in_window = address.checked_sub(self.start).and_then(|offset| offset.checked_add(into.len()));
        if end_in_window.is_none_or(|end| end > self.bytes) {
            self.start = address;
            self.bytes = WINDOW.min(PAGE - address % PAGE);
            if !copy_if_there(address, &mut self.window[..self.bytes]) {
                self.bytes = 0;
                return into.is_empty();
            }
            known_pages::found(address, self.bytes, epoch);
        }
        let offset = address - self.start;
        into.copy_from_slice(&self.window[offset..offset + into.len()]);
        true
    }
}

/// Whether the system copies memory for us: some containers forbid it. Computed once, before any
/// hook.
pub fn can_copy() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let there = 0x1234_5678_9ABC_DEF0_u64;
        let mut copy = [0; 8];
        copy_if_there(std::ptr::from_ref(&there).expose_provenance(), &mut copy) && u64::from_ne_bytes(copy) == there
    })
}

/// Whether these bytes lie in active frames of the calling thread.
pub(crate) fn is_on_stack(address: usize, bytes: usize) -> bool {
    let here = std::ptr::from_ref(&bytes).addr();
    address >= here && address.checked_add(bytes).is_some_and(|end| end <= stack_end())
}

/// End of the calling thread's stack; 0 if that is not known.
fn stack_end() -> usize {
    thread_local! {
        static END: Cell<usize> = const { Cell::new(0) };
    }
    let end = END.try_with(|end| {
        if end.get() == 0 {
            end.set(clrscope_agent_base::threads::stack_end());
        }
        end.get()
    });
    end.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages. The second one is unmapped.
    fn half() -> usize {
        // SAFETY: new memory, whose second half is unmapped.
        unsafe {
            let all = libc::mmap(std::ptr::null_mut(), 2 * PAGE, 3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(all, libc::MAP_FAILED);
            assert_eq!(libc::munmap(all.byte_add(PAGE), PAGE), 0);
            all.cast::<u8>().write_bytes(7, PAGE);
            all.expose_provenance()
        }
    }

    #[test]
    fn what_is_not_there_is_not_read() {
        let mut memory = MemoryReader::new();
        let there = 0x1234_5678_u64;
        let address = std::ptr::from_ref(&there).expose_provenance();
        assert_eq!(memory.word(At::unknown(address)), Some(0x1234_5678));
        assert!(can_copy());
        for gone in [0, 8, PAGE, usize::MAX - 4, 0xFFFF_8000_0000_0000] {
            assert_eq!(memory.word(At::unknown(gone)), None, "{gone:x}");
        }
    }

    #[test]
    fn the_last_addresses_there_are_are_not_in_what_was_copied_before() {
        let mut memory = MemoryReader::new();
        let there = [1_u64; 4];
        assert_eq!(memory.word(At::unknown(std::ptr::from_ref(&there).expose_provenance())), Some(1));
        for last in [usize::MAX - 7, usize::MAX - 15, usize::MAX] {
            assert_eq!(memory.word(At::unknown(last)), None, "{last:x}");
        }
    }

    #[test]
    fn memory_is_read_up_to_where_it_ends() {
        let (mut memory, all) = (MemoryReader::new(), half());
        for before in [8, 9, 100, 300, 4096] {
            assert_eq!(memory.read::<8>(At::unknown(all + PAGE - before)), Some([7; 8]), "{before} before the end");
        }
        for before in [0, 1, 7] {
            assert_eq!(memory.read::<8>(At::unknown(all + PAGE - before)), None, "{before} before the end");
        }
        let mut much = [0; 600];
        assert!(memory.copy(At::unknown(all + PAGE - 600), &mut much) && much == [7; 600]);
        assert!(!memory.copy(At::unknown(all + PAGE - 599), &mut much));
    }

    #[test]
    fn the_threads_own_stack_is_known() {
        let local = [1_u64; 4];
        let address = std::ptr::from_ref(&local).expose_provenance();
        assert_eq!(At::somewhere(address, 32).ground(), Ground::Held);
        assert_eq!(At::somewhere(address, usize::MAX).ground(), Ground::Unknown);
        assert_eq!(At::somewhere(Box::into_raw(Box::new(1)).expose_provenance(), 8).ground(), Ground::Unknown);
        assert_eq!(At::somewhere(8, 8).ground(), Ground::Unknown);
    }
}
