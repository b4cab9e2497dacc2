//! The types that stand for a method's type parameters in the code of a plan.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{ClassId, FunctionId, FunctionInfo, ModuleId, Token};

use super::types::{Scope, Types};

/// `gpReferenceTypeConstraint`: only classes can be arguments for the parameter.
pub(super) const REFERENCE_TYPES: u32 = 4;

/// The class of a method, and the type arguments of the class and the method.
pub(super) struct Bindings {
    /// The class; `None` if it is unknown, or where several classes share the code.
    pub(super) class: Option<ClassId>,
    /// Whether classes with different type arguments share the method's code.
    pub(super) is_class_shared: bool,
    pub(super) method_arguments: Vec<ClassId>,
    type_arguments: Vec<ClassId>,
    type_parameters: Vec<String>,
    method_parameters: Vec<String>,
}

impl Bindings {
    /// Bindings of the code of one function. `declared` is the type that declares the method.
    pub(super) fn of_function(
        types: &Types,
        id: FunctionId,
        function: &FunctionInfo,
        metadata: &MetadataImport,
        declared: Token,
    ) -> Self {
        let class = types.class_of_function(id, function, declared);
        let of_class = class.and_then(|class| types.info().class_info(class).ok());
        let type_arguments = of_class.as_ref().map(|class| class.type_arguments.clone()).unwrap_or_default();
        let type_parameters = match class {
            Some(_) => types.parameter_names(metadata, declared, &type_arguments),
            None => types.parameter_names(metadata, declared, &[ClassId::NULL]),
        };
        let method_parameters = types.parameter_names(metadata, function.token, &function.type_arguments);
        // Only shared code has no class.
        let is_class_shared = of_class.is_none() || type_arguments.iter().any(|id| types.is_shared(*id));
        let method_arguments = function.type_arguments.clone();
        Self { class, is_class_shared, method_arguments, type_arguments, type_parameters, method_parameters }
    }

    /// Bindings of a method's IL, which all its instantiations share: nothing is known about a type
    /// argument, except that some are classes. `id` is any of the method's functions.
    pub(super) fn of_il(
        types: &Types,
        id: FunctionId,
        function: &FunctionInfo,
        metadata: &MetadataImport,
        declared: Token,
    ) -> Self {
        let open = |of: Token| -> (Vec<ClassId>, Vec<String>) {
            let parameters = metadata.generic_params(of).unwrap_or_default();
            let any_class = types.any_class().unwrap_or(ClassId::NULL);
            let stand_in = |attributes| if attributes & REFERENCE_TYPES == 0 { ClassId::NULL } else { any_class };
            parameters.into_iter().map(|parameter| (stand_in(parameter.attributes), parameter.name)).unzip()
        };
        let (type_arguments, type_parameters) = open(declared);
        let (method_arguments, method_parameters) = open(function.token);
        let is_class_shared = !type_arguments.is_empty();
        let class = if is_class_shared { None } else { types.class_of_function(id, function, declared) };
        Self { class, is_class_shared, method_arguments, type_arguments, type_parameters, method_parameters }
    }

    /// The meaning of type parameters in signatures of the method.
    pub(super) fn scope<'s>(&'s self, module: ModuleId, metadata: &'s MetadataImport) -> Scope<'s> {
        Scope {
            module,
            metadata,
            type_arguments: &self.type_arguments,
            method_arguments: &self.method_arguments,
            type_parameters: &self.type_parameters,
            method_parameters: &self.method_parameters,
            loads_values: true,
        }
    }

    /// The declaring type of the method as written in the source, with the names of its type
    /// parameters.
    pub(super) fn declared_text(&self, metadata: &MetadataImport, declared: Token) -> Option<String> {
        let name = metadata.type_def(declared).ok()?.name;
        let name = name.split('`').next().unwrap_or(&name);
        let own = match metadata.enclosing_type(declared) {
            // The first ones belong to the enclosing type.
            Ok(Some(around)) => self.type_parameters.get(metadata.generic_params(around).ok()?.len()..)?,
            _ => &self.type_parameters,
        };
        let outer = metadata.enclosing_type(declared).ok().flatten();
        let outer = outer.and_then(|around| self.declared_text(metadata, around)).map(|text| text + ".");
        let arguments = if own.is_empty() { String::new() } else { format!("<{}>", own.join(", ")) };
        Some(outer.unwrap_or_default() + name + &arguments)
    }
}
