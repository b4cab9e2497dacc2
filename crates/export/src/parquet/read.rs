//! Reads the tables that [`Table`](super::file::Table) writes: the footer, and the requested
//! columns. Refuses files of other programs if they use more of the format. All bytes are checked:
//! a data set may be damaged.

use std::rc::Rc;

use super::file::{ENTRY, KEY, Kind, MAGIC, VALUE, Value, code};
use super::thrift::Fields;

/// Largest page, before compression, that is read.
const LARGEST_PAGE: usize = 1 << 28;
/// Largest number of rows of a file that is read.
const MOST_ROWS: u64 = 1 << 28;

/// Reason why a file can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A column of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Column {
    /// Numbers.
    Numbers(Vec<u64>),
    /// Texts.
    Texts(Vec<Rc<str>>),
    /// Maps.
    Maps(Vec<Vec<(String, String)>>),
}

impl Column {
    /// The value of a row.
    pub(crate) fn value(&self, row: usize) -> Value<'_> {
        match self {
            Self::Numbers(numbers) => Value::Number(numbers[row]),
            Self::Texts(texts) => Value::Text(&texts[row]),
            Self::Maps(maps) => Value::Map(&maps[row]),
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
            Self::Maps(maps) => maps.len(),
        }
    }

    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
            Kind::Map => Self::Maps(Vec::new()),
        }
    }
}

/// Values of one column of the format in a row group.
struct Leaf {
    repeats: Vec<u32>,
    defined: Vec<u32>,
    values: Column,
}

/// Reads these columns, all of the same length.
///
/// # Errors
/// If the file is damaged, lacks a column, or uses parts of the format that our writer does not
/// use.
pub(crate) fn read(bytes: &[u8], wanted: &[(&str, Kind)]) -> Result<Vec<Column>, Malformed> {
    let footer = footer(bytes)?;
    let rows =
        footer.number(3).filter(|rows| *rows <= MOST_ROWS).ok_or(Malformed("its number of rows is not right"))?;
    let mut columns: Vec<Column> = wanted.iter().map(|(_, kind)| Column::new(*kind)).collect();
    for group in footer.structures(4) {
        let rows = group.number(3).ok_or(Malformed("a row group has no number of rows"))? as usize;
        for ((name, kind), column) in wanted.iter().zip(&mut columns) {
            let before = column.len();
            read_group(bytes, group, (name, *kind), column)?;
            if column.len() - before != rows {
                return Err(Malformed("a column has another number of rows"));
            }
        }
    }
    match columns.iter().all(|column| column.len() as u64 == rows) {
        true => Ok(columns),
        false => Err(Malformed("a column has another number of rows")),
    }
}

fn footer(bytes: &[u8]) -> Result<Fields<'_>, Malformed> {
    let cut = Malformed("it is cut off, or not a Parquet file");
    let rest = bytes.strip_suffix(MAGIC).filter(|_| bytes.starts_with(MAGIC)).ok_or_else(|| cut.clone())?;
    let (rest, length) = rest.split_last_chunk::<4>().ok_or_else(|| cut.clone())?;
    let start = rest.len().checked_sub(u32::from_le_bytes(*length) as usize).ok_or(cut)?;
    Fields::read(&rest[start..]).map(|(fields, _)| fields).ok_or(Malformed("its footer is not right"))
}

/// Appends the values of a row group to a column.
fn read_group(
    bytes: &[u8],
    group: &Fields<'_>,
    (name, kind): (&str, Kind),
    column: &mut Column,
) -> Result<(), Malformed> {
    let leaf = |path: &[&str], kind: Kind| {
        let is_it = |chunk: &&Fields<'_>| chunk.texts(3).eq(path.iter().map(|part| part.as_bytes()));
        let found = group.structures(1).filter_map(|chunk| chunk.structure(3)).find(is_it);
        read_leaf(bytes, found.ok_or(Malformed("a column is missing"))?, kind, path.len() > 1)
    };
    match (column, kind) {
        (Column::Maps(maps), Kind::Map) => {
            let keys = leaf(&[name, ENTRY, KEY], Kind::Text)?;
            let values = leaf(&[name, ENTRY, VALUE], Kind::Text)?;
            join(&keys, &values, maps)
        }
        (column, kind) => match (column, leaf(&[name], kind)?.values) {
            (Column::Numbers(all), Column::Numbers(more)) => {
                all.extend(more);
                Ok(())
            }
            (Column::Texts(all), Column::Texts(more)) => {
                all.extend(more);
                Ok(())
            }
            _ => Err(Malformed("a column is of another kind")),
        },
    }
}

