//! The tables of a data set: their columns, and their rows in memory and in files.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::DatasetError;
use super::gather::{OfProcess, Partition, Stack, Symbol};
use crate::parquet::{Column, Kind, Malformed, Table, Value, read};

/// The description of a table.
#[derive(Debug)]
pub(super) struct Shape {
    /// Name of the table's folder.
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    /// Whether rows are identified by their first column, so that each is there once.
    has_ids: bool,
    /// The column by whose text rows are ordered, so that neighbours resemble each other.
    order: Option<usize>,
}

/// The processes of recordings.
pub(super) static RECORDINGS: Shape = Shape {
    name: "recordings",
    columns: &[
        ("recording_id", Kind::Text),
        ("pid", Kind::Number),
        ("started_unix_ns", Kind::Number),
        ("duration_ns", Kind::Number),
        ("service_version", Kind::Text),
        ("environment", Kind::Text),
        ("host", Kind::Text),
        ("container", Kind::Text),
        ("labels", Kind::Map),
        ("command", Kind::Text),
        ("runtime", Kind::Text),
        ("processors", Kind::Number),
        ("instruments", Kind::Text),
        ("lost", Kind::Number),
    ],
    has_ids: false,
    order: None,
};

/// The measured amounts, by stack.
pub(super) static AMOUNTS: Shape = Shape {
    name: "amounts",
    columns: &[
        ("recording_id", Kind::Text),
        ("pid", Kind::Number),
        ("started_unix_ns", Kind::Number),
        ("service_version", Kind::Text),
        ("environment", Kind::Text),
        ("host", Kind::Text),
        ("thread", Kind::Text),
        ("request", Kind::Text),
        ("metric", Kind::Text),
        ("unit", Kind::Text),
        ("period_ns", Kind::Number),
        ("stack_id", Kind::Number),
        ("amount", Kind::Number),
    ],
    has_ids: false,
    order: None,
};

/// Each stack once.
pub(super) static STACKS: Shape = Shape {
    name: "stacks",
    columns: &[("stack_id", Kind::Number), ("symbol_id", Kind::Number), ("depth", Kind::Number), ("path", Kind::Text)],
    has_ids: true,
    order: Some(3),
};

/// Each function once.
pub(super) static SYMBOLS: Shape = Shape {
    name: "symbols",
    columns: &[
        ("symbol_id", Kind::Number),
        ("name", Kind::Text),
        ("signature", Kind::Text),
        ("module", Kind::Text),
        ("code", Kind::Text),
    ],
    has_ids: true,
    order: Some(1),
};

/// Value of a partition that has no name.
const UNNAMED: &str = "__HIVE_DEFAULT_PARTITION__";

impl Shape {
    /// The folder of a date and service, relative to the data set.
    pub(super) fn partition(&self, (date, service): &Partition) -> PathBuf {
        let service = if service.is_empty() { UNNAMED.to_owned() } else { escaped(service) };
        Path::new(self.name).join(format!("date={date}")).join(format!("service={service}"))
    }
}

/// A text as part of a path: percent-encoded where a file system, a shell or a reader could take it
/// for something else.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) || !byte.is_ascii();
    let mut bytes = Vec::new();
    for byte in text.bytes() {
        match byte {
            b'.' if bytes.is_empty() => bytes.extend(b"%2E"),
            byte if is_plain(byte) => bytes.push(byte),
            byte => bytes.extend(format!("%{byte:02X}").bytes()),
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Rows as columns.
#[derive(Debug)]
pub(super) struct Rows(Vec<Column>);

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        self.0.first().is_none_or(|column| column.len() == 0)
    }
}

pub(super) fn recordings(all: &[OfProcess]) -> Rows {
    let text = |of: fn(&OfProcess) -> &str| Column::Texts(all.iter().map(|one| of(one).into()).collect());
    let number = |of: fn(&OfProcess) -> u64| Column::Numbers(all.iter().map(of).collect());
    Rows(vec![
        text(|of| &of.recording_id),
        number(|of| of.pid.into()),
        number(|of| of.started_unix_ns),
        number(|of| of.duration_ns),
        text(|of| &of.origin.version),
        text(|of| &of.origin.environment),
        text(|of| &of.origin.host),
        text(|of| &of.origin.container),
        Column::Maps(all.iter().map(|one| one.labels.clone()).collect()),
        text(|of| &of.command),
        text(|of| &of.runtime),
        number(|of| of.processors),
        text(|of| &of.instruments),
        number(|of| of.lost),
    ])
}

