//! State of a fake runtime: modules, types, methods, objects and threads, and the profiler's
//! requests.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{AppDomainId, AssemblyId, ClassId, Events, FunctionId, HResult, ModuleId, ThreadId, Token};
use clr_profiler_sys::function_pointers::FunctionIDMapper2;
use clr_profiler_sys::structs::COR_PRF_EX_CLAUSE_INFO;

use super::code::Code;
use super::event_pipe::EventPipe;
use super::field::Field;
use super::heap::Heap;
use super::suspension::Suspension;
use crate::ids;

/// The only application domain.
pub(super) const APP_DOMAIN: AppDomainId = ids::app_domain(0x5000_0000);

const MODULES: usize = 0x1000_0000;
const CLASSES: usize = 0x2000_0000;
const FUNCTIONS: usize = 0x3000_0000;
const ASSEMBLIES: usize = 0x4000_0000;
const THREADS: usize = 0x7000_0000;

/// Identifiers look like addresses: far from 0 and from each other.
const STEP: usize = 0x40;

pub(super) struct Module {
    pub(super) name: String,
    /// Indices of the module's classes and functions. A token is based on the position here.
    pub(super) classes: Vec<usize>,
    pub(super) functions: Vec<usize>,
    /// Number of fields of the module's classes, which determines the next field's token.
    pub(super) fields: u32,
}

pub(super) struct Class {
    pub(super) module: usize,
    pub(super) token: Token,
    /// Name with namespace; for a nested class only its own name.
    pub(super) name: CString,
    pub(super) enclosing: Option<Token>,
    /// Full name, nested types joined by `+`.
    pub(super) full_name: String,
    pub(super) fields: Vec<Field>,
}

pub(super) struct Function {
    pub(super) class: usize,
    pub(super) token: Token,
    pub(super) name: CString,
    pub(super) signature: Vec<u8>,
}

/// One call on a fake thread's stack.
#[derive(Clone, Copy)]
pub(super) struct Activation {
    pub(super) function: FunctionId,
    pub(super) sp: usize,
}

pub(super) struct Thread {
    /// Whether the runtime knows the thread.
    pub(super) is_managed: bool,
    /// Id of the operating system's thread; 0 before the assignment.
    pub(super) os_thread: u32,
    pub(super) stack: Vec<Activation>,
    /// Stack pointer below which filters and handlers are entered: the throwing frames are still on
    /// the stack.
    pub(super) thrown_at: Option<usize>,
    pub(super) clause: COR_PRF_EX_CLAUSE_INFO,
    /// Frame pointer of the next block, if the test has given it.
    pub(super) given: Option<usize>,
}

impl Default for Thread {
    fn default() -> Self {
        let clause = COR_PRF_EX_CLAUSE_INFO::default();
        Self { is_managed: true, os_thread: 0, stack: Vec::new(), thrown_at: None, clause, given: None }
    }
}

/// Entry points of the hooks that the profiler registered; 0 means none.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub(super) enter: usize,
    pub(super) leave: usize,
    pub(super) tailcall: usize,
}

/// Phase of the profiler's life, which determines the allowed calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    #[default]
    BeforeInitialize,
    Initializing,
    Running,
    /// The profiler has requested its detach.
    Detaching,
}

/// Function that plays a collection on the calling thread.
pub(super) type Collect = Arc<dyn Fn() + Send + Sync>;

