//! `cargo xtask soak findings`: runs the programs in `dotnet/findings`, which once revealed faults.
//! Each is compiled from its source and run on every runtime, bare and under the instruments.
//! Output and exit must be the same as in bare runs. If a program prints how often a method ran,
//! `calls` must report the same number.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clrscope_testkit::compile::compile_folder;
use clrscope_testkit::confine::wrapped;
use clrscope_testkit::{
    Finished, Runtime, Sdk, Service, at_a_time, cli, load, run_within, runtimes, scratch, wait_until, workspace_root,
};

use crate::verdict::{caught, say, verdict};

/// What each program is run under: words of `clrscope run`.
const REQUESTS: [&str; 7] = [
    "-i cpu -i wall -i exceptions -i gc -i alloc",
    "-i cpu:engine=timer,rate=5000 -i heap",
    CALLS,
    "-i flow:args -i exceptions --include *",
    "-i exceptions:args --include *",
    "-i alloc:exact -i events",
    "-i awaits:exact -i locks",
];
/// The request whose counts are compared with the program's own.
const CALLS: &str = "-i calls";
/// Begins a line in which a program says how often a method ran: `COUNT`, name, number, with tabs
/// between.
const COUNT: &str = "COUNT\t";
/// Longer than any of these takes, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Requests to each address of a service, of each of four clients.
const LOAD: usize = 50;
/// Programs that run at a time.
const AT_A_TIME: usize = 3;

/// How a program is run.
enum Ways {
    /// Once for each of these arguments.
    Each(&'static [&'static str]),
    /// Once for each label of a `case` in its source.
    Labels,
    /// Without arguments it says its cases; once for each, but for these, which need more words,
    /// print the tool's variables, take all of the machine's memory or descriptors, or do not end.
    Cases(&'static [&'static str]),
    /// Once; it says that it is ready, and goes on until this signal.
    Until(&'static str),
    /// A service: its address, and what is asked for.
    Serves(&'static str, &'static [&'static str]),
}

/// What a program is run with, unless it is once without arguments.
const WAYS: [(&str, Ways); 12] = [
    ("ThrowsOfAllKinds", Ways::Each(&["", "unhandled", "failfast", "so", "exit"])),
    ("Arguments", Ways::Each(&["", "x y"])),
    ("Suspended", Ways::Each(&["2"])),
    ("Latency", Ways::Each(&["2"])),
    ("Ticks", Ways::Each(&["2"])),
    ("StolenSignals", Ways::Each(&["eintr", "eintrm", "steal", "sigwait", "small 16384"])),
    ("LocalFunctions", Ways::Until("TERM")),
    ("Generics", Ways::Labels),
    ("BadReferences", Ways::Labels),
    (
        "Hostile",
        Ways::Cases(&[
            "env",
            "profapi",
            "oom",
            "openfiles",
            "controlled",
            "dispatch",
            "pstree",
            "ticker",
            "sleep",
            "paths",
            "fcdepth",
            "catchdepth",
            "findepth",
            "filterdepth",
            "depthmain",
            "deepbig",
            "deepopt",
            "tickcount",
            "bigcount",
        ]),
    ),
    ("Shop", Ways::Serves("127.0.0.1:5088", &["/products", "/recommend/7", "/prices", "/checkout/3", "/report"])),
    ("Starved", Ways::Serves("127.0.0.1:5078", &["/cheap", "/dear"])),
];

/// Programs whose numbers differ a little from run to run, and by how much of a number they may:
/// the runtime's ticks come by chance.
const NEAR: [(&str, f64); 1] = [("Ticks", 0.05)];

/// What programs write otherwise under an instrument, by a word of the request, from a version of
/// .NET on, and why that is no fault. How they end is compared all the same.
const OTHERWISE: [(&str, &str, u32, &str); 2] = [
    ("Ticks", "alloc", 10, "the runtime sends nobody ticks while samples are taken, as the recording says"),
    ("Ticks", "flow:args", 8, "the listener's thread is so slow that it gets ticks after they were counted"),
];

/// Cases in which the runtime itself dies bare, each time, and codes that say the same of it.
const DEATHS: [(&str, [i32; 2]); 2] = [
    // An exception goes up from code that the C++ library knows nothing of (.NET 8 and 10). What
    // lies on the stack decides whether it is not caught or its way is not found.
    ("control1", [134, 139]),
    // There is no address space for more; what asks first dies of it.
    ("rlimitas", [134, 139]),
];
/// Cases in which the runtime may wait for ever instead of dying. They are killed after a while.
const HANGS: [&str; 2] = [
    // Bare too, each time on .NET 9.
    "control1",
    // The runtime's handler of SIGSEGV allocates. If the stack could not grow within the C
    // library's allocator, it waits for its own thread.
    "rlimitas",
];
/// Seconds until such a case is killed, and its exit code then.
const HANG_SECONDS: &str = "60";
const KILLED: i32 = 137;
/// What Rust writes when the agent ends a program for want of memory, which is never right.
const ENDED_BY_AGENT: &str = "memory allocation of ";

/// Runs the named programs, or all of them.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let sdk = Sdk::find().ok_or("there is no SDK to compile the programs with")?;
    let all = programs();
    if let Some(unknown) = names.iter().find(|name| !all.contains_key(**name)) {
        return Err(format!("there is no program '{unknown}'; known: {:?}", all.keys()));
    }
    cli();
    let place = scratch();
    let mut wrong = Vec::new();
    for (name, folder) in all.iter().filter(|(name, _)| names.is_empty() || names.contains(&name.as_str())) {
        let program = place.path().join(format!("{name}.dll"));
        compile_folder(&sdk, folder, &program)?;
        for runtime in runtimes() {
            wrong.extend(on_one_runtime(name, folder, &program, runtime));
        }
    }
    verdict(&wrong)
}

/// The programs' folders, by name.
fn programs() -> BTreeMap<String, PathBuf> {
    let folder = workspace_root().join("dotnet/findings");
    let entries = std::fs::read_dir(&folder).expect("the folder of the programs").flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    folders.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path)).collect()
}

