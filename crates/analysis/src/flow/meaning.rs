//! Values in readable form: a date instead of its 62 bits of ticks, a list's elements instead of
//! its array.
//!
//! Recordings hold the raw fields. The readable form is derived from the framework's field names.
//! If a field is missing, hidden or of an unexpected kind, there is no readable form, and the
//! fields are shown.

use super::values::{Field, Value};

const TICKS_PER_SECOND: u64 = 10_000_000;
const TICKS_PER_DAY: u64 = 86_400 * TICKS_PER_SECOND;

/// The elements of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Elements<'v, 'a> {
    /// Number of elements in the collection.
    pub count: u64,
    /// The recorded elements, the first ones of the collection, in its order. Elements of
    /// dictionaries have a key.
    pub items: Vec<(Option<&'v Value<'a>>, &'v Value<'a>)>,
}

impl<'a> Value<'a> {
    /// Readable text for values whose fields are hard to read: structs that are numbers, dates,
    /// times, `Guid`, `Version`, `Uri`, types. `None` for other values.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Type { of, .. } => Some(format!("typeof({of})")),
            Self::Struct { type_name, fields } | Self::Object { type_name, fields, .. } => {
                text_of(type_name.strip_prefix("System.").unwrap_or(type_name), Fields(fields))
            }
            _ => None,
        }
    }

    /// Name of the method that a delegate calls; `None` for other values.
    #[must_use]
    pub fn method(&self) -> Option<&'a str> {
        let Self::Object { fields, .. } = self else { return None };
        // The first field is used by delegates without a target object: their second field then
        // points to a stub that moves the arguments.
        ["_methodPtrAux", "_methodPtr"].into_iter().find_map(|name| match Fields(fields).get(name)? {
            Self::Method { name, .. } => Some(*name),
            _ => None,
        })
    }

    /// Elements of a framework collection, or of a class derived from one; `None` for other values.
    #[must_use]
    pub fn elements(&self) -> Option<Elements<'_, 'a>> {
        let Self::Object { fields, .. } = self else { return None };
        let fields = Fields(fields);
        match fields.get("_entries") {
            // No element was ever added.
            Some(Value::Null) if fields.unsigned("_count") == Some(0) => return table(fields, (0, &[])),
            Some(Value::Array { length, items, .. }) => return table(fields, (u64::from(*length), items)),
            _ => {}
        }
        if let Some(items) = fields.items("_items").filter(|_| fields.get("_version").is_some()) {
            return sequence(items, 0, fields.unsigned("_size")?, false);
        }
        let items = fields.items("_array").filter(|_| fields.get("_version").is_some())?;
        let size = fields.unsigned("_size")?;
        match fields.unsigned("_head") {
            Some(head) => sequence(items, head, size, false),
            None => sequence(items, 0, size, true),
        }
    }
}

/// Fields by their names.
#[derive(Clone, Copy)]
struct Fields<'v, 'a>(&'v [Field<'a>]);

impl<'v, 'a> Fields<'v, 'a> {
    fn get(self, name: &str) -> Option<&'v Value<'a>> {
        self.0.iter().find(|field| field.name == name).map(|field| &field.value)
    }

    fn signed(self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Int(number) => Some(*number),
            Value::UInt(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn unsigned(self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::UInt(number) => Some(*number),
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn struct_fields(self, name: &str) -> Option<Fields<'v, 'a>> {
        match self.get(name)? {
            Value::Struct { fields, .. } => Some(Fields(fields)),
            _ => None,
        }
    }

    /// Number of elements of an array, and the elements that were kept.
    fn items(self, name: &str) -> Option<(u64, &'v [Value<'a>])> {
        match self.get(name)? {
            Value::Array { length, items, .. } => Some((u64::from(*length), items)),
            _ => None,
        }
    }
}

/// Elements of a sequence of `size` elements that begins at `head` of an array and wraps around at
/// its end; or of a stack, whose last element comes first.
fn sequence<'v, 'a>(
    (capacity, items): (u64, &'v [Value<'a>]),
    head: u64,
    size: u64,
    last_first: bool,
) -> Option<Elements<'v, 'a>> {
    if size > capacity {
        return None;
    }
    let at = |number: u64| if last_first { size - 1 - number } else { (head + number) % capacity.max(1) };
    let kept = (0..size).map_while(|number| items.get(usize::try_from(at(number)).ok()?));
    Some(Elements { count: size, items: kept.map(|item| (None, item)).collect() })
}

/// Elements of a hash table: the entries that are in use.
fn table<'v, 'a>(fields: Fields<'v, 'a>, (_, entries): (u64, &'v [Value<'a>])) -> Option<Elements<'v, 'a>> {
    let used = fields.unsigned("_count")?;
    let count = used.checked_sub(fields.unsigned("_freeCount")?)?;
    let first = entries.iter().take(usize::try_from(used).ok()?);
    let items = first.filter_map(|entry| {
        let Value::Struct { fields, .. } = entry else { return None };
        let entry = Fields(fields);
        let next = entry.signed("next").or_else(|| entry.signed("Next"))?;
        // Free entries store the next free entry as a number below -1.
        let value = entry.get("value").or_else(|| entry.get("Value")).filter(|_| next >= -1)?;
        Some((entry.get("key"), value))
    });
    Some(Elements { count, items: items.collect() })
}

