//! Plans of functions' arguments and results. Arguments come in this order: `this`, the address for
//! a large result, the hidden argument of shared code, then the declared arguments. The machine's
//! [convention](super::arch) places them.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Type};
use clr_profiler::{ClassId, FunctionId, Token};
use clrscope_recording::layout::value;
use clrscope_recording::payload::PayloadWriter;

pub use super::arch::ArgumentLocation;
use super::arch::Walk;
use super::bindings::Bindings;
use super::completion::{AwaitedTask, Completion};
use super::evidence::Evidence;
use super::kinds::Kind;
use super::own_text;
use super::source_names;
use super::state_machine::StateMachine;
use super::types::{Scope, Types};

/// How an argument is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Passing {
    Value = 0,
    Ref = 1,
    In = 2,
    Out = 3,
}

/// One argument.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Location of the argument.
    pub location: ArgumentLocation,
    /// The kind of the value. For an argument passed by reference, the kind of the value that it
    /// refers to.
    pub kind: Kind,
    pub(crate) passing: Passing,
}

impl Argument {
    /// Number of bytes at the location: those of the value, or of its address.
    pub(crate) fn slot_bytes(&self) -> usize {
        if self.passing == Passing::Value { self.kind.size() as usize } else { 8 }
    }

    /// Whether the location itself holds a reference to an object.
    pub(crate) fn is_reference_in_place(&self) -> bool {
        self.passing == Passing::Value
            && matches!(self.kind, Kind::Reference(_) | Kind::String)
            && matches!(self.location, ArgumentLocation::General(_) | ArgumentLocation::Stack(_))
    }
}

/// Where the result of a call is, and how to read it.
#[derive(Debug, Clone, Copy)]
pub enum ResultPlan {
    /// There is no result.
    Nothing,
    /// In these registers: general 0 is `rax`, 1 is `rdx`; vector 0 and 1.
    At(ArgumentLocation, Kind),
    /// In memory; `rax` holds the address.
    Memory(Kind),
    /// This many bytes after the address of `this` at enter.
    Behind(u32, Kind),
    /// The result must never be read.
    Redacted,
    /// The call itself has no result: the argument that the `async` method passes to its builder
    /// has the result.
    Awaited,
}

/// A function's plan. Made once, never freed.
#[derive(Debug)]
pub struct Plan {
    pub(crate) arguments: Vec<Argument>,
    /// Location of the result.
    pub returned: ResultPlan,
    /// Whether an argument is passed by `ref` or `out`, or holds the result. Such an argument is
    /// read again when the call ends.
    pub by_reference: bool,
    /// Numbers of pairs of general and of vector registers, if all arguments are plain numbers in
    /// registers; otherwise `None`.
    pub registers: Option<(u8, u8)>,
    /// Whether the code is a state machine that is shown as its source method. The arguments are
    /// then not those of the code.
    pub(crate) is_of_machine: bool,
    /// The task that the code completes, if it is the code of an `async` method.
    pub awaited: Option<AwaitedTask>,
    /// The outcome of the `async` method that a call of this function ends; `None` for other
    /// functions.
    pub completes: Option<Completion>,
    /// Which locations have proved right.
    pub evidence: Evidence,
}

impl Plan {
    /// The arguments that are shown again when the call ends.
    #[inline]
    pub fn referenced(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|argument| matches!(argument.passing, Passing::Ref | Passing::Out))
    }
}

/// Which code a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlannedCode {
    /// The code of one function, by its index.
    Function(u32),
    /// The IL of a probed method, by its number. All its instantiations share it.
    Probed(u32),
}

impl PlannedCode {
    /// Beginning of the description in the recording, for code with this number of parameters.
    fn described(self, parameters: usize) -> PayloadWriter {
        let (kind, number) = match self {
            Self::Function(index) => (value::FUNCTION, index),
            Self::Probed(number) => (value::PROBED, number),
        };
        let mut described = PayloadWriter::default();
        described.u32(kind).u32(number).u32(parameters as u32);
        described
    }
}

