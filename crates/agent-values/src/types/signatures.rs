//! Types as signatures and declarations name them: how their values are read, which classes they
//! are, how C# writes them.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::Type;
use clr_profiler::{ClassId, ModuleId, Token};

use super::loading::keeps_from_loading;
use super::primitives::{core_name, primitive_kind};
use super::{Scope, Types};
use crate::kinds::Kind;

impl Types {
    /// The kind as which a value of a type in a signature is read.
    pub(crate) fn kind(&self, ty: &Type, scope: &Scope<'_>) -> Kind {
        match ty {
            Type::Primitive(primitive) => primitive_kind(*primitive).unwrap_or(Kind::Opaque(16)),
            Type::Pointer(_) | Type::FunctionPointer(_) | Type::ByRef(_) | Type::Internal(_) => Kind::Pointer,
            Type::Vector(element) => Kind::Reference(self.array(ty, element, 1, scope)),
            Type::Array { element, rank } => Kind::Reference(self.array(ty, element, *rank, scope)),
            Type::Named { is_value, .. } | Type::Generic { is_value, .. } => match self.class_id(ty, scope) {
                Some(id) => self.kind_of(id),
                None if *is_value => self.value_of_any_class(ty, scope),
                None => Kind::Reference(None),
            },
            // Code is shared over references only; with a single parameter it must be that one.
            Type::TypeParameter(_) if scope.type_arguments.is_empty() && scope.type_parameters.len() == 1 => {
                Kind::Reference(None)
            }
            Type::TypeParameter(number) => self.argument(scope.type_arguments, *number),
            Type::MethodParameter(number) => self.argument(scope.method_arguments, *number),
        }
    }

    fn argument(&self, arguments: &[ClassId], number: u32) -> Kind {
        match arguments.get(number as usize) {
            Some(id) if !id.is_null() => self.kind_of(*id),
            _ => Kind::Opaque(0),
        }
    }

    /// The class of a type in a signature, if it is loaded. For a value type, also if the runtime
    /// can load it.
    pub(crate) fn class_id(&self, ty: &Type, scope: &Scope<'_>) -> Option<ClassId> {
        match ty {
            Type::Primitive(primitive) => self.core_id(core_name(*primitive)?),
            Type::Named { token, is_value } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                self.loaded_named(module, token, *is_value)
            }
            Type::Generic { token, is_value, arguments } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                if *is_value && scope.loads_values {
                    return self.loaded_with(ty, scope);
                }
                if !*is_value && !self.may_instantiate(module, token) {
                    return None;
                }
                // A type that is only referred to need not be loaded.
                let scope = &Scope { loads_values: false, ..*scope };
                let arguments: Option<Vec<_>> = arguments.iter().map(|ty| self.class_id(ty, scope)).collect();
                let found = self.info.class_from_token_and_type_args(module, token, &arguments?);
                found.ok().and_then(ClassId::non_null)
            }
            Type::TypeParameter(number) => scope.type_arguments.get(*number as usize)?.non_null(),
            Type::MethodParameter(number) => scope.method_arguments.get(*number as usize)?.non_null(),
            _ => None,
        }
    }

    /// Finds the declaration of a type. References lead to other modules by name.
    pub(super) fn find(&self, token: Token, module: ModuleId, metadata: &MetadataImport) -> Option<(ModuleId, Token)> {
        if token.table() == Token::TYPE_DEF {
            return Some((module, token));
        }
        let mut path = Vec::new();
        let mut at = token;
        while at.table() == Token::TYPE_REF && path.len() < 16 {
            let reference = metadata.type_ref(at).ok()?;
            path.push(reference.name);
            at = reference.scope;
        }
        let core = self.core.get().copied();
        let others = self.modules().clone();
        core.into_iter().chain(others.into_iter().map(|(module, _)| module)).find_map(|module| {
            let metadata = self.metadata(module).ok()?;
            let mut found = None;
            for name in path.iter().rev() {
                found = Some(metadata.find_type_def(name, found).ok()??);
            }
            Some((module, found?))
        })
    }

    /// A type in C# notation. Loads nothing.
    pub(crate) fn type_text(&self, ty: &Type, scope: &Scope<'_>) -> String {
        let scope = &Scope { loads_values: false, ..*scope };
        match ty {
            Type::Primitive(primitive) => primitive.csharp().to_owned(),
            Type::Vector(element) => self.type_text(element, scope) + "[]",
            Type::Array { element, rank } => {
                let commas = ",".repeat(*rank as usize - 1);
                format!("{}[{commas}]", self.type_text(element, scope))
            }
            Type::Pointer(inner) => self.type_text(inner, scope) + "*",
            Type::ByRef(inner) => format!("ref {}", self.type_text(inner, scope)),
            Type::FunctionPointer(_) => "delegate*".to_owned(),
            _ if keeps_from_loading() => self.declared_text(ty, scope).unwrap_or_else(|| "?".to_owned()),
            _ => {
                let id = self.class_id(ty, scope);
                if let Some(name) = open_parameter(ty, scope)
                    && id.is_none_or(|id| self.is_shared(id))
                {
                    return name.to_owned();
                }
                let Some(id) = id else { return self.declared_text(ty, scope).unwrap_or_else(|| "?".to_owned()) };
                let text = self.names.class(&self.info, id).to_string();
                if text.contains(ANY_CLASS) { self.with_parameters(text, ty, scope) } else { text }
            }
        }
    }

    /// The name of a type with open type arguments: these are shown by the names of the type
    /// parameters.
    fn with_parameters(&self, mut text: String, ty: &Type, scope: &Scope<'_>) -> String {
        if let Type::Generic { arguments, .. } = ty {
            for argument in arguments {
                let argument = self.type_text(argument, scope);
                // Known arguments are in the name already.
                if !text.contains(&argument) {
                    text = text.replacen(ANY_CLASS, &argument, 1);
                }
            }
        }
        text
    }
}

/// Stand-in for every class in code that several instantiations share.
const ANY_CLASS: &str = "System.__Canon";

/// The name of a type parameter; `None` for other types.
fn open_parameter<'s>(ty: &Type, scope: &Scope<'s>) -> Option<&'s str> {
    let (names, number) = match ty {
        Type::TypeParameter(number) => (scope.type_parameters, number),
        Type::MethodParameter(number) => (scope.method_parameters, number),
        _ => return None,
    };
    names.get(*number as usize).map(String::as_str)
}
