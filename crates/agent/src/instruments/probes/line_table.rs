//! Lines in the table of methods: which lines get counters, and which lose them.

use clrscope_contract::request::SourceLine;
use clrscope_recording::writer::LineLanes;

use super::line_code::PlacedLine;
use super::lined::MethodLines;
use super::methods::{Method, Methods};

impl Methods {
    /// Whether a line of a method was given a counter before.
    pub(super) fn has_line(&self, method: Method, file: &str, line: u32) -> bool {
        let table = self.lock();
        let is_there = |lined: &MethodLines| lined.places.iter().any(|place| place.line == line && place.file == file);
        table.lined.get(&method).is_some_and(is_there)
    }

    /// Notes a line of a method that is to be counted.
    pub(super) fn add_line(&self, method: Method, place: PlacedLine) {
        let mut table = self.lock();
        let lined = table.lined.entry(method).or_default();
        lined.places.push(place);
        lined.is_reverted = false;
    }

    /// Removes the lines with these lanes from a method, as they could not be counted.
    pub(super) fn withdraw_lines(&self, method: Method, lanes: &[LineLanes]) {
        let mut table = self.lock();
        lanes.iter().for_each(|lanes| lanes.withdraw());
        let Some(lined) = table.lined.get_mut(&method) else { return };
        lined.places.retain(|place| !lanes.contains(&place.lanes));
        if lined.places.is_empty() {
            table.lined.remove(&method);
        }
    }

    /// Removes all lines of a method. Returns whether there was one.
    pub(super) fn withdraw_all_lines(&self, method: Method) -> bool {
        let lined = self.lock().lined.remove(&method).unwrap_or_default();
        lined.places.iter().for_each(|place| place.lanes.withdraw());
        !lined.places.is_empty()
    }

    /// Notes whether a line is to be counted, and returns the methods that this changes.
    pub(super) fn change_line(&self, line: &SourceLine, is_counted: bool) -> Vec<Method> {
        let mut table = self.lock();
        if is_counted && table.is_over() {
            return Vec::new();
        }
        let change = |(method, lined): (&Method, &mut MethodLines)| {
            let changes = |place: &&mut PlacedLine| {
                place.is_counted != is_counted && line.is_meant(&place.file, place.line)
            };
            let mut is_changed = false;
            for place in lined.places.iter_mut().filter(changes) {
                place.is_counted = is_counted;
                place.lanes.set_removed(!is_counted);
                is_changed = true;
            }
            lined.is_reverted &= !(is_changed && is_counted);
            is_changed.then_some(*method)
        };
        table.lined.iter_mut().filter_map(change).collect()
    }

    /// Number of the methods in which a line is counted.
    pub(super) fn count_line(&self, line: &SourceLine) -> u32 {
        let table = self.lock();
        let is_meant = |place: &PlacedLine| place.is_counted && line.is_meant(&place.file, place.line);
        table.lined.values().filter(|lined| lined.places.iter().any(is_meant)).count() as u32
    }

    /// Those of `methods` that have places which are counted, or were counted before.
    pub(super) fn lined_of(&self, methods: &[Method]) -> Vec<Method> {
        let table = self.lock();
        methods.iter().filter(|method| table.lined.contains_key(*method)).copied().collect()
    }
}
