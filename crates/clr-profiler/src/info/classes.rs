//! Queries about classes: their declaration, type arguments, layout, and arrays.

use clr_profiler_sys::cor::CorElementType;
use clr_profiler_sys::structs::COR_FIELD_OFFSET;

use super::{ProfilerInfo, ask_array, ask_word, enter_all};
use crate::call_context::{outside_collections, outside_hooks};
use crate::error::check;
use crate::{ClassId, ModuleId, ObjectId, Result, Token};

/// Description of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClassInfo {
    /// The module that declares the class; null for types without a declaration, such as function
    /// pointers.
    pub module: ModuleId,
    /// Token of the type in this module.
    pub token: Token,
    /// Base class.
    pub parent: Option<ClassId>,
    /// Type arguments, enclosing types first. Null if the runtime does not report the type
    /// argument.
    pub type_arguments: Vec<ClassId>,
}

/// Layout of a class: the offsets of its fields.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClassLayout {
    /// Bytes of an object, or of a boxed value.
    pub size: u32,
    /// The class's own fields with their offsets in bytes, from the start of the object, or for a
    /// value type from the start of the value.
    pub fields: Vec<(Token, u32)>,
}

/// An array type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ArrayClass {
    /// Element type, in the metadata's encoding.
    pub element_type: u8,
    /// The class of the elements, if known.
    pub element: Option<ClassId>,
    /// Number of dimensions.
    pub rank: u32,
}

impl ProfilerInfo {
    /// Declaration and type arguments of a class. Loads no type, so callable on every thread. Not
    /// in hooks or during a collection.
    ///
    /// # Errors
    /// The runtime's error: for arrays `CORPROF_E_CLASSID_IS_ARRAY`, see
    /// [`array_class`](Self::array_class); for pointers and references
    /// `CORPROF_E_CLASSID_IS_COMPOSITE`.
    pub fn class_info(&self, class: ClassId) -> Result<ClassInfo> {
        outside_collections("GetClassIDInfo2")?;
        let runtime = self.base("GetClassIDInfo2")?;
        let _class_stays = class.enter("GetClassIDInfo2")?;
        let (mut module, mut token, mut parent) = (0, 0, 0);
        let type_arguments = ask_array("GetClassIDInfo2", |capacity, needed, arguments: *mut usize| {
            // SAFETY: valid out-parameters.
            unsafe {
                runtime.GetClassIDInfo2(class.0, &mut module, &mut token, &mut parent, capacity, needed, arguments)
            }
        })?;
        let found = ClassInfo {
            module: ModuleId(module),
            token: Token(token),
            parent: ClassId::received(parent).non_null(),
            type_arguments: type_arguments.into_iter().map(ClassId::received).collect(),
        };
        self.note_class(class, found.module, &found.type_arguments);
        Ok(found)
    }