/// Makes a plan and describes it in the recording. `id` is the function, or any function of the
/// probed method.
pub(super) fn make(types: &Types, id: FunctionId, of: PlannedCode) -> Option<Plan> {
    types.know_primitives();
    let info = types.info();
    let function = info.function_info(id).ok()?;
    let metadata = types.metadata(function.module).ok()?;
    let method = metadata.method(function.token).ok()?;
    let signature = signature::method(&method.signature).ok()?;
    if signature.convention != 0 || signature.explicit_this {
        return None;
    }
    let bind = if matches!(of, PlannedCode::Function(_)) { Bindings::of_function } else { Bindings::of_il };
    let bindings = bind(types, id, &function, &metadata, method.class);
    let class = bindings.class;
    if let Some(machine) = class.and_then(|class| StateMachine::from_method(types, class, &metadata, &method)) {
        return Some(of_state_machine(types, of, machine, &signature.return_type));
    }
    if matches!(of, PlannedCode::Probed(_)) && class.is_none() && StateMachine::is_code(&metadata, &method) {
        // The locations of its arguments differ between instantiations.
        return None;
    }
    let scope = bindings.scope(function.module, &metadata);
    let is_value = match class {
        Some(class) => matches!(types.kind_of(class), Kind::Struct(_)),
        None => is_declared_value(&metadata, method.class),
    };
    let mut making = Making::new(types, &scope, of, &signature);
    if signature.has_this {
        let text = match class {
            Some(class) => Some(types.name_of(class)),
            None if matches!(of, PlannedCode::Probed(_)) => bindings.declared_text(&metadata, method.class),
            None => None,
        };
        making.this(class, text.as_deref().unwrap_or("?"), is_value, method.name == ".ctor");
    }
    let returned_kind = making.result_kind(&signature.return_type);
    let method_shared = signature.generic_arity > 0 && bindings.method_arguments.iter().any(|id| types.is_shared(*id));
    let is_of_interface = metadata.type_def(method.class).is_ok_and(|declared| declared.is_interface());
    let has_exact_class = signature.has_this && !is_value && !is_of_interface;
    if has_hidden_argument(signature.generic_arity > 0, method_shared || bindings.is_class_shared, has_exact_class) {
        making.walk.general();
    }
    let tokens = metadata.params(function.token).unwrap_or_default();
    let params: Vec<_> = tokens.into_iter().filter_map(|token| metadata.param(token).ok()).collect();
    let hides_property = source_names::property(&method.name).is_some_and(|property| types.hides(property));
    for (number, ty) in signature.parameters.iter().enumerate() {
        let param = params.iter().find(|param| param.sequence as usize == number + 1);
        let name = param.map_or_else(|| format!("arg{number}"), |param| param.name.clone());
        // The value that a property setter gets comes last.
        let is_hidden = types.hides(&name) || hides_property && number + 1 == signature.parameters.len();
        making.parameter(&name, ty, param.map_or(0, |param| param.attributes), is_hidden);
    }
    let text = returned_kind.map_or_else(String::new, |_| types.type_text(&signature.return_type, &scope));
    making.described.text(&text);
    let by_exception = types.completes(function.module, function.token);
    let returned = returned_kind.map_or(ResultPlan::Nothing, |kind| match types.convention().result(kind) {
        _ if gives_hidden(types, &method.name) => ResultPlan::Redacted,
        _ if own_text::may_have_hidden(types, &metadata, &method.name, method.class) => ResultPlan::Redacted,
        None => ResultPlan::Memory(kind),
        Some(location) => ResultPlan::At(location, kind),
    });
    Some(making.plan(returned, by_exception))
}

/// Whether code gets its instantiation by a hidden argument. That is so for shared code of a
/// generic method, whatever the reason for sharing, and for shared code of a type whose `this` does
/// not show the instantiation. Objects know their class. Static methods have no `this`, and values
/// have no class. A class that implements an interface twice does not tell for which of the two it
/// is called.
fn has_hidden_argument(is_generic: bool, is_shared: bool, this_tells: bool) -> bool {
    is_shared && (is_generic || !this_tells)
}

/// Whether the result of a method must not be read: because of its own name, or that of its
/// property.
fn gives_hidden(types: &Types, method: &str) -> bool {
    types.hides(source_names::method(method)) || source_names::property(method).is_some_and(|name| types.hides(name))
}

