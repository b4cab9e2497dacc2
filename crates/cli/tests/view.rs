//! `clrscope view`: who gets an answer, what it is, and how it ends.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, iter};

use clrscope_testkit as testkit;
use common::TestFolder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Long enough for a start of the tool or of .NET on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A tool that serves a page.
struct Viewing {
    child: Child,
    stderr: BufReader<ChildStderr>,
    port: u16,
    token: String,
}

impl Viewing {
    /// Starts the tool, and reads the page's address from what it says.
    fn start(mut command: Command) -> Self {
        for name in ["DISPLAY", "WAYLAND_DISPLAY"] {
            command.env_remove(name);
        }
        Self::start_on_desktop(command)
    }

    /// As [`start`](Self::start), with what the command says of a desktop.
    fn start_on_desktop(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the tool starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("its messages"));
        let address = heard(&mut stderr, "the page is at http://127.0.0.1:");
        let (port, token) = address.trim_end().trim_end_matches('/').split_once('/').expect("a token");
        let (port, token) = (port.parse().expect("a port"), token.to_owned());
        Self { child, stderr, port, token }
    }

    /// Sends a request as it is; the answer.
    fn sent(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer
    }

    /// The answer to the page's own request, status line first.
    fn get(&self, path: &str) -> String {
        self.sent(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port))
    }

    /// A document behind the token.
    fn json(&self, rest: &str) -> Value {
        let answer = self.get(&format!("/{}/{rest}", self.token));
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        serde_json::from_str(body).expect("JSON")
    }

    /// Interrupts it; the exit code.
    fn interrupted(mut self) -> Option<i32> {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process id");
        kill_process(pid, Signal::INT).expect("the tool lives");
        self.child.wait().expect("its end").code()
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        // Only where the test has failed does it still run.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Text behind these words in the first line that has them.
fn heard(stderr: &mut impl BufRead, words: &str) -> String {
    let mut all = String::new();
    loop {
        let mut line = String::new();
        let read = stderr.read_line(&mut line).expect("text");
        assert!(read > 0, "'{words}' was not said: {all}");
        if let Some((_, rest)) = line.split_once(words) {
            return rest.to_owned();
        }
        all.push_str(&line);
    }
}

#[test]
fn without_a_recording_the_newest_is_shown_and_the_others_are_named_with_their_command() {
    let place = TestFolder::new();
    let folder = TestFolder::new().with_sample();
    for (name, age) in [("newest.clrs", 0), ("an older one.clrs", 3 * 3_600), ("oldest.clrs", 200_000)] {
        fs::copy(folder.file("sample.clrs"), place.file(name)).expect("a copy");
        let changed = std::time::SystemTime::now() - Duration::from_secs(age);
        let file = fs::File::options().append(true).open(place.file(name)).expect("a file");
        file.set_modified(changed).expect("a time");
    }
    let mut command = place.clrscope(["view", "--no-browser"]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the tool starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("its messages"));
    assert_eq!(heard(&mut stderr, "the newest recording here is "), "'newest.clrs'\n");
    assert_eq!(heard(&mut stderr, "    clrscope view "), "'an older one.clrs'  (3 hours ago)\n");
    assert_eq!(heard(&mut stderr, "    clrscope view "), "oldest.clrs  (2 days ago)\n");
    heard(&mut stderr, "the page is at http://127.0.0.1:");
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn the_page_and_its_documents_are_given_to_whoever_has_the_address() {
    let place = TestFolder::new().with_sample();
    let viewing = Viewing::start(place.clrscope(["view", "sample.clrs", "--no-browser"]));
    let page = viewing.get(&format!("/{}/", viewing.token));
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    let (head, body) = page.split_once("\r\n\r\n").expect("a head");
    for part in ["connect-src 'self'", "frame-ancestors 'none'", "no-store", "nosniff", "same-origin"] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert!(!head.contains("Access-Control") && !head.contains("unsafe"), "{head}");
    assert!(body.starts_with("<!doctype html>") && !body.contains("Shop"), "it comes without data");
    let index = viewing.json("index");
    let keys: Vec<&str> =
        index["documents"].as_array().expect("a list").iter().filter_map(|d| d["key"].as_str()).collect();
    assert!(keys.contains(&"summary") && keys.contains(&"tree.wall") && !keys.contains(&"exceptions"), "{keys:?}");
    let tree = viewing.json("document?key=tree.wall");
    assert_eq!(tree["schema"], "clrscope.tree/1");
    assert!(tree["values"].to_string().contains("Shop.Program::Main"));
    // The second function of the first thread's tree, and the threads apart.
    let below = viewing.json("document?key=tree.wall&below=4711.0.0");
    assert!(below["sections"][0]["rows"].as_u64() < tree["sections"][0]["rows"].as_u64(), "{below}");
    let pool = viewing.json("document?key=tree.wall&threads=4711.2");
    assert!(!pool["values"].to_string().contains("Shop.Program::Main"));
    let whole = viewing.json("document?key=tree.wall&since=0&until=1000");
    assert_eq!(whole["whole_run"], true, "sums of calls have no times");
    assert!(viewing.json("document?key=exceptions")["problem"].is_string());
    assert_eq!(viewing.interrupted(), Some(0));
}

#[test]
fn the_page_of_speedscope_is_served_with_the_profile_under_the_same_guard() {
    let place = TestFolder::new().with_sample();
    let viewing = Viewing::start(place.clrscope([
        "view",
        "sample.clrs",
        "--with",
        "speedscope",
        "--no-browser",
        "--thread",
        "main",
    ]));
    // The address makes the page load the profile.
    let (token, fragment) = viewing.token.split_once('/').expect("a fragment");
    assert_eq!(fragment, "#profileURL=profile.speedscope.json");
    let host = format!("Host: 127.0.0.1:{}\r\n", viewing.port);
    let answer = |path: &str, headers: &str| viewing.sent(&format!("GET /{path} HTTP/1.1\r\n{headers}\r\n"));
    let profile = answer(&format!("{token}/profile.speedscope.json"), &host);
    let (head, body) = profile.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("no-store"), "{head}");
    let exported = place.run("export sample.clrs --to speedscope --thread main");
    assert_eq!(body.as_bytes(), exported.stdout, "as the export has it");
    let page = answer(&format!("{token}/"), &host);
    for part in ["connect-src 'self'", "default-src 'none'", "frame-ancestors 'none'", "<title>speedscope</title>"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (path, headers, expected) in [
        (format!("{token}/../sample.clrs"), host.clone(), "404"),
        (format!("{token}/index"), host.clone(), "404"),
        ("profile.speedscope.json".to_owned(), host.clone(), "403"),
        (format!("{token}/profile.speedscope.json"), format!("Host: evil.example:{}\r\n", viewing.port), "403"),
        (format!("{token}/profile.speedscope.json"), format!("{host}Origin: http://evil.example\r\n"), "403"),
    ] {
        assert!(answer(&path, &headers).starts_with(&format!("HTTP/1.1 {expected}")), "{path} {headers}");
    }
    assert_eq!(viewing.interrupted(), Some(0));
    let nothing = place.transcript("view sample.clrs --with speedscope --metric exceptions --no-browser");
    assert!(nothing.contains("exit 1") && nothing.contains("-i exceptions"), "{nothing}");
}

#[test]
fn nobody_else_gets_anything() {
    let place = TestFolder::new().with_sample();
    let viewing = Viewing::start(place.clrscope(["view", "sample.clrs", "--no-browser"]));
    let (port, token) = (viewing.port, viewing.token.clone());
    let status = |path: &str, headers: &str| {
        let answer = viewing.sent(&format!("GET {path} HTTP/1.1\r\n{headers}\r\n"));
        assert!(!answer.contains("Shop"), "{answer}");
        answer.split(' ').nth(1).map(str::to_owned).unwrap_or_default()
    };
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let page = format!("/{token}/");
    assert_eq!(status(&page, &host), "200");
    let wrong = if token.starts_with('0') { token.replacen('0', "1", 1) } else { format!("0{}", &token[1..]) };
    for path in ["/", "/index", "//", &format!("/{wrong}/"), &format!("/{wrong}/index"), &format!("/{token}")] {
        assert_eq!(status(path, &host), "403", "{path}");
    }
    for rest in ["../sample.clrs", "..%2fsample.clrs", "sample.clrs", "/etc/passwd", "document/"] {
        assert_eq!(status(&format!("{page}{rest}"), &host), "404", "{rest}");
    }
    assert_eq!(status(&format!("{page}document?key=../../etc/passwd"), &host), "200", "which is no document");
    // A foreign name that leads here, as in DNS rebinding.
    for name in ["evil.example", "127.0.0.1", "127.0.0.1.evil.example", "[::1]"] {
        assert_eq!(status(&page, &format!("Host: {name}:{}\r\n", port ^ 1)), "403", "{name}");
        assert_eq!(status(&page, &format!("Host: {name}\r\n")), "403", "{name}");
    }
    assert_eq!(status(&page, ""), "403", "no name at all");
    assert_eq!(status(&page, &format!("{host}Host: evil.example\r\n")), "400", "two names");
    // Pages of others.
    for header in ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"] {
        assert_eq!(status(&page, &format!("{host}{header}\r\n")), "403", "{header}");
    }
    let posted = viewing.sent(&format!("POST {page} HTTP/1.1\r\n{host}Content-Length: 0\r\n\r\n"));
    assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
    let long = viewing.sent(&format!("GET {page} HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(20_000)));
    assert!(long.starts_with("HTTP/1.1 431"), "{long}");
    assert_eq!(viewing.interrupted(), Some(0));
}

#[test]
fn what_can_not_be_shown_is_said_before_any_address() {
    let place = TestFolder::new().with_sample();
    let missing = place.transcript("view nothing.clrs --no-browser");
    assert!(missing.contains("exit 1") && missing.contains("there is no such file"), "{missing}");
    let unknown = place.transcript("view sample.clrs --no-browser --thread nobody");
    assert!(!unknown.contains("http://") && unknown.contains("no thread matches 'nobody'"), "{unknown}");
    let refused = place.transcript("view sample.clrs --limit 5");
    assert!(refused.contains("exit 2") && refused.contains("'--limit' is not for 'view'"), "{refused}");
}

#[test]
fn run_view_shows_the_recording_while_it_grows_and_afterwards() {
    let place = TestFolder::new();
    let runtime = &testkit::runtimes()[0];
    let mut words: Vec<std::ffi::OsString> =
        ["run", "-q", "--view", "-o", "x.clrs", "-i", "calls", "--"].map(Into::into).into();
    words.extend(runtime.words(&testkit::fixture("Counter")));
    words.extend(["-", "2"].map(Into::into));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut viewing = Viewing::start(command);
    let mut input = viewing.child.stdin.take().expect("its input");
    let mut output = BufReader::new(viewing.child.stdout.take().expect("its output"));
    writeln!(input, "go").expect("the program reads");
    assert_eq!(heard(&mut output, "count "), "2\n");
    let mut before = 0;
    testkit::wait_until("calls while the program runs", || {
        let standing = viewing.json("standing");
        assert_eq!(standing["growing"], true, "{standing}");
        before = standing["revision"].as_u64().unwrap_or_default();
        viewing.json("document?key=functions.wall").to_string().contains("Counter.Program::Step")
    });
    drop(input);
    heard(&mut viewing.stderr, "the page stays until Ctrl-C");
    testkit::wait_until("the packed recording", || viewing.json("standing")["growing"] == false);
    assert!(place.file("x.clrs").is_file() && !place.file("x.clrs.d").exists());
    assert!(viewing.json("standing")["revision"].as_u64() > Some(before));
    assert!(viewing.json("document?key=functions.wall").to_string().contains("Counter.Program::Step"));
    assert_eq!(viewing.interrupted(), Some(0), "the program's own exit code");
}

/// Every user can read the command lines of others: the token stood in the browser's.
#[test]
fn the_command_line_of_the_browser_has_no_token() {
    let place = TestFolder::new().with_sample();
    let opener =
        "#!/bin/sh\ncp -p \"$1\" ./redirection.part\necho \"$@\" > arguments\nmv redirection.part redirection\n";
    fs::write(place.file("xdg-open"), opener).expect("a program");
    let opener = place.file("xdg-open");
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("a program");
    let mut command = place.clrscope(["view", "sample.clrs"]);
    let path = env::var_os("PATH").expect("a path");
    let paths = iter::once(place.path().to_owned()).chain(env::split_paths(&path));
    command.env("PATH", env::join_paths(paths).expect("a path")).env("DISPLAY", ":0");
    command.env("XDG_RUNTIME_DIR", place.path());
    let viewing = Viewing::start_on_desktop(command);
    let redirection = place.file("redirection");
    testkit::wait_for("a file that leads to the page", || redirection.exists().then_some(()));
    let arguments = fs::read_to_string(place.file("arguments")).expect("arguments");
    assert!(!arguments.contains(&viewing.token), "{arguments}");
    let file = Path::new(arguments.trim_end());
    assert_eq!(fs::metadata(&redirection).expect("a file").permissions().mode() & 0o777, 0o600);
    let html = fs::read_to_string(&redirection).expect("text");
    assert!(html.contains(&format!("url=http://127.0.0.1:{}/{}/", viewing.port, viewing.token)), "{html}");
    assert!(file.exists(), "the browser has not asked");
    // As browsers ask for what a file leads to.
    let page = viewing.sent(&format!(
        "GET /{}/ HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document\r\n\r\n",
        viewing.token, viewing.port
    ));
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    testkit::wait_for("the end of the file", || (!file.exists()).then_some(()));
}

/// Connections that send nothing, or a byte now and then, held all places for as long as they
/// liked.
#[test]
fn slow_strangers_do_not_keep_the_page_away() {
    let place = TestFolder::new().with_sample();
    let viewing = Viewing::start(place.clrscope(["view", "sample.clrs", "--no-browser"]));
    let connect = || TcpStream::connect(("127.0.0.1", viewing.port)).expect("somebody listens");
    let idle: Vec<TcpStream> = (0..200).map(|_| connect()).collect();
    let began = Instant::now();
    assert!(viewing.get(&format!("/{}/", viewing.token)).starts_with("HTTP/1.1 200 OK"));
    assert!(began.elapsed() < Duration::from_secs(5), "it waited for strangers: {:?}", began.elapsed());
    drop(idle);
    // A request that is refused, and bytes that keep on coming.
    let mut slow = connect();
    slow.write_all(b"nonsense\r\n\r\n").expect("it is taken");
    testkit::wait_until("the end of a slow connection", || slow.write_all(b"x").is_err());
}
