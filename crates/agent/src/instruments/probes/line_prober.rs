//! Adds and removes the counters of lines.

use clr_profiler::{FunctionName, ModuleId};
use clrscope_contract::request::{MissedLine, SourceLine, file_name};
use clrscope_recording::model::ProbedLine;
use clrscope_recording::writer::Answer;
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::functions::{beside_program, is_runtime_helper};

use super::line_code::{self, PlacedLine};
use super::line_search::LinePlace;
use super::lines::LineMatches;
use super::methods::Method;
use crate::services::fixed_modules::reason;
use crate::services::{kept_code, own_code};
use crate::services::refused_methods::Refused;
use super::prober::{Prober, RUNTIME_HELPER};

impl Prober {
    /// Counts a line, also in modules that are loaded later. To be called on a thread that the
    /// runtime knows.
    pub(super) fn add_line(&self, line: &SourceLine) -> Answer {
        let before = self.lines.say(line, true);
        let found = self.find_lines(std::slice::from_ref(line));
        if found.iter().all(|(_, found)| found.places.is_empty()) {
            *self.lines.rules() = before;
            return Answer::NoMethod;
        }
        for (module, found) in found {
            self.place_lines(module, found.places);
        }
        let again = self.methods.change_line(line, true);
        if let Err(error) = self.write_lined(&again).and_then(|()| self.recompile(&again)) {
            log(Level::Warn, || format!("probes: {} methods stay without: {error}", again.len()));
            self.methods.change_line(line, false);
            return Answer::Failed;
        }
        match self.methods.count_line(line) {
            0 => Answer::Failed,
            count => Answer::Changed(count),
        }
    }

    /// Stops counting a line. To be called on a thread that the runtime knows.
    pub(super) fn remove_line(&self, line: &SourceLine) -> Answer {
        self.lines.say(line, false);
        let changed = self.methods.change_line(line, false);
        if changed.is_empty() {
            return Answer::NoMethod;
        }
        if let Some(all) = self.methods.all_unless_probed() {
            own_code::revert(&self.info, "probes", &all);
        } else if let Err(error) = self.write_lined(&changed).and_then(|()| self.compile_plain(&changed)) {
            log(Level::Warn, || format!("probes: {} methods keep theirs: {error}", changed.len()));
            self.methods.change_line(line, true);
            return Answer::Failed;
        }
        Answer::Changed(changed.len() as u32)
    }

    /// Begins to count the wanted lines of a module.
    pub(super) fn probe_lines(&self, module: ModuleId) {
        let wanted = self.lines.wanted();
        if let Some(found) = self.find_lines_in(module, &wanted) {
            self.place_lines(module, found.places);
        }
    }

    /// The wanted lines, if no loaded module has any of them. Empty if a module has some, or if no
    /// line is wanted.
    pub(super) fn missed_lines(&self) -> Vec<MissedLine> {
        let wanted = self.lines.wanted();
        let found = self.find_lines(&wanted);
        if found.iter().any(|(_, found)| !found.places.is_empty()) {
            return Vec::new();
        }
        let hints = |line: &SourceLine| {
            let all = found.iter().flat_map(|(_, found)| &found.hints);
            all.filter(|(of, _)| of == line).map(|(_, hint)| hint.clone()).collect::<Vec<_>>()
        };
        wanted.iter().map(|line| MissedLine::new(line.to_string(), hints(line))).collect()
    }

    /// Finds lines in all modules.
    fn find_lines(&self, lines: &[SourceLine]) -> Vec<(ModuleId, LineMatches)> {
        let modules = self.info.modules().unwrap_or_default().into_iter();
        modules.filter_map(|module| Some((module, self.find_lines_in(module, lines)?))).collect()
    }

    /// Finds lines in a module; `None` if the module has no lines of the program's own.
    fn find_lines_in(&self, module: ModuleId, lines: &[SourceLine]) -> Option<LineMatches> {
        let about = self.info.module_info(module).ok()?;
        let is_of_file = !about.flags.is_dynamic() && !about.flags.is_resource() && !about.path.is_empty();
        if lines.is_empty() || !is_of_file || self.functions.is_framework_module(module, &about.path) {
            return None;
        }
        let found = self.lines.find(beside_program(about.path).as_ref(), lines);
        self.lines.note(lines, &found);
        Some(found)
    }

