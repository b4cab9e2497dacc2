//! Finds the class of code that several instantiations of a generic class share.
//!
//! .NET 10 reports the class (`List<__Canon>`), .NET 8 and 9 do not. But a program that runs such
//! code has loaded one of the instantiations, and the runtime can say which function of a class a
//! method is.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::{ClassId, ClassInfo, FunctionId, FunctionInfo, ModuleId, Token};

use super::Types;
use super::layout::Base;

/// Type arguments nested deeper than this are ignored.
pub(super) const NESTED: u32 = 8;

/// Instantiations of generic classes that are loaded.
#[derive(Default)]
pub(super) struct Instantiations(Mutex<HashMap<ClassId, Instantiation>>);

struct Instantiation {
    module: ModuleId,
    token: Token,
    /// Modules that its arguments come from. It unloads with any of them.
    arguments_from: Vec<ModuleId>,
}

impl Instantiations {
    fn all(&self) -> MutexGuard<'_, HashMap<ClassId, Instantiation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A module has been unloaded, and with it all instantiations over its types.
    pub(super) fn module_unloaded(&self, module: ModuleId) {
        self.all().retain(|_, one| one.module != module && !one.arguments_from.contains(&module));
    }

    fn classes_of_type(&self, module: ModuleId, token: Token) -> Vec<ClassId> {
        let all = self.all();
        all.iter().filter(|(_, one)| (one.module, one.token) == (module, token)).map(|(id, _)| *id).collect()
    }
}

impl Types {
    /// A class has been loaded; remembers it if it is an instantiation. Returns the modules that
    /// its arguments come from.
    pub(super) fn note_instantiation(&self, class: ClassId, about: &ClassInfo) -> Vec<ModuleId> {
        let mut arguments_from = Vec::new();
        if !about.type_arguments.is_empty() {
            about.type_arguments.iter().for_each(|argument| self.modules_of(*argument, &mut arguments_from, NESTED));
            let from = arguments_from.clone();
            let new = Instantiation { module: about.module, token: about.token, arguments_from: from };
            self.instantiations.all().insert(class, new);
        }
        arguments_from
    }

    pub(super) fn modules_of(&self, class: ClassId, found: &mut Vec<ModuleId>, depth: u32) {
        let Some(depth) = depth.checked_sub(1).filter(|_| !class.is_null()) else { return };
        match self.info.array_class(class) {
            Ok(Some(array)) => array.element.into_iter().for_each(|element| self.modules_of(element, found, depth)),
            _ => {
                let Ok(about) = self.info.class_info(class) else { return };
                if !found.contains(&about.module) {
                    found.push(about.module);
                }
                about.type_arguments.iter().for_each(|argument| self.modules_of(*argument, found, depth));
            }
        }
    }

    /// The class of a function, as the runtime reports it. If the runtime reports none because the
    /// code is shared, this is the instantiation that represents all of them. `declared` is the
    /// type that declares the method.
    pub(crate) fn class_of_function(
        &self,
        id: FunctionId,
        function: &FunctionInfo,
        declared: Token,
    ) -> Option<ClassId> {
        function.class.or_else(|| {
            let mut seen = HashSet::new();
            let loaded = self.instantiations.classes_of_type(function.module, declared);
            loaded.into_iter().find_map(|class| {
                let arguments = self.info.class_info(class).ok()?.type_arguments;
                let shared: Option<Vec<ClassId>> =
                    arguments.into_iter().map(|argument| self.stand_in(argument, NESTED)).collect();
                let shared = shared.filter(|shared| seen.insert(shared.clone()))?;
                let found = self.info.class_from_token_and_type_args(function.module, declared, &shared).ok()?;
                let same = self.info.function_from_token_and_type_args(
                    function.module,
                    function.token,
                    Some(found),
                    &function.type_arguments,
                );
                (same == Ok(id)).then_some(found)
            })
        })
    }

    /// The type that represents a type argument in shared code: `__Canon` for every class.
    pub(super) fn stand_in(&self, class: ClassId, depth: u32) -> Option<ClassId> {
        let depth = depth.checked_sub(1)?;
        let about = match self.info.array_class(class) {
            Ok(Some(_)) => return self.any_class(),
            _ => self.info.class_info(class.non_null()?).ok()?,
        };
        if matches!(self.base_of(&about), Base::Other) {
            return self.any_class();
        }
        if about.type_arguments.is_empty() {
            return Some(class);
        }
        let arguments: Option<Vec<ClassId>> =
            about.type_arguments.iter().map(|argument| self.stand_in(*argument, depth)).collect();
        self.info.class_from_token_and_type_args(about.module, about.token, &arguments?).ok()
    }

    /// The type that represents every class.
    pub(crate) fn any_class(&self) -> Option<ClassId> {
        self.core_id("System.__Canon").and_then(ClassId::non_null)
    }
}
