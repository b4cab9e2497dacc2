//! Changed IL of several authors: one body per method.

use std::sync::Arc;

use clr_il::{Body, Edits, ResultPlace, append_local, method_shape};

use crate::callback_args::FunctionControl;
use crate::metadata::MetadataImport;
use crate::{Error, IlMove, ModuleId, ProfilerInfo, Result, Token};

/// A method whose code may be changed.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct MethodToWrite<'m> {
    /// Module that declares the method.
    pub module: ModuleId,
    /// The method.
    pub token: Token,
    /// Metadata of the module.
    pub metadata: &'m MetadataImport,
    /// Code as the compiler wrote it. Offsets of lines and columns in symbols are places of it.
    pub body: &'m Body,
}

/// Author of changes in methods.
pub trait BodyWriter: Send + Sync {
    /// Code that is to be inserted into a method; [`Edits::new`] for a method that is to stay as it
    /// is. Asked on the thread that loads the module or compiles the method, once for each time
    /// that a body is written.
    ///
    /// # Errors
    /// A reason why the method must stay as it is, for all authors.
    fn edits(&self, method: &MethodToWrite<'_>) -> Result<Edits>;
}

/// Arbiter of changed IL: asks each author what is wanted of a method, and gives the runtime one
/// body with all of it.
///
/// Where several want something at one place, the first author's code runs first before and last
/// after. New local variables ([`Edits::new_local`]) get their numbers here, and code at exits
/// ([`Edits::at_exits`]) gets one for the result.
pub struct BodyWriters {
    info: ProfilerInfo,
    writers: Vec<Arc<dyn BodyWriter>>,
}

/// Body that the authors want for a method.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WrittenBody {
    /// Header and code, for [`FunctionControl::set_il_function_body`].
    pub bytes: Vec<u8>,
    /// Places of the original instructions in it, for [`FunctionControl::set_il_map`].
    pub moves: Vec<IlMove>,
}

/// Outcome of [`BodyWriters::write_module`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WrittenModule {
    /// Methods with a body that no author wanted to change.
    pub unchanged: usize,
    /// Methods that have got another body.
    pub changed: usize,
    /// Methods that stay as they are, and why.
    pub refused: Vec<(Token, Error)>,
}

impl BodyWriters {
    /// Without an author.
    #[must_use]
    pub fn new(info: &ProfilerInfo) -> Self {
        Self { info: info.clone(), writers: Vec::new() }
    }

    /// Another author, nested within those before.
    #[must_use]
    pub fn with(mut self, writer: Arc<dyn BodyWriter>) -> Self {
        self.writers.push(writer);
        self
    }

    /// Gives all methods of a module their bodies, before any of them is compiled or inlined: in
    /// [`module_load_finished`](crate::Callbacks::module_load_finished). Precompiled code goes
    /// unchanged all the same, unless
    /// [`jit_cached_function_search_started`](crate::Callbacks::jit_cached_function_search_started)
    /// refuses it.
    ///
    /// # Errors
    /// The runtime's error for the module as a whole.
    ///
    /// # Safety
    /// As for [`ProfilerInfo::set_il_function_body`]: what the authors insert must be right for
    /// each method.
    pub unsafe fn write_module(&self, module: ModuleId) -> Result<WrittenModule> {
        let metadata = self.info.module_metadata(module)?;
        // Methods outside of types belong to the type `<Module>`, which no list has.
        let types = std::iter::once(Token(GLOBAL_TYPE)).chain(metadata.type_defs()?);
        let methods = types.filter_map(|ty| metadata.methods(ty).ok()).flatten();
        // SAFETY: the caller's promise.
        Ok(unsafe { self.write_all(module, &metadata, methods.filter(|method| metadata.has_il(*method))) })
    }

