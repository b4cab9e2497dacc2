//! Checks of profiles for the Firefox Profiler (version 55 of its processed format): columns of one
//! length, and numbers that lead somewhere. The profiler itself looks at neither, and shows
//! nonsense.

use serde_json::Value;

/// Rows that a column leads to.
#[derive(Clone, Copy)]
enum To {
    /// A list of the thread.
    Strings,
    /// A table of the thread.
    Table(&'static str),
    /// Rows of the same table that come before.
    Before,
    /// A list of the whole profile.
    Libs,
    Categories,
    /// Subcategories of the category in the same row.
    Subcategories,
}

/// Value that a column may have in place of a number that leads somewhere.
#[derive(Clone, Copy, PartialEq)]
enum Or {
    Never,
    Null,
    MinusOne,
}

/// Columns of tables of threads that lead somewhere.
const INDEXES: [(&str, &str, To, Or); 18] = [
    ("stackTable", "prefix", To::Before, Or::Null),
    ("stackTable", "frame", To::Table("frameTable"), Or::Never),
    ("frameTable", "func", To::Table("funcTable"), Or::Never),
    ("frameTable", "nativeSymbol", To::Table("nativeSymbols"), Or::Null),
    ("frameTable", "category", To::Categories, Or::Never),
    ("frameTable", "subcategory", To::Subcategories, Or::Null),
    ("funcTable", "name", To::Strings, Or::Never),
    ("funcTable", "resource", To::Table("resourceTable"), Or::MinusOne),
    ("funcTable", "fileName", To::Strings, Or::Null),
    ("resourceTable", "lib", To::Libs, Or::Null),
    ("resourceTable", "name", To::Strings, Or::Never),
    ("resourceTable", "host", To::Strings, Or::Null),
    ("nativeSymbols", "libIndex", To::Libs, Or::Never),
    ("nativeSymbols", "name", To::Strings, Or::Never),
    ("samples", "stack", To::Table("stackTable"), Or::Null),
    ("markers", "category", To::Categories, Or::Never),
    ("markers", "name", To::Strings, Or::Never),
    ("markers", "data", To::Table("schemas"), Or::Null),
];

/// Finds out whether a profile is as it must be.
///
/// # Errors
/// With the first place where it is not.
pub(crate) fn check(profile: &Value) -> Result<(), String> {
    let threads = list(&profile["threads"], "threads")?;
    let categories = list(&profile["meta"]["categories"], "categories")?;
    for category in categories {
        let subcategories = list(&category["subcategories"], "subcategories")?;
        if !category["name"].is_string() || subcategories.is_empty() || !subcategories.iter().all(Value::is_string) {
            return Err(format!("category {category}"));
        }
    }
    for lib in list(&profile["libs"], "libs")? {
        if !["name", "path", "debugName", "debugPath", "breakpadId"].iter().all(|key| lib[key].is_string()) {
            return Err(format!("library {lib}"));
        }
    }
    for (at, thread) in threads.iter().enumerate() {
        check_thread(profile, thread).map_err(|why| format!("thread {at}: {why}"))?;
    }
    let counters = profile.get("counters").filter(|counters| !counters.is_null());
    for counter in counters.map_or(Ok(&Vec::new()), |counters| list(counters, "counters"))? {
        index(&counter["mainThreadIndex"], threads.len(), "counter mainThreadIndex")?;
        if !threads.iter().any(|thread| thread["pid"] == counter["pid"]) {
            return Err(format!("counter of process {}, which has no thread", counter["pid"]));
        }
        columns(&counter["samples"], "counter samples")?;
    }
    Ok(())
}

fn check_thread(profile: &Value, thread: &Value) -> Result<(), String> {
    for key in ["pid", "name", "processName", "processType"] {
        if !thread[key].is_string() {
            return Err(format!("{key} is {}", thread[key]));
        }
    }
    if !list(&thread["stringArray"], "stringArray")?.iter().all(Value::is_string) {
        return Err("stringArray has what is no text".to_owned());
    }
    for table in ["stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "samples", "markers"] {
        columns(&thread[table], table)?;
    }
    for (table, column, to, or) in INDEXES {
        let values = list(&thread[table][column], &format!("{table}.{column}"))?;
        for (row, value) in values.iter().enumerate() {
            let place = format!("{table}.{column}[{row}]");
            if (or == Or::Null && value.is_null()) || (or == Or::MinusOne && value.as_i64() == Some(-1)) {
                continue;
            }
            let end = match to {
                To::Strings => list(&thread["stringArray"], "stringArray")?.len(),
                To::Table("schemas") => {
                    check_schema(profile, value).map_err(|why| format!("{place}: {why}"))?;
                    continue;
                }
                To::Table(other) => rows(&thread[other], other)?,
                To::Before => row,
                To::Libs => list(&profile["libs"], "libs")?.len(),
                To::Categories => list(&profile["meta"]["categories"], "categories")?.len(),
                To::Subcategories => {
                    let category = thread[table]["category"][row].as_u64().map_or(usize::MAX, |at| at as usize);
                    profile["meta"]["categories"][category]["subcategories"].as_array().map_or(0, Vec::len)
                }
            };
            index(value, end, &place)?;
        }
    }
    check_numbers(thread)
}

/// Data of a marker: an object of a type that has a schema.
fn check_schema(profile: &Value, data: &Value) -> Result<(), String> {
    let schemas = list(&profile["meta"]["markerSchema"], "markerSchema")?;
    let has_schema = data["type"].is_string() && schemas.iter().any(|schema| schema["name"] == data["type"]);
    if has_schema { Ok(()) } else { Err(format!("{data} has no schema")) }
}

/// Times and weights.
fn check_numbers(thread: &Value) -> Result<(), String> {
    let samples = &thread["samples"];
    let times = if samples["time"].is_null() { "timeDeltas" } else { "time" };
    let is_time = |value: &Value| value.as_f64().is_some_and(|time| time >= 0.0);
    let all = [
        ("samples", times, &is_time as &dyn Fn(&Value) -> bool),
        ("samples", "weight", &Value::is_number),
        ("markers", "startTime", &|value| value.is_null() || is_time(value)),
        ("markers", "endTime", &|value| value.is_null() || is_time(value)),
        ("markers", "phase", &|value| value.as_u64().is_some_and(|phase| phase < 4)),
    ];
    for (table, column, is_right) in all {
        let values = list(&thread[table][column], &format!("{table}.{column}"))?;
        if let Some(wrong) = values.iter().find(|value| !is_right(value)) {
            return Err(format!("{table}.{column} has {wrong}"));
        }
    }
    Ok(())
}

/// Whether every column of a table has as many rows as the table says.
fn columns(table: &Value, name: &str) -> Result<(), String> {
    let length = rows(table, name)?;
    let columns = table.as_object().into_iter().flatten();
    for (column, values) in columns.filter_map(|(column, values)| Some((column, values.as_array()?))) {
        if values.len() != length {
            return Err(format!("{name}.{column} has {} rows of {length}", values.len()));
        }
    }
    Ok(())
}

fn rows(table: &Value, name: &str) -> Result<usize, String> {
    let length = table["length"].as_u64().ok_or_else(|| format!("{name} has no length"))?;
    Ok(length as usize)
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("{name} is no list"))
}