/// Runs each way of a program on a runtime; what went wrong.
fn on_one_runtime(name: &str, folder: &Path, program: &Path, runtime: &Runtime) -> Vec<String> {
    let ways = WAYS.iter().find(|(of, _)| *of == name).map_or(&Ways::Each(&[""]), |(_, ways)| ways);
    let all: Vec<String> = match ways {
        Ways::Each(each) => each.iter().map(|text| (*text).to_owned()).collect(),
        Ways::Until(_) => vec![String::new()],
        Ways::Labels => labels(folder),
        Ways::Cases(except) => cases(program, runtime, except),
        Ways::Serves(address, paths) if runtime.has_web() => {
            return REQUESTS
                .iter()
                .filter_map(|request| say(serve(name, program, runtime, address, paths, request)))
                .collect();
        }
        Ways::Serves(..) => {
            let not_run = "not run, there is no ASP.NET of this version".to_owned();
            return say((format!("{name} on {}", runtime.version), Ok(not_run))).into_iter().collect();
        }
    };
    let signal = if let Ways::Until(signal) = ways { Some(*signal) } else { None };
    let ended = at_a_time(AT_A_TIME, &all, |text| {
        let arguments: Vec<&str> = text.split_whitespace().collect();
        say(compare(name, program, runtime, &arguments, signal))
    });
    ended.into_iter().flatten().collect()
}

/// The labels of each `case "LABEL"` in the sources of a folder.
fn labels(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("the program's folder").flatten().map(|entry| entry.path());
    let texts = files.filter_map(|path| std::fs::read_to_string(path).ok());
    let labels = |text: String| -> Vec<String> {
        let after = text.split("case \"").skip(1);
        after.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    };
    texts.flat_map(labels).collect()
}