pub(super) struct World {
    pub(super) level: u8,
    pub(super) modules: Vec<Module>,
    pub(super) classes: Vec<Class>,
    pub(super) functions: Vec<Function>,
    pub(super) heap: Heap,
    pub(super) code: Code,
    pub(super) suspension: Suspension,
    pub(super) event_pipe: EventPipe,
    /// Called when the profiler requests a collection.
    pub(super) collect: Option<Collect>,
    pub(super) threads: BTreeMap<usize, Thread>,
    pub(super) phase: Phase,
    pub(super) is_attach: bool,
    pub(super) is_notification_only: bool,
    pub(super) events: Events,
    pub(super) entries: Option<Entries>,
    /// Whether the entry points are of hooks with information.
    pub(super) with_info: bool,
    pub(super) mapper: Option<(FunctionIDMapper2, usize)>,
    /// The mapper's last answer for each function; `None` means no hooks.
    pub(super) mapped: HashMap<FunctionId, Option<usize>>,
    pub(super) unanswered: BTreeMap<&'static str, u64>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            level: 15,
            modules: Vec::new(),
            classes: Vec::new(),
            functions: Vec::new(),
            heap: Heap::default(),
            code: Code::default(),
            suspension: Suspension::default(),
            event_pipe: EventPipe::default(),
            collect: None,
            threads: BTreeMap::new(),
            phase: Phase::default(),
            is_attach: false,
            is_notification_only: false,
            events: Events::NONE,
            entries: None,
            with_info: false,
            mapper: None,
            mapped: HashMap::new(),
            unanswered: BTreeMap::new(),
        }
    }

    pub(super) fn add_module(&mut self, name: &str) -> usize {
        self.modules.push(Module { name: name.to_owned(), classes: Vec::new(), functions: Vec::new(), fields: 0 });
        self.modules.len() - 1
    }

    /// Adds a class to a module, with its enclosing classes, if it does not exist yet.
    pub(super) fn add_class(&mut self, module: usize, full_name: &str) -> usize {
        if let Some(known) =
            self.modules[module].classes.iter().find(|class| self.classes[**class].full_name == full_name)
        {
            return *known;
        }
        let (enclosing, own) = match full_name.rsplit_once('+') {
            Some((outer, own)) => (Some(self.add_class(module, outer)), own),
            None => (None, full_name),
        };
        let enclosing = enclosing.map(|class| self.classes[class].token);
        let index = self.classes.len();
        // Row 1 is the type of global functions.
        let token = Token::new(0x0200_0002 + self.modules[module].classes.len() as u32);
        let class = Class {
            module,
            token,
            name: c_string(own),
            enclosing,
            full_name: full_name.to_owned(),
            fields: Vec::new(),
        };
        self.classes.push(class);
        self.modules[module].classes.push(index);
        index
    }

    pub(super) fn add_function(&mut self, class: usize, name: &str, signature: &[u8]) -> FunctionId {
        let module = self.classes[class].module;
        let token = Token::new(0x0600_0001 + self.modules[module].functions.len() as u32);
        let index = self.functions.len();
        self.functions.push(Function { class, token, name: c_string(name), signature: signature.to_vec() });
        self.modules[module].functions.push(index);
        ids::function(FUNCTIONS + index * STEP)
    }

    pub(super) fn rename(&mut self, function: FunctionId, name: &str) -> bool {
        let Ok(index) = self.function(function.as_raw()) else { return false };
        self.functions[index].name = c_string(name);
        true
    }

    pub(super) fn find_function(&self, name: &str) -> Option<FunctionId> {
        let (class, method) = name.rsplit_once("::")?;
        let found = self.functions.iter().position(|function| {
            self.classes[function.class].full_name == class && function.name.to_bytes() == method.as_bytes()
        })?;
        Some(ids::function(FUNCTIONS + found * STEP))
    }

    /// Module index and token of a known function.
    pub(super) fn token_of(&self, function: FunctionId) -> (usize, Token) {
        let known = &self.functions[self.function(function.as_raw()).unwrap_or_default()];
        (self.classes[known.class].module, known.token)
    }

    pub(super) fn function_of_token(&self, module: usize, token: Token) -> Option<FunctionId> {
        let index = (token.as_raw() as usize).checked_sub(0x0600_0001)?;
        self.modules.get(module)?.functions.get(index).map(|function| ids::function(FUNCTIONS + function * STEP))
    }

    pub(super) fn class_of_token(&self, module: usize, token: Token) -> Option<usize> {
        let index = (token.as_raw() as usize).checked_sub(0x0200_0002)?;
        self.modules.get(module)?.classes.get(index).copied()
    }

    pub(super) fn module(&self, id: usize) -> Result<usize, HResult> {
        index(id, MODULES, self.modules.len())
    }

    pub(super) fn class(&self, id: usize) -> Result<usize, HResult> {
        index(id, CLASSES, self.classes.len())
    }

    pub(super) fn function(&self, id: usize) -> Result<usize, HResult> {
        index(id, FUNCTIONS, self.functions.len())
    }

    pub(super) fn assembly(&self, id: usize) -> Result<usize, HResult> {
        index(id, ASSEMBLIES, self.modules.len())
    }

    pub(super) fn thread(&mut self, number: usize) -> &mut Thread {
        self.threads.entry(number).or_default()
    }

    /// The managed threads.
    pub(super) fn thread_ids(&self) -> Vec<usize> {
        let managed = self.threads.iter().filter(|(_, thread)| thread.is_managed);
        managed.map(|(number, _)| thread_id(*number).as_raw()).collect()
    }

    pub(super) fn thread_of_id(&self, id: ThreadId) -> Option<(usize, &Thread)> {
        let number = id.as_raw().checked_sub(THREADS)? / STEP;
        self.threads.get(&number).filter(|_| thread_id(number) == id).map(|thread| (number, thread))
    }
}

pub(super) const fn module_id(index: usize) -> ModuleId {
    ids::module(MODULES + index * STEP)
}

pub(super) const fn class_id(index: usize) -> ClassId {
    ids::class(CLASSES + index * STEP)
}

pub(super) const fn assembly_id(index: usize) -> AssemblyId {
    ids::assembly(ASSEMBLIES + index * STEP)
}

pub(super) const fn thread_id(number: usize) -> ThreadId {
    ids::thread(THREADS + number * STEP)
}

/// Returns the index for an identifier. For an unknown identifier returns the runtime's error for
/// objects that don't exist or don't exist yet.
fn index(id: usize, base: usize, len: usize) -> Result<usize, HResult> {
    let offset = id.checked_sub(base).filter(|offset| offset.is_multiple_of(STEP));
    offset.map(|offset| offset / STEP).filter(|index| *index < len).ok_or(HResult::INVALID_ARGUMENT)
}

/// Converts a name to a C string. Names in metadata end at their first zero.
pub(super) fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// The world, shared by the runtime's objects.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    /// Locks the world. The lock must not be held during a call of the profiler, because the
    /// profiler calls the runtime.
    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call of an unimplemented method, and returns its error.
    pub(super) fn unanswered(&self, method: &'static str) -> HResult {
        *self.lock().unanswered.entry(method).or_default() += 1;
        HResult::NOT_IMPLEMENTED
    }
}

/// Calls the mapper for a function, as the runtime does at each compilation.
pub(super) fn map(world: &Shared, function: FunctionId) {
    let (mapper, client) = {
        let known = world.lock();
        match known.mapper {
            Some(mapper) if known.events.contains(Events::ENTER_LEAVE) => mapper,
            _ => return,
        }
    };
    let mut hook = windows_core::BOOL(1);
    // SAFETY: the profiler registered both together; the world is not locked, so it may ask back.
    let id = unsafe { mapper(function.as_raw(), client as *mut c_void, &mut hook) };
    // As in the runtime, 0 stands for the function itself.
    let id = if id == 0 { function.as_raw() } else { id };
    world.lock().mapped.insert(function, hook.as_bool().then_some(id));
}
