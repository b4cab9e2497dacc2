//! The dictionary of types, and decoding of values with it.

use clrscope_recording::layout::{instrument, u32_at, u64_at, value};
use clrscope_recording::model::Process;
use clrscope_recording::payload::PayloadReader;
use rustc_hash::FxHashMap;

use super::values::{Argument, CapturedValues, Field, Passing, Value};
use crate::catalog::Catalog;

/// Maximum nesting depth of values; deeper nesting means that the recording is damaged.
const DEPTH: u32 = 16;
/// Maximum number of array dimensions, which is the runtime's limit.
const MOST_DIMENSIONS: u8 = 32;

/// A class as the recording describes it.
#[derive(Debug, Default, Clone)]
struct ClassTypes {
    name: String,
    fields: Vec<String>,
    /// Types of the fields.
    types: Vec<String>,
    /// Bytes of an object; 0 if unknown.
    size: u32,
    constants: Vec<(String, u64)>,
}

/// A function's parameters and result.
#[derive(Debug, Default, Clone)]
struct FunctionTypes {
    parameters: Vec<(String, String, Passing)>,
    returns: String,
    /// Contents of the registers that follow events, the result last; empty if no registers follow.
    codes: Vec<u32>,
}

/// The types of the values in a process.
#[derive(Debug, Default, Clone)]
pub(crate) struct Types {
    classes: FxHashMap<u32, ClassTypes>,
    functions: FxHashMap<u32, FunctionTypes>,
    /// Probed methods by their numbers.
    probed: FxHashMap<u32, FunctionTypes>,
    /// Functions by the addresses that delegates call.
    methods: FxHashMap<u64, u32>,
    /// Names of these functions in reports.
    names: FxHashMap<u32, String>,
}

impl Types {
    /// Reads the dictionary of a process; empty if none was recorded.
    pub(crate) fn read(process: &Process) -> Self {
        let mut types = Self::default();
        for chunk in process.arenas(instrument::FLOW_TYPES).flat_map(|arena| &arena.chunks) {
            let bytes = chunk.bytes.load();
            let mut rest: &[u8] = &bytes;
            while let Some((head, after)) = rest.split_at_checked(4) {
                let length = u32_at(head, 0) as usize;
                let Some(record) = after.get(..length).filter(|record| !record.is_empty()) else { break };
                types.read_record(PayloadReader::new(record));
                rest = after.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            }
        }
        if !types.methods.is_empty() {
            let catalog = Catalog::new(process);
            let name = |index: &u32| (*index, catalog.function(catalog.slot(*index)).label().into_owned());
            types.names = types.methods.values().map(name).collect();
        }
        types
    }

    fn read_record(&mut self, mut p: PayloadReader<'_>) {
        match p.u32() {
            value::CLASS => {
                let (index, name, _is_value) = (p.u32(), p.text(), p.u32());
                let (fields, types) = (p.texts(), p.texts());
                let count = p.u32().min(4096);
                let constants = (0..count).map(|_| (p.text(), p.u64())).collect();
                let size = p.u32();
                self.classes.insert(index, ClassTypes { name, fields, types, size, constants });
            }
            kind @ (value::FUNCTION | value::PROBED) => {
                let (index, count) = (p.u32(), p.u32().min(1024));
                let parameters: Vec<_> = (0..count).map(|_| (p.text(), p.text(), passing(p.u32()))).collect();
                let returns = p.text();
                let codes = if p.u32() == 1 { (0..=parameters.len()).map(|_| p.u32()).collect() } else { Vec::new() };
                let of = if kind == value::FUNCTION { &mut self.functions } else { &mut self.probed };
                of.insert(index, FunctionTypes { parameters, returns, codes });
            }
            value::METHOD => {
                let address = p.u64();
                self.methods.insert(address, p.u32());
            }
            _ => {}
        }
    }