    /// Gives methods of a module counters at places, unless a place has a counter or the last rule
    /// about it says that it is not wanted.
    fn place_lines(&self, module: ModuleId, mut places: Vec<LinePlace>) {
        let is_new = |place: &LinePlace| !self.methods.has_line((module, place.method), &place.file, place.line);
        places.retain(|place| self.lines.wants(place) && is_new(place));
        let Ok(assembly) = self.functions.names().assembly(&self.info, module) else { return };
        if places.is_empty() || self.methods.are_over() {
            return;
        }
        let mut refused = Vec::new();
        let named = self.named(module, places, &mut refused);
        if let Err(error) = self.count_places(module, &named, &mut refused) {
            refused.extend(named.iter().map(|(name, place)| (at(name, place), reason(&error))));
        }
        log(Level::Info, || format!("probes: {assembly}: {} lines refused", refused.len()));
        self.refuse(&assembly, &refused);
    }

    /// The places whose methods can be changed, with the names of the methods.
    fn named(&self, module: ModuleId, places: Vec<LinePlace>, refused: &mut Refused) -> Vec<(FunctionName, LinePlace)> {
        let fixed = self.fixed.why(&self.info, self.functions.names(), module);
        let name = |place: &LinePlace| self.functions.names().method(&self.info, module, place.method).ok();
        let mut named: Vec<_> = places.into_iter().filter_map(|place| Some((name(&place)?, place))).collect();
        named.retain(|(name, place)| {
            let is_kept = kept_code::is_kept((module, place.method));
            let why = fixed.or(is_runtime_helper(name).then_some(RUNTIME_HELPER)).or(is_kept.then_some(kept_code::WHY));
            let Some(why) = why else { return true };
            refused.push((at(name, place), why.to_owned()));
            false
        });
        named
    }

    /// Allocates counters for places, and has their methods recompiled.
    fn count_places(
        &self,
        module: ModuleId,
        places: &[(FunctionName, LinePlace)],
        refused: &mut Refused,
    ) -> clr_profiler::Result<()> {
        let signature = self.info.signature_token(module, line_code::COUNTER)?;
        let index = self.functions.module_index(module);
        let record = |(name, place): &(FunctionName, LinePlace)| ProbedLine {
            module: index,
            token: place.method.as_raw(),
            line: place.line,
            file: place.file.clone(),
            name: name.name.clone(),
            signature: name.signature.clone(),
            ..ProbedLine::default()
        };
        let records: Vec<_> = places.iter().map(record).collect();
        let mut taken = Vec::new();
        for ((name, place), lanes) in places.iter().zip(self.lines.store.allocate_lanes(&records)) {
            let Some(lanes) = lanes else {
                refused.push((at(name, place), "there is no room for its numbers".to_owned()));
                continue;
            };
            let LinePlace { file, line, starts, .. } = place.clone();
            let placed = PlacedLine { file, line, starts, lanes, signature, is_counted: true };
            self.methods.add_line((module, place.method), placed);
            taken.push(((module, place.method), lanes, at(name, place)));
        }
        let mut methods: Vec<Method> = taken.iter().map(|(method, ..)| *method).collect();
        methods.dedup();
        let written = self.write_bodies(&methods).and_then(|failed| {
            for (method, error) in &failed {
                let of_method = taken.iter().filter(|(of, ..)| of == method);
                let (lanes, places): (Vec<_>, Vec<_>) = of_method.map(|(_, lanes, at)| (*lanes, at.clone())).unzip();
                self.methods.withdraw_lines(*method, &lanes);
                refused.extend(places.into_iter().map(|at| (at, reason(error))));
            }
            methods.retain(|method| !failed.iter().any(|(of, _)| of == method));
            self.recompile(&methods)
        });
        if let Err(error) = written {
            for (method, lanes, at) in taken {
                self.methods.withdraw_lines(method, &[lanes]);
                refused.push((at, reason(&error)));
            }
        }
        Ok(())
    }
}

/// Place in a method, in words.
fn at(name: &FunctionName, place: &LinePlace) -> String {
    format!("{} at {}:{}", name.signature, file_name(&place.file), place.line)
}
