//! Methods with probes, and other methods that were recompiled because of them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::il::Edits;
use clr_profiler::{BodyWriter, FunctionName, MethodToWrite, ModuleId, Token, WrittenBody};
use clrscope_contract::request::Pattern;
use clrscope_recording::writer::MethodLanes;

use super::callers::{self, CalledMethod, CallerSignatures};
use super::code::{self, Signatures};
use super::each::{self, EachSignatures, WatchedMethod};
use super::lined::MethodLines;

/// A method, given by its module and its token.
pub(super) type Method = (ModuleId, Token);

/// The methods that were recompiled. No lock is held while the runtime is queried.
#[derive(Default)]
pub(super) struct Methods(Mutex<Table>);

/// The data about methods that the lock protects.
#[derive(Default)]
pub(super) struct Table {
    pub(super) probed: HashMap<Method, MethodProbes>,
    /// Methods with lines that are counted, or were counted before.
    pub(super) lined: HashMap<Method, MethodLines>,
    /// Bodies of methods, with all probes that they have, or had last.
    pub(super) bodies: HashMap<Method, Arc<WrittenBody>>,
    /// Methods that had inlined a probed method.
    inliners: HashSet<Method>,
    /// Methods that got probes or were refused: each is examined once.
    claimed: HashSet<Method>,
    /// The recording is over: no further method is recompiled.
    is_over: bool,
}

/// A method with probes.
pub(super) struct MethodProbes {
    pub(super) name: ProbedName,
    pub(super) lanes: MethodLanes,
    pub(super) signatures: Signatures,
    /// The data to record each call; `None` if calls are not recorded singly.
    pub(super) each: Option<(&'static WatchedMethod, EachSignatures)>,
    /// The data to count by callers; `None` if calls are not counted by callers.
    pub(super) called: Option<(&'static CalledMethod, CallerSignatures)>,
    /// Whether the code with the probes is ready.
    pub(super) is_ready: bool,
    pub(super) standing: Standing,
}

/// Which code calls of a method run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The code with probes.
    Probed,
    /// The method's own code, but recompiled.
    Removed,
    /// The method's own code, as it was before the recording.
    Reverted,
}

/// The names of a method with probes, which are compared with patterns.
pub(super) struct ProbedName {
    pub(super) assembly: Arc<str>,
    pub(super) name: String,
    pub(super) signature: String,
}

impl ProbedName {
    /// Whether a pattern matches the method.
    fn is_meant(&self, pattern: &Pattern) -> bool {
        pattern.matches(&self.assembly, &self.name, &self.signature)
    }
}

impl From<FunctionName> for ProbedName {
    fn from(FunctionName { module, name, signature, .. }: FunctionName) -> Self {
        Self { assembly: module, name, signature }
    }
}

impl Methods {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it when a method is chosen. Returns whether it gets probes now; `false` if it was
    /// chosen before.
    pub(super) fn claim(&self, method: Method) -> bool {
        let mut table = self.lock();
        !table.is_over && table.claimed.insert(method)
    }

    /// Notes that the methods that a pattern matches must run the code with probes again. Returns
    /// those that do not run it yet.
    pub(super) fn put_back(&self, pattern: &Pattern) -> Vec<Method> {
        let mut table = self.lock();
        let is_over = table.is_over;
        let is_without = |probed: &MethodProbes| !is_over && probed.is_ready && probed.standing != Standing::Probed;
        let without = table.probed.iter_mut().filter(|(_, probed)| is_without(probed) && probed.name.is_meant(pattern));
        let put_back = |(method, probed): (&Method, &mut MethodProbes)| {
            probed.standing = Standing::Probed;
            probed.lanes.set_removed(false);
            *method
        };
        without.map(put_back).collect()
    }

    /// Notes that the methods that a pattern matches must run their own code. Returns those that do
    /// not run it yet.
    pub(super) fn take_out(&self, pattern: &Pattern) -> Vec<Method> {
        let mut table = self.lock();
        let with = table.probed.iter_mut().filter(|(_, probed)| probed.standing == Standing::Probed && probed.name.is_meant(pattern));
        let take_out = |(method, probed): (&Method, &mut MethodProbes)| {
            probed.standing = Standing::Removed;
            probed.lanes.set_removed(true);
            *method
        };
        with.map(take_out).collect()
    }