    /// Element type and rank of an array type; `None` if `class` is not an array. Loads no type, so
    /// callable on every thread. Callable during a collection, too.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn array_class(&self, class: ClassId) -> Result<Option<ArrayClass>> {
        outside_hooks("IsArrayClass")?;
        let runtime = self.base("IsArrayClass")?;
        let _class_stays = class.enter("IsArrayClass")?;
        let (mut kind, mut element, mut rank) = (CorElementType::default(), 0, 0);
        // SAFETY: valid out-parameters.
        let answer = unsafe { runtime.IsArrayClass(class.0, &mut kind, &mut element, &mut rank) };
        check(answer, "IsArrayClass")?;
        // Success of another kind than S_OK means "not an array".
        if answer.0 != 0 {
            return Ok(None);
        }
        let element = ClassId::received(element).non_null();
        self.note_class(class, ModuleId::NULL, element.as_slice());
        Ok(Some(ArrayClass { element_type: kind.0 as u8, element, rank }))
    }

    /// The class of a type that is not generic. Loads the type if necessary, so callable on managed
    /// threads only: in callbacks, and on the profiler's own threads that the runtime has
    /// [adopted](Self::adopt_current_thread). Not in hooks, during a collection, or in callbacks
    /// with object arguments.
    ///
    /// # Errors
    /// `CORPROF_E_NOT_MANAGED_THREAD` with a reason on another thread; the runtime's error.
    pub fn class_from_token(&self, module: ModuleId, token: Token) -> Result<ClassId> {
        self.where_types_may_load("GetClassFromToken")?;
        let runtime = self.base("GetClassFromToken")?;
        let _inside = self.in_module(module, "GetClassFromToken")?;
        // SAFETY: a valid out-parameter.
        let class = ask_word("GetClassFromToken", |out| unsafe { runtime.GetClassFromToken(module.0, token.0, out) })
            .map(ClassId::received)?;
        self.note_class(class, module, &[]);
        Ok(class)
    }

    /// The class of a generic type with these type arguments, enclosing types first. Loads the type
    /// if necessary, so callable in the same places as
    /// [`class_from_token`](Self::class_from_token).
    ///
    /// # Errors
    /// `CORPROF_E_NOT_MANAGED_THREAD` with a reason on another thread; the runtime's error.
    pub fn class_from_token_and_type_args(
        &self,
        module: ModuleId,
        token: Token,
        type_arguments: &[ClassId],
    ) -> Result<ClassId> {
        self.where_types_may_load("GetClassFromTokenAndTypeArgs")?;
        let runtime = self.base("GetClassFromTokenAndTypeArgs")?;
        let _arguments_stay = enter_all(type_arguments, "GetClassFromTokenAndTypeArgs")?;
        let _inside = self.in_module(module, "GetClassFromTokenAndTypeArgs")?;
        let (count, arguments) = (type_arguments.len() as u32, type_arguments.as_ptr().cast());
        let class = ask_word("GetClassFromTokenAndTypeArgs", |out| {
            // SAFETY: a valid array with its length, and a valid out-parameter.
            unsafe { runtime.GetClassFromTokenAndTypeArgs(module.0, token.0, count, arguments, out) }
        })
        .map(ClassId::received)?;
        self.note_class(class, module, type_arguments);
        Ok(class)
    }

    /// Notes a class that is unloaded together with a collectible module, because the module
    /// declares the class or one of the types in `made_of`.
    fn note_class(&self, class: ClassId, module: ModuleId, made_of: &[ClassId]) {
        if !self.connection.modules.any() {
            return;
        }
        let declared = self.connection.modules.life(module);
        if let Some(life) = declared.or_else(|| made_of.iter().find_map(|class| class.life())) {
            class.goes_with(&life);
        }
    }

    /// The runtime has loaded a class, which may be unloaded together with its module.
    pub(crate) fn class_loaded(&self, class: ClassId) {
        if self.connection.modules.any() {
            // The query notes the class; for an array it notes the array with its element class.
            let _ = self.class_info(class).map(drop).or_else(|_| self.array_class(class).map(drop));
        }
    }

    /// Layout of the fields of a class, without the fields of its base classes. Loads no type, so
    /// callable on every thread. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error; for arrays and strings `E_INVALIDARG`.
    pub fn class_layout(&self, class: ClassId) -> Result<ClassLayout> {
        outside_hooks("GetClassLayout")?;
        let method = "GetClassLayout";
        let runtime = self.base(method)?;
        let _class_stays = class.enter(method)?;
        let (mut size, mut count) = (0, 0);
        // SAFETY: no array, and valid out-parameters.
        let first = unsafe { runtime.GetClassLayout(class.0, std::ptr::null_mut(), 0, &mut count, &mut size) };
        let mut fields = vec![COR_FIELD_OFFSET::default(); count as usize];
        if fields.is_empty() {
            check(first, method)?;
            return Ok(ClassLayout { size, fields: Vec::new() });
        }
        // SAFETY: an array of exactly as many fields as the runtime said, and valid out-parameters.
        let answer = unsafe { runtime.GetClassLayout(class.0, fields.as_mut_ptr(), count, &mut count, &mut size) };
        check(answer, method)?;
        let fields = fields.into_iter().map(|field| (Token(field.field), field.offset)).collect();
        Ok(ClassLayout { size, fields })
    }

    /// The class of an object. Callable in the callback that received the object.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn class_of_object(&self, object: ObjectId<'_>) -> Result<ClassId> {
        let runtime = self.base("GetClassFromObject")?;
        // SAFETY: a valid out-parameter; the object's lifetime says that it is alive.
        let ask = |out| unsafe { runtime.GetClassFromObject(object.address(), out) };
        ask_word("GetClassFromObject", ask).map(ClassId::received)
    }
}
