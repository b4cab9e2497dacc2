//! Conversations with a fake runtime at a real socket, hostile ones among them.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clr_diagnostics::{AttachProfiler, Clsid, Error, Port, Provider, ResultCode, StartupPort};

const CLASS: &str = "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}";

/// A socket in a folder of its own, and a thread that answers each connection by `answer`.
struct Fake {
    _folder: tempfile::TempDir,
    socket: PathBuf,
}

impl Fake {
    fn new(answer: impl Fn(&mut UnixStream, &[u8]) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("a socket");
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let question = question(&mut stream);
                answer(&mut stream, &question);
            }
        });
        Self { _folder: folder, socket }
    }

    fn port(&self) -> Port {
        Port::at(&self.socket).with_limit(Duration::from_secs(20))
    }
}

/// The set, the command and the payload of a question.
fn question(stream: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; 20];
    if stream.read_exact(&mut header).is_err() {
        return Vec::new();
    }
    assert_eq!(&header[..14], b"DOTNET_IPC_V1\0");
    let mut rest = vec![0; usize::from(u16::from_le_bytes([header[14], header[15]])) - 20];
    stream.read_exact(&mut rest).expect("the payload");
    [&header[16..18], &rest].concat()
}

fn answer(id: u8, payload: &[u8]) -> Vec<u8> {
    let size = (20 + payload.len() as u16).to_le_bytes();
    [b"DOTNET_IPC_V1\0", size.as_slice(), &[0xff, id, 0, 0], payload].concat()
}

fn text(text: &str) -> Vec<u8> {
    let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
    [(units.len() as u32).to_le_bytes().to_vec(), units.iter().flat_map(|unit| unit.to_le_bytes()).collect()].concat()
}

fn refused(code: u32) -> Vec<u8> {
    answer(0xff, &code.to_le_bytes())
}

#[test]
fn the_newest_form_of_process_information_is_taken_that_the_runtime_knows() {
    for newest in [0_u8, 4, 8] {
        let fake = Fake::new(move |stream, question| {
            assert_eq!(question[0], 4);
            if question[1] > newest {
                return stream.write_all(&refused(0x8013_1385)).expect("it reads");
            }
            let mut payload = if newest == 8 { 1_u32.to_le_bytes().to_vec() } else { Vec::new() };
            payload.extend(77_u64.to_le_bytes());
            payload.extend([9; 16]);
            ["dotnet app.dll", "Linux", "x64", "app", "8.0.33+abc", "linux-x64"]
                .iter()
                .for_each(|word| payload.extend(text(word)));
            stream.write_all(&answer(0, &payload)).expect("it reads");
        });
        let info = fake.port().info().expect("an answer");
        assert_eq!((info.pid, info.cookie, info.command_line.as_str()), (77, [9; 16], "dotnet app.dll"));
        assert_eq!(info.short_version(), if newest >= 4 { "8.0.33" } else { "" });
        assert_eq!(info.portable_rid, if newest == 8 { "linux-x64" } else { "" });
    }
}

#[test]
fn attaching_says_class_library_and_client_data_and_gives_the_reason_of_a_refusal() {
    let fake = Fake::new(|stream, question| {
        assert_eq!((&question[..2], &question[2..6]), (&[3_u8, 1][..], &1_500_u32.to_le_bytes()[..]));
        assert_eq!(&question[6..10], &[0xd4, 0xa7, 0xe1, 0xc7]);
        assert_eq!(&question[22..], &[text("/lib.so"), b"\x03\0\0\0abc".to_vec()].concat()[..]);
        stream.write_all(&answer(0, &0x8013_136A_u32.to_le_bytes())).expect("it reads");
    });
    let class = CLASS.parse().expect("a class id");
    let profiler =
        AttachProfiler::new(class, "/lib.so").with_client_data(b"abc").with_timeout(Duration::from_millis(1_500));
    let error = fake.port().attach_profiler(&profiler).expect_err("it refuses");
    assert_eq!(error.code(), Some(ResultCode::PROFILER_ALREADY_ACTIVE));
    assert_eq!(error.to_string(), "the runtime refused 'attach profiler': another profiler is loaded (0x8013136A)");
    let too_long = profiler.with_client_data(&[0; 70_000]);
    assert!(matches!(fake.port().attach_profiler(&too_long), Err(Error::TooLong { .. })));
}

#[test]
fn the_environment_comes_behind_its_answer() {
    let fake = Fake::new(|stream, _| {
        let block = [2_u32.to_le_bytes().to_vec(), text("A=1"), text("B=x=y")].concat();
        let head = [(block.len() as u32).to_le_bytes().as_slice(), &[0, 0]].concat();
        stream.write_all(&[answer(0, &head), block].concat()).expect("it reads");
    });
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(fake.port().environment().expect("an answer"), [pair("A", "1"), pair("B", "x=y")]);
}

