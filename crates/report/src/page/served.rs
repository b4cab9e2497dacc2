//! Served pages: the script comes without data. It requests each document when it shows the
//! document, with the current filters.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use clrscope_analysis::{
    Forest, Heaps, Query, QueryProblem, ThreadSelector, TimeState, TreeOptions, TreePlace, keep_requests, one_line,
};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use super::chosen_requests::ChosenRequests;
use super::documents::{about, with_members};
use super::encoded::percent_decoded;
use super::pictures::{Open, PictureAnswer, PictureRequest};
use super::plan::{Budget, PlannedView, planned};
use super::shell;
use super::tracks::values_by_time;
use super::whole;
use super::{states, strip};
use crate::render::page::{Pool, SectionPacker};
use crate::request::{Flag, Request};
use crate::view::Report;
use crate::views::answer_again;

/// Number of forests that stay open: the most recently used ones.
const MOST_FORESTS: usize = 2;
/// Trees with at most this many nodes are sent whole.
const SMALL: usize = 10_000;
/// A page opens at the flame graph if the stacks of the recording have more frames than this,
/// because a summary would take seconds.
const MANY_FRAMES: usize = 2_000_000;
/// Nodes with a smaller share of the shown total are narrower than a pixel on most screens.
const LEAST_SHARE: f64 = 1.0 / 2_000.0;

/// The content security policy that a served page has, for its header.
#[must_use]
pub fn served_policy() -> String {
    format!("{}; frame-ancestors 'none'", shell::policy("'self'"))
}

/// The page without data.
#[must_use]
pub fn served_page() -> String {
    let mut out = Vec::new();
    let plain = "<p>This page needs its program; 'clrscope report' prints the recording without one.</p>\n";
    // Memory takes all.
    let _ = shell::write(&mut out, &shell::policy("'self'"), "clrscope", plain, " data-served=\"1\"", "");
    String::from_utf8_lossy(&out).into_owned()
}

/// A request for a document, with the current filters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DocumentRequest {
    /// Name of the document within the page.
    pub key: String,
    /// Start of the selected time, in nanoseconds since the start of the run.
    pub since_ns: Option<u64>,
    /// End of the selected time, in nanoseconds since the start of the run.
    pub until_ns: Option<u64>,
    /// Threads of one process, given by their serial numbers; `None` selects all threads of all
    /// processes.
    pub threads: Option<(u32, Vec<u32>)>,
    /// States whose time is shown, for metrics with states; empty for all states.
    pub states: Vec<TimeState>,
    /// Requests whose work is shown; `None` for all work.
    pub requests: Option<ChosenRequests>,
    /// The node at which the shown tree begins; `None` for the whole tree.
    pub below: Option<TreePlace>,
    /// Question about a transformed tree; `None` for the original tree.
    pub picture: Option<PictureRequest>,
}

impl DocumentRequest {
    /// Reads the query of an address:
    /// `key=tree.cpu&since=5&until=9&threads=7.1.2&states=lock&below=7.0.3`, for some requests also
    /// `request=GET%20/a&slower=5&faster=9&began=1.3`, and for a transformed tree also
    /// `measure=cpu&changes=f12,o&invert=1&as=functions`. `None` if the query is invalid.
    #[must_use]
    pub fn parse(query: &str) -> Option<Self> {
        let mut wanted = Self::default();
        for part in query.split('&') {
            let (name, value) = part.split_once('=')?;
            match name {
                "key" => value.clone_into(&mut wanted.key),
                "since" => wanted.since_ns = Some(value.parse().ok()?),
                "until" => wanted.until_ns = Some(value.parse().ok()?),
                "threads" => wanted.threads = Some(numbers(value)?),
                "states" => wanted.states = value.split(',').map(TimeState::parse).collect::<Option<_>>()?,
                "request" | "slower" | "faster" | "began" => {
                    wanted.requests.get_or_insert_default().set_parameter(name, value)?;
                }
                "below" => {
                    let (pid, places) = numbers(value)?;
                    wanted.below = Some(TreePlace { pid, places });
                }
                _ => wanted.picture.get_or_insert_default().set_parameter(name, value)?,
            }
        }
        (!wanted.key.is_empty()).then_some(wanted)
    }

