//! Pages taken apart again.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::io::Read;

use clrscope_recording::model::Recording;
use clrscope_report::{Format, Request, View};
use serde_json::{Map, Value, json};

/// The page of a recording, opened at a view.
pub fn page(view: &'static View, recording: &Recording, request: &Request) -> String {
    let mut out = Vec::new();
    view.open(recording, request).expect("an answer").write(Format::Html, 0, &mut out).expect("memory takes all");
    String::from_utf8(out).expect("UTF-8")
}

/// Text between two texts of a page, the first time.
pub fn between<'p>(page: &'p str, before: &str, behind: &str) -> &'p str {
    let from = page.find(before).expect("the beginning") + before.len();
    &page[from..from + page[from..].find(behind).expect("the end")]
}

/// The bytes that letters of base64 stand for.
pub fn bytes_of(letters: &str) -> Vec<u8> {
    let number = |letter: u8| match letter {
        b'A'..=b'Z' => u32::from(letter - b'A'),
        b'a'..=b'z' => u32::from(letter - b'a') + 26,
        b'0'..=b'9' => u32::from(letter - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("no letter of base64: {letter}"),
    };
    let mut bytes = Vec::new();
    for group in letters.as_bytes().chunks(4) {
        let given: Vec<u32> = group.iter().filter(|&&letter| letter != b'=').map(|&letter| number(letter)).collect();
        let bits = (0..4).fold(0, |bits, at| bits << 6 | given.get(at).copied().unwrap_or(0));
        bytes.extend(&bits.to_be_bytes()[1..given.len()]);
    }
    bytes
}

/// The data of a page.
pub fn data(page: &str) -> Value {
    let bytes = bytes_of(between(page, "id=\"data\">", "</script>"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

/// A document of a page as `--format json` has it.
pub fn unpacked(data: &Value, document: &Value) -> Value {
    let mut all = Map::new();
    all.insert("schema".to_owned(), document["schema"].clone());
    all.insert("recording".to_owned(), data["recording"].clone());
    if !document["metric"].is_null() {
        all.insert("metric".to_owned(), document["metric"].clone());
    }
    for section in array(&document["sections"]) {
        let mut rows: Vec<Value> = (0..count(section)).map(|at| row(data, section, at)).collect();
        let value = match section["style"].as_str() {
            Some("single") => rows.pop().unwrap_or_else(|| json!({})),
            Some("tree") => nested(&rows, array(&section["depths"]), 0, &mut 0),
            _ => Value::Array(rows),
        };
        all.insert(section["key"].as_str().expect("a key").to_owned(), value);
    }
    Value::Object(all)
}

pub fn array(value: &Value) -> &Vec<Value> {
    value.as_array().expect("an array")
}

pub fn count(section: &Value) -> usize {
    usize::try_from(section["rows"].as_u64().expect("a number")).expect("a small one")
}

fn row(data: &Value, section: &Value, at: usize) -> Value {
    let mut all = Map::new();
    for column in array(&section["columns"]).iter().filter(|column| column["json"] == true) {
        let packed = &column["values"][at];
        let value = match packed {
            Value::Array(place) => Some(pooled(data, &place[0])),
            Value::String(_) => None,
            plain if column["plain"] == true => Some(plain.clone()),
            place if place.as_i64() == Some(-1) => None,
            place => Some(pooled(data, place)),
        };
        if let Some(value) = value.or((section["picked"] == true).then_some(Value::Null)) {
            all.insert(column["key"].as_str().expect("a key").to_owned(), value);
        }
    }
    Value::Object(all)
}

fn pooled(data: &Value, place: &Value) -> Value {
    data["values"][usize::try_from(place.as_u64().expect("a place")).expect("a small one")].clone()
}

/// The nodes at a depth and below, from a place on.
fn nested(rows: &[Value], depths: &[Value], depth: u64, at: &mut usize) -> Value {
    let mut all = Vec::new();
    while *at < rows.len() && depths[*at].as_u64() == Some(depth) {
        let mut node = rows[*at].clone();
        *at += 1;
        node["children"] = nested(rows, depths, depth + 1, at);
        all.push(node);
    }
    Value::Array(all)
}