fn text_of(name: &str, fields: Fields<'_, '_>) -> Option<String> {
    match name {
        "decimal" | "Decimal" => decimal(fields),
        "DateTime" => date_time(fields.unsigned("_dateData")?),
        "DateTimeOffset" => date_time_offset(fields),
        "TimeSpan" => Some(time_span(fields.signed("_ticks")?)),
        "DateOnly" => date(fields.unsigned("_dayNumber")?),
        "TimeOnly" => time_of_day(fields.unsigned("_ticks")?),
        "Guid" => guid(fields),
        "Half" => Some(half(fields.unsigned("_value")? as u16).to_string()),
        "Int128" => Some((wide(fields)? as i128).to_string()),
        "UInt128" => Some(wide(fields)?.to_string()),
        "Numerics.BigInteger" => big_integer(fields),
        "Version" => version(fields),
        "Uri" => match fields.get("_string")? {
            Value::String { text, is_cut: false, .. } => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn decimal(fields: Fields<'_, '_>) -> Option<String> {
    let flags = fields.signed("_flags")? as u32;
    let number = u128::from(fields.unsigned("_hi32")?) << 64 | u128::from(fields.unsigned("_lo64")?);
    let (scale, sign) = ((flags >> 16 & 0xFF) as usize, if flags >> 31 == 1 { "-" } else { "" });
    let digits = format!("{number:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

/// Formats ticks. The two uppermost bits are the kind of the time.
fn date_time(data: u64) -> Option<String> {
    let zone = match data >> 62 {
        0 => "",
        1 => "Z",
        _ => " local",
    };
    Some(date_and_time(data & (u64::MAX >> 2))? + zone)
}

fn date_and_time(ticks: u64) -> Option<String> {
    Some(format!("{} {}", date(ticks / TICKS_PER_DAY)?, time_of_day(ticks % TICKS_PER_DAY)?))
}

fn date_time_offset(fields: Fields<'_, '_>) -> Option<String> {
    let utc = fields.struct_fields("_dateTime")?.unsigned("_dateData")? & (u64::MAX >> 2);
    let minutes = fields.signed("_offsetMinutes")?;
    let there = i64::try_from(utc).ok()?.checked_add(minutes.checked_mul(60 * TICKS_PER_SECOND as i64)?)?;
    let (sign, away) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
    Some(format!("{} {sign}{:02}:{:02}", date_and_time(u64::try_from(there).ok()?)?, away / 60, away % 60))
}

/// Formats a day, given as the number of days since the first of January of the year 1.
fn date(day: u64) -> Option<String> {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // In years that begin with March, the leap day is the last day.
    let since_march = day.checked_add(306).filter(|day| *day < 26 * DAYS_OF_400_YEARS)?;
    let (era, day) = (since_march / DAYS_OF_400_YEARS, since_march % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Some(format!("{:04}-{month:02}-{day:02}", era * 400 + year + next))
}

fn time_of_day(ticks: u64) -> Option<String> {
    (ticks < TICKS_PER_DAY).then(|| clock(ticks))
}

fn clock(ticks: u64) -> String {
    let seconds = ticks / TICKS_PER_SECOND;
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match ticks % TICKS_PER_SECOND {
        0 => text,
        rest => format!("{text}.{}", format!("{rest:07}").trim_end_matches('0')),
    }
}

fn time_span(ticks: i64) -> String {
    let (sign, ticks) = (if ticks < 0 { "-" } else { "" }, ticks.unsigned_abs());
    match ticks / TICKS_PER_DAY {
        0 => format!("{sign}{}", clock(ticks)),
        days => format!("{sign}{days}.{}", clock(ticks % TICKS_PER_DAY)),
    }
}

fn guid(fields: Fields<'_, '_>) -> Option<String> {
    let byte = |name| fields.unsigned(name).map(|byte| format!("{:02x}", byte as u8));
    let (a, b, c) = (fields.signed("_a")? as u32, fields.signed("_b")? as u16, fields.signed("_c")? as u16);
    let rest: Option<String> = ["_f", "_g", "_h", "_i", "_j", "_k"].into_iter().map(byte).collect();
    Some(format!("{a:08x}-{b:04x}-{c:04x}-{}{}-{}", byte("_d")?, byte("_e")?, rest?))
}

/// A floating-point number of 16 bits.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 0x1F), f32::from(bits & 0x3FF));
    let magnitude = match exponent {
        0 => fraction * 2_f32.powi(-24),
        0x1F if fraction == 0.0 => f32::INFINITY,
        0x1F => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f32.powi(exponent - 15),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

fn wide(fields: Fields<'_, '_>) -> Option<u128> {
    Some(u128::from(fields.unsigned("_upper")?) << 64 | u128::from(fields.unsigned("_lower")?))
}

/// A small number is stored in the sign field. The bits of other numbers are in an array, the
/// lowest first.
fn big_integer(fields: Fields<'_, '_>) -> Option<String> {
    let sign = fields.signed("_sign")?;
    if *fields.get("_bits")? == Value::Null {
        return Some(sign.to_string());
    }
    let (length, words) = fields.items("_bits").filter(|(length, words)| *length == words.len() as u64)?;
    let mut words: Vec<u64> = words
        .iter()
        .map(|word| match word {
            Value::UInt(word) => Some(*word),
            _ => None,
        })
        .collect::<Option<_>>()?;
    const DIGITS: u64 = 1_000_000_000;
    let mut groups = Vec::with_capacity(length as usize + 1);
    while words.iter().any(|word| *word != 0) {
        let rest = words.iter_mut().rev().fold(0, |rest, word| {
            let all = rest << 32 | *word;
            *word = all / DIGITS;
            all % DIGITS
        });
        groups.push(rest);
    }
    let mut text = format!("{}{}", if sign < 0 { "-" } else { "" }, groups.pop().unwrap_or(0));
    groups.iter().rev().for_each(|group| text += &format!("{group:09}"));
    Some(text)
}

fn version(fields: Fields<'_, '_>) -> Option<String> {
    let part = |name| fields.signed(name).filter(|number| *number >= 0).map(|number| format!(".{number}"));
    let rest: String = ["_Build", "_Revision"].into_iter().map_while(part).collect();
    Some(format!("{}.{}{rest}", fields.unsigned("_Major")?, fields.unsigned("_Minor")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i64) -> Value<'static> {
        Value::Int(number)
    }

    fn fields<'a>(all: impl IntoIterator<Item = (&'a str, Value<'a>)>) -> Vec<Field<'a>> {
        all.into_iter().map(|(name, value)| Field { name, type_name: "", value }).collect()
    }

    fn text<'a>(type_name: &'a str, all: impl IntoIterator<Item = (&'a str, Value<'a>)>) -> Option<String> {
        Value::Struct { type_name, fields: fields(all) }.text()
    }

    fn array<'a>(length: u32, items: Vec<Value<'a>>) -> Value<'a> {
        Value::Array { type_name: "int[]", length, dimensions: Vec::new(), items }
    }

    #[test]
    fn dates_and_times_are_those_of_the_calendar() {
        for (day, truth) in [
            (0, "0001-01-01"),
            (58, "0001-02-28"),
            (59, "0001-03-01"),
            (738_008, "2021-08-07"),
            (730_178, "2000-02-29"),
            (693_654, "1900-03-01"),
            (3_652_058, "9999-12-31"),
        ] {
            assert_eq!(date(day).as_deref(), Some(truth));
        }
        assert_eq!(date(u64::MAX), None);
        let ticks = 738_008 * TICKS_PER_DAY + 3_723 * TICKS_PER_SECOND;
        assert_eq!(date_time(ticks | 1 << 62).as_deref(), Some("2021-08-07 01:02:03Z"));
        assert_eq!(date_time(ticks + 1_200_000).as_deref(), Some("2021-08-07 01:02:03.12"));
        assert_eq!(date_time(ticks | 3 << 62).as_deref(), Some("2021-08-07 01:02:03 local"));
        let utc = Value::Struct { type_name: "System.DateTime", fields: fields([("_dateData", Value::UInt(ticks))]) };
        let offset = text("System.DateTimeOffset", [("_dateTime", utc), ("_offsetMinutes", number(-90))]);
        assert_eq!(offset.as_deref(), Some("2021-08-06 23:32:03 -01:30"));
        assert_eq!(time_span(90 * 10_000_000), "00:01:30");
        assert_eq!(time_span(-(25 * 3_600 * 10_000_000 + 1)), "-1.01:00:00.0000001");
        assert_eq!(time_of_day(TICKS_PER_DAY), None);
    }

    #[test]
    fn numbers_that_are_structures_are_numbers() {
        let parts =
            |flags: i64, hi, lo| [("_flags", number(flags)), ("_hi32", Value::UInt(hi)), ("_lo64", Value::UInt(lo))];
        assert_eq!(text("decimal", parts(2 << 16, 0, 1_234)).as_deref(), Some("12.34"));
        assert_eq!(text("decimal", parts(i64::from(i32::MIN) | 3 << 16, 0, 5)).as_deref(), Some("-0.005"));
        assert_eq!(text("decimal", parts(0, 1, 0)).as_deref(), Some("18446744073709551616"));
        let both = |lower, upper| [("_lower", Value::UInt(lower)), ("_upper", Value::UInt(upper))];
        assert_eq!(text("System.Int128", both(u64::MAX - 4, u64::MAX)).as_deref(), Some("-5"));
        assert_eq!(text("System.UInt128", both(7, 1)).as_deref(), Some("18446744073709551623"));
        for (bits, truth) in [(0x4100, 2.5), (0xC100, -2.5), (0x0001, 5.960_464_5e-8), (0x7C00, f32::INFINITY)] {
            assert_eq!(half(bits), truth);
        }
        let big = |sign, words: Vec<Value<'static>>| {
            text("System.Numerics.BigInteger", [("_sign", number(sign)), ("_bits", array(words.len() as u32, words))])
        };
        let words = vec![Value::UInt(0), Value::UInt(0), Value::UInt(1)];
        assert_eq!(big(-1, words).as_deref(), Some("-18446744073709551616"));
        let small = text("System.Numerics.BigInteger", [("_sign", number(-3)), ("_bits", Value::Null)]);
        assert_eq!(small.as_deref(), Some("-3"));
    }

    #[test]
    fn what_is_hidden_or_missing_has_no_text() {
        assert_eq!(text("System.DateTime", [("_dateData", Value::Redacted)]), None);
        assert_eq!(text("System.Guid", [("_a", number(1))]), None);
        assert_eq!(text("Mine.DateTime", [("_dateData", number(1))]), None);
    }

    #[test]
    fn a_guid_is_written_as_everywhere() {
        let bytes = ["_d", "_e", "_f", "_g", "_h", "_i", "_j", "_k"].into_iter().zip(1_u64..);
        let mut all = vec![("_a", number(-1)), ("_b", number(0x1234)), ("_c", number(-2))];
        all.extend(bytes.map(|(name, byte)| (name, Value::UInt(byte))));
        assert_eq!(text("System.Guid", all).as_deref(), Some("ffffffff-1234-fffe-0102-030405060708"));
    }

    fn of_elements(all: Vec<(&'static str, Value<'static>)>) -> Option<(u64, Vec<i64>)> {
        let object = Value::Object { type_name: "C", address: 8, size_bytes: 24, fields: fields(all) };
        let number = |value: &Value<'_>| if let Value::Int(number) = value { *number } else { panic!("{value:?}") };
        let found = object.elements()?;
        Some((found.count, found.items.iter().map(|(_, value)| number(value)).collect()))
    }

    #[test]
    fn a_delegate_is_known_by_the_method_that_it_calls() {
        let method = |name| Value::Method { address: 16, name };
        let delegate =
            |all| Value::Object { type_name: "System.Action", address: 8, size_bytes: 64, fields: fields(all) };
        let closed = [("_target", Value::Null), ("_methodPtr", method("C::M")), ("_methodPtrAux", number(0))];
        assert_eq!(delegate(closed).method(), Some("C::M"));
        let open =
            [("_target", Value::Null), ("_methodPtr", method("Shuffle")), ("_methodPtrAux", method("C::Static"))];
        assert_eq!(delegate(open).method(), Some("C::Static"));
        let unknown = [("_target", Value::Null), ("_methodPtr", number(4)), ("_methodPtrAux", number(0))];
        assert_eq!(delegate(unknown).method(), None);
    }

    #[test]
    fn elements_of_collections_come_in_their_order() {
        let items = || array(4, (1..5).map(number).collect());
        let list = vec![("_items", items()), ("_size", number(2)), ("_version", number(7))];
        assert_eq!(of_elements(list), Some((2, vec![1, 2])));
        let queue = vec![
            ("_array", items()),
            ("_head", number(3)),
            ("_tail", number(1)),
            ("_size", number(2)),
            ("_version", number(1)),
        ];
        assert_eq!(of_elements(queue), Some((2, vec![4, 1])));
        let stack = vec![("_array", items()), ("_size", number(3)), ("_version", number(1))];
        assert_eq!(of_elements(stack), Some((3, vec![3, 2, 1])));
        let entry = |next, value| Value::Struct {
            type_name: "E",
            fields: fields([("Next", number(next)), ("Value", number(value))]),
        };
        let entries = array(3, vec![entry(-1, 10), entry(-3, 20), entry(0, 30)]);
        let set = vec![("_entries", entries), ("_count", number(3)), ("_freeCount", number(1))];
        assert_eq!(of_elements(set), Some((2, vec![10, 30])));
        let damaged = vec![("_items", items()), ("_size", number(5)), ("_version", number(7))];
        assert_eq!(of_elements(damaged), None);
    }
}
