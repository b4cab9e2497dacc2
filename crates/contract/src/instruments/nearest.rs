//! What somebody who misspelt a word most likely meant.

/// The word of `known` that is nearest to `word`, if one is near: as a rule one slip in three letters.
pub(super) fn nearest(word: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let most = (word.chars().count() / 3).max(1);
    let distances = known.map(|one| (distance(word, one), one));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

/// How many letters must be put in, left out, replaced, or swapped with the next one to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Row by row of the table of distances between beginnings of both; of the rows before, only two are needed.
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, slips) in [
            ("", "", 0),
            ("", "ab", 2),
            ("call", "calls", 1),
            ("flwo", "flow", 1),
            ("clack", "clock", 1),
            ("x", "y", 1),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (slips, slips), "{a} {b}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let known = || ["calls", "flow", "events", "exceptions"].into_iter();
        assert_eq!(nearest("call", known()), Some("calls"));
        assert_eq!(nearest("excepitons", known()), Some("exceptions"));
        assert_eq!(nearest("speed", known()), None);
        assert_eq!(nearest("", known()), None);
    }
}
