//! Locations in the sense of pprof and OpenTelemetry profiles: a method together with the methods
//! inlined into it, in the order of calls.

use std::collections::HashMap;
use std::rc::Rc;

/// Locations, without duplicates, numbered from 1.
#[derive(Default)]
pub(crate) struct Locations {
    numbers: HashMap<Rc<[u64]>, u64>,
    all: Vec<Rc<[u64]>>,
}

impl Locations {
    /// Number of the location of these functions, the innermost first: the last one is the method
    /// that contains the code.
    pub(crate) fn number(&mut self, functions: &[u64]) -> u64 {
        if let Some(known) = self.numbers.get(functions) {
            return *known;
        }
        let functions: Rc<[u64]> = functions.into();
        self.all.push(Rc::clone(&functions));
        let number = self.all.len() as u64;
        self.numbers.insert(functions, number);
        number
    }

    /// Locations of a path of functions, both outermost first. The flag of a function tells whether
    /// it was inlined into the function before it.
    pub(crate) fn path(&mut self, functions: impl Iterator<Item = (u64, bool)>) -> Vec<u64> {
        let (mut path, mut together) = (Vec::new(), Vec::new());
        for (function, is_inlined) in functions {
            if !is_inlined && !together.is_empty() {
                path.push(self.of_calls(&mut together));
            }
            together.push(function);
        }
        if !together.is_empty() {
            path.push(self.of_calls(&mut together));
        }
        path
    }

    /// Number of the location of functions in the order of calls; empties the list.
    fn of_calls(&mut self, together: &mut Vec<u64>) -> u64 {
        together.reverse();
        let number = self.number(together);
        together.clear();
        number
    }

    /// Functions of each location in the order of numbers, the innermost first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u64]> {
        self.all.iter().map(|functions| &**functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_without_code_of_their_own_share_the_location_of_the_one_that_has() {
        let mut locations = Locations::default();
        let path = |locations: &mut Locations, calls: &[(u64, bool)]| locations.path(calls.iter().copied());
        let calls = [(1, false), (2, true), (3, true), (4, false), (2, false)];
        assert_eq!(path(&mut locations, &calls), [1, 2, 3]);
        assert_eq!(path(&mut locations, &[(4, false), (1, false), (2, true), (3, true)]), [2, 1]);
        assert_eq!(path(&mut locations, &[(9, true)]), [4], "nobody knows what it was put into");
        assert!(path(&mut locations, &[]).is_empty());
        let all: Vec<&[u64]> = locations.all().collect();
        assert_eq!(all, [&[3, 2, 1][..], &[4], &[2], &[9]]);
    }
}
