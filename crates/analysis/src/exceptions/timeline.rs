//! Exceptions in the order of time: those that are not over, and later ones that must wait until
//! the earlier ones are over.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use super::Exception;

/// Number of exceptions that may wait for the first one to be over. A handler may run as long as
/// the program and throw exceptions meanwhile. If more would wait, the first is handed over
/// unfinished.
const MOST_WAITING: usize = 8_192;
/// Number of thrown objects' addresses for which the last throw is remembered. If there are more,
/// all are forgotten.
const MOST_ADDRESSES: usize = 1 << 18;

/// The last throw of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Throw<'a> {
    pub(super) number: u32,
    pub(super) type_name: &'a str,
}

/// The exceptions in the records read so far. An exception is identified by its index in the order
/// of time, from 0.
#[derive(Debug, Default)]
pub(super) struct Timeline<'a> {
    /// Exceptions that have not been handed over, and whether each is over.
    waiting: VecDeque<(Exception<'a>, bool)>,
    /// Number of exceptions that were handed over.
    gone: usize,
    /// The last exception that was handed over before it was over: later records about it apply to
    /// this copy.
    late: Option<Exception<'a>>,
    /// The last throw of the object at each address of each process.
    by_address: FxHashMap<(usize, u64), Throw<'a>>,
}

impl<'a> Timeline<'a> {
    /// The index of the next exception.
    pub(super) fn next(&self) -> usize {
        self.gone + self.waiting.len()
    }

    pub(super) fn push(&mut self, exception: Exception<'a>) {
        self.waiting.push_back((exception, false));
    }

    /// Marks an exception as over: no more records about it follow.
    pub(super) fn is_over(&mut self, at: usize) {
        if let Some((_, is_over)) = at.checked_sub(self.gone).and_then(|at| self.waiting.get_mut(at)) {
            *is_over = true;
        }
    }

    /// The last throw of the object at this address, in the process with this number.
    pub(super) fn at_address(&self, process: usize, address: u64) -> Option<Throw<'a>> {
        self.by_address.get(&(process, address)).copied()
    }

    /// Notes the address of an exception's object.
    pub(super) fn lies_at(&mut self, process: usize, address: u64, exception: usize) {
        if self.by_address.len() >= MOST_ADDRESSES {
            self.by_address.clear();
        }
        let throw = Throw { number: number(exception), type_name: self[exception].type_name };
        self.by_address.insert((process, address), throw);
    }

    /// Hands over the exceptions that are over, in order, until `take` has enough. Returns whether
    /// `take` wants more.
    pub(super) fn hand_over(&mut self, take: &mut dyn FnMut(Exception<'a>) -> bool) -> bool {
        while self.waiting.front().is_some_and(|(_, is_over)| *is_over) || self.waiting.len() > MOST_WAITING {
            let Some((exception, is_over)) = self.waiting.pop_front() else { break };
            self.gone += 1;
            if !is_over {
                self.late = Some(exception.clone());
            }
            if !take(exception) {
                self.waiting.clear();
                return false;
            }
        }
        true
    }

    /// Hands over the remaining exceptions.
    pub(super) fn finish(mut self, take: &mut dyn FnMut(Exception<'a>) -> bool) {
        self.waiting.iter_mut().for_each(|(_, is_over)| *is_over = true);
        self.hand_over(take);
    }
}

/// The number that users see of the exception with this index.
pub(super) fn number(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
}

impl<'a> Index<usize> for Timeline<'a> {
    type Output = Exception<'a>;

    fn index(&self, at: usize) -> &Exception<'a> {
        match at.checked_sub(self.gone) {
            Some(at) => &self.waiting[at].0,
            None => self.late.as_ref().expect("an exception that goes before it is over is kept"),
        }
    }
}

impl IndexMut<usize> for Timeline<'_> {
    fn index_mut(&mut self, at: usize) -> &mut Self::Output {
        match at.checked_sub(self.gone) {
            Some(at) => &mut self.waiting[at].0,
            None => self.late.as_mut().expect("an exception that goes before it is over is kept"),
        }
    }
}