/// Joins keys and values to maps.
fn join(keys: &Leaf, values: &Leaf, maps: &mut Vec<Vec<(String, String)>>) -> Result<(), Malformed> {
    let (Column::Texts(names), Column::Texts(texts)) = (&keys.values, &values.values) else {
        return Err(Malformed("a map is not of texts"));
    };
    if (&keys.repeats, &keys.defined, names.len()) != (&values.repeats, &values.defined, texts.len()) {
        return Err(Malformed("the keys of a map are not those of its values"));
    }
    let mut pairs = names.iter().zip(texts);
    for (repeats, is_defined) in keys.repeats.iter().zip(&keys.defined) {
        if *repeats == 0 {
            maps.push(Vec::new());
        }
        if *is_defined == 0 {
            continue;
        }
        let (Some((key, value)), Some(map)) = (pairs.next(), maps.last_mut()) else {
            return Err(Malformed("a map lacks an entry"));
        };
        map.push((key.to_string(), value.to_string()));
    }
    Ok(())
}

/// Reads the pages of one column of the format.
fn read_leaf(bytes: &[u8], chunk: &Fields<'_>, kind: Kind, is_nested: bool) -> Result<Leaf, Malformed> {
    let wanted = if kind == Kind::Number { code::INT64 } else { code::BYTE_ARRAY };
    if chunk.number(1) != Some(wanted as u64) || chunk.number(4) != Some(code::ZSTD as u64) {
        return Err(Malformed("a column is of another kind"));
    }
    let entries = chunk.number(5).filter(|entries| *entries <= MOST_ROWS).ok_or(Malformed("a column has no number"))?;
    let entries = entries as usize;
    let dictionary = chunk.number(11).map(|at| read_page(bytes, at)).transpose()?;
    let dictionary = dictionary.map(|(head, page)| {
        let number = head.structure(7).and_then(|of| of.number(1)).ok_or(Malformed("a dictionary has no number"))?;
        plain(&page, number as usize, kind)
    });
    let data = chunk.number(9).ok_or(Malformed("a column has no pages"))?;
    let (head, page) = read_page(bytes, data)?;
    let described = head.structure(5).ok_or(Malformed("a page is of another kind"))?;
    if described.number(1) != Some(entries as u64) {
        return Err(Malformed("a column has several pages"));
    }
    let mut rest = &page[..];
    let (mut repeats, mut defined) = (Vec::new(), Vec::new());
    if is_nested {
        repeats = levels(&mut rest, entries)?;
        defined = levels(&mut rest, entries)?;
    }
    let number = if is_nested { defined.iter().filter(|level| **level > 0).count() } else { entries };
    let values = match dictionary.transpose()? {
        None => plain(rest, number, kind)?,
        Some(dictionary) => {
            let (width, rest) = rest.split_first().ok_or(Malformed("a page is cut off"))?;
            looked_up(&dictionary, &unpacked(rest, u32::from(*width), number)?)?
        }
    };
    Ok(Leaf { repeats, defined, values })
}

/// A page with its header.
fn read_page(bytes: &[u8], at: u64) -> Result<(Fields<'_>, Vec<u8>), Malformed> {
    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).ok_or(Malformed("a page is beyond the end"))?;
    let (head, length) = Fields::read(rest).ok_or(Malformed("the head of a page is not right"))?;
    let size = head.number(2).map_or(usize::MAX, |size| size as usize);
    let stored = head.number(3).and_then(|stored| rest.get(length..)?.get(..stored as usize));
    let stored = stored.filter(|_| size <= LARGEST_PAGE).ok_or(Malformed("a page is beyond the end"))?;
    let page = zstd::bulk::decompress(stored, size).map_err(|_| Malformed("a page can't be decompressed"))?;
    Ok((head, page))
}

/// Values that are stored one after another.
fn plain(mut page: &[u8], number: usize, kind: Kind) -> Result<Column, Malformed> {
    let cut = || Malformed("a page is cut off");
    if kind == Kind::Number {
        let bytes = number.checked_mul(8).and_then(|length| page.get(..length)).ok_or_else(cut)?;
        let numbers = bytes.chunks_exact(8).map(|of| u64::from_le_bytes(of.try_into().unwrap_or_default()));
        return Ok(Column::Numbers(numbers.collect()));
    }
    let mut texts = Vec::new();
    for _ in 0..number {
        let (length, rest) = page.split_first_chunk::<4>().ok_or_else(cut)?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
        texts.push(std::str::from_utf8(text).map_err(|_| Malformed("a text is not UTF-8"))?.into());
        page = rest;
    }
    Ok(Column::Texts(texts))
}