/// A plan under construction, while the arguments are processed.
struct Making<'m> {
    types: &'m Types,
    scope: &'m Scope<'m>,
    of: PlannedCode,
    walk: Walk,
    arguments: Vec<Argument>,
    described: PayloadWriter,
}

impl<'m> Making<'m> {
    fn new(types: &'m Types, scope: &'m Scope<'m>, of: PlannedCode, signature: &signature::MethodSignature) -> Self {
        let described = of.described(usize::from(signature.has_this) + signature.parameters.len());
        Self { types, scope, of, walk: Walk::new(types.convention()), arguments: Vec::new(), described }
    }

    /// Adds `this`. For a value type it is the value's address; there is no value before its
    /// constructor has ended.
    fn this(&mut self, class: Option<ClassId>, text: &str, is_value: bool, is_constructor: bool) {
        let kind = match class {
            _ if self.types.hides("this") => Kind::Redacted,
            Some(class) => self.types.kind_of(class),
            None if is_value => Kind::Opaque(0),
            None => Kind::Reference(None),
        };
        let (passing, shown) = match (is_value, is_constructor) {
            (true, true) => (Passing::Out, Passing::Out),
            (true, false) => (Passing::In, Passing::Value),
            (false, _) => (Passing::Value, Passing::Value),
        };
        self.described.text("this").text(text).u32(shown as u32);
        self.arguments.push(Argument { location: self.walk.general(), kind, passing });
    }

    /// The kind of the result. For a result in memory, its address is passed like an argument.
    fn result_kind(&mut self, ty: &Type) -> Option<Kind> {
        if matches!(ty, Type::Primitive(signature::Primitive::Void)) {
            return None;
        }
        let kind = self.types.kind(ty, self.scope);
        match self.types.convention().result(kind) {
            None => _ = self.walk.general(),
            Some(ArgumentLocation::Unknown) => self.walk.lose(),
            Some(_) => {}
        }
        Some(kind)
    }

    fn parameter(&mut self, name: &str, ty: &Type, attributes: u32, is_hidden: bool) {
        let (ty, passing) = match ty {
            Type::ByRef(inner) => (&**inner, passing_of(attributes)),
            ty => (ty, Passing::Value),
        };
        let real = self.types.kind(ty, self.scope);
        let kind = if is_hidden { Kind::Redacted } else { real };
        let location = self.walk.locate(if passing == Passing::Value { real } else { Kind::Pointer });
        self.described.text(name).text(&self.types.type_text(ty, self.scope)).u32(passing as u32);
        self.arguments.push(Argument { location, kind, passing });
    }

    /// Finishes the plan and its description. `by_exception`: calls end `async` methods, by an
    /// exception or by success.
    fn plan(mut self, returned: ResultPlan, by_exception: Option<bool>) -> Plan {
        let (arguments, described) = (self.arguments, &mut self.described);
        let by_reference = arguments.iter().any(|a| matches!(a.passing, Passing::Ref | Passing::Out));
        let given = arguments.get(1).map(|argument| (argument.location, argument.kind));
        let completes = by_exception.and_then(|by_exception| Completion::new(by_exception, given));
        let is_of_hooks = matches!(self.of, PlannedCode::Function(_));
        let is_plain = is_of_hooks && self.types.takes_values() && completes.is_none();
        let registers = registers(&arguments, returned).filter(|_| is_plain);
        described.u32(u32::from(registers.is_some()));
        if registers.is_some() {
            arguments.iter().for_each(|argument| _ = described.u32(code(argument.kind, argument.location)));
            described.u32(match returned {
                ResultPlan::At(location, kind) => code(kind, location),
                _ => 0,
            });
        }
        self.types.describe(described);
        Plan {
            arguments,
            returned,
            by_reference,
            registers,
            is_of_machine: false,
            awaited: None,
            completes,
            evidence: Evidence::default(),
        }
    }
}

