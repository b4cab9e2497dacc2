//! Reading values from memory that looks as the runtime's does: tables of what lies there and what
//! is read, without a runtime.

use std::sync::Once;

use clrscope_recording::layout::value;

use super::kinds::{Class, Field, Form, Kind, Shape, Shown, Task};
use super::memory::{At, Ground};
use super::read::Writer;
use super::types::table::{Insertion, announce, insert, prepare};

/// Room for any value of these tests.
const ROOM: usize = 2048;

/// Leaks a value, so that its bytes stay where they are, and returns its place on this ground.
fn leaked_place<T: 'static>(ground: Ground, content: T) -> At {
    let content: &'static T = Box::leak(Box::new(content));
    // SAFETY: leaked, so it is there for ever; references in what is called alive are made of such
    // places by each test.
    unsafe { At::on(ground, std::ptr::from_ref(content).cast()) }
}

/// The first word of the objects of an unknown class.
fn new_id() -> usize {
    leaked_place(Ground::Held, [0_u64; 8]).address()
}

/// A class that hooks know.
fn class(shape: Shape) -> &'static Class {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(prepare);
    let Some(Insertion::New(class)) = insert(new_id(), Vec::new()) else { panic!("the id is new") };
    class.shape.set(shape).expect("it is new");
    class
}

fn field(offset: u32, kind: Kind) -> Field {
    Field { offset, kind, shown: Shown::Deeper }
}

fn object_class(size: u32, fields: &[Field]) -> &'static Class {
    class(Shape { size, fields: fields.to_vec(), ..Shape::default() })
}

fn value_class(form: Form, size: u32, fields: &[Field]) -> &'static Class {
    class(Shape { form, size, is_value: true, fields: fields.to_vec(), ..Shape::default() })
}

fn string_class() -> &'static Class {
    class(Shape { form: Form::String, size: 22, ..Shape::default() })
}

/// The words of an object; the first is its class.
fn object<const N: usize>(class: &Class, content: [u64; N]) -> u64 {
    let mut words = vec![class.id as u64];
    words.extend(content);
    words.leak().as_ptr().expose_provenance() as u64
}

/// A string that says it has so many characters, and has these.
fn string(class: &Class, length: u32, text: &str) -> u64 {
    let mut bytes = length.to_le_bytes().to_vec();
    text.encode_utf16().for_each(|unit| bytes.extend(unit.to_le_bytes()));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let mut words = vec![class.id as u64];
    words.extend(bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight"))));
    words.leak().as_ptr().expose_provenance() as u64
}

/// A reference in what the runtime keeps alive.
fn reference(object: u64) -> At {
    leaked_place(Ground::Alive, object)
}

/// Text written for a value; classes by their number among `classes`.
fn read(kind: Kind, at: At, depth: u32, classes: &[&Class]) -> String {
    read_into(ROOM, false, kind, at, depth, classes).expect("it is whole")
}

fn types_of(kind: Kind, at: At, classes: &[&Class]) -> String {
    read_into(ROOM, true, kind, at, 1, classes).expect("it is whole")
}

/// `None` where the room ended before the value did.
fn read_into(room: usize, types_only: bool, kind: Kind, at: At, depth: u32, classes: &[&Class]) -> Option<String> {
    let mut buffer = vec![0xEE; room];
    let mut writer = Writer::new(&mut buffer, types_only);
    writer.value(kind, at, depth);
    let used = writer.used();
    let mut written = Written { bytes: &buffer[..used], classes };
    let text = written.value()?;
    assert!(written.bytes.is_empty(), "{text} and {} bytes more", written.bytes.len());
    Some(text)
}

/// Values as the recording has them; each method is `None` where they end too early.
struct Written<'w> {
    bytes: &'w [u8],
    classes: &'w [&'w Class],
}