/// Every answer that is none is an error of its own, soon.
#[test]
fn hostile_answers_are_errors() {
    let endless_environment = answer(0, &[0xff; 6]);
    let cases: [(Vec<u8>, &str); 8] = [
        (Vec::new(), "in the middle"),
        (b"DOTNET_IPC_V1\0\x18\0\xff".to_vec(), "in the middle"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "does not begin as answers do"),
        (b"DOTNET_IPC_V1\0\x03\0\xff\0\0\0".to_vec(), "shorter than its header"),
        (b"DOTNET_IPC_V1\0\x14\0\x04\x00\0\0".to_vec(), "it is a question"),
        (answer(0, &[1, 2, 3]), "ends too early"),
        (answer(0xff, &[1]), "ends too early"),
        (endless_environment, "64 MiB"),
    ];
    for (bytes, words) in cases {
        let fake = Fake::new(move |stream, _| drop(stream.write_all(&bytes)));
        let error = fake.port().environment().expect_err(words).to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
}

#[test]
fn who_never_answers_or_drips_is_waited_for_no_longer_than_said() {
    let limit = Duration::from_millis(300);
    let silent = Fake::new(|_, _| thread::park());
    let dripping = Fake::new(|stream, _| {
        for byte in answer(0, &[0; 200]) {
            if stream.write_all(&[byte]).is_err() {
                break;
            }
            thread::park_timeout(Duration::from_millis(20));
        }
    });
    for fake in [silent, dripping] {
        let began = Instant::now();
        let error = fake.port().with_limit(limit).info().expect_err("no answer");
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert!(began.elapsed() >= limit && began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}

#[test]
fn a_socket_that_nobody_serves_is_waited_for_no_longer_than_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("full");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    // A stopped program: connections are queued until there is no place any more.
    let mut queued = Vec::new();
    let port = Port::at(&socket).with_limit(Duration::from_millis(50));
    let error = loop {
        match UnixStream::connect(&socket) {
            Ok(stream) if queued.len() < 100 => queued.push(stream),
            _ => break port.info().expect_err("nobody serves"),
        }
    };
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}

#[test]
fn dead_sockets_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("dead");
    drop(UnixListener::bind(&socket).expect("a socket"));
    for path in [socket, folder.path().join("none")] {
        let error = Port::at(&path).info().expect_err("nobody is there");
        assert!(matches!(error, Error::NobodyListens { .. }), "{error}");
    }
}

#[test]
fn paths_longer_than_addresses_are_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder.path().join("d".repeat(120));
    std::fs::create_dir(&deep).expect("a folder");
    let short = folder.path().join("s");
    let listener = UnixListener::bind(&short).expect("a socket");
    std::fs::rename(&short, deep.join("s")).expect("another name");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert_eq!(question(&mut stream), [4, 1]);
        stream.write_all(&answer(0, &[])).expect("it reads");
    });
    Port::at(deep.join("s")).resume().expect("an answer");
    server.join().expect("it answered");
}

#[test]
fn a_program_is_held_at_its_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("start");
    let port = StartupPort::bind(&path).expect("a port");
    assert_eq!(port.variable(), format!("{},suspend", path.display()));
    assert!(matches!(port.accept(Duration::from_millis(20)), Err(Error::TimedOut { .. })));
    let there = path.clone();
    let runtime = thread::spawn(move || {
        let mut stream = UnixStream::connect(there).expect("it listens");
        let hello = [b"ADVR_V1\0".as_slice(), &[7; 16], &55_u64.to_le_bytes(), &[0, 0]].concat();
        stream.write_all(&hello).expect("it reads");
        let question = question(&mut stream);
        assert_eq!((&question[..2], &question[18..]), (&[3_u8, 2][..], &text("/p.so")[..]));
        stream.write_all(&answer(0, &0_u32.to_le_bytes())).expect("it reads");
    });
    let held = port.accept(Duration::from_secs(20)).expect("it comes");
    assert_eq!((held.pid, held.cookie), (55, [7; 16]));
    held.startup_profiler(CLASS.parse::<Clsid>().expect("a class id"), "/p.so").expect("it is taken");
    runtime.join().expect("it spoke");
    UnixStream::connect(&path)
        .expect("it listens")
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("it reads");
    assert!(matches!(port.accept(Duration::from_secs(20)), Err(Error::Nonsense { .. })));
    drop(port);
    assert!(!path.exists());
}

#[test]
fn what_collecting_asks_for_is_what_is_wanted() {
    let fake = Fake::new(|stream, question| {
        assert_eq!(&question[..11], &[2, 3, 16, 0, 0, 0, 1, 0, 0, 0, 0]);
        let provider = [
            &1_u32.to_le_bytes()[..],
            &3_u64.to_le_bytes(),
            &5_u32.to_le_bytes(),
            &text("My.Events"),
            &text("EventCounterIntervalSec=1"),
        ]
        .concat();
        assert_eq!(question[11..], provider);
        stream.write_all(&[answer(0, &7_u64.to_le_bytes()), b"no stream".to_vec()].concat()).expect("it reads");
    });
    let provider = Provider::new("My.Events", 3, 5).with_arguments("EventCounterIntervalSec=1");
    let session = fake.port().collect_events(&[provider], 16).expect("a session");
    let error = session.reader(Some(Duration::from_secs(20))).map(drop).expect_err("it is none");
    assert!(error.to_string().contains("does not begin as event streams do"), "{error}");
}
