//! Work that several threads share.

use std::sync::Mutex;
use std::thread;

/// Calls `work` for each item, on `threads` threads at a time. Returns the results in the order of
/// completion.
///
/// # Panics
/// When `work` panics.
pub fn at_a_time<I, T>(threads: usize, items: I, work: impl Fn(I::Item) -> T + Sync) -> Vec<T>
where
    I: IntoIterator<IntoIter: Send>,
    T: Send,
{
    let (left, done) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
    let next = || left.lock().expect("not poisoned").next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let returned = work(item);
                    done.lock().expect("not poisoned").push(returned);
                }
            });
        }
    });
    done.into_inner().expect("not poisoned")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_item_is_worked_on_once_and_no_more_at_a_time_than_asked_for() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut done = at_a_time(3, 0..100, |item| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            item
        });
        done.sort_unstable();
        assert!(done.into_iter().eq(0..100));
        assert!((1..=3).contains(&most.into_inner()));
    }
}