impl Written<'_> {
    fn read_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.read_array().map(u32::from_le_bytes)
    }

    fn class(&mut self) -> Option<String> {
        let index = self.u32()?;
        let number = self.classes.iter().position(|class| class.index == index);
        Some(number.map_or_else(|| "unknown class ".to_owned(), |number| format!("class {number} ")))
    }

    fn values(&mut self) -> Option<String> {
        let count = u16::from_le_bytes(self.read_array()?);
        let all: Option<Vec<_>> = (0..count).map(|_| self.value()).collect();
        Some(all?.join(", "))
    }

    fn value(&mut self) -> Option<String> {
        let [tag] = self.read_array()?;
        Some(match tag {
            value::UNKNOWN => "?".to_owned(),
            value::NULL => "null".to_owned(),
            value::HIDDEN => "hidden".to_owned(),
            value::REDACTED => "redacted".to_owned(),
            value::BOOL => (self.read_array::<1>()? == [1]).to_string(),
            value::CHAR => format!("'{}'", char::from_u32(u16::from_le_bytes(self.read_array()?).into())?),
            value::INT => i64::from_le_bytes(self.read_array()?).to_string(),
            value::UINT => format!("{}u", u64::from_le_bytes(self.read_array()?)),
            value::FLOAT => format!("{}f", f32::from_le_bytes(self.read_array()?)),
            value::DOUBLE => format!("{}d", f64::from_le_bytes(self.read_array()?)),
            value::POINTER => format!("{:#x}", u64::from_le_bytes(self.read_array()?)),
            value::STRING => {
                let (length, kept) = (self.u32()?, u16::from_le_bytes(self.read_array()?));
                let units: Option<Vec<u16>> = (0..kept).map(|_| self.read_array().map(u16::from_le_bytes)).collect();
                format!("{length} {:?}", String::from_utf16_lossy(&units?))
            }
            value::ENUM => self.class()? + &i64::from_le_bytes(self.read_array()?).to_string(),
            value::OBJECT => {
                let (class, _address, size) = (self.class()?, self.read_array::<8>()?, self.u32()?);
                format!("{class}of {size} ({})", self.values()?)
            }
            value::STRUCT => format!("{}({})", self.class()?, self.values()?),
            value::ARRAY => {
                let (class, _address, length) = (self.class()?, self.read_array::<8>()?, self.u32()?);
                format!("{class}{length} [{}]", self.values()?)
            }
            value::MATRIX => {
                let (class, _address, length, [rank]) =
                    (self.class()?, self.read_array::<8>()?, self.u32()?, self.read_array()?);
                let sizes: Option<Vec<_>> = (0..rank).map(|_| self.u32().map(|size| size.to_string())).collect();
                format!("{class}{length} {} [{}]", sizes?.join("x"), self.values()?)
            }
            value::BOXED => format!("{}box {}", self.class()?, self.value()?),
            value::OF_CLASS => self.class()?.trim_end().to_owned(),
            value::TYPE => {
                let (class, _address) = (self.class()?, self.read_array::<8>()?);
                format!("{class}for {}", self.class()?.trim_end())
            }
            other => panic!("{other} is no tag"),
        })
    }
}

#[test]
fn numbers_are_read_by_their_size_and_their_sign() {
    let bytes = 0xFFFF_FFFF_FFFF_FF41_u64;
    let table = [
        (Kind::Bool, bytes, "true"),
        (Kind::Bool, 0x100, "false"),
        (Kind::Char, 0x41, "'A'"),
        (Kind::Int(1), bytes, "65"),
        (Kind::Int(1), 0x80, "-128"),
        (Kind::Int(2), bytes, "-191"),
        (Kind::Int(4), bytes, "-191"),
        (Kind::Int(8), bytes, "-191"),
        (Kind::UInt(1), 0x1FF, "255u"),
        (Kind::UInt(2), bytes, "65345u"),
        (Kind::UInt(4), bytes, "4294967105u"),
        (Kind::UInt(8), u64::MAX, "18446744073709551615u"),
        (Kind::Float, u64::from(1.5_f32.to_bits()) | 7 << 32, "1.5f"),
        (Kind::Double, (-0.25_f64).to_bits(), "-0.25d"),
        (Kind::Pointer, 0x1234, "0x1234"),
        (Kind::Redacted, bytes, "redacted"),
        (Kind::Opaque(8), bytes, "?"),
    ];
    for (row, (kind, content, expected)) in table.into_iter().enumerate() {
        for ground in [Ground::Held, Ground::Alive] {
            assert_eq!(read(kind, leaked_place(ground, content), 1, &[]), expected, "row {row}: {kind:?}");
        }
        let there = leaked_place(Ground::Held, content).address();
        assert_eq!(read(kind, At::unknown(there), 1, &[]), expected, "row {row}: {kind:?}, copied by the system");
        let gone = if matches!(kind, Kind::Redacted) { "redacted" } else { "?" };
        assert_eq!(read(kind, At::unknown(8), 1, &[]), gone, "row {row}: {kind:?}, where there is no memory");
    }
}