fn index(value: &Value, end: usize, place: &str) -> Result<(), String> {
    match value.as_u64() {
        Some(number) if number < end as u64 => Ok(()),
        _ => Err(format!("{place} is {value}, and leads to none of {end}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A profile with a row of everything.
    fn good() -> Value {
        let thread = json!({
            "pid": "7", "name": "main", "processName": "App", "processType": "default", "stringArray": ["a", "b"],
            "stackTable": { "length": 2, "prefix": [null, 0], "frame": [0, 0] },
            "frameTable": {
                "length": 1, "func": [0], "nativeSymbol": [0], "category": [1], "subcategory": [1], "address": [-1],
            },
            "funcTable": { "length": 1, "name": [0], "resource": [0], "fileName": [1] },
            "resourceTable": { "length": 1, "lib": [0], "name": [1], "host": [1], "type": [1] },
            "nativeSymbols": { "length": 1, "libIndex": [0], "name": [1], "address": [16] },
            "samples": { "length": 1, "stack": [1], "timeDeltas": [0.5], "weight": [1] },
            "markers": {
                "length": 1, "category": [0], "name": [0], "data": [{ "type": "GC" }], "startTime": [1.0],
                "endTime": [null], "phase": [0],
            },
        });
        let lib = json!({ "name": "x", "path": "x", "debugName": "x", "debugPath": "x", "breakpadId": "0" });
        let samples = json!({ "length": 1, "timeDeltas": [1.0], "count": [2] });
        json!({
            "meta": {
                "categories": [
                    { "name": "Other", "subcategories": ["Other"] },
                    { "name": "Own", "subcategories": ["Other", "Mine"] },
                ],
                "markerSchema": [{ "name": "GC" }],
            },
            "libs": [lib],
            "threads": [thread],
            "counters": [{ "pid": "7", "mainThreadIndex": 0, "samples": samples }],
        })
    }

    /// The profile with another value at a path.
    fn changed(path: &str, value: Value) -> Value {
        let mut profile = good();
        *profile.pointer_mut(path).unwrap_or_else(|| panic!("{path} is there")) = value;
        profile
    }

    #[test]
    fn every_number_that_leads_nowhere_is_found() {
        assert_eq!(check(&good()), Ok(()));
        for (table, column, to, or) in INDEXES {
            for wrong in [json!(9), json!(-2), json!("0"), json!(0.5), json!(true), json!([]), json!({})] {
                // Of what leads to rows before, the second row has some.
                let row = usize::from(matches!(to, To::Before));
                let path = format!("/threads/0/{table}/{column}/{row}");
                let found = check(&changed(&path, wrong.clone()));
                assert!(found.is_err_and(|why| why.contains(&format!("{table}.{column}[{row}]"))), "{path} {wrong}");
            }
            let path = format!("/threads/0/{table}/{column}/0");
            for (value, may_be) in [(Value::Null, Or::Null), (json!(-1), Or::MinusOne)] {
                assert_eq!(check(&changed(&path, value.clone())).is_ok(), or == may_be, "{path} {value}");
            }
        }
        // A caller comes before what it calls, and a subcategory is one of its category.
        for (path, value) in [("stackTable/prefix/0", 0), ("stackTable/prefix/1", 1), ("frameTable/category/0", 0)] {
            assert!(check(&changed(&format!("/threads/0/{path}"), json!(value))).is_err(), "{path}");
        }
    }

    #[test]
    fn columns_that_are_shorter_and_wrong_values_are_found() {
        for table in ["stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "samples", "markers"] {
            assert!(check(&changed(&format!("/threads/0/{table}/length"), json!(7))).is_err(), "{table}");
            assert!(check(&changed(&format!("/threads/0/{table}/length"), json!("1"))).is_err(), "{table}");
            assert!(check(&changed(&format!("/threads/0/{table}"), Value::Null)).is_err(), "{table}");
        }
        for (path, value) in [
            ("/threads/0/pid", json!(7)),
            ("/threads/0/name", Value::Null),
            ("/threads/0/stringArray/1", json!(1)),
            ("/threads/0/samples/timeDeltas/0", json!(-0.5)),
            ("/threads/0/samples/weight/0", json!("1")),
            ("/threads/0/markers/startTime/0", json!("now")),
            ("/threads/0/markers/endTime/0", json!(-1)),
            ("/threads/0/markers/phase/0", json!(4)),
            ("/threads/0/markers/data/0/type", json!("Other")),
            ("/meta/categories/1/subcategories", json!([])),
            ("/meta/categories/0/name", json!(0)),
            ("/libs/0/path", Value::Null),
            ("/counters/0/mainThreadIndex", json!(1)),
            ("/counters/0/mainThreadIndex", json!(-1)),
            ("/counters/0/pid", json!("8")),
            ("/counters/0/samples/count", json!([])),
        ] {
            assert!(check(&changed(path, value.clone())).is_err(), "{path} {value}");
        }
    }
}