    /// All recompiled methods, if no method has probes any more; otherwise `None`. These methods
    /// can be reverted.
    pub(super) fn all_unless_probed(&self) -> Option<Vec<Method>> {
        let mut table = self.lock();
        let is_any_counted = table.lined.values().any(MethodLines::is_any_counted);
        if is_any_counted || table.probed.values().any(|probed| probed.standing == Standing::Probed) {
            return None;
        }
        let changed = table.changed();
        table.probed.values_mut().for_each(|probed| probed.standing = Standing::Reverted);
        table.lined.values_mut().for_each(MethodLines::revert);
        table.inliners.clear();
        Some(changed)
    }

    /// Number of the methods with probes that a pattern matches.
    pub(super) fn count(&self, pattern: &Pattern) -> u32 {
        let table = self.lock();
        let is_counted = |probed: &&MethodProbes| probed.standing == Standing::Probed && probed.name.is_meant(pattern);
        table.probed.values().filter(is_counted).count() as u32
    }

    /// Forgets the methods of a module that is unloaded.
    pub(super) fn module_goes(&self, module: ModuleId) {
        let mut table = self.lock();
        table.probed.retain(|method, _| method.0 != module);
        table.lined.retain(|method, _| method.0 != module);
        table.bodies.retain(|method, _| method.0 != module);
        table.inliners.retain(|method| method.0 != module);
        table.claimed.retain(|method| method.0 != module);
    }

    /// The code with probes of a method that is being recompiled. A method without probes is noted
    /// as an inliner of a probed method.
    pub(super) fn body_of(&self, method: Method) -> Option<Arc<WrittenBody>> {
        let mut table = self.lock();
        let body = table.has_probes(method).then(|| table.bodies.get(&method).cloned()).flatten();
        if body.is_none() {
            table.inliners.insert(method);
        }
        body
    }

    /// The data of a method whose every call is recorded; `None` for other methods.
    pub(super) fn watched(&self, method: Method) -> Option<&'static WatchedMethod> {
        self.lock().probed.get(&method)?.each.map(|(watched, _)| watched)
    }

    /// Sets the code of a method with all of its probes; `None` if it has no probes.
    pub(super) fn set_body(&self, method: Method, body: Option<WrittenBody>) {
        let mut table = self.lock();
        match body {
            Some(body) => _ = table.bodies.insert(method, Arc::new(body)),
            None => _ = table.bodies.remove(&method),
        }
    }

    /// Marks the code with probes of these methods as ready. Their calls are counted.
    pub(super) fn are_ready(&self, methods: &[Method]) {
        let mut table = self.lock();
        for method in methods {
            if let Some(probed) = table.probed.get_mut(method) {
                probed.is_ready = true;
            }
        }
    }

    /// Marks the recording as over. Returns all methods that were recompiled.
    pub(super) fn end(&self) -> Vec<Method> {
        let mut table = self.lock();
        table.is_over = true;
        table.changed()
    }

    /// Frees all notes about methods. Call it when the agent is dormant and the methods have their
    /// own code.
    pub(super) fn forget(&self) {
        *self.lock() = Table { is_over: true, ..Table::default() };
    }

    /// Whether the recording is over.
    pub(super) fn are_over(&self) -> bool {
        self.lock().is_over
    }
}

impl Table {
    /// The methods that were recompiled.
    fn changed(&self) -> Vec<Method> {
        let probed = self.probed.iter().filter(|(_, probed)| probed.standing != Standing::Reverted).map(|(method, _)| method);
        let lined = self.lined.iter().filter(|(_, lined)| lined.is_changed()).map(|(method, _)| method);
        let all: HashSet<&Method> = probed.chain(lined).chain(&self.inliners).collect();
        all.into_iter().copied().collect()
    }

    /// Whether a method's calls or any of its lines are counted.
    fn has_probes(&self, method: Method) -> bool {
        self.probed.get(&method).is_some_and(|probed| probed.standing == Standing::Probed)
            || self.lined.get(&method).is_some_and(MethodLines::is_any_counted)
    }