    /// The values at the begin of a call of `function`; `None` if values of this function are not
    /// recorded.
    pub(crate) fn at_enter(&self, function: u32, bytes: &[u8], registers: &[u8]) -> Option<CapturedValues<'_>> {
        Some(self.entered(self.functions.get(&function)?, bytes, registers))
    }

    /// The values at the begin of a call of the probed method with this number; `None` if none were
    /// recorded.
    pub(crate) fn at_begin(&self, number: u32, bytes: &[u8]) -> Option<CapturedValues<'_>> {
        let types = self.probed.get(&number)?;
        let has_values = types.parameters.iter().any(|(_, _, passing)| *passing != Passing::Out);
        (!has_values || !bytes.is_empty()).then(|| self.entered(types, bytes, &[]))
    }

    /// The values at the end of a call of the probed method with this number; `None` if none were
    /// recorded.
    pub(crate) fn at_return(&self, number: u32, bytes: &[u8]) -> Option<CapturedValues<'_>> {
        let types = self.probed.get(&number)?;
        let by_reference = |passing: &Passing| matches!(passing, Passing::Ref | Passing::Out);
        let has_values =
            !types.returns.is_empty() || types.parameters.iter().any(|(_, _, passing)| by_reference(passing));
        (!has_values || !bytes.is_empty()).then(|| self.left(types, bytes, &[], &[]))
    }

    fn entered<'t>(&'t self, types: &'t FunctionTypes, bytes: &[u8], registers: &[u8]) -> CapturedValues<'t> {
        let mut reader = Reader { bytes, types: self };
        let mut found = CapturedValues::default();
        for (at, (name, type_name, passing)) in types.parameters.iter().enumerate() {
            let value = match types.codes.get(at) {
                Some(code) if !registers.is_empty() => Some(in_register(*code, registers, general_bytes(&types.codes))),
                _ => (*passing != Passing::Out).then(|| reader.value(DEPTH)),
            };
            let argument = Argument { name, type_name, passing: *passing, value };
            if name == "this" && found.this.is_none() && found.arguments.is_empty() {
                found.this = Some(argument);
            } else {
                found.arguments.push(argument);
            }
        }
        found
    }

    /// Decodes the recorded values at the end of a call.
    pub(super) fn at_leave(
        &self,
        function: u32,
        bytes: &[u8],
        registers: &[u8],
        result: &[u8],
    ) -> Option<CapturedValues<'_>> {
        Some(self.left(self.functions.get(&function)?, bytes, registers, result))
    }

    fn left<'t>(
        &'t self,
        types: &'t FunctionTypes,
        bytes: &[u8],
        registers: &[u8],
        result: &[u8],
    ) -> CapturedValues<'t> {
        let mut reader = Reader { bytes, types: self };
        let mut found = CapturedValues::default();
        let again = types.parameters.iter().filter(|p| matches!(p.2, Passing::Ref | Passing::Out));
        for (name, type_name, passing) in again {
            let value = Some(reader.value(DEPTH));
            found.arguments.push(Argument { name, type_name, passing: *passing, value });
        }
        let mut returned = || match types.codes.last() {
            Some(code) if !registers.is_empty() => in_register(*code, registers, 8),
            _ => match reader.value(DEPTH) {
                Value::Unknown if !result.is_empty() => Reader { bytes: result, types: self }.value(DEPTH),
                value => value,
            },
        };
        found.returns = (!types.returns.is_empty()).then(|| (types.returns.as_str(), returned()));
        found
    }

    fn class(&self, index: u32) -> Option<&ClassTypes> {
        self.classes.get(&index)
    }

    /// The field of a delegate that holds an address, replaced by the method at this address.
    fn method(&self, field: &str, value: &Value<'_>) -> Option<Value<'_>> {
        let (true, Value::Int(address)) = (matches!(field, "_methodPtr" | "_methodPtrAux"), value) else { return None };
        let address = *address as u64;
        let name = self.names.get(self.methods.get(&address)?)?;
        Some(Value::Method { address, name })
    }
}

/// Bytes of the general registers, which come before the vector registers at enter.
fn general_bytes(codes: &[u32]) -> usize {
    let arguments = &codes[..codes.len().saturating_sub(1)];
    let general = arguments.iter().filter(|code| *code >> 24 == 0).map(|code| (code >> 16 & 0xFF) as usize + 1).max();
    general.unwrap_or(0).next_multiple_of(2) * 8
}

