//! Finds the stacks that hold objects, from the stack words of threads that stand still.
//!
//! The runtime reports which objects a method's variables hold, but not on which thread. A thread
//! that stands still has all its variables on its stack, including saved registers.

use std::collections::HashMap;

use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_agent_base::os::threads;

use super::maps::Mappings;

/// Bytes of one stack that are searched, from its innermost frame on.
const MOST: usize = 1 << 20;
/// Bytes that are copied at a time.
const PIECE: usize = 64 << 10;

/// Objects on stacks. For each, the threads that hold it, by the system's thread id.
#[derive(Debug, Default)]
pub(super) struct Holders(HashMap<u64, Vec<u32>>);

impl Holders {
    /// Searches the stacks of all threads except the calling one for objects with these addresses.
    pub(super) fn find(objects: impl Iterator<Item = u64>) -> Self {
        let mut holders = Self(objects.map(|object| (object, Vec::new())).collect());
        if holders.0.is_empty() {
            return holders;
        }
        let stacks = Mappings::read();
        let mut words = vec![0; PIECE];
        for os_id in threads::all() {
            if os_id == threads::thread_id() {
                continue;
            }
            let Some(from) = threads::stack_pointer(os_id) else { continue };
            let Some((_, end)) = stacks.around(from) else { continue };
            holders.look_through(os_id, from & !7, end.min(from.saturating_add(MOST)), &mut words);
        }
        holders
    }

    fn look_through(&mut self, os_id: u32, from: usize, end: usize, words: &mut [u8]) {
        let mut at = from;
        while at < end {
            let bytes = (end - at).min(words.len()) & !7;
            let piece = &mut words[..bytes];
            if bytes == 0 || !copy_if_there(at, piece) {
                return;
            }
            for word in piece.chunks_exact(8) {
                let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
                if let Some(threads) = self.0.get_mut(&word).filter(|threads| threads.last() != Some(&os_id)) {
                    threads.push(os_id);
                }
            }
            at += bytes;
        }
    }

    /// A thread whose variable holds the object. If several threads hold it, each call returns the
    /// next one, since the runtime reports the variables of each thread.
    pub(super) fn next_of(&mut self, object: u64) -> Option<u32> {
        let threads = self.0.get_mut(&object)?;
        let first = *threads.first()?;
        threads.rotate_left(1);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_on_the_stack_of_a_waiting_thread_is_found_there() {
        let (held, other) = (0x7123_4567_89a0_u64, 0x7123_4567_89b0);
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let variable = std::hint::black_box([held; 2]);
            tell.send(threads::thread_id()).expect("somebody listens");
            let _ = ended.recv();
            std::hint::black_box(variable);
        });
        let os_id = told.recv().expect("the thread");
        // It is about to wait.
        let found = (0..10_000).find_map(|_| {
            std::thread::yield_now();
            Holders::find([held, other].into_iter()).next_of(held)
        });
        assert_eq!(found, Some(os_id));
        assert_eq!(Holders::find([other].into_iter()).next_of(other), None);
        drop(end);
        thread.join().expect("no panic");
    }
}