/// The cases that a program names when it is started without arguments.
fn cases(program: &Path, runtime: &Runtime, except: &[&str]) -> Vec<String> {
    let listed = run_within(runtime.command(program), PATIENCE).stdout_text();
    listed.lines().filter(|case| !except.contains(case)).map(str::to_owned).collect()
}

/// The command, bare or behind the tool.
fn command(program: &Path, runtime: &Runtime, arguments: &[&str], request: Option<(&str, &Path)>) -> Command {
    let mut bare = runtime.command(program);
    bare.args(arguments);
    bare.current_dir(program.parent().expect("it lies in a folder"));
    let Some((request, recording)) = request else { return bare };
    let (tool, recording) = (cli().to_string_lossy(), recording.to_string_lossy());
    let mut words = vec![&*tool, "run", "-q", "--force", "--trust-writable", "-o", &*recording];
    words.extend(request.split(' ').chain(["--"]));
    wrapped(&words, &bare)
}

/// Runs a program bare, twice or, where it writes something else then, four times, and under each
/// request.
fn compare(
    name: &str,
    program: &Path,
    runtime: &Runtime,
    arguments: &[&str],
    signal: Option<&str>,
) -> (String, Result<String, String>) {
    let went = caught(|| {
        let began = Instant::now();
        let may_hang = arguments.first().is_some_and(|case| HANGS.contains(case));
        let run = |command: Command| {
            let limit = ["timeout", "-s", "KILL", HANG_SECONDS];
            end(if may_hang { wrapped(&limit, &command) } else { command }, signal)
        };
        let hangs = |finished: &Finished| may_hang && finished.code() == KILLED;
        let bare_run = || run(command(program, runtime, arguments, None));
        let mut bare = vec![bare_run(), bare_run()];
        if bare.iter().any(hangs) {
            return Ok("bare, the runtime waits for ever: there is nothing to compare with".to_owned());
        }
        if bare[0].stdout != bare[1].stdout {
            bare.extend([bare_run(), bare_run()]);
        }
        let ends = ends(arguments, bare.iter().map(Finished::code).collect());
        let written: Vec<String> = bare.iter().map(Finished::stdout_text).collect();
        let expected = match NEAR.iter().find(|(near, _)| *near == name) {
            Some((_, part)) => Output::Near(written[0].clone(), *part),
            None => Output::from_bare(&written),
        };
        let (mut wrong, mut otherwise) = (Vec::new(), String::new());
        for request in REQUESTS {
            let place = scratch();
            let recording = place.path().join("soaked.clrs");
            let finished = run(command(program, runtime, arguments, Some((request, &recording))));
            if hangs(&finished) {
                otherwise += &format!(", but for {request}: the runtime waits for ever");
                continue;
            }
            let said = finished.stderr_text();
            if !ends.contains(&finished.code()) || said.contains(ENDED_BY_AGENT) {
                wrong.push(format!("{request}: exit code {} for {ends:?}: {said}", finished.code()));
            } else if let Some(why) = why_otherwise(name, request, runtime.major()) {
                otherwise += &format!(", but for {request}: {why}");
            } else if let Some(how) = expected.difference(&finished.stdout_text()) {
                wrong.push(format!("{request}: {how}"));
            }
            if request == CALLS {
                wrong.extend(counts(&finished.stdout_text(), &recording)?);
            }
        }
        if wrong.is_empty() {
            Ok(format!("{expected}{otherwise}, exit code {}, {:.1?}", ends[0], began.elapsed()))
        } else {
            Err(wrong.join("; "))
        }
    });
    (format!("{name} {arguments:?} on {}", runtime.version), went)
}

/// Why a program writes something else under a request; `None` where it must not.
fn why_otherwise(name: &str, request: &str, major: u32) -> Option<&'static str> {
    let fits = |word: &str| request.split(' ').any(|of_request| of_request == word);
    let found = OTHERWISE.iter().find(|(program, word, from, _)| *program == name && major >= *from && fits(word))?;
    Some(found.3)
}

