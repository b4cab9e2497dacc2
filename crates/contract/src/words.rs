//! Suggestions for misspelt words.

/// The word of `known` nearest to `word`, if one is near enough: about one wrong letter in three.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let most = slips(word);
    let distances = known.map(|one| (distance(word, one), one));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

/// Number of wrong letters at which a word is still recognised.
fn slips(word: &str) -> usize {
    (word.chars().count() / 3).max(1)
}

/// The part of a function's name that is compared with a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The type's name.
    Type,
    /// The method's name.
    Method,
    /// Either name.
    Either,
}

/// Collects the functions whose names are nearest to a wanted name, from candidates passed one by
/// one.
#[derive(Debug, Clone)]
pub struct NearNames {
    /// The wanted name in lower case.
    wanted: String,
    part: Part,
    /// Names with their distances, the nearest first.
    found: Vec<(usize, String)>,
}

impl NearNames {
    /// Maximum number of names that are kept.
    pub const MOST: usize = 3;
    /// Shortest word that is searched for as a part of names: a shorter one occurs in too many
    /// names.
    const SHORTEST_PART: usize = 3;

    /// Searches for names similar to `wanted`, the simple name of a method or type.
    #[must_use]
    pub fn new(wanted: &str, part: Part) -> Self {
        Self { wanted: wanted.to_lowercase(), part, found: Vec::new() }
    }

    /// Considers the function called `name` (`Namespace.Type::Method`) as a candidate. Returns
    /// whether the name is new and is now among the nearest.
    pub fn look_at(&mut self, name: &str) -> bool {
        let (type_name, method) = name.split_once("::").unwrap_or(("", name));
        let own = |text: &str| text.rsplit(['.', '+']).next().unwrap_or_default().to_lowercase();
        let distances = [(Part::Method, method), (Part::Type, type_name)]
            .into_iter()
            .filter(|(part, _)| self.part == Part::Either || self.part == *part)
            .filter_map(|(_, name)| self.distance(&own(name)));
        let Some(distance) = distances.min() else { return false };
        let place = self.found.partition_point(|(known, other)| (*known, other.as_str()) < (distance, name));
        if place >= Self::MOST || self.found.iter().any(|(_, known)| known == name) {
            return false;
        }
        self.found.insert(place, (distance, name.to_owned()));
        self.found.truncate(Self::MOST);
        true
    }

    fn distance(&self, part: &str) -> Option<usize> {
        let is_part = |whole: &str, part: &str| part.len() >= Self::SHORTEST_PART && whole.contains(part);
        if self.wanted.is_empty() || part == self.wanted {
            return (!part.is_empty() && !self.wanted.is_empty()).then_some(0);
        }
        if is_part(part, &self.wanted) || is_part(&self.wanted, part) {
            return Some(1);
        }
        let most = slips(&self.wanted);
        let is_possible = part.len().abs_diff(self.wanted.len()) <= most;
        is_possible.then(|| distance(part, &self.wanted)).filter(|distance| *distance <= most)
    }

    /// The nearest names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.found.iter().map(|(_, name)| name.as_str())
    }
}

/// The edit distance: number of letters to insert, delete, replace, or swap with the next one to
/// turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Computes the table of distances between prefixes row by row; only the last two rows are
    // needed.
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
    fn the_nearest_of_many_functions_are_kept() {
        let mut near = NearNames::new("CountSimlar", Part::Either);
        for name in [
            "A.B::Other",
            "A.Service::CountSimilar",
            "A.B::countsimlar",
            "A.B::Count",
            "A.CountSimilarly::Run",
            "A.B::ToString",
        ] {
            near.look_at(name);
        }
        assert_eq!(near.names().collect::<Vec<_>>(), ["A.B::countsimlar", "A.B::Count", "A.Service::CountSimilar"]);
        assert!(!near.look_at("A.B::Count") && !NearNames::new("", Part::Either).look_at("A.B::Run"));
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let known = || ["calls", "flow", "events", "exceptions"].into_iter();
        assert_eq!(nearest("call", known()), Some("calls"));
        assert_eq!(nearest("excepitons", known()), Some("exceptions"));
        assert_eq!(nearest("speed", known()), None);
        assert_eq!(nearest("", known()), None);
        assert_eq!(nearest("nmae", ["calls", "name"].into_iter()), Some("name"));
        assert_eq!(nearest("exclusive-ns", ["exclusive_ns", "inclusive_ns"].into_iter()), Some("exclusive_ns"));
    }
}