/// The plan of code that is shown as its source method: the arguments are fields of `this`.
fn of_state_machine(types: &Types, of: PlannedCode, machine: StateMachine, return_type: &Type) -> Plan {
    let mut described = of.described(machine.arguments.len());
    let mut arguments = Vec::new();
    for member in machine.arguments {
        described.text(&member.name).text(&member.type_name).u32(Passing::Value as u32);
        let kind = if member.is_hidden || types.hides(&member.name) { Kind::Redacted } else { member.kind };
        arguments.push(Argument {
            location: ArgumentLocation::Behind(0, member.offset),
            kind,
            passing: Passing::Value,
        });
    }
    let is_hidden = gives_hidden(types, &machine.source);
    let awaited = machine.awaited.filter(|_| !is_hidden);
    let by_reference = machine.task.is_some() || awaited.is_some();
    let returned = match (machine.task, machine.awaited, return_type) {
        (Some(task), ..) => {
            described.text(&task.type_name);
            ResultPlan::Behind(task.offset, if is_hidden { Kind::Redacted } else { task.kind })
        }
        (None, Some(awaited), _) if is_hidden => {
            described.text(awaited.name);
            ResultPlan::Redacted
        }
        (None, Some(awaited), _) => {
            described.text(awaited.name);
            ResultPlan::Awaited
        }
        (None, None, Type::Primitive(signature::Primitive::Bool)) => {
            described.text("bool");
            ResultPlan::At(ArgumentLocation::General(0), Kind::Bool)
        }
        _ => {
            described.text("");
            ResultPlan::Nothing
        }
    };
    described.u32(0);
    types.describe(&described);
    Plan {
        arguments,
        returned,
        by_reference,
        registers: None,
        is_of_machine: true,
        awaited,
        completes: None,
        evidence: Evidence::default(),
    }
}

/// Number of pairs of registers that hold the arguments, if all are plain numbers in registers.
fn registers(arguments: &[Argument], returned: ResultPlan) -> Option<(u8, u8)> {
    let is_plain = match returned {
        ResultPlan::Nothing => true,
        ResultPlan::At(location, kind) => code(kind, location) != 0,
        ResultPlan::Memory(_) | ResultPlan::Behind(..) | ResultPlan::Redacted | ResultPlan::Awaited => false,
    };
    let mut used = (0_u8, 0_u8);
    for argument in arguments {
        if argument.passing != Passing::Value || code(argument.kind, argument.location) == 0 {
            return None;
        }
        // A hidden argument may come before, so the last register counts.
        match argument.location {
            ArgumentLocation::Vector(number) => used.1 = used.1.max(number + 1),
            ArgumentLocation::General(number) => used.0 = used.0.max(number + 1),
            _ => return None,
        }
    }
    is_plain.then_some((used.0.div_ceil(2), used.1.div_ceil(2)))
}

/// The recording's code for a number in a register; 0 for anything else.
fn code(kind: Kind, location: ArgumentLocation) -> u32 {
    let register = match location {
        ArgumentLocation::General(number) => u32::from(number) << 16,
        ArgumentLocation::Vector(number) => u32::from(number) << 16 | 1 << 24,
        _ => return 0,
    };
    let tag = match kind {
        Kind::Bool => value::BOOL,
        Kind::Char => value::CHAR,
        Kind::Int(_) => value::INT,
        Kind::UInt(_) => value::UINT,
        Kind::Float => value::FLOAT,
        Kind::Double => value::DOUBLE,
        Kind::Pointer => value::POINTER,
        _ => return 0,
    };
    u32::from(tag) | kind.size() << 8 | register
}

fn passing_of(attributes: u32) -> Passing {
    match attributes & 3 {
        1 => Passing::In,
        2 => Passing::Out,
        _ => Passing::Ref,
    }
}

/// Whether metadata declares a type as a value type.
pub(super) fn is_declared_value(metadata: &MetadataImport, declared: Token) -> bool {
    let base = metadata.type_def(declared).ok().map(|declared| declared.extends);
    let name = base.and_then(|base| match base.table() {
        Token::TYPE_DEF => Some(metadata.type_def(base).ok()?.name),
        _ => Some(metadata.type_ref(base).ok()?.name),
    });
    matches!(name.as_deref(), Some("System.ValueType" | "System.Enum"))
}
