//! Merges the IL changes of several authors into one body per method.

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
    /// The original code from the compiler. Its labels are the offsets that symbols use for lines
    /// and columns.
    pub body: &'m Body,
}

/// Author of changes to methods.
pub trait BodyWriter: Send + Sync {
    /// Returns the code to insert into a method; [`Edits::new`] for no change. Called on the thread
    /// that loads the module or compiles the method, once for each written body.
    ///
    /// # Errors
    /// The reason why the method must stay unchanged, for all authors.
    fn edits(&self, method: &MethodToWrite<'_>) -> Result<Edits>;
}

/// Merges changed IL: asks each author for its edits of a method, and gives the runtime one body
/// with all edits.
///
/// If several authors insert code at the same position, the first author's code runs first before
/// an instruction and last after it. This type assigns the numbers of new local variables
/// ([`Edits::new_local`]), and adds a variable for the result if there is code at exits
/// ([`Edits::at_exits`]).
pub struct BodyWriters {
    info: ProfilerInfo,
    writers: Vec<Arc<dyn BodyWriter>>,
}

/// A method's body with the edits of all authors.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WrittenBody {
    /// Header and code, for [`FunctionControl::set_il_function_body`].
    pub bytes: Vec<u8>,
    /// New offsets of the original instructions, for [`FunctionControl::set_il_map`].
    pub moves: Vec<IlMove>,
}

/// Outcome of [`BodyWriters::write_module`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WrittenModule {
    /// Number of methods that have a body but no edits.
    pub unchanged: usize,
    /// Number of methods with a new body.
    pub changed: usize,
    /// Methods that stay unchanged because of an error.
    pub refused: Vec<(Token, Error)>,
}

impl BodyWriters {
    /// Creates an instance without authors.
    #[must_use]
    pub fn new(info: &ProfilerInfo) -> Self {
        Self { info: info.clone(), writers: Vec::new() }
    }

    /// Adds an author. The author's code runs inside the code of all authors added before.
    #[must_use]
    pub fn with(mut self, writer: Arc<dyn BodyWriter>) -> Self {
        self.writers.push(writer);
        self
    }

    /// Writes the bodies of all methods of a module. Call it in
    /// [`module_load_finished`](crate::Callbacks::module_load_finished), before any method is
    /// compiled or inlined. Precompiled code still runs unchanged, unless
    /// [`jit_cached_function_search_started`](crate::Callbacks::jit_cached_function_search_started)
    /// refuses it.
    ///
    /// # Errors
    /// The runtime's error for the module as a whole.
    ///
    /// # Safety
    /// As for [`ProfilerInfo::set_il_function_body`]: the authors' code must be valid in each
    /// method.
    pub unsafe fn write_module(&self, module: ModuleId) -> Result<WrittenModule> {
        let metadata = self.info.module_metadata(module)?;
        // Methods outside of types belong to the type `<Module>`, which enumerations omit.
        let types = std::iter::once(Token(GLOBAL_TYPE)).chain(metadata.type_defs()?);
        let methods = types.filter_map(|ty| metadata.methods(ty).ok()).flatten();
        // SAFETY: the caller's promise.
        Ok(unsafe { self.write_all(module, &metadata, methods.filter(|method| metadata.has_il(*method))) })
    }

    /// Like [`write_module`](Self::write_module), for some of the module's methods.
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

    /// Writes a method's body again, with the authors' current edits of the original body. Call it
    /// in [`jit_compilation_started`](crate::Callbacks::jit_compilation_started): the compilation
    /// that begins and later ones use the new body. Returns whether there were edits.
    ///
    /// The runtime may compile a running method in the middle of a loop (on-stack replacement). It
    /// then uses an offset in the body that the running code was compiled from. So all bodies of a
    /// method must have the instructions at the same offsets, the same local variables and the same
    /// blocks. Inserted code that is no longer needed must be replaced by the same number of `nop`
    /// bytes.
    ///
    /// # Errors
    /// The runtime's error; an error with a sentence if the edits can't be applied to the method.
    ///
    /// # Safety
    /// As for [`write_module`](Self::write_module). In addition, all bodies must agree as described
    /// above.
    pub unsafe fn rewrite(&self, module: ModuleId, method: Token) -> Result<bool> {
        let Some(body) = self.made_of_original(module, method)? else { return Ok(false) };
        // SAFETY: the caller's promise, and the body keeps to the format.
        unsafe { self.info.set_il_function_body(module, method, &body.write().map_err(refused)?)? };
        Ok(true)
    }

    /// Returns the original and new offsets of a method's instructions with the authors' current
    /// edits, for [`ProfilerInfo::set_il_map`]. Debuggers and stack traces use that map to find
    /// source lines. Empty if there are no edits.
    ///
    /// # Errors
    /// As for [`rewrite`](Self::rewrite).
    pub fn moves(&self, module: ModuleId, method: Token) -> Result<Vec<IlMove>> {
        let Some(body) = self.made_of_original(module, method)? else { return Ok(Vec::new()) };
        moves(&body)
    }

    /// Returns new bodies for some of a module's methods, made from the module's original code, for
    /// use in [`get_rejit_parameters`](crate::Callbacks::get_rejit_parameters). This shows errors
    /// of edits before a recompilation is requested. `None` for a method without edits. May be
    /// called where queries are allowed, from `ModuleAttachedToAssembly` on.
    ///
    /// # Errors
    /// The runtime's error for the module as a whole; for a single method as for
    /// [`rewrite`](Self::rewrite).
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

    /// Sets the body of a method that is being recompiled. Call it in
    /// [`get_rejit_parameters`](crate::Callbacks::get_rejit_parameters). Returns whether there were
    /// edits.
    ///
    /// # Errors
    /// The runtime's error; an error with a sentence if the edits can't be applied to the method.
    ///
    /// # Safety
    /// As for [`write_module`](Self::write_module).
    pub unsafe fn write_again(&self, module: ModuleId, method: Token, control: &FunctionControl<'_>) -> Result<bool> {
        let Some(body) = self.made_of_original(module, method)? else { return Ok(false) };
        // SAFETY: the caller's promise, and the body keeps to the format.
        unsafe { control.set_il_function_body(&body.write().map_err(refused)?)? };
        Ok(true)
    }

    /// Returns the body with the edits of all authors, `None` if there are no edits.
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

    /// Adds the local variables of the edits, and one for the method's result if code runs at its
    /// exits.
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

/// Original and new offsets of a method's instructions.
fn moves(body: &Body) -> Result<Vec<IlMove>> {
    let moves = body.moves().map_err(refused)?;
    Ok(moves.into_iter().map(|one| IlMove { old: one.old, new: one.new, is_exact: !one.is_inserted }).collect())
}

/// Token of the type `<Module>`.
const GLOBAL_TYPE: u32 = 0x0200_0001;

fn refused(error: clr_il::Error) -> Error {
    Error::refused("changed IL", error.to_string())
}