/// Codes with which a program may end, by those of its bare runs.
fn ends(arguments: &[&str], mut bare: Vec<i32>) -> Vec<i32> {
    let deaths = DEATHS.iter().find(|(case, _)| arguments.first() == Some(case)).map_or(&[][..], |(_, codes)| codes);
    if bare.iter().all(|code| deaths.contains(code)) {
        bare.extend(deaths);
    }
    bare
}

/// Waits for a program's end, or asks for it when it is ready.
fn end(command: Command, signal: Option<&str>) -> Finished {
    match signal {
        None => run_within(command, PATIENCE),
        Some(signal) => Service::start(command).stop(signal),
    }
}

/// What a program writes bare, as far as each run of it writes the same.
#[derive(Debug, PartialEq)]
enum Output {
    /// This, each time.
    Same(String),
    /// So many lines each time; `None` where they differ.
    Lines(Vec<Option<String>>),
    /// Nearly this: numbers differ, by so much of each and by one.
    Near(String, f64),
    /// Not even the number of lines is the same.
    Differs,
}

impl Output {
    fn from_bare(runs: &[String]) -> Self {
        let (first, others) = runs.split_first().expect("at least one run");
        if others.iter().all(|other| other == first) {
            return Self::Same(first.clone());
        }
        let first: Vec<&str> = first.lines().collect();
        let others: Vec<Vec<&str>> = others.iter().map(|other| other.lines().collect()).collect();
        if others.iter().any(|other| other.len() != first.len()) {
            return Self::Differs;
        }
        let is_same = |at: usize, line: &str| others.iter().all(|other| other[at] == line);
        let lines = first.iter().enumerate().map(|(at, line)| is_same(at, line).then(|| (*line).to_owned()));
        Self::Lines(lines.collect())
    }

    /// How what was written differs from it.
    fn difference(&self, written: &str) -> Option<String> {
        match self {
            Self::Same(text) => (text != written).then(|| format!("it wrote {written:?} for {text:?}")),
            Self::Lines(lines) => {
                let written: Vec<&str> = written.lines().collect();
                let is_right = |(line, now): (&Option<String>, &&str)| line.as_ref().is_none_or(|line| line == now);
                let is_same = written.len() == lines.len() && lines.iter().zip(&written).all(is_right);
                (!is_same).then(|| format!("it wrote {written:?}, and these lines are always the same: {lines:?}"))
            }
            Self::Near(text, part) => {
                (!is_near(text, written, *part)).then(|| format!("it wrote {written:?}, which is not nearly {text:?}"))
            }
            Self::Differs => None,
        }
    }
}

/// Whether two texts have the same words, but for numbers that differ by a part of them and by one.
fn is_near(text: &str, other: &str, part: f64) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let number = |word: &str| word.parse::<f64>().ok();
    let is_same = |(one, other): (&String, &String)| {
        let numbers = number(one).zip(number(other));
        one == other || numbers.is_some_and(|(one, other)| (one - other).abs() <= one.abs() * part + 1.0)
    };
    let (words, others) = (words(text), words(other));
    words.len() == others.len() && words.iter().zip(&others).all(is_same)
}

impl Display for Output {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(_) => write!(out, "the same output"),
            Self::Lines(lines) => {
                let same = lines.iter().flatten().count();
                write!(out, "the same {same} of {} lines, the others differ bare", lines.len())
            }
            Self::Near(_, part) => write!(out, "the same output, with numbers within {:.0} %", part * 100.0),
            Self::Differs => write!(out, "output that differs each time"),
        }
    }
}

