//! Lookup of the types that signatures name, as far as they are loaded. A lookup never loads a
//! type.
//!
//! Loading a class may load an assembly, and may run code of the program that resolves assemblies.
//! So the class that a field refers to is only looked up. Where the class is not loaded it has no
//! objects, and it is described from metadata. The type of a value is loaded with the class that
//! the value lies in, or with the code that takes the value. For values in arrays this is not
//! certain, so the runtime is asked for their type only on threads of the program.
//!
//! The runtime does not know the agent's own threads. Loading a type needs the data of a managed
//! thread; on a thread without these data it ends the program. The framework refuses queries that
//! may load a type there. So the runtime [adopts](ProfilerInfo::adopt_current_thread) the thread
//! first. Even then, the runtime is asked there only for instantiations of value types.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use clr_profiler::metadata::signature::Type;
use clr_profiler::{ClassId, HResult, ModuleId, ProfilerInfo, Token};

use super::shared::NESTED;
use super::table::Insertion;
use super::{Names, Scope, Types};
use crate::kinds::{Class, Kind};

thread_local! {
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    /// Classes that fields refer to and whose shape is still to be found. The number is the count
    /// of references that lead there from an object that a hook has met.
    static REFERRED: RefCell<VecDeque<(&'static Class, ClassId, u32)>> = const { RefCell::new(VecDeque::new()) };
    /// That number for the class whose shape is being found.
    static LEVEL: Cell<u32> = const { Cell::new(0) };
    /// Highest such number at which an object would still be opened.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs work that finds the memory layouts of types, on a thread of the agent's own. Objects are
/// opened down to `depth`.
pub fn on_own_thread(info: &ProfilerInfo, depth: u32, work: impl FnOnce()) -> clr_profiler::Result<()> {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            KEEPS.set(self.0);
        }
    }
    // Where it fails, values whose type is generic or has no methods are unknown.
    let adopted = info.adopt_current_thread();
    DEPTH.set(depth);
    let _back = Back(KEEPS.replace(true));
    work();
    adopted
}

/// Whether the calling thread is one of the agent's own, where no type may be loaded.
pub(super) fn keeps_from_loading() -> bool {
    KEEPS.get()
}

/// Whether the error says that the runtime knows the method, but that the method or its type is
/// generic, so that the token alone names no function.
fn is_parameterized(error: &clr_profiler::Error) -> bool {
    error.hresult() == HResult::FUNCTION_IS_PARAMETERIZED
}