    /// The request, with these filters added.
    fn with(&self, asked: &Request) -> Request {
        let mut request = asked.clone();
        let query = &mut request.query;
        query.since_ns = query.since_ns.max(self.since_ns);
        query.until_ns = [query.until_ns, self.until_ns].into_iter().flatten().min();
        query.states.clone_from(&self.states);
        if let Some((pid, threads)) = &self.threads {
            query.pid = Some(*pid);
            query.threads = threads.iter().map(|id| ThreadSelector::Id(*id)).collect();
        }
        request
    }
}

impl PictureRequest {
    /// Sets a field from a parameter of an address; `None` if the parameter is invalid.
    fn set_parameter(&mut self, name: &str, value: &str) -> Option<()> {
        let is_plain = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".,_".contains(&byte));
        match name {
            "measure" if is_plain(value) => value.clone_into(&mut self.measure),
            "changes" if is_plain(value) => value.clone_into(&mut self.changes),
            "invert" => self.invert = value == "1",
            "nameless" => self.nameless = value == "1",
            "as" if value == "functions" => self.answer = PictureAnswer::Functions,
            "of" => self.answer = PictureAnswer::Neighbours(value.parse().ok()?),
            "search" => self.answer = PictureAnswer::Matched(percent_decoded(value)?),
            _ => return None,
        }
        Some(())
    }
}

/// Parses numbers separated by dots; returns the first number separately.
fn numbers(text: &str) -> Option<(u32, Vec<u32>)> {
    let mut all = text.split('.').map(str::parse);
    let first = all.next()?.ok()?;
    Some((first, all.collect::<Result<_, _>>().ok()?))
}

/// A recording that a served page shows.
pub struct ServedRecording<'a> {
    recording: &'a Recording,
    asked: Request,
    /// Snapshots of the heap, read once for all documents.
    heaps: Arc<Heaps<'a>>,
    /// Open forests by their query, the most recently used at the end.
    forests: RefCell<Vec<(Query, Arc<Forest<'a>>)>>,
    /// Transformed trees.
    pictures: Open<'a>,
    /// The recording reduced to the work for the most recently selected requests.
    reduced: RefCell<Option<(ChosenRequests, Arc<Recording>)>>,
    /// The page opens at the flame graph if stacks have more frames than this.
    many_frames: usize,
}

impl<'a> ServedRecording<'a> {
    /// Answers about a recording, under the filters of a request.
    #[must_use]
    pub fn new(recording: &'a Recording, asked: Request) -> Self {
        let heaps = Arc::new(Heaps::new(recording));
        let (forests, pictures) = (RefCell::default(), Open::default());
        let reduced = RefCell::default();
        Self { recording, asked, heaps, forests, pictures, reduced, many_frames: MANY_FRAMES }
    }

    /// A second instance for the same recording, for use on another thread. Both share the heap
    /// snapshots that were read.
    #[must_use]
    pub fn beside(&self) -> Self {
        let (asked, heaps) = (self.asked.clone(), Arc::clone(&self.heaps));
        let (recording, many_frames) = (self.recording, self.many_frames);
        let (forests, pictures, reduced) = (RefCell::default(), Open::default(), RefCell::default());
        Self { recording, asked, heaps, forests, pictures, reduced, many_frames }
    }

    /// The list of documents and their common members, as JSON. `revision` identifies the state of
    /// a recording that still grows.
    #[must_use]
    pub fn index(&self, revision: u64, growing: bool) -> String {
        let documents: Vec<_> = self.recorded().iter().map(PlannedView::head).collect();
        let threads = self.recording.processes.iter().flat_map(|process| {
            let of = |thread: &clrscope_recording::model::Thread| {
                json!({ "pid": process.pid, "id": thread.id, "name": thread.name, "role": thread.role.name() })
            };
            process.threads.iter().map(of)
        });
        let threads: Vec<_> = threads.collect();
        let more = json!({ "revision": revision, "growing": growing, "threads": threads, "documents": documents });
        let more = more.to_string();
        with_members(&about(self.recording, self.opens_at()), &more[1..more.len() - 1])
    }