/// A number from one of the registers that follow an event.
fn in_register<'t>(code: u32, registers: &[u8], general_bytes: usize) -> Value<'t> {
    let from = if code >> 24 == 0 { 0 } else { general_bytes };
    let Some(raw) = registers.get(from + (code >> 16 & 0xFF) as usize * 8..).filter(|rest| rest.len() >= 8) else {
        return Value::Unknown;
    };
    let unused = 64 - (code >> 8 & 0xFF).clamp(1, 8) * 8;
    let unsigned = u64_at(raw, 0) << unused >> unused;
    match code as u8 {
        value::BOOL => Value::Bool(unsigned != 0),
        value::CHAR => Value::Char(unsigned as u16),
        value::INT => Value::Int((unsigned << unused) as i64 >> unused),
        value::UINT => Value::UInt(unsigned),
        value::FLOAT => Value::Float(f32::from_bits(unsigned as u32)),
        value::DOUBLE => Value::Double(f64::from_bits(unsigned)),
        value::POINTER => Value::Pointer(unsigned),
        _ => Value::Unknown,
    }
}

fn passing(number: u32) -> Passing {
    match number {
        1 => Passing::Ref,
        2 => Passing::In,
        3 => Passing::Out,
        _ => Passing::Value,
    }
}

/// Reads values one after another. Missing values are unknown.
struct Reader<'b, 't> {
    bytes: &'b [u8],
    types: &'t Types,
}

impl<'t> Reader<'_, 't> {
    fn read_array<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.bytes.split_at(N.min(self.bytes.len()));
        self.bytes = rest;
        let mut found = [0; N];
        found[..head.len()].copy_from_slice(head);
        found
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.read_array())
    }

    fn u32(&mut self) -> u32 {
        u32_at(&self.read_array::<4>(), 0)
    }

    fn u64(&mut self) -> u64 {
        u64_at(&self.read_array::<8>(), 0)
    }

    fn class(&mut self) -> Option<&'t ClassTypes> {
        let index = self.u32();
        self.types.class(index)
    }

    fn value(&mut self, depth: u32) -> Value<'t> {
        let Some(depth) = depth.checked_sub(1).filter(|_| !self.bytes.is_empty()) else { return Value::Unknown };
        match self.read_array::<1>()[0] {
            value::NULL => Value::Null,
            value::HIDDEN => Value::Hidden,
            value::REDACTED => Value::Redacted,
            value::BOOL => Value::Bool(self.read_array::<1>()[0] != 0),
            value::CHAR => Value::Char(self.u16()),
            value::INT => Value::Int(self.u64() as i64),
            value::UINT => Value::UInt(self.u64()),
            value::FLOAT => Value::Float(f32::from_bits(self.u32())),
            value::DOUBLE => Value::Double(f64::from_bits(self.u64())),
            value::POINTER => Value::Pointer(self.u64()),
            value::STRING => self.string(),
            value::ENUM => {
                let (class, number) = (self.class(), self.u64() as i64);
                let name = class.and_then(|class| constant_name(&class.constants, number));
                Value::Enum { type_name: name_of(class), name, number }
            }
            value::OBJECT => {
                let class = self.class();
                let (address, size) = (self.u64(), self.u32());
                let size_bytes = if size == 0 { class.map_or(0, |class| class.size) } else { size };
                let fields = self.fields(class, depth);
                let type_name = name_of(class);
                // Older agents write an address of 0 where only types were requested.
                if address == 0 && fields.is_empty() {
                    return Value::OfType { type_name };
                }
                Value::Object { type_name, address, size_bytes, fields }
            }
            value::BOXED => {
                let type_name = name_of(self.class());
                match self.value(depth) {
                    Value::Hidden => Value::OfType { type_name },
                    value => Value::Boxed { type_name, value: Box::new(value) },
                }
            }
            value::OF_CLASS => Value::OfType { type_name: name_of(self.class()) },
            value::TYPE => {
                let (class, address) = (self.class(), self.u64());
                Value::Type { type_name: name_of(class), address, of: name_of(self.class()) }
            }
            value::STRUCT => {
                let class = self.class();
                Value::Struct { type_name: name_of(class), fields: self.fields(class, depth) }
            }
            value::ARRAY => {
                let (class, _address, length) = (self.class(), self.u64(), self.u32());
                self.array(class, length, Vec::new(), depth)
            }
            value::MATRIX => {
                let (class, _address, length) = (self.class(), self.u64(), self.u32());
                let rank = self.read_array::<1>()[0].min(MOST_DIMENSIONS);
                let dimensions = (0..rank).map(|_| self.u32()).collect();
                self.array(class, length, dimensions, depth)
            }
            _ => Value::Unknown,
        }
    }

    fn more(&self) -> bool {
        !self.bytes.is_empty()
    }

    fn array(&mut self, class: Option<&'t ClassTypes>, length: u32, dimensions: Vec<u32>, depth: u32) -> Value<'t> {
        let kept = self.u16();
        let items = (0..kept).map_while(|_| self.more().then(|| self.value(depth))).collect();
        Value::Array { type_name: name_of(class), length, dimensions, items }
    }

    fn fields(&mut self, class: Option<&'t ClassTypes>, depth: u32) -> Vec<Field<'t>> {
        let count = usize::from(self.u16());
        let (names, types) = class.map_or((&[][..], &[][..]), |class| (&class.fields, &class.types));
        let text = |all: &'t [String], at: usize| all.get(at).map(String::as_str);
        let field = |reader: &mut Self, at| {
            let name = text(names, at).unwrap_or("?");
            let value = reader.value(depth);
            let value = reader.types.method(name, &value).unwrap_or(value);
            Field { name, type_name: text(types, at).unwrap_or(""), value }
        };
        (0..count).map_while(|at| self.more().then(|| field(self, at))).collect()
    }

    fn string(&mut self) -> Value<'t> {
        let (length, kept) = (self.u32(), usize::from(self.u16()));
        let (text, rest) = self.bytes.split_at((kept * 2).min(self.bytes.len()));
        self.bytes = rest;
        let units: Vec<u16> = text.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        Value::String { text: String::from_utf16_lossy(&units), length, is_cut: (units.len() as u32) < length }
    }
}

