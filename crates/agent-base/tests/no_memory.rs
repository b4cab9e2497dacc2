//! The agent's allocator where the system has no memory left. A process of its own, because the
//! limit holds for all threads.

use std::alloc::{GlobalAlloc, Layout, System};

use clrscope_agent_base::reserve::WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve::new();

/// The limit before, which is restored when this is dropped.
struct Limit(libc::rlimit);

impl Limit {
    /// Lets the process have no more address space than it has.
    fn none_left() -> Self {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls get a valid structure.
        unsafe {
            assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut before), 0);
            assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &libc::rlimit { rlim_cur: 0, ..before }), 0);
        }
        let limit = Self(before);
        // What the C library has in stock is used up too.
        for bytes in [1 << 16, 1 << 12, 1 << 8, 16] {
            let layout = Layout::from_size_align(bytes, 8).expect("a layout");
            // SAFETY: the size is not zero; nothing uses the memory.
            while !unsafe { System.alloc(layout) }.is_null() {}
        }
        limit
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // SAFETY: the structure is valid.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const self.0) };
    }
}

/// In a program whose address space was used up (`ulimit -v`), the agent ended the program with
/// "memory allocation of 3072 bytes failed" when a callback noted something.
#[test]
fn a_table_that_grows_without_address_space_ends_no_program() {
    let (numbers, refused) = {
        let _limit = Limit::none_left();
        let numbers: Vec<u64> = (0..).take_while(|number| *number < 20_000).collect();
        // More than the reserve has is refused, as the C library refuses it.
        (numbers, Vec::<u8>::new().try_reserve_exact(4 << 20).is_err())
    };
    assert_eq!(numbers.iter().sum::<u64>(), 199_990_000);
    assert!(refused);
}