#[test]
fn strings_are_cut_and_never_read_beyond_what_is_there() {
    let of = string_class();
    let long = "abcdefgh".repeat(50);
    let table = [
        (string(of, 5, "größe"), "5 \"größe\"".to_owned()),
        (string(of, 0, ""), "0 \"\"".to_owned()),
        (string(of, 400, &long), format!("400 {:?}", &long[..256])),
        (0, "null".to_owned()),
    ];
    for (object, expected) in table {
        assert_eq!(read(Kind::String, reference(object), 1, &[of]), expected);
        assert_eq!(read(Kind::Reference(None), reference(object), 1, &[of]), expected, "by its own class");
        let expected = if object == 0 { "null" } else { "hidden" };
        assert_eq!(types_of(Kind::String, reference(object), &[of]), expected);
    }
}

#[test]
fn objects_are_opened_as_deep_as_asked() {
    let leaf = object_class(24, &[field(8, Kind::Int(4))]);
    let middle = object_class(24, &[field(8, Kind::Reference(None)), field(16, Kind::Bool)]);
    let content = Field { shown: Shown::Content, ..field(8, Kind::Reference(None)) };
    let collection = object_class(24, &[content, field(16, Kind::Int(4))]);
    let classes = [leaf, middle, collection];
    let inner = object(middle, [object(leaf, [7]), 1]);
    let table = [
        (inner, 0, "class 1 of 24 ()"),
        (inner, 1, "class 1 of 24 (class 0 of 24 (), true)"),
        (inner, 2, "class 1 of 24 (class 0 of 24 (7), true)"),
        (object(middle, [0, 0]), 9, "class 1 of 24 (null, false)"),
        (object(collection, [inner, 3]), 1, "class 2 of 24 (class 1 of 24 (class 0 of 24 (), true), 3)"),
    ];
    for (object, depth, expected) in table {
        assert_eq!(read(Kind::Reference(Some(leaf)), reference(object), depth, &classes), expected, "depth {depth}");
    }
    assert_eq!(types_of(Kind::Reference(None), reference(inner), &classes), "class 1");
}

#[test]
fn fields_that_hide_secrets_are_not_read() {
    let text = string_class();
    let secret = Field { shown: Shown::Redacted, ..field(8, Kind::String) };
    let fields = [secret, field(16, Kind::String)];
    let (account, key) = (object_class(24, &fields), value_class(Form::Fields, 24, &fields));
    let word = string(text, 6, "secret");
    let of_object = read(Kind::Reference(None), reference(object(account, [word, word])), 3, &[account]);
    assert_eq!(of_object, "class 0 of 24 (redacted, 6 \"secret\")");
    assert_eq!(
        read(Kind::Struct(key), leaked_place(Ground::Alive, [0, word, word]), 3, &[key]),
        "class 0 (redacted, 6 \"secret\")"
    );
}