fn name_of(class: Option<&ClassTypes>) -> &str {
    class.map_or("?", |class| &class.name)
}

/// The constant with this number, or the combination of flags that yields the number.
fn constant_name(constants: &[(String, u64)], number: i64) -> Option<String> {
    let number = number as u64;
    if let Some((name, _)) = constants.iter().find(|(_, constant)| *constant == number) {
        return Some(name.clone());
    }
    let mut left = number;
    let mut names = Vec::new();
    for (name, constant) in constants.iter().rev() {
        if *constant != 0 && left & constant == *constant {
            left &= !constant;
            names.push(name.as_str());
        }
    }
    names.reverse();
    (left == 0 && !names.is_empty()).then(|| names.join("|"))
}

#[cfg(test)]
mod tests {
    use clrscope_recording::layout::function;
    use clrscope_recording::model::{EventArena, EventChunk, Function, FunctionKind, SourceKind};

    use super::*;

    /// A delegate to a lambda was once shown as `App.P::Main`, the method that the lambda is
    /// written in.
    #[test]
    fn a_delegate_to_a_lambda_says_so() {
        let mut functions = vec![Function::default(); function::FIRST as usize];
        let lambda = functions.len() as u32;
        functions.push(Function {
            name: "App.P::Main".to_owned(),
            signature: "App.P.Main() (lambda, P.cs:4)".to_owned(),
            source: SourceKind::Lambda,
            kind: FunctionKind::Managed,
            ..Function::default()
        });
        let mut bytes = 16_u32.to_le_bytes().to_vec();
        bytes.extend(value::METHOD.to_le_bytes());
        bytes.extend(4096_u64.to_le_bytes());
        bytes.extend(lambda.to_le_bytes());
        let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: bytes.into() };
        let arena = EventArena { instrument: instrument::FLOW_TYPES.to_owned(), chunks: vec![chunk] };
        let process = Process { functions, events: vec![arena], ..Process::default() };
        let types = Types::read(&process);
        let found = types.method("_methodPtr", &Value::Int(4096));
        assert!(
            matches!(found, Some(Value::Method { address: 4096, name: "App.P::Main (lambda, P.cs:4)" })),
            "{found:?}"
        );
        assert!(types.method("_methodPtr", &Value::Int(4097)).is_none());
    }
}
