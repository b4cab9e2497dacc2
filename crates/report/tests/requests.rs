//! Names of requests are what clients and programs say: whatever stands in them, they are shown as
//! text, in one line and in the room that there is.

mod pages;

use clrscope_recording::events::{Encoder, Field, Kind, Tag, Value};
use clrscope_recording::model::{EventArena, EventChunk, Recording};
use clrscope_recording::testing::ascii_trees::recording;
use clrscope_report::{Format, Request, view};
use pages::{data, page};

const TREES: &str = "
thread 1 main
  Main 1 1000 10
";
/// Columns of the terminal.
const WIDTH: usize = 300;
/// Parts of the long name: about as much as a record has room for.
const LONG: usize = 3_000;

/// A colour, a line break, a title, DEL and control characters of two bytes; changes of direction;
/// the end of an element; what a spreadsheet takes for a formula; what stands for half a character.
const NAMES: [&str; 5] = [
    "GET /CONTROLS\x1b[31m\nforged\r\t\x1b]0;title\x07\u{9b}2J\u{7f}\0",
    "GET /MARKS\u{202e}\u{2066}\u{200f}\u{2028}",
    "GET /ELEMENT</script><script>alert(1)</script><img src=x onerror=alert(2)><!--",
    "=FORMULA(\"x\",\"y\")",
    "GET /HALF\u{fffd}",
];

/// Adds a record, which may be as long as any.
fn put(bytes: &mut Vec<u8>, kind: Kind, fields: &[(Tag, Value<'_>)]) {
    let mut buffer = vec![0; Encoder::MOST];
    let mut encoder = Encoder::new(&mut buffer, kind, 1_000);
    fields.iter().for_each(|&(tag, value)| _ = encoder.put(Field { tag, value }));
    let (record, is_whole) = encoder.finish();
    assert!(is_whole, "there is room");
    bytes.extend_from_slice(record);
}

/// Requests of all names, and of one that is very long, served and made.
fn requested() -> Recording {
    let long = format!("GET /LONG{}", "/long".repeat(LONG));
    let names: Vec<&str> = NAMES.into_iter().chain([long.as_str()]).collect();
    let mut bytes = Vec::new();
    for (number, name) in (1_u64..).zip(names.iter().chain(&names)) {
        let direction = u64::from(number > names.len() as u64);
        let fields: [(Tag, Value<'_>); 3] =
            [(Tag::ROUTE, number.into()), (Tag::DIRECTION, direction.into()), (Tag::NAME, (*name).into())];
        put(&mut bytes, Kind::REQUEST_NAME, &fields);
        let fields = [(Tag::ROUTE, number), (Tag::DURATION, 1_000), (Tag::REQUEST, number)];
        put(&mut bytes, Kind::REQUEST_ENDED, &fields.map(|(tag, of)| (tag, Value::from(of))));
    }
    let chunk = EventChunk { thread: 0, sequence: 1, bytes: bytes.into() };
    let mut recording = recording(TREES);
    recording.processes[0].events.push(EventArena { instrument: "requests".into(), chunks: vec![chunk] });
    recording
}

fn shown(recording: &Recording, name: &str, request: &Request, format: Format) -> String {
    let report = view(name).expect("the view").open(recording, request).expect("rows");
    let mut out = Vec::new();
    report.write(format, WIDTH, &mut out).expect("memory takes all");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn names_of_requests_are_one_line_of_text_whatever_stands_in_them() {
    let recording = requested();
    let each = Request { each: true, ..Request::default() };
    for (name, request) in [("requests", Request::default()), ("requests", each), ("load", Request::default())] {
        for (format_name, _, format) in Format::ALL.into_iter().filter(|(_, _, format)| *format != Format::Html) {
            let out = shown(&recording, name, &request, format);
            let place = format!("{name} as {format_name}: {out}");
            // Colours are the report's own.
            let plain =
                if format == Format::Text { anstream::adapter::strip_str(&out).to_string() } else { out.clone() };
            assert!(plain.chars().all(|c| !c.is_control() || c == '\n'), "{place}");
            assert!(plain.contains("/CONTROLS") && plain.contains("/MARKS") && plain.contains("/HALF"), "{place}");
            assert!(!plain.contains("\nforged"), "{place}");
            match format {
                Format::Text => {
                    assert!(!plain.contains(['\u{202e}', '\u{2066}', '\u{200f}', '\u{2028}']), "{place}");
                    assert!(plain.contains("/CONTROLS\\u{1b}[31m\\nforged"), "{place}");
                    assert!(plain.lines().all(|line| line.chars().count() <= WIDTH), "{place}");
                }
                _ => assert!(plain.contains(&"/long".repeat(LONG)), "data are whole: {}", &place[..200]),
            }
        }
    }
}

#[test]
fn names_of_requests_become_no_part_of_the_page() {
    let recording = requested();
    let page = page(view("requests").expect("the view"), &recording, &Request::default());
    let program = pages::between(&page, "<script>", "</script>").to_owned();
    let rest = page.replacen(&program, "", 1);
    assert_eq!([rest.matches("<script").count(), rest.matches("</script").count()], [2, 2], "the data and the program");
    assert!(!rest.contains("<img"), "it is data");
    assert!(!rest.contains(['\x1b', '\u{9b}', '\u{7f}', '\0', '\u{202e}']), "none is there as it came");
    assert!(data(&page)["values"].to_string().contains("</script><script>alert(1)"), "and is there whole");
}