#[test]
fn what_nobody_told_of_is_unknown() {
    let known = object_class(16, &[field(8, Kind::Int(8))]);
    let stranger = object(&Class { index: 0, id: new_id(), shape: Default::default() }, [1]);
    let told = Class { index: 0, id: new_id(), shape: Default::default() };
    announce(told.id, Vec::new());
    let table = [
        (object(known, [5]), "class 0 of 16 (5)"),
        // Anything may lie there.
        (stranger, "?"),
        (object(&told, [5]), "unknown class of 0 ()"),
        // No object begins there, and there is no memory.
        (object(known, [5]) + 4, "?"),
        (8, "?"),
        (u64::MAX - 7, "?"),
        (0, "null"),
    ];
    for (row, (object, expected)) in table.into_iter().enumerate() {
        let found = read(Kind::Reference(None), leaked_place(Ground::Held, object), 1, &[known]);
        assert_eq!(found, expected, "row {row}");
    }
    // A live object is read as an object even if its class is unknown; what is declared comes first
    // in it.
    assert_eq!(read(Kind::Reference(None), reference(stranger), 1, &[known]), "unknown class of 0 ()");
    let by_declaration = read(Kind::Reference(Some(known)), reference(stranger), 1, &[known]);
    assert_eq!(by_declaration, "unknown class of 0 (1)");
}

#[test]
fn value_types_are_shown_by_their_form() {
    let colour = value_class(Form::Enum { bytes: 1, signed: true }, 1, &[]);
    let flags = value_class(Form::Enum { bytes: 4, signed: false }, 4, &[]);
    let double = value_class(Form::Primitive(Kind::Double), 8, &[]);
    let maybe = value_class(Form::Nullable, 16, &[field(0, Kind::Bool), field(8, Kind::Int(8))]);
    let point = value_class(Form::Fields, 8, &[field(0, Kind::Int(4)), field(4, Kind::Struct(flags))]);
    let classes = [colour, flags, double, maybe, point];
    let table = [
        (colour, [0xFF, 0], "class 0 -1", "hidden"),
        (flags, [u64::from(u32::MAX), 0], "class 1 4294967295", "hidden"),
        (double, [2.5_f64.to_bits(), 0], "2.5d", "hidden"),
        (maybe, [1, 9], "9", "hidden"),
        (maybe, [0, 9], "null", "hidden"),
        (point, [3 << 32 | 2, 0], "class 4 (2, class 1 3)", "class 4"),
    ];
    for (row, (class, content, expected, types)) in table.into_iter().enumerate() {
        let at = leaked_place(Ground::Held, content);
        assert_eq!(read(Kind::Struct(class), at, 1, &classes), expected, "row {row}");
        assert_eq!(types_of(Kind::Struct(class), at, &classes), types, "types of row {row}");
    }
    let boxed = |class, content| read(Kind::Reference(None), reference(object(class, [content])), 1, &classes);
    assert_eq!(boxed(colour, 2), "class 0 2");
    assert_eq!(boxed(double, 0.5_f64.to_bits()), "class 2 box 0.5d");
    assert_eq!(boxed(point, 1 << 32 | 5), "class 4 (5, class 1 1)");
}

#[test]
fn value_types_in_value_types_are_left_out_at_some_depth() {
    let mut class = value_class(Form::Fields, 8, &[field(0, Kind::Int(8))]);
    let mut classes = vec![class];
    for _ in 0..6 {
        class = value_class(Form::Fields, 8, &[field(0, Kind::Struct(class))]);
        classes.push(class);
    }
    let found = read(Kind::Struct(class), leaked_place(Ground::Held, 1_u64), 1, &classes);
    assert_eq!(found, "class 6 (class 5 (class 4 (class 3 (class 2 ()))))");
}