/// Differences between what the program counted and `calls`.
fn counts(stdout: &str, recording: &Path) -> Result<Vec<String>, String> {
    let said: Vec<(&str, u64)> = stdout
        .lines()
        .filter_map(|line| line.strip_prefix(COUNT)?.split_once('\t'))
        .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
        .collect();
    if said.is_empty() {
        return Ok(Vec::new());
    }
    let mut report = Command::new(cli());
    report.arg("report").arg(recording).args(["--view", "functions", "--format", "json", "--limit", "100000"]);
    let output = report.output().map_err(|error| error.to_string())?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let functions = document["rows"].as_array().ok_or("no rows in the report")?;
    let counted = |name: &str| -> u64 {
        let has_name = |function: &&serde_json::Value| function["name"].as_str() == Some(name);
        functions.iter().filter(has_name).filter_map(|function| function["calls"].as_u64()).sum()
    };
    // A tilde says that the number is a bound only.
    let exact = said.iter().filter(|(name, _)| !name.starts_with('~'));
    Ok(exact
        .filter(|(name, count)| counted(name) != *count)
        .map(|(name, count)| format!("{name}: {} calls, the program counted {count}", counted(name)))
        .collect())
}

/// Runs a service under load.
fn serve(
    name: &str,
    program: &Path,
    runtime: &Runtime,
    address: &str,
    paths: &[&str],
    request: &str,
) -> (String, Result<String, String>) {
    let went = caught(|| {
        let place = scratch();
        let recording = place.path().join("soaked.clrs");
        let service = Service::start_silent(command(program, runtime, &[], Some((request, &recording))));
        wait_until("the service", || std::net::TcpStream::connect(address).is_ok());
        let answered: usize = paths.iter().map(|path| load(address, path, 4, LOAD)).sum();
        let finished = service.stop("TERM");
        let asked = 4 * LOAD * paths.len();
        if finished.code() == 0 && answered == asked && recording.is_file() {
            return Ok(format!("{answered} answers"));
        }
        Err(format!("{answered} answers for {asked}, exit code {}: {}", finished.code(), finished.stderr_text()))
    });
    (format!("{name} on {} with {request}", runtime.version), went)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(runs: &[&str]) -> Output {
        Output::from_bare(&runs.iter().map(|run| (*run).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_the_same_in_each_bare_run_is_compared() {
        let same = bare(&["a\nb\n", "a\nb\n"]);
        assert_eq!(same.difference("a\nb\n"), None);
        assert!(same.difference("a\nb").is_some());
        let timed = bare(&["a\n1 ms\n", "a\n2 ms\n", "a\n1 ms\n"]);
        assert_eq!(timed.to_string(), "the same 1 of 2 lines, the others differ bare");
        assert_eq!(timed.difference("a\n3 ms\n"), None);
        assert!(timed.difference("b\n1 ms\n").is_some());
        assert!(timed.difference("a\n").is_some());
        assert!(timed.difference("a\n1 ms\nb\n").is_some());
        assert_eq!(bare(&["a\n", "a\nb\n"]).difference("c\n"), None);
    }

    #[test]
    fn ticks_may_be_a_few_more_and_not_twice_as_many() {
        let ticks = |ticks: u32| format!("half second 0: 50 MB, {ticks} ticks, 0 collections\n");
        let expected = Output::Near(ticks(458), 0.05);
        assert_eq!(expected.difference(&ticks(459)), None);
        assert!(expected.difference(&ticks(916)).is_some() && expected.difference("ready\n").is_some());
    }

    #[test]
    fn ticks_are_compared_under_what_leaves_them_alone() {
        let others = |major| REQUESTS.iter().filter(|request| why_otherwise("Ticks", request, major).is_some()).count();
        assert_eq!((others(9), others(10)), (1, 2));
        assert_eq!(why_otherwise("Listener", REQUESTS[0], 10), None);
    }

    #[test]
    fn a_case_may_die_in_another_way_only_where_it_dies_bare() {
        assert_eq!(ends(&["control1"], vec![134, 134]), [134, 134, 134, 139]);
        assert_eq!(ends(&["control1"], vec![0, 0]), [0, 0]);
        assert_eq!(ends(&["so"], vec![134, 134]), [134, 134]);
    }
}
