//! Memory layouts of classes: base class and offsets of the fields, from the runtime's layout and
//! the metadata.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature;
use clr_profiler::{ClassId, ClassInfo, Token};

use super::primitives::core_kind;
use super::shape::{Member, Names, enumeration, repeat, value_end};
use super::{MOST_FIELDS, Scope, Types};
use crate::kinds::{Field, Form, Shape, Shown};
use crate::source_names;

/// Kind of a class, by its base class.
pub(super) enum Base {
    Value,
    Enum,
    Other,
}

impl Types {
    /// The fields of a class with their names and types, inherited ones first.
    pub(crate) fn members(&self, id: ClassId) -> Option<Vec<Member>> {
        let about = self.info.class_info(id).ok()?;
        let metadata = self.metadata(about.module).ok()?;
        let mut names = Names { is_value: matches!(self.base_of(&about), Base::Value), ..Names::default() };
        let mut fields = Vec::new();
        self.fields(id, &about, &metadata, &mut fields, &mut names, 0);
        let all = fields.into_iter().zip(names.fields.into_iter().zip(names.types));
        let member = |(field, (name, type_name)): (Field, _)| Member {
            name,
            type_name,
            offset: field.offset,
            kind: field.kind,
            is_hidden: field.is_hidden(),
        };
        Some(all.map(member).collect())
    }

    pub(super) fn base_of(&self, about: &ClassInfo) -> Base {
        let Some(parent) = about.parent else { return Base::Other };
        let Ok(parent) = self.info.class_info(parent) else { return Base::Other };
        if self.core.get() != Some(&parent.module) {
            return Base::Other;
        }
        let name = self.metadata(parent.module).and_then(|m| m.type_def(parent.token)).map(|t| t.name);
        match name.as_deref() {
            // The class of all enumerations is none, and its objects are boxes.
            Ok("System.ValueType") if self.declared_name(about).as_deref() != Some("System.Enum") => Base::Value,
            Ok("System.Enum") => Base::Enum,
            _ => Base::Other,
        }
    }

    pub(super) fn shape(&self, id: ClassId, about: &ClassInfo, names: &mut Names) -> Shape {
        let Ok(metadata) = self.metadata(about.module) else { return Shape::default() };
        let name = metadata.type_def(about.token).map(|declared| declared.name).unwrap_or_default();
        let is_core = self.core.get() == Some(&about.module);
        if is_core && name == "System.String" {
            return Shape { form: Form::String, size: 22, ..Shape::default() };
        }
        if is_core && let Some(kind) = core_kind(&name) {
            names.is_value = true;
            return Shape { form: Form::Primitive(kind), size: kind.size(), ..Shape::default() };
        }
        let base = self.base_of(about);
        names.is_value = !matches!(base, Base::Other);
        if matches!(base, Base::Enum) {
            return enumeration(&metadata, about.token, names);
        }
        let mut shape = Shape { is_value: names.is_value, ..Shape::default() };
        shape.size = self.fields(id, about, &metadata, &mut shape.fields, names, 0);
        if name.contains("e__FixedBuffer") || is_inline_array(&metadata, about.token) {
            repeat(&mut shape, names);
        }
        shape.is_vector = is_core && is_vector(&name);
        match (names.is_value, is_core) {
            (true, true) => self.special(&name, about, &mut shape, names),
            (true, false) => {}
            (false, true) if name == "System.RuntimeType" => {
                if let Some((_, handle)) = names.field("m_handle", &shape) {
                    shape.form = Form::Type { handle: handle.offset };
                }
            }
            (false, _) => match delegate(&shape, names) {
                Some(form) => shape.form = form,
                None => self.as_task(id, about, &mut shape, names),
            },
        }
        shape
    }

    /// Value types of the framework that are shown by their meaning, not by their fields.
    fn special(&self, name: &str, about: &ClassInfo, shape: &mut Shape, names: &mut Names) {
        match (name, about.type_arguments.as_slice()) {
            ("System.Threading.Tasks.ValueTask" | "System.Threading.Tasks.ValueTask`1", _) => {
                self.as_value_task(shape, names);
            }
            ("System.Nullable`1", _) if shape.fields.len() == 2 => shape.form = Form::Nullable,
            ("System.Span`1" | "System.ReadOnlySpan`1", [element]) if !element.is_null() => {
                shape.form = Form::Span { element: self.kind_of(*element) };
                shape.size = 16;
            }
            _ => {}
        }
    }

    /// Adds the instance fields, inherited ones first; gives the size.
    fn fields(
        &self,
        id: ClassId,
        about: &ClassInfo,
        metadata: &MetadataImport,
        fields: &mut Vec<Field>,
        names: &mut Names,
        depth: u32,
    ) -> u32 {
        if let Some(parent) = about.parent.filter(|_| depth < 32 && !names.is_value)
            && let Ok(base) = self.info.class_info(parent)
            && let Ok(of_base) = self.metadata(base.module)
        {
            self.fields(parent, &base, &of_base, fields, names, depth + 1);
        }
        let Ok(layout) = self.info.class_layout(id) else { return 8 };
        let parameters = self.parameter_names(metadata, about.token, &about.type_arguments);
        let scope = Scope {
            module: about.module,
            metadata,
            type_arguments: &about.type_arguments,
            method_arguments: &[],
            type_parameters: &parameters,
            method_parameters: &[],
            loads_values: true,
        };
        let declared = metadata.type_def(about.token).map(|declared| declared.name).unwrap_or_default();
        for (token, offset) in layout.fields {
            let Ok(field) = metadata.field(token) else { continue };
            if field.is_static() || field.is_literal() || fields.len() >= MOST_FIELDS {
                continue;
            }
            let Ok(ty) = signature::field(&field.signature) else { continue };
            let shown = match () {
                () if self.hides(&field.name) => Shown::Redacted,
                () if is_content(&declared, &field.name) => Shown::Content,
                () => Shown::Deeper,
            };
            names.fields.push(source_names::shown(&field.name).to_owned());
            names.types.push(self.type_text(&ty, &scope));
            fields.push(Field { offset, kind: self.kind(&ty, &scope), shown });
        }
        // A value's size includes its padding, so it is also the distance between two elements of
        // an array.
        if names.is_value { layout.size.max(value_end(fields)) } else { layout.size }
    }
}

/// The form of delegates, for classes with the fields of one.
fn delegate(shape: &Shape, names: &Names) -> Option<Form> {
    let offset = |name| Some(names.field(name, shape)?.1.offset);
    offset("_invocationCount")?;
    Some(Form::Delegate { pointer: offset("_methodPtr")?, method: offset("_methodPtrAux")? })
}

/// Whether a field holds the elements of a framework collection, or the digits of a number.
fn is_content(declared: &str, field: &str) -> bool {
    declared.starts_with("System.Collections.") && matches!(field, "_items" | "_array" | "_entries")
        || declared == "System.Numerics.BigInteger" && field == "_bits"
}

fn is_inline_array(metadata: &MetadataImport, declared: Token) -> bool {
    let attribute = metadata.custom_attribute(declared, "System.Runtime.CompilerServices.InlineArrayAttribute");
    attribute.is_ok_and(|attribute| attribute.is_some())
}

/// Whether a value type of the framework is a vector of the processor.
fn is_vector(name: &str) -> bool {
    let rest =
        name.strip_prefix("System.Runtime.Intrinsics.Vector").or_else(|| name.strip_prefix("System.Numerics.Vector"));
    rest.is_some_and(|rest| rest.ends_with("`1"))
}