#[test]
fn arrays_keep_their_first_elements_and_all_their_sizes() {
    let numbers = class(Shape { form: Form::Array { element: Kind::Int(4), rank: 1 }, size: 8, ..Shape::default() });
    let matrix = class(Shape { form: Form::Array { element: Kind::Int(8), rank: 2 }, size: 8, ..Shape::default() });
    let classes = [numbers, matrix];
    let all = |object, depth| read(Kind::Reference(None), reference(object), depth, &classes);
    assert_eq!(all(object(numbers, [3, 2 << 32 | 1, 3]), 1), "class 0 3 [1, 2, 3]");
    assert_eq!(all(object(numbers, [3, 2 << 32 | 1, 3]), 0), "class 0 3 []");
    assert_eq!(all(object(numbers, [0]), 1), "class 0 0 []");
    let twenty = all(object(numbers, [20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 1);
    assert_eq!(twenty, format!("class 0 20 [{}]", ["0"; 16].join(", ")));
    let table = all(object(matrix, [6, 3 << 32 | 2, 0, 1, 2, 3, 4, 5, 6]), 1);
    assert_eq!(table, "class 1 6 2x3 [1, 2, 3, 4, 5, 6]");
    assert_eq!(types_of(Kind::Reference(None), reference(object(matrix, [0, 0])), &classes), "class 1");
}

#[test]
fn a_span_may_lead_to_memory_that_is_gone() {
    let span = value_class(Form::Span { element: Kind::Int(4) }, 16, &[]);
    let there = leaked_place(Ground::Held, [1_u32, 2, 3]).address() as u64;
    let table = [(there, 3, "class 0 3 [1, 2, 3]"), (8, 2, "class 0 2 [?, ?]"), (0, 0, "class 0 0 []")];
    for (data, length, expected) in table {
        assert_eq!(read(Kind::Struct(span), leaked_place(Ground::Held, [data, length]), 1, &[span]), expected);
    }
}

#[test]
fn tasks_are_shown_by_their_state_and_their_result() {
    let status = value_class(Form::Enum { bytes: 4, signed: true }, 4, &[]);
    let result = Some(field(16, Kind::Int(4)));
    let task = class(Shape { form: Form::Task(Task { flags: 8, status, result }), size: 24, ..Shape::default() });
    let value_task = value_class(Form::ValueTask { object: 0, status, result: Some(field(8, Kind::Int(4))) }, 16, &[]);
    let classes = [status, task, value_task];
    let table = [
        (0x100_0000, "class 1 of 24 (class 0 5, 42)"),
        (0x20_0000, "class 1 of 24 (class 0 7)"),
        (0x40_0000, "class 1 of 24 (class 0 6)"),
        (0x200_0000, "class 1 of 24 (class 0 1)"),
        (0, "class 1 of 24 (class 0 0)"),
    ];
    for (flags, expected) in table {
        let made = object(task, [flags, 42]);
        assert_eq!(read(Kind::Reference(None), reference(made), 1, &classes), expected, "{flags:x}");
        let wrapped = read(Kind::Struct(value_task), leaked_place(Ground::Alive, [made, 0]), 1, &classes);
        assert_eq!(wrapped, expected.replace("class 1 of 24", "class 2"), "{flags:x}");
    }
    let ready = read(Kind::Struct(value_task), leaked_place(Ground::Held, [0_u64, 6]), 1, &classes);
    assert_eq!(ready, "class 2 (class 0 5, 6)");
}

/// A value that does not fit lacks its rest; its beginning is as it would be with more room.
#[test]
fn what_does_not_fit_is_left_out() {
    let text = string_class();
    let inner = value_class(Form::Fields, 16, &[field(0, Kind::String), field(8, Kind::Int(8))]);
    let outer = object_class(40, &[field(8, Kind::Int(4)), field(16, Kind::Struct(inner)), field(32, Kind::Double)]);
    let at = reference(object(outer, [1, string(text, 12, "twelve units"), 2, 0]));
    let whole = read(Kind::Reference(None), at, 2, &[outer, inner]);
    assert_eq!(whole, "class 0 of 40 (1, class 1 (12 \"twelve units\", 2), 0d)");
    let mut cut = 0;
    for room in 0..=160 {
        let mut buffer = vec![0xEE; room];
        let mut writer = Writer::new(&mut buffer, false);
        writer.value(Kind::Reference(None), at, 2);
        let used = writer.used();
        assert!(used <= room && buffer[used..].iter().all(|&byte| byte == 0xEE), "room {room}");
        let found = Written { bytes: &buffer[..used], classes: &[outer, inner] }.value();
        cut += usize::from(found.as_ref() != Some(&whole));
        assert!(room < 120 || found.as_ref() == Some(&whole), "room {room}: {found:?}");
    }
    assert!(cut > 60, "{cut} rooms were too small");
}