    /// Names of the documents, without computing any; documents of the view at which the page opens
    /// come first.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let mut all = self.recorded();
        all.sort_by_key(|planned| planned.view.name != self.opens_at());
        // Most people never ask for others.
        all.retain(|planned| !planned.is_physical());
        all.iter().map(PlannedView::key).collect()
    }

    /// Name of the view at which the page opens.
    fn opens_at(&self) -> &'static str {
        if self.has_many_frames() { "tree" } else { "summary" }
    }

    fn has_many_frames(&self) -> bool {
        let frames: usize = self.recording.processes.iter().map(|process| process.stacks.len()).sum();
        frames > self.many_frames
    }

    /// Documents of the recorded data.
    fn recorded(&self) -> Vec<PlannedView> {
        let recorded = self.recording.run.filled.instruments();
        let mut all = self.planned(&self.asked);
        all.retain(|planned| {
            let feeding = planned.view.instruments();
            feeding.is_empty() || recorded.iter().any(|one| feeding.contains(&one.name.as_str()))
        });
        all
    }

    /// A document, as JSON. If its numbers are totals of the whole run, it ignores a filter by time
    /// and says so (`whole_run`). If its numbers can't be assigned to requests, it ignores a filter
    /// by requests and says so (`all_requests`). If it can't be computed, it holds the reason.
    ///
    /// # Errors
    /// Errors of rendering.
    pub fn document(&self, wanted: &DocumentRequest) -> io::Result<String> {
        match &wanted.requests {
            Some(chosen) => self.document_of_requests(chosen, wanted),
            None => self.document_of_all(wanted, false),
        }
    }

    /// A document of the work for some requests. Data that can't be assigned to requests are shown
    /// unfiltered, and the document says so.
    fn document_of_requests(&self, chosen: &ChosenRequests, wanted: &DocumentRequest) -> io::Result<String> {
        let wanted = DocumentRequest { requests: None, ..wanted.clone() };
        let planned = self.planned(&self.asked).into_iter().find(|one| one.key() == wanted.key);
        if planned.is_some_and(|one| one.view.why_not_with(one.request.each, Flag::Request).is_some()) {
            return self.document_of_all(&wanted, true);
        }
        let reduced = match self.reduced(chosen) {
            Ok(reduced) => reduced,
            Err(problem) => return Ok(json!({ "problem": one_line(problem.to_string()) }).to_string()),
        };
        let mut asked = self.asked.clone();
        asked.query.requests = chosen.filter();
        ServedRecording::new(&reduced, asked).document_of_all(&wanted, false)
    }

    /// The recording reduced to the work for some requests; kept for the next document.
    fn reduced(&self, chosen: &ChosenRequests) -> Result<Arc<Recording>, QueryProblem> {
        let mut kept = self.reduced.borrow_mut();
        if let Some((_, reduced)) = kept.as_ref().filter(|(known, _)| known == chosen) {
            return Ok(Arc::clone(reduced));
        }
        let mut reduced = self.recording.clone();
        keep_requests(&mut reduced, &chosen.filter())?;
        Ok(Arc::clone(&kept.insert((chosen.clone(), Arc::new(reduced))).1))
    }

    /// A document of all requests; `although_chosen` tells whether some requests were selected.
    fn document_of_all(&self, wanted: &DocumentRequest, although_chosen: bool) -> io::Result<String> {
        let request = wanted.with(&self.asked);
        let Some(planned) = self.planned(&request).into_iter().find(|one| one.key() == wanted.key) else {
            return Ok(json!({ "problem": "the recording has nothing for this" }).to_string());
        };
        let mut query = planned.request.query.clone();
        let mut answer = self.rendered(&planned, &query, wanted)?;
        let mut head = planned.head();
        if although_chosen {
            head["all_requests"] = json!(true);
        }
        if [wanted.since_ns, wanted.until_ns] != [None; 2] && [query.since_ns, query.until_ns] == [None; 2] {
            head["whole_run"] = json!(true);
        }
        if matches!(answer, Err(QueryProblem::NotAvailable { option: "--since" | "--until", .. })) {
            (query.since_ns, query.until_ns) = (None, None);
            answer = self.rendered(&planned, &query, wanted)?;
            head["whole_run"] = json!(true);
        }
        Ok(match answer {
            Ok(members) if wanted.picture.is_some() => {
                // Measures are those that the picture has.
                head.as_object_mut().map(|head| head.remove("measures"));
                with_members(&head, &members)
            }
            Ok(members) => with_members(&head, &members),
            Err(problem) => {
                head["problem"] = json!(one_line(problem.to_string()));
                head.to_string()
            }
        })
    }

    fn planned(&self, request: &Request) -> Vec<PlannedView> {
        planned(self.recording, request, Budget::SERVED)
    }

    /// Values and rows of a document.
    fn rendered(
        &self,
        planned: &PlannedView,
        query: &Query,
        wanted: &DocumentRequest,
    ) -> io::Result<Result<String, QueryProblem>> {
        let (view, recording) = (planned.view, planned.recording(self.recording));
        let mut request = Request { query: query.clone(), ..planned.request.clone() };
        let (mut whole, mut states) = (None, Value::Null);
        let report = if view.name == "tree" {
            // Threads are chosen by the filters of the request.
            request.query.per_thread = false;
            request.below.clone_from(&wanted.below);
            if let Some(columns) = &mut request.columns {
                columns.retain(|key| key != "thread");
            }
            match self.forest(recording, &request.query) {
                Ok(forest) => {
                    if let Some(picture) = &wanted.picture {
                        return Ok(Ok(self.picture(&forest, planned, &request.query, picture, wanted)));
                    }
                    let peaks = self.peaks(&forest, wanted);
                    let is_small = peaks.is_none() && is_small(&forest, wanted);
                    request.min_share = if is_small { 0.0 } else { LEAST_SHARE };
                    let forest = peaks.unwrap_or(forest);
                    if wanted.below.is_none() {
                        let mut no_threads = Pool::default();
                        whole = Some(whole::sums_section(&forest, &planned.measures, &mut no_threads, true));
                    }
                    states = states::times_by_state(&forest, request.min_share, wanted.below.as_ref());
                    Report::new(view, recording, answer_again(&forest, recording, &request), &request)
                }
                Err(problem) => return Ok(Err(problem)),
            }
        } else {
            match view.open_with(recording, &request, &self.heaps) {
                Ok(report) => report,
                Err(problem) => return Ok(Err(problem)),
            }
        };
        let mut pool = Pool::default();
        let mut packed = SectionPacker::new(&mut pool);
        report.render(&mut packed)?;
        let members = packed.members(view.name);
        let whole = whole.map_or_else(String::new, |whole| format!(",\"whole\":{whole}"));
        let planned = PlannedView { view, request, measures: Vec::new(), options: Vec::new() };
        let (tracks, strip) = (values_by_time(&planned, recording), strip::over_time(&planned, recording));
        let values = pool.to_json();
        Ok(Ok(format!(
            "{members}{whole},\"states\":{states},\"tracks\":{tracks},\"strip\":{strip},\"values\":{values}"
        )))
    }

    /// Answers a question about a transformed tree.
    fn picture(
        &self,
        forest: &Forest<'a>,
        planned: &PlannedView,
        query: &Query,
        picture: &PictureRequest,
        wanted: &DocumentRequest,
    ) -> String {
        let is_it = |measure: &&Value| measure["name"] == picture.measure.as_str();
        let Some(measure) = planned.measures.iter().find(is_it).or(planned.measures.first()) else {
            return "\"sections\":[],\"values\":[]".to_owned();
        };
        let places = wanted.below.as_ref().map_or(&[][..], |below| &below.places);
        self.pictures.answer(forest, query, (picture, places), (measure, LEAST_SHARE))
    }

    /// The paths that are large enough to be seen, as a quick answer while the trees of many frames
    /// are not yet built.
    fn peaks(&self, forest: &Forest<'a>, wanted: &DocumentRequest) -> Option<Arc<Forest<'a>>> {
        let is_first = wanted.below.is_none() && self.has_many_frames();
        is_first.then(|| forest.peaks(LEAST_SHARE).map(Arc::new)).flatten()
    }

    /// Builds the trees for which a click on a path would otherwise have to wait, if there are many
    /// frames.
    pub fn make_trees(&self) {
        let all = if self.has_many_frames() { self.recorded() } else { Vec::new() };
        for planned in all.iter().filter(|planned| planned.view.name == "tree" && !planned.is_physical()) {
            let query = Query { per_thread: false, ..planned.request.query.clone() };
            if let Ok(forest) = self.forest(self.recording, &query) {
                forest.make_trees();
            }
        }
    }

    /// The forest of a query; the query determines its kind of paths.
    fn forest(&self, recording: &'a Recording, query: &Query) -> Result<Arc<Forest<'a>>, QueryProblem> {
        let mut forests = self.forests.borrow_mut();
        if let Some(at) = forests.iter().position(|(known, _)| known == query) {
            let known = forests.remove(at);
            let forest = Arc::clone(&known.1);
            forests.push(known);
            return Ok(forest);
        }
        let forest = Arc::new(Forest::open(recording, query)?);
        if forests.len() >= MOST_FORESTS {
            forests.remove(0);
        }
        forests.push((query.clone(), Arc::clone(&forest)));
        Ok(forest)
    }
}

/// Whether the requested part of a tree is small.
fn is_small(forest: &Forest<'_>, wanted: &DocumentRequest) -> bool {
    let mut nodes = 0;
    let walked = forest.walk_again(wanted.below.as_ref(), &TreeOptions::default(), |_| {
        nodes += 1;
        if nodes > SMALL { Err(()) } else { Ok(()) }
    });
    walked.is_ok()
}

#[cfg(test)]
mod tests {
    use clrscope_recording::events::{Kind, Tag, Value as EventValue};
    use clrscope_recording::model::{EventArena, ThreadRole, ThreadState};
    use clrscope_recording::testing::chunk::HandmadeChunk;
    use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

    use super::*;

    #[test]
    fn a_page_of_many_stacks_opens_at_the_flame_graph_which_is_made_first() {
        let mut sampled = HandSampled::default();
        let main = sampled.thread("main", ThreadRole::Main);
        sampled.cpu(main, 1, "App::Main > App::Work");
        let recording = sampled.recording();
        let mut served = ServedRecording::new(&recording, Request::default());
        let opens = |served: &ServedRecording<'_>| {
            let index: serde_json::Value = serde_json::from_str(&served.index(1, false)).expect("JSON");
            (index["open"].as_str().expect("a view").to_owned(), served.beside().keys()[0].clone())
        };
        assert_eq!(opens(&served), ("summary".to_owned(), "summary".to_owned()));
        served.many_frames = 1;
        assert_eq!(opens(&served), ("tree".to_owned(), "tree.cpu".to_owned()));
    }

    #[test]
    fn the_first_picture_of_many_stacks_is_that_of_the_whole_tree() {
        let mut sampled = HandSampled::default();
        let main = sampled.thread("main", ThreadRole::Main);
        for (time, path) in [(1, "App::Main > App::Work > App::Sort"), (2, "App::Main > App::Work"), (3, "App::Other")]
        {
            sampled.cpu(main, time, path);
        }
        let recording = sampled.recording();
        let mut served = ServedRecording::new(&recording, Request::default());
        served.many_frames = 1;
        let wanted = DocumentRequest { key: "tree.cpu".to_owned(), ..DocumentRequest::default() };
        let first = served.document(&wanted).expect("a document");
        served.make_trees();
        assert!(first.contains("App::Sort"), "{first}");
        assert_eq!(first, served.document(&wanted).expect("a document"));
    }

    #[test]
    fn the_first_picture_of_many_stacks_has_the_times_by_state_of_the_whole_tree() {
        let mut sampled = HandSampled::default();
        let main = sampled.thread("main", ThreadRole::User);
        for number in 0..12_000 {
            let path = format!("App::Main > App.Wide::A{} > App.Wide::B{number} > App::Tiny", number % 90);
            let sample = sampled.wall(main, number % 900, &path);
            (sample.weight_ns, sample.state) = (
                STEP_NS / 40 + number,
                [ThreadState::Running, ThreadState::Lock, ThreadState::Io][number as usize % 3],
            );
        }
        sampled.wall(main, 400, "App::Main > App::Work").weight_ns = 2_000 * STEP_NS;
        let recording = sampled.recording();
        let mut served = ServedRecording::new(&recording, Request::default());
        served.many_frames = 1;
        let wanted = DocumentRequest { key: "tree.wall".to_owned(), ..DocumentRequest::default() };
        let first = served.document(&wanted).expect("a document");
        served.make_trees();
        let second = served.document(&wanted).expect("a document");
        let states = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["states"].clone();
        assert!(first.contains("App.Wide::A17") && !first.contains("App::Tiny"), "it is cut");
        let rest: u64 = states(&first)["rest"].as_array().expect("a list").iter().filter_map(Value::as_u64).sum();
        assert!(rest > 0 && states(&first) == states(&second), "{first}\n{second}");
    }

    #[test]
    fn what_is_asked_for_stands_in_the_address() {
        let wanted = DocumentRequest::parse("key=tree.cpu&since=5&until=9&threads=7.1.2&below=7.0.3").expect("sense");
        assert_eq!((wanted.key.as_str(), wanted.since_ns, wanted.until_ns), ("tree.cpu", Some(5), Some(9)));
        assert_eq!(wanted.threads, Some((7, vec![1, 2])));
        assert_eq!(wanted.below, Some(TreePlace { pid: 7, places: vec![0, 3] }));
        let of_states = DocumentRequest::parse("key=tree.wall&states=lock,task").expect("sense");
        assert_eq!(of_states.states, [TimeState::Lock, TimeState::Task]);
        for senseless in [
            "key=tree.wall&states=locked",
            "",
            "key=",
            "key=tree&since=x",
            "key=tree&since=-1",
            "key=tree&more=1",
            "key=tree&below=7.x",
            "key=tree&slower=x",
            "key=tree&began=5",
            "key=tree&request=%f",
            "tree",
        ] {
            assert_eq!(DocumentRequest::parse(senseless), None, "{senseless}");
        }
    }

    /// Samples of two consecutive requests, and a sample that belongs to no request.
    #[test]
    fn documents_of_chosen_requests_have_their_work_alone() {
        let mut sampled = HandSampled::default();
        let main = sampled.thread("main", ThreadRole::Main);
        for (time, path) in [(1, "App::Main > App::Slow"), (2, "App::Main > App::Fast"), (3, "App::Idle")] {
            sampled.cpu(main, time, path);
        }
        let mut recording = sampled.recording();
        let names = HandmadeChunk::new(0, 1, 0).put(
            Kind::REQUEST_NAME,
            &[(Tag::ROUTE, 1_u64.into()), (Tag::DIRECTION, 0_u64.into()), (Tag::NAME, "GET /a b".into())],
        );
        let ended = |chunk: HandmadeChunk, at_ns: u64, id: u64, ns: u64| {
            let fields = [(Tag::ROUTE, 1_u64.into()), (Tag::REQUEST, id.into()), (Tag::DURATION, ns.into())];
            chunk.after(at_ns).put(Kind::REQUEST_ENDED, &fields)
        };
        let of_both = ended(ended(names, 2 * STEP_NS, 1, STEP_NS), STEP_NS, 2, STEP_NS / 2).finish();
        let half = STEP_NS / 2;
        let switch = |chunk: HandmadeChunk, after: u64, id: u64| {
            let fields: &[(Tag, EventValue<'_>)] = if id == 0 { &[] } else { &[(Tag::REQUEST, id.into())] };
            chunk.after(after).put(Kind::REQUEST_ON_THREAD, fields)
        };
        let works = switch(HandmadeChunk::new(0, 2, 0), half, 1);
        let works = switch(switch(works, STEP_NS, 2), STEP_NS, 0).finish();
        let arena = EventArena { instrument: "requests".into(), chunks: vec![of_both, works] };
        recording.processes[0].events.push(arena);
        let served = ServedRecording::new(&recording, Request::default());
        let shown = |more: &str| {
            let wanted = DocumentRequest::parse(&format!("key=tree.cpu{more}")).expect("sense");
            let document = served.document(&wanted).expect("a document");
            ["App::Slow", "App::Fast", "App::Idle"].map(|name| document.contains(name))
        };
        assert_eq!(shown(""), [true; 3]);
        assert_eq!(shown("&request=GET%20/a%20b"), [true, true, false]);
        assert_eq!(shown(&format!("&slower={half}")), [true, false, false]);
        assert_eq!(shown(&format!("&faster={half}")), [false, true, false]);
        assert_eq!(shown(&format!("&began=0.{}", STEP_NS + half)), [true, false, false]);
        assert_eq!(shown(""), [true; 3], "and of all again");
        assert_eq!(shown("&request=GET%20/c"), [false; 3]);
        let threads = DocumentRequest::parse("key=losses&slower=1").expect("sense");
        assert!(served.document(&threads).expect("a document").contains("\"all_requests\":true"));
    }

    #[test]
    fn changes_of_a_tree_stand_in_the_address_too() {
        let wanted =
            DocumentRequest::parse("key=tree.cpu&measure=cpu&changes=f12,F1.2,o&invert=1&nameless=0&below=0.1")
                .expect("sense");
        let picture = wanted.picture.expect("a picture");
        assert_eq!((picture.measure.as_str(), picture.changes.as_str()), ("cpu", "f12,F1.2,o"));
        assert_eq!((picture.invert, picture.nameless, picture.answer), (true, false, PictureAnswer::Tree));
        let answer =
            |part: &str| DocumentRequest::parse(&format!("key=tree.cpu&{part}")).and_then(|wanted| wanted.picture);
        let answers = [
            ("as=functions", PictureAnswer::Functions),
            ("of=5", PictureAnswer::Neighbours(5)),
            ("search=a%2Cb%20c", PictureAnswer::Matched("a,b c".to_owned())),
        ];
        for (part, expected) in answers {
            assert_eq!(answer(part).map(|picture| picture.answer), Some(expected), "{part}");
        }
        for senseless in ["changes=<b>", "as=x", "of=x", "search=%2", "search=%ff"] {
            assert_eq!(answer(senseless), None, "{senseless}");
        }
    }

    /// Each path of `[stub]`, the function with the second largest own time, was too small to be
    /// seen. So inverted pictures lacked the function, and had only 26.2 of 85 s for all threads
    /// together.
    #[test]
    fn inverted_a_tree_has_all_of_its_amounts_and_functions_of_small_paths() {
        let mut sampled = HandSampled::default();
        let main = sampled.thread("main", ThreadRole::Main);
        sampled.cpu(main, 1, "App::Main > App.Big::Run").weight_ns = 9_000 * STEP_NS;
        for number in 0..12_000 {
            sampled.cpu(
                main,
                number % 900,
                &format!("App::Main > App.Wide::A{} > App.Wide::B{number} > App::Tiny", number % 90),
            );
        }
        let recording = sampled.recording();
        let served = ServedRecording::new(&recording, Request::default());
        let document = |more: &str| -> Value {
            let wanted = DocumentRequest::parse(&format!("key=tree.cpu&{more}")).expect("sense");
            serde_json::from_str(&served.document(&wanted).expect("a document")).expect("JSON")
        };
        let column = |section: &Value, key: &str| -> Vec<Value> {
            let columns = section["columns"].as_array().expect("columns");
            let found = columns.iter().find(|column| column["key"] == key).expect("a column");
            found["values"].as_array().expect("values").clone()
        };
        let all = 21_000 * STEP_NS;
        let inverted = document("measure=cpu&invert=1");
        assert_eq!(column(&inverted["whole"], "picture_total"), [json!(all)]);
        let rows = &inverted["sections"][0];
        let number = |value: &Value| value.as_u64().expect("a number");
        let names = column(rows, "name").into_iter().map(|place| &inverted["values"][number(&place) as usize]);
        let totals = column(rows, "picture_total").into_iter().zip(rows["depths"].as_array().expect("depths"));
        let tops = names.zip(totals).filter(|(_, (_, depth))| **depth == 0);
        let tops: Vec<(&Value, u64)> = tops.map(|(name, (total, _))| (name, number(&total))).collect();
        assert_eq!(tops.iter().map(|top| top.1).sum::<u64>(), all);
        assert_eq!((tops[0].0, tops[0].1), (&json!("App::Tiny"), 12_000 * STEP_NS));
        // The plain tree is limited to visible nodes, and has the total sums.
        let plain = document("since=0");
        assert!(plain["sections"][0]["rows"].as_u64() < Some(1_000), "{}", plain["sections"][0]["rows"]);
        assert_eq!(column(&plain["whole"], "total_cpu_ns"), [json!(all)]);
        let matched = document("measure=cpu&search=wide%3A%3A");
        assert_eq!((&matched["matched"], &matched["all"]), (&json!(12_000 * STEP_NS), &json!(all)));
    }

    #[test]
    fn filters_of_the_page_add_to_those_of_the_command_line() {
        let query = Query { since_ns: Some(10), until_ns: Some(50), ..Query::default() };
        let asked = Request { query, ..Request::default() };
        let wanted = DocumentRequest { since_ns: Some(5), until_ns: Some(30), ..DocumentRequest::default() };
        let request = wanted.with(&asked);
        assert_eq!((request.query.since_ns, request.query.until_ns), (Some(10), Some(30)));
    }
}