pub(super) fn amounts(all: &[OfProcess]) -> Rows {
    let rows = || all.iter().flat_map(|one| one.amounts.iter().map(move |amount| (one, amount)));
    let text = |of: fn(&OfProcess) -> &str| {
        Column::Texts(all.iter().flat_map(|one| std::iter::repeat_n(of(one).into(), one.amounts.len())).collect())
    };
    let number = |of: fn(&OfProcess) -> u64| Column::Numbers(rows().map(|(one, _)| of(one)).collect());
    Rows(vec![
        text(|of| &of.recording_id),
        number(|of| of.pid.into()),
        number(|of| of.started_unix_ns),
        text(|of| &of.origin.version),
        text(|of| &of.origin.environment),
        text(|of| &of.origin.host),
        Column::Texts(rows().map(|(_, amount)| amount.thread.clone()).collect()),
        Column::Texts(rows().map(|(_, amount)| amount.request.clone()).collect()),
        Column::Texts(rows().map(|(_, amount)| amount.metric.into()).collect()),
        Column::Texts(rows().map(|(_, amount)| amount.unit.into()).collect()),
        Column::Numbers(rows().map(|(_, amount)| amount.period_ns).collect()),
        Column::Numbers(rows().map(|(_, amount)| amount.stack).collect()),
        Column::Numbers(rows().map(|(_, amount)| amount.amount).collect()),
    ])
}

pub(super) fn stacks(all: HashMap<u64, Stack>) -> Rows {
    let all: Vec<(u64, Stack)> = all.into_iter().collect();
    Rows(vec![
        Column::Numbers(all.iter().map(|(id, _)| *id).collect()),
        Column::Numbers(all.iter().map(|(_, stack)| stack.symbol).collect()),
        Column::Numbers(all.iter().map(|(_, stack)| stack.depth).collect()),
        Column::Texts(all.iter().map(|(_, stack)| stack.path.as_str().into()).collect()),
    ])
}

pub(super) fn symbols(all: HashMap<u64, Symbol>) -> Rows {
    let all: Vec<(u64, Symbol)> = all.into_iter().collect();
    let text = |of: fn(&Symbol) -> &str| Column::Texts(all.iter().map(|(_, symbol)| of(symbol).into()).collect());
    Rows(vec![
        Column::Numbers(all.iter().map(|(id, _)| *id).collect()),
        text(|symbol| &symbol.name),
        text(|symbol| &symbol.signature),
        text(|symbol| &symbol.module),
        text(|symbol| symbol.code),
    ])
}

/// Reads columns of a file.
pub(super) fn read_file(file: &Path, columns: &[(&str, Kind)]) -> Result<Vec<Column>, DatasetError> {
    let bytes = fs::read(file).map_err(|error| DatasetError::Io(file.to_owned(), error))?;
    read(&bytes, columns).map_err(|Malformed(why)| DatasetError::Damaged(file.to_owned(), why))
}

/// The content of a file with the rows of older files and new rows.
pub(super) fn merged(shape: &Shape, old: &[PathBuf], rows: Rows) -> Result<Vec<u8>, DatasetError> {
    let mut parts = old.iter().map(|file| read_file(file, shape.columns)).collect::<Result<Vec<_>, _>>()?;
    parts.push(rows.0);
    let mut places: Vec<(usize, usize)> = parts
        .iter()
        .enumerate()
        .flat_map(|(part, columns)| (0..columns[0].len()).map(move |row| (part, row)))
        .collect();
    if shape.has_ids {
        let mut known = HashSet::new();
        places.retain(|&(part, row)| match parts[part][0].value(row) {
            Value::Number(id) => known.insert(id),
            _ => true,
        });
    }
    if let Some(order) = shape.order {
        let text = |&(part, row): &(usize, usize)| match (parts[part][order].value(row), parts[part][0].value(row)) {
            (Value::Text(text), Value::Number(id)) => (text, id),
            _ => ("", 0),
        };
        places.sort_by(|a, b| text(a).cmp(&text(b)));
    }
    let mut bytes = Vec::new();
    let written = (|| {
        let mut table = Table::begin(&mut bytes, shape.columns.to_vec())?;
        for (part, row) in places {
            table.row(parts[part].iter().map(|column| column.value(row)))?;
        }
        table.end()
    })();
    written.map_err(|error| DatasetError::Io(PathBuf::from(shape.name), error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_parts_of_paths_that_lead_nowhere_else() {
        let folder = |service: &str| AMOUNTS.partition(&("2026-11-30".into(), service.into()));
        assert_eq!(folder("shop-api_1.2"), Path::new("amounts/date=2026-11-30/service=shop-api_1.2"));
        assert_eq!(folder("../../etc"), Path::new("amounts/date=2026-11-30/service=%2E.%2F..%2Fetc"));
        assert_eq!(folder("a=b c\n"), Path::new("amounts/date=2026-11-30/service=a%3Db%20c%0A"));
        assert_eq!(folder(""), Path::new("amounts/date=2026-11-30/service=__HIVE_DEFAULT_PARTITION__"));
    }
}
