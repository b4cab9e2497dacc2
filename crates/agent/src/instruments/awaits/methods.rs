//! The async methods of the process whose awaits are followed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::il::Edits;
use clr_profiler::{BodyWriter, Error, FunctionId, MethodToWrite, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::functions::Functions;
use clrscope_recording::events::{Kind, Tag};

use super::code::{self, Signatures};
use super::places::{AsyncCode, Awaited};
use super::recorder::Recorder;
use crate::services::kept_code::Method;

/// The methods, by which code knows its places to the end of the process.
static METHODS: Mutex<Option<HashMap<Method, &'static MethodPlaces>>> = Mutex::new(None);

fn methods() -> MutexGuard<'static, Option<HashMap<Method, &'static MethodPlaces>>> {
    METHODS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The places of a method, if it is followed.
pub(super) fn places_of(method: Method) -> Option<&'static MethodPlaces> {
    methods().as_ref()?.get(&method).copied()
}

/// All methods that are followed.
pub(super) fn all() -> Vec<(Method, &'static MethodPlaces)> {
    let methods = methods();
    methods.iter().flatten().map(|(method, places)| (*method, *places)).collect()
}

/// A place where a method awaits. Code has the address, so it is never freed.
#[derive(Debug)]
pub(super) struct Place {
    /// Offset in the IL of the statement with the await.
    pub(super) il_offset: u32,
    /// The code tells when what is awaited gives its result.
    pub(super) has_result: bool,
    awaited: Awaited,
    /// Number of the recording that knows the place, above that of the stack of the method alone.
    known: AtomicU64,
    /// The function that was compiled last, and its index in that recording.
    function: AtomicUsize,
    index: AtomicU32,
}

impl Place {
    /// Address that code has of it.
    pub(super) fn address(&self) -> u64 {
        (&raw const *self).expose_provenance() as u64
    }

    /// Whether a recording has a stack of the method at the place.
    #[inline]
    pub(super) fn is_known_to(&self, recorder: &Recorder) -> bool {
        (self.known.load(Ordering::Acquire) >> 32) as u32 == recorder.number()
    }

    /// The number in a recording of the stack of the method alone; 0 where it has none.
    pub(super) fn stack_in(&self, recorder: &Recorder) -> u32 {
        let known = self.known.load(Ordering::Acquire);
        if (known >> 32) as u32 == recorder.number() { known as u32 } else { 0 }
    }

    /// The function and its index in the recording that knows the place.
    pub(super) fn function(&self) -> (usize, u32) {
        (self.function.load(Ordering::Relaxed), self.index.load(Ordering::Relaxed))
    }
}

/// The places of a method.
#[derive(Debug)]
pub(super) struct MethodPlaces(Box<[Place]>);

impl MethodPlaces {
    fn new(code: &AsyncCode) -> Self {
        let place = |found: &super::places::Await| Place {
            il_offset: found.il_offset,
            has_result: found.result.is_some(),
            awaited: found.awaited.clone(),
            known: AtomicU64::new(0),
            function: AtomicUsize::new(0),
            index: AtomicU32::new(0),
        };
        Self(code.awaits.iter().map(place).collect())
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.0
    }

    /// Makes the places known to a recording: a function of the method is about to be compiled, or
    /// was compiled before the recording began. Where the runtime may be asked.
    pub(super) fn announce(
        &self,
        (info, functions): (&ProfilerInfo, &Functions),
        recorder: &Recorder,
        module: ModuleId,
        function: FunctionId,
    ) {
        if self.0.iter().all(|place| place.is_known_to(recorder)) {
            return;
        }
        let index = functions.noted(function).index;
        for place in &*self.0 {
            let stack = recorder.stacks.number_alone((index, place.il_offset));
            let awaited = place.awaited(|token| {
                functions.names().method(info, module, token).map(|method| method.name).unwrap_or_default()
            });
            recorder.log.write(Kind::AWAIT_PLACE, &[(Tag::STACK_NODE, stack.into()), (Tag::NAME, (&*awaited).into())]);
            place.function.store(function.as_raw(), Ordering::Relaxed);
            place.index.store(index, Ordering::Relaxed);
            place.known.store(u64::from(recorder.number()) << 32 | u64::from(stack), Ordering::Release);
        }
    }
}

impl Place {
    fn awaited(&self, own: impl Fn(Token) -> String) -> String {
        match &self.awaited {
            Awaited::Own(token) => own(*token),
            Awaited::Named(name) => name.clone(),
        }
    }
}

/// Author of the code that follows awaits in the methods of a module.
pub(super) struct Author {
    /// Tokens of signatures, by module.
    signatures: Mutex<HashMap<ModuleId, Signatures>>,
}

impl Author {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { signatures: Mutex::default() })
    }

    /// Makes the signatures of a module's code.
    ///
    /// # Errors
    /// The runtime's error.
    pub(super) fn prepare(&self, info: &ProfilerInfo, module: ModuleId) -> clr_profiler::Result<()> {
        let signatures = Signatures {
            begin: info.signature_token(module, code::BEGIN)?,
            resume: info.signature_token(module, code::RESUME)?,
            succeed: info.signature_token(module, code::SUCCEED)?,
        };
        self.signatures.lock().unwrap_or_else(PoisonError::into_inner).insert(module, signatures);
        Ok(())
    }
}

impl BodyWriter for Author {
    fn edits(&self, method: &MethodToWrite<'_>) -> clr_profiler::Result<Edits> {
        let signatures = self.signatures.lock().unwrap_or_else(PoisonError::into_inner).get(&method.module).copied();
        let Some(signatures) = signatures else { return Ok(Edits::new()) };
        let code = AsyncCode::read(method.body, method.metadata);
        let Some(code) = code.map_err(|why| Error::refused("awaits", why))? else { return Ok(Edits::new()) };
        // The method's code has the addresses of its places for ever.
        let places: &'static MethodPlaces = Box::leak(Box::new(MethodPlaces::new(&code)));
        methods().get_or_insert_default().insert((method.module, method.token), places);
        Ok(code::edits(&code, places, signatures))
    }
}