fn looked_up(dictionary: &Column, indices: &[u32]) -> Result<Column, Malformed> {
    let beyond = || Malformed("an index is beyond its dictionary");
    match dictionary {
        Column::Numbers(all) => {
            let found = indices.iter().map(|at| all.get(*at as usize).copied().ok_or_else(beyond));
            Ok(Column::Numbers(found.collect::<Result<_, _>>()?))
        }
        Column::Texts(all) => {
            let found = indices.iter().map(|at| all.get(*at as usize).cloned().ok_or_else(beyond));
            Ok(Column::Texts(found.collect::<Result<_, _>>()?))
        }
        Column::Maps(_) => Err(Malformed("a dictionary of maps")),
    }
}

/// Levels of one bit, after their length in bytes.
fn levels(page: &mut &[u8], number: usize) -> Result<Vec<u32>, Malformed> {
    let cut = || Malformed("a page is cut off");
    let (length, rest) = page.split_first_chunk::<4>().ok_or_else(cut)?;
    let (run, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
    *page = rest;
    unpacked(run, 1, number)
}

/// Numbers of `width` bits in one bit-packed run.
fn unpacked(run: &[u8], width: u32, number: usize) -> Result<Vec<u32>, Malformed> {
    let wrong = || Malformed("a run of indices is not right");
    let (groups, rest) = super::thrift::varint(run).ok_or_else(wrong)?;
    let is_long_enough = (rest.len() as u64) * 8 >= number as u64 * u64::from(width);
    if groups & 1 == 0 || width == 0 || width > 32 || (groups >> 1) * 8 < number as u64 || !is_long_enough {
        return Err(wrong());
    }
    let (mut bits, mut held, mut bytes) = (0_u64, 0, rest.iter());
    let mut numbers = Vec::with_capacity(number);
    for _ in 0..number {
        while held < width {
            bits |= u64::from(*bytes.next().ok_or_else(wrong)?) << held;
            held += 8;
        }
        numbers.push((bits & ((1 << width) - 1)) as u32);
        bits >>= width;
        held -= width;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::super::file::Table;
    use super::*;

    const COLUMNS: [(&str, Kind); 4] =
        [("number", Kind::Number), ("text", Kind::Text), ("id", Kind::Number), ("labels", Kind::Map)];

    fn labels(row: u64) -> Vec<(String, String)> {
        (0..row % 3).map(|at| (format!("key{at}"), format!("value {}", row % 5))).collect()
    }

    fn table(rows: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let mut table = Table::begin(&mut out, COLUMNS.to_vec()).expect("memory");
        for row in 0..rows {
            let (text, labels) = (format!("text {}", row % 7), labels(row));
            let id = (row % 11).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1;
            table
                .row([Value::Number(row), Value::Text(&text), Value::Number(id), Value::Map(&labels)])
                .expect("memory");
        }
        table.end().expect("memory");
        out
    }

    #[test]
    fn what_was_written_is_read() {
        // The last number has more than one row group.
        for rows in [0, 1, 8, 100, 45_001] {
            let columns = read(&table(rows), &COLUMNS).expect("a table");
            assert_eq!(columns[0], Column::Numbers((0..rows).collect()));
            assert_eq!(columns[1], Column::Texts((0..rows).map(|row| format!("text {}", row % 7).into()).collect()));
            let id = |row: u64| (row % 11).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1;
            assert_eq!(columns[2], Column::Numbers((0..rows).map(id).collect()));
            assert_eq!(columns[3], Column::Maps((0..rows).map(labels).collect()));
        }
        assert_eq!(read(&table(3), &[("none", Kind::Text)]), Err(Malformed("a column is missing")));
        assert_eq!(read(&table(3), &[("text", Kind::Number)]), Err(Malformed("a column is of another kind")));
    }

    #[test]
    fn damaged_files_are_refused_or_read_and_never_panic() {
        let whole = table(100);
        for length in 0..whole.len() {
            assert!(read(&whole[..length], &COLUMNS).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            for bit in [1, 16, 128] {
                let mut damaged = whole.clone();
                damaged[at] ^= bit;
                let _ = read(&damaged, &COLUMNS);
            }
        }
    }
}
