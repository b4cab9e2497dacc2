//! The last results of a measurement that goes on for as long as the program runs.

/// The last `MOST` results of a measurement.
pub(super) struct Recent<T, const MOST: usize> {
    all: Vec<T>,
    /// Index of the oldest result, once there are `MOST`.
    oldest: usize,
}

impl<T, const MOST: usize> Default for Recent<T, MOST> {
    fn default() -> Self {
        Self { all: Vec::new(), oldest: 0 }
    }
}

impl<T, const MOST: usize> Recent<T, MOST> {
    pub(super) fn add(&mut self, result: T) {
        if self.all.len() < MOST {
            self.all.push(result);
        } else {
            self.all[self.oldest] = result;
            self.oldest = (self.oldest + 1) % MOST;
        }
    }

    /// All remembered results, in no particular order.
    pub(super) fn all(&self) -> &[T] {
        &self.all
    }
}

/// The median, or the higher of two middle values; 0 if there are no values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room() {
        let mut recent = Recent::<f64, 3>::default();
        (1..=4).for_each(|number| recent.add(f64::from(number)));
        assert_eq!(median(recent.all().to_vec()), 3.0);
        (5..=100).for_each(|number| recent.add(f64::from(number)));
        assert_eq!(median(recent.all().to_vec()), 99.0);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
