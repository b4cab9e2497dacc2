//! Near matches: what a slip of the finger was meant to be.

/// The known word that is most like `word`, unless none is like it.
pub(crate) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let (distance, nearest) = known.map(|candidate| (distance(word, candidate), candidate)).min()?;
    (distance * 2 <= word.chars().count()).then_some(nearest)
}

/// How many letters have to be added, taken away or changed to come from one word to the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
        let known = || ["calls", "exclusive_ns", "inclusive_ns", "name"].into_iter();
        assert_eq!(nearest("call", known()), Some("calls"));
        assert_eq!(nearest("exclusive-ns", known()), Some("exclusive_ns"));
        assert_eq!(nearest("nmae", known()), Some("name"));
        assert_eq!(nearest("colour", known()), None);
        assert_eq!(nearest("", known()), None);
        assert_eq!(nearest("x", [].into_iter()), None);
    }
}