impl Types {
    /// The class that a field refers to. Its layout is found later, so that the call stack stays
    /// flat. It is not found at all if no object of the class would be opened.
    pub(super) fn referred_to(&self, id: ClassId) -> Option<&'static Class> {
        let level = LEVEL.get() + 1;
        if level > DEPTH.get() {
            return None;
        }
        Some(match self.enter(id)? {
            Insertion::Known(class) => class,
            Insertion::New(class) => {
                REFERRED.with_borrow_mut(|all| all.push_back((class, id, level)));
                class
            }
        })
    }

    /// Finds the memory layouts of the classes that fields refer to.
    pub(super) fn look_into_referred(&self) {
        while let Some((class, id, level)) = REFERRED.with_borrow_mut(VecDeque::pop_front) {
            LEVEL.set(level);
            self.look_into(class, id);
        }
        LEVEL.set(0);
    }

    /// Class of a type that is not generic, where it is loaded and has methods. The runtime knows
    /// the functions of loaded types only, and looking up a function loads no type.
    fn loaded(&self, module: ModuleId, token: Token) -> Option<ClassId> {
        if let Some(known) = self.found_loaded().get(&(module, token)) {
            return Some(*known);
        }
        let methods = self.metadata(module).ok()?.methods(token).ok()?;
        let mut functions = methods.into_iter().map(|method| self.info.function_from_token(module, method));
        let function = functions.find(|found| !found.as_ref().is_err_and(is_parameterized))?.ok()?;
        let (class, ..) = self.info.function_place(function).ok()?;
        // A class that is still being loaded has no information yet.
        let class = class.filter(|class| self.info.class_info(*class).is_ok())?;
        self.found_loaded().insert((module, token), class);
        Some(class)
    }

    /// The class of a named type, if it is loaded. `is_loaded`: the type is certainly loaded
    /// together with the class or code that names it, as types of values are. Only then the runtime
    /// is asked.
    pub(super) fn loaded_named(&self, module: ModuleId, token: Token, is_loaded: bool) -> Option<ClassId> {
        let asked = || self.info.class_from_token(module, token).ok().and_then(ClassId::non_null);
        self.loaded(module, token).or_else(|| is_loaded.then(asked).flatten())
    }

    /// The class of a generic value type that is loaded with the class or code that names it, or
    /// the class of one of its type arguments.
    pub(super) fn loaded_with(&self, ty: &Type, scope: &Scope<'_>) -> Option<ClassId> {
        match ty {
            Type::Named { token, .. } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                self.loaded_named(module, token, true)
            }
            Type::Generic { token, arguments, .. } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                let arguments: Option<Vec<_>> = arguments.iter().map(|ty| self.loaded_with(ty, scope)).collect();
                let found = self.info.class_from_token_and_type_args(module, token, &arguments?);
                found.ok().and_then(ClassId::non_null)
            }
            _ => self.class_id(ty, scope),
        }
    }

    /// Whether the runtime may be queried for an instantiation of a generic class with loaded type
    /// arguments. This needs the class itself to be loaded, and a thread of the program.
    pub(super) fn may_instantiate(&self, module: ModuleId, token: Token) -> bool {
        let is_loaded = |methods: Vec<Token>| {
            methods.first().is_some_and(|method| {
                self.info.function_from_token(module, *method).as_ref().is_err_and(is_parameterized)
            })
        };
        !keeps_from_loading() && self.metadata(module).and_then(|metadata| metadata.methods(token)).is_ok_and(is_loaded)
    }

    /// Kind of a generic value whose type arguments are not all loaded. The layout used is that
    /// with classes as type arguments, which all classes share. This type is loaded with the class
    /// that contains the value.
    pub(super) fn value_of_any_class(&self, ty: &Type, scope: &Scope<'_>) -> Kind {
        let found = || {
            let shared = self.shared_form(ty, scope, NESTED)?;
            let key = (scope.module, self.type_text(ty, scope));
            if let Some(class) = self.declared_arrays().get(&key) {
                return Some(Kind::Struct(class));
            }
            let about = self.info.class_info(shared).ok()?;
            let mut names = Names::default();
            let shape = self.shape(shared, &about, &mut names);
            let class: &'static Class = self.declared_class(key.1.clone(), names);
            let _ = class.shape.set(shape);
            self.declared_arrays().insert(key, class);
            Some(Kind::Struct(class))
        };
        found().unwrap_or(Kind::Opaque(0))
    }

    /// The class that represents a type in code and layouts that instantiations share: `__Canon`
    /// for every class.
    fn shared_form(&self, ty: &Type, scope: &Scope<'_>, depth: u32) -> Option<ClassId> {
        let depth = depth.checked_sub(1)?;
        match ty {
            Type::Generic { token, is_value: true, arguments } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                let arguments: Option<Vec<_>> =
                    arguments.iter().map(|argument| self.shared_form(argument, scope, depth)).collect();
                self.info.class_from_token_and_type_args(module, token, &arguments?).ok().and_then(ClassId::non_null)
            }
            Type::TypeParameter(_) | Type::MethodParameter(_) => self.stand_in(self.class_id(ty, scope)?, depth),
            Type::Primitive(_) | Type::Named { is_value: true, .. } => self.class_id(ty, scope),
            _ => self.any_class(),
        }
    }

    /// A type in C# notation, found only from metadata.
    pub(super) fn declared_text(&self, ty: &Type, scope: &Scope<'_>) -> Option<String> {
        let names = |arguments: &[ClassId], parameters: &[String]| -> Vec<Arc<str>> {
            let count = arguments.len().max(parameters.len());
            let name = |number: usize| match (arguments.get(number), parameters.get(number)) {
                (Some(id), _) if !self.is_shared(*id) => self.name_of(*id).into(),
                (_, Some(name)) => name.as_str().into(),
                _ => "?".into(),
            };
            (0..count).map(name).collect()
        };
        let of_type = names(scope.type_arguments, scope.type_parameters);
        let of_method = names(scope.method_arguments, scope.method_parameters);
        self.names.type_in_signature(&self.info, scope.module, ty, &of_type, &of_method).ok()
    }
}
