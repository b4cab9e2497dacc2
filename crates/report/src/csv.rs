//! Rows as comma-separated values (RFC 4180): the same keys as in JSON, nested ones joined by `_`.

use serde_json::Value;

use crate::json::Object;

/// A header line and a line per row. A row without a key has nothing in that column.
pub fn table(rows: &[Object]) -> String {
    let rows: Vec<Object> = rows.iter().map(flat).collect();
    let mut keys: Vec<&str> = Vec::new();
    for key in rows.iter().flat_map(|row| row.keys()) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return String::new();
    }
    let mut text = line(keys.iter().map(|key| (*key).to_owned()));
    for row in &rows {
        text.push_str(&line(keys.iter().map(|key| row.get(*key).map_or_else(String::new, cell))));
    }
    text
}

fn flat(row: &Object) -> Object {
    let mut all = Object::new();
    for (key, value) in row {
        match value {
            Value::Object(inner) => all.extend(inner.iter().map(|(k, v)| (format!("{key}_{k}"), v.clone()))),
            value => _ = all.insert(key.clone(), value.clone()),
        }
    }
    all
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_share_one_header_and_are_quoted_where_needed() {
        let rows =
            [json!({"name": "A<B,C>", "calls": 1}), json!({"name": "say \"hi\"", "thread": {"id": 2}, "calls": null})];
        let rows: Vec<Object> = rows.iter().filter_map(|row| row.as_object().cloned()).collect();
        assert_eq!(table(&rows), "name,calls,thread_id\r\n\"A<B,C>\",1,\r\n\"say \"\"hi\"\"\",,2\r\n");
        assert_eq!(table(&[]), "");
    }
}