    /// [`write_module`](Self::write_module) for some of the module's methods.
    ///
    /// # Errors
    /// As for [`write_module`](Self::write_module).
    ///
    /// # Safety
    /// As for [`write_module`](Self::write_module).
    pub unsafe fn write_methods(&self, module: ModuleId, methods: &[Token]) -> Result<WrittenModule> {
        let metadata = self.info.module_metadata(module)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { self.write_all(module, &metadata, methods.iter().copied()) })
    }

    /// # Safety
    /// As for [`write_module`](Self::write_module).
    unsafe fn write_all(
        &self,
        module: ModuleId,
        metadata: &MetadataImport,
        methods: impl Iterator<Item = Token>,
    ) -> WrittenModule {
        let mut written = WrittenModule::default();
        for method in methods {
            // SAFETY: the caller's promise.
            match unsafe { self.write_one(module, method, metadata) } {
                Ok(true) => written.changed += 1,
                Ok(false) => written.unchanged += 1,
                Err(error) => written.refused.push((method, error)),
            }
        }
        written
    }

    /// Gives a method the body that its authors want now, made of the module's own: in
    /// [`jit_compilation_started`](crate::Callbacks::jit_compilation_started), for the compilation
    /// that begins and later ones. Says whether an author wanted a change.
    ///
    /// A method whose code runs may be compiled in the middle of a loop by the runtime (on-stack
    /// replacement), at an offset of the body that the running code is of. So every body that a
    /// method is given must have the instructions at the same offsets, the same local variables and
    /// the same blocks: what is wanted no more has to become as many `nop`s.
    ///
    /// # Errors
    /// The runtime's error; a sentence where the method can't be changed as wanted.
    ///
    /// # Safety
    /// As for [`write_module`](Self::write_module), and the bodies agree as said above.
    pub unsafe fn write_anew(&self, module: ModuleId, method: Token) -> Result<bool> {
        let Some(body) = self.made_of_original(module, method)? else { return Ok(false) };
        // SAFETY: the caller's promise, and the body keeps to the format.
        unsafe { self.info.set_il_function_body(module, method, &body.write().map_err(refused)?)? };
        Ok(true)
    }

    /// Offsets of a method's instructions before and in the body that its authors want: for
    /// [`ProfilerInfo::set_il_map`], by which debuggers and stack traces find lines again. None
    /// where no author wants a change.
    ///
    /// # Errors
    /// As for [`write_anew`](Self::write_anew).
    pub fn moves(&self, module: ModuleId, method: Token) -> Result<Vec<IlMove>> {
        let Some(body) = self.made_of_original(module, method)? else { return Ok(Vec::new()) };
        moves(&body)
    }

    /// Bodies that the authors want for some of a module's methods, made of the module's own code,
    /// for [`get_rejit_parameters`](crate::Callbacks::get_rejit_parameters): what can't be changed
    /// as wanted is known before the runtime is asked to compile anything again. `None` for a
    /// method that no author wants to change. Where the runtime may be asked, from
    /// `ModuleAttachedToAssembly` on.
    ///
    /// # Errors
    /// The runtime's error for the module as a whole; for a method as of
    /// [`write_anew`](Self::write_anew).
    pub fn written_bodies(&self, module: ModuleId, methods: &[Token]) -> Result<Vec<Result<Option<WrittenBody>>>> {
        let metadata = self.info.module_metadata(module)?;
        let written = |method: &Token| {
            let original = self.info.original_il_function_body(module, *method)?;
            let Some(body) = self.changed(module, *method, &metadata, &original)? else { return Ok(None) };
            Ok(Some(WrittenBody { bytes: body.write().map_err(refused)?, moves: moves(&body)? }))
        };
        Ok(methods.iter().map(written).collect())
    }

    fn made_of_original(&self, module: ModuleId, method: Token) -> Result<Option<Body>> {
        let metadata = self.info.module_metadata(module)?;
        let original = self.info.original_il_function_body(module, method)?;
        self.changed(module, method, &metadata, &original)
    }

    /// # Safety
    /// As for [`write_module`](Self::write_module).
    unsafe fn write_one(&self, module: ModuleId, method: Token, metadata: &MetadataImport) -> Result<bool> {
        let original = self.info.il_function_body(module, method)?;
        let Some(body) = self.changed(module, method, metadata, &original)? else { return Ok(false) };
        // SAFETY: the caller's promise, and the body keeps to the format.
        unsafe { self.info.set_il_function_body(module, method, &body.write().map_err(refused)?)? };
        Ok(true)
    }

    /// Gives a method that is compiled again its body: in
    /// [`get_rejit_parameters`](crate::Callbacks::get_rejit_parameters). Says whether an author
    /// wanted a change.
    ///
    /// # Errors
    /// The runtime's error; a sentence where the method can't be changed as wanted.
    ///
    /// # Safety
    /// As for [`write_module`](Self::write_module).
    pub unsafe fn write_again(&self, module: ModuleId, method: Token, control: &FunctionControl<'_>) -> Result<bool> {
        let Some(body) = self.made_of_original(module, method)? else { return Ok(false) };
        // SAFETY: the caller's promise, and the body keeps to the format.
        unsafe { control.set_il_function_body(&body.write().map_err(refused)?)? };
        Ok(true)
    }

    /// The body with what all authors want, `None` where no author wants anything.
    fn changed(
        &self,
        module: ModuleId,
        token: Token,
        metadata: &MetadataImport,
        original: &[u8],
    ) -> Result<Option<Body>> {
        let mut body = Body::read(original).map_err(refused)?;
        let mut edits = Edits::new();
        for writer in &self.writers {
            edits.merge(writer.edits(&MethodToWrite { module, token, metadata, body: &body })?);
        }
        if edits.is_empty() {
            return Ok(None);
        }
        self.give_locals(module, token, metadata, &mut body, &mut edits)?;
        body.apply(&edits).map_err(refused)?;
        Ok(Some(body))
    }

    /// Adds the local variables that the edits need: their own, and one for the method's result
    /// where code runs at its exits.
    fn give_locals(
        &self,
        module: ModuleId,
        method: Token,
        metadata: &MetadataImport,
        body: &mut Body,
        edits: &mut Edits,
    ) -> Result<()> {
        let mut types = edits.new_locals().to_vec();
        let own = types.len();
        if edits.wraps() {
            let signature = metadata.method_props(method)?.signature;
            types.extend(method_shape(&signature).map_err(refused)?.result.map(<[u8]>::to_vec));
        }
        let mut locals = match body.locals() {
            0 => Vec::new(),
            _ if types.is_empty() => Vec::new(),
            token => metadata.signature(Token(token))?,
        };
        let mut numbers = Vec::with_capacity(types.len());
        for ty in &types {
            let (longer, number) = append_local(&locals, ty).map_err(refused)?;
            locals = longer;
            numbers.push(number);
        }
        if edits.wraps() {
            edits.set_result(numbers.get(own).map_or(ResultPlace::None, |number| ResultPlace::Local(*number)));
        }
        if let Some(first) = numbers.first() {
            edits.set_first_local(*first);
            body.set_locals(self.info.signature_token(module, &locals)?.0);
        }
        Ok(())
    }
}

/// Places of a method's instructions before and in its changed body.
fn moves(body: &Body) -> Result<Vec<IlMove>> {
    let moves = body.moves().map_err(refused)?;
    Ok(moves.into_iter().map(|one| IlMove { old: one.old, new: one.new, is_exact: !one.is_inserted }).collect())
}

/// Token of the type `<Module>`.
const GLOBAL_TYPE: u32 = 0x0200_0001;

fn refused(error: clr_il::Error) -> Error {
    Error::refused("changed IL", error.to_string())
}