    /// Whether the recording is over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl BodyWriter for Methods {
    fn edits(&self, method: &MethodToWrite<'_>) -> clr_profiler::Result<Edits> {
        let table = self.lock();
        let key = (method.module, method.token);
        let probed = table.probed.get(&key).filter(|probed| probed.standing == Standing::Probed);
        let mut edits = match probed {
            None => Edits::new(),
            Some(MethodProbes { each: Some((watched, signatures)), called, .. }) => {
                each::edits(watched, *signatures, *called, method)
            }
            Some(MethodProbes { called: Some(called), .. }) => callers::edits(*called),
            Some(probed) => code::edits(probed.lanes, probed.signatures),
        };
        if let Some(lined) = table.lined.get(&key) {
            edits.merge(lined.edits());
        }
        Ok(edits)
    }
}

#[cfg(test)]
mod tests {
    use clr_profiler_fake::FakeRuntime;
    use clrscope_recording::model::ProbedMethod;
    use clrscope_recording::writer::{EventStore, Keep};

    use super::*;

    #[test]
    fn methods_that_had_taken_in_others_get_their_own_code_back_too() {
        let methods = Methods::default();
        let runtime = FakeRuntime::new().module("Shop").module("Plugin");
        let [module, other] = ["Shop", "Plugin"].map(|name| runtime.module_id(name));
        let claim = |module, token| methods.claim((module, Token::new(token)));
        assert!(claim(module, 0x0600_0003) && !claim(module, 0x0600_0003), "told of twice");
        assert!(claim(module, 0x0600_0004) && claim(other, 0x0600_0003), "chosen later");
        assert!(methods.body_of((module, Token::new(0x0600_0001))).is_none());
        assert!(methods.body_of((other, Token::new(0x0600_0002))).is_none());
        methods.module_goes(other);
        assert_eq!(methods.end(), [(module, Token::new(0x0600_0001))]);
        assert!(methods.are_over() && !claim(other, 0x0600_0005), "no more after the end");
    }

    #[test]
    fn methods_run_their_own_code_recompiled_until_the_last_probe_goes() {
        let runtime = FakeRuntime::new().module("Shop");
        let module = runtime.module_id("Shop");
        let folder = tempfile::tempdir().expect("a folder");
        let store = EventStore::create_slow(&folder.path().join("probes.seg"), 1 << 20, Keep::First).expect("a store");
        let chunk = store.allocate_chunk(0, 64 << 10, 1).expect("a chunk");
        let methods = Methods::default();
        for (at, name) in ["Shop.Cart::Add", "Shop.Cart::Clear", "Shop.Till::Pay"].into_iter().enumerate() {
            let record = ProbedMethod { token: 1 + at as u32, name: name.to_owned(), ..ProbedMethod::default() };
            let lanes = chunk.append_probed(&record, 1, 1).expect("room");
            let signatures = Signatures { enter: Token::new(1), leave: Token::new(2) };
            let signature = format!("{}()", name.replace("::", "."));
            let name = ProbedName { assembly: "Shop".into(), name: name.to_owned(), signature };
            let probed = MethodProbes { name, lanes, signatures, each: None, called: None, is_ready: true, standing: Standing::Probed };
            let method = (module, Token::new(0x0600_0001 + at as u32));
            methods.lock().probed.insert(method, probed);
            methods.lock().bodies.insert(method, Arc::new(WrittenBody::default()));
        }
        let tokens = |mut found: Vec<Method>| {
            found.sort();
            found.into_iter().map(|method| method.1.as_raw() & 0xff).collect::<Vec<_>>()
        };
        let pattern = |text| Pattern::parse(text).expect("a pattern");
        let inliner = (module, Token::new(0x0600_0009));
        assert!(methods.body_of(inliner).is_none());
        assert_eq!(tokens(methods.take_out(&pattern("Shop.Cart"))), [1, 2]);
        assert_eq!((methods.count(&pattern("*")), methods.all_unless_probed()), (1, None));
        assert!(methods.body_of((module, Token::new(0x0600_0001))).is_none(), "its own code");
        assert_eq!(tokens(methods.put_back(&pattern("Clear"))), [2]);
        assert!(methods.body_of((module, Token::new(0x0600_0002))).is_some(), "with probes again");
        assert_eq!(tokens(methods.take_out(&pattern("*"))), [2, 3]);
        assert_eq!(methods.all_unless_probed().map(tokens), Some(vec![1, 2, 3, 9]));
        assert_eq!(methods.end(), [], "each is as it was");
    }
}
