//! Random pauses that differ in each run of the tests and can be repeated.

use std::cell::Cell;
use std::env;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::say;

/// Environment variable for a seed. A run with the seed that an earlier run printed repeats the
/// pauses of that run.
const SEED: &str = "CLRSCOPE_TEST_SEED";

/// A random pause of less than `most`, printed with its seed. With the variable
/// `CLRSCOPE_TEST_SEED` set to the seed, each test gets the same sequence of pauses again.
///
/// # Panics
/// When the variable holds no number.
pub fn random_pause(most: Duration) -> Duration {
    static RUN: OnceLock<u64> = OnceLock::new();
    thread_local! {
        static ASKED: Cell<u64> = const { Cell::new(0) };
    }
    let seed = *RUN.get_or_init(|| match env::var(SEED) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{SEED}={text} is no number")),
        Err(_) => RandomState::new().build_hasher().finish(),
    });
    let number = ASKED.replace(ASKED.get() + 1);
    // Tests run side by side, each on a thread that bears its name.
    let pause = pause(seed, thread::current().name().unwrap_or_default(), number, most);
    say(&format!("a pause of {pause:?}; {SEED}={seed} repeats it"));
    pause
}

fn pause(seed: u64, test: &str, number: u64, most: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (seed, test, number).hash(&mut hasher);
    Duration::from_micros(hasher.finish() % (most.as_micros() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_the_pauses_of_a_test() {
        let most = Duration::from_millis(400);
        let pauses = |seed, test| (0..20).map(|number| pause(seed, test, number, most)).collect::<Vec<_>>();
        assert_eq!(pauses(1, "a"), pauses(1, "a"));
        assert_ne!(pauses(1, "a"), pauses(2, "a"));
        assert_ne!(pauses(1, "a"), pauses(1, "b"));
        assert!(pauses(1, "a").iter().all(|pause| *pause < most));
        assert_eq!(pause(1, "a", 0, Duration::ZERO), Duration::ZERO);
        assert!(random_pause(most) < most);
    }
}
