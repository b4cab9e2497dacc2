//! Answers of the fake runtime about suspension, stacks, collections, code, EventPipe and detach.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clr_profiler::callback_args::{
    CodegenFlags, FunctionControl, GcReason, Generation, RootFlags, RootKind, Roots, WeakTableElements,
};
use clr_profiler::{
    Callbacks, Events, GcHandleId, HResult, ModuleId, NameCache, NoStack, ObjectId, ProfilerInfo, ProviderConfig,
    Result, Setup, StackWalk, Token,
};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::{FakeObject, FakeRuntime, ReJitRequest, Running, on};

use super::{Wants, shop};

const PATIENT: Duration = Duration::from_secs(60);

/// Runs code on a thread that the runtime does not know.
fn natively<R: Send>(info: &ProfilerInfo, code: impl FnOnce(&ProfilerInfo) -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(|| code(info)).join().expect("no panic"))
}

fn load(runtime: FakeRuntime, events: Events) -> Running<Wants> {
    runtime.load_with(Wants::events(events)).unwrap()
}

#[test]
fn stacks_are_walked_while_the_program_is_suspended_and_say_why_not() {
    let runtime = shop();
    let (main, pay) = (runtime.function("Shop.Program::Main"), runtime.function("Shop.Checkout::Pay"));
    let (one, two, none) = (runtime.thread(1), runtime.thread(2), runtime.thread(9));
    let mut program = load(runtime.refuse_suspensions(3), Events::ENABLE_STACK_SNAPSHOT);
    program.play(&[on(1, Enter(main)), on(1, Enter(pay)), on(2, ThreadCreated(two))]);
    natively(program.profiler().info(), |info| {
        let in_progress = Some(HResult::SUSPENSION_IN_PROGRESS);
        assert_eq!(info.suspend().err().map(|error| error.hresult()), in_progress);
        assert_eq!(info.suspend_within(Duration::ZERO).err().map(|error| error.hresult()), in_progress);
        let suspended = info.suspend_within(PATIENT).unwrap();
        assert_eq!(info.suspend().err().map(|error| error.hresult()), in_progress, "once");
        assert_eq!(info.threads().unwrap(), [0, 1, 2].map(info_thread));
        let mut frames = Vec::new();
        let walk = suspended.stack_of(one, |frame| {
            frames.push(frame.function);
            ControlFlow::Continue(())
        });
        assert_eq!((walk, frames), (Ok(StackWalk::Complete), vec![pay, main]));
        assert_eq!(suspended.stack_of(one, |_| ControlFlow::Break(())), Ok(StackWalk::Stopped));
        assert_eq!(suspended.stack_of(two, |_| ControlFlow::Continue(())), Ok(StackWalk::NoManagedFrames));
        let unknown = suspended.stack_of(none, |_| ControlFlow::Continue(())).unwrap_err();
        assert!(matches!(&unknown, NoStack::Other(error) if error.hresult() == HResult::INVALID_ARGUMENT), "{unknown}");
        drop(suspended);
        assert!(info.suspend().is_ok(), "again");
    });
    let here = program.run_on(1, |profiler| profiler.info().stack_here(|_| ControlFlow::Continue(())));
    assert_eq!(here, Ok(StackWalk::Complete));
    assert_eq!(program.unanswered(), []);
    let program = load(shop(), Events::NONE);
    natively(program.profiler().info(), |info| {
        let suspended = info.suspend().unwrap();
        assert_eq!(suspended.stack_of(one, |_| ControlFlow::Continue(())), Err(NoStack::NotEnabled));
    });
}

fn info_thread(number: usize) -> clr_profiler::ThreadId {
    FakeRuntime::new().thread(number)
}

#[derive(Default)]
struct Shot {
    /// Roots, edges and weak pairs by address.
    roots: Vec<(usize, RootKind, bool)>,
    edges: BTreeSet<(usize, usize, usize)>,
    weak: Vec<(usize, usize)>,
}

struct Shooter {
    info: ProfilerInfo,
    shot: Arc<Mutex<Shot>>,
}

impl Callbacks for Shooter {
    fn object_references(
        &self,
        object: ObjectId<'_>,
        _class: clr_profiler::ClassId,
        references: &[ObjectId<'_>],
    ) -> Result<()> {
        let shot = &mut *self.shot.lock().unwrap();
        let mut told = references.iter();
        self.info.references_of(object, |reference| {
            assert_eq!(told.next(), Some(&reference.object));
            shot.edges.insert((object.address(), reference.offset, reference.object.address()));
            ControlFlow::Continue(())
        })
    }

    fn root_references2(&self, roots: Roots<'_>) {
        let root =
            |root: clr_profiler::callback_args::Root<'_>| (root.object.address(), root.kind, root.flags.is_pinning());
        self.shot.lock().unwrap().roots.extend(roots.iter().map(root));
    }

    fn conditional_weak_table_element_references(&self, elements: WeakTableElements<'_>) {
        let pair = |(key, value, _): (ObjectId<'_>, ObjectId<'_>, GcHandleId)| (key.address(), value.address());
        self.shot.lock().unwrap().weak.extend(elements.iter().map(pair));
    }
}

#[test]
fn a_collection_that_the_profiler_asks_for_tells_of_roots_and_references() {
    let mut runtime = shop();
    let class = runtime.class_id("Shop.Checkout");
    let [cart, line, coupon] = [32, 24, 24].map(|bytes| runtime.object("Shop.Checkout", bytes));
    // SAFETY: a number that is compared and nothing else.
    let handle = unsafe { GcHandleId::from_raw(7) };
    let runtime = runtime.reference(cart, 16, line).reference(cart, 8, coupon).generation(cart, Generation::Gen2);
    let runtime = runtime.on_force_gc(&[
        GarbageCollectionStarted(vec![0, 1, 2], GcReason::Induced),
        RootReferences2(vec![(cart, RootKind::Handle, RootFlags::from_raw(1), 7)]),
        ObjectReferences(cart, class, vec![line, coupon]),
        ConditionalWeakTableElementReferences(vec![(line, coupon, handle)]),
        GarbageCollectionFinished(),
    ]);
    let shot = Arc::<Mutex<Shot>>::default();
    let seen = shot.clone();
    let mut program =
        runtime.load_with(move |info| Ok((Shooter { info: info.clone(), shot }, Setup::new(Events::GC)))).unwrap();
    let managed = program.run_on(1, |profiler| profiler.info.force_gc()).unwrap_err();
    assert_eq!(managed.hresult(), HResult::UNSUPPORTED_CALL_SEQUENCE, "not on managed threads");
    natively(&program.profiler().info, |info| {
        info.force_gc().unwrap();
        let bounds = info.generation_bounds().unwrap();
        let of = |object: FakeObject| {
            bounds.iter().find(|range| range.contains(object.address())).map(|range| range.generation)
        };
        assert_eq!((of(cart), of(line)), (Some(Generation::Gen2), Some(Generation::Gen0)));
    });
    let shot = seen.lock().unwrap();
    assert_eq!(shot.roots, [(cart.address(), RootKind::Handle, true)]);
    assert_eq!(
        shot.edges,
        BTreeSet::from([(cart.address(), 16, line.address()), (cart.address(), 8, coupon.address())])
    );
    assert_eq!(shot.weak, [(line.address(), coupon.address())]);
    assert_eq!(program.unanswered(), []);
}

#[test]
fn what_an_object_keeps_has_the_name_of_the_field_and_of_the_static_field() {
    let mut runtime =
        FakeRuntime::new().module("Shop").class("Shop.Cart").field("Owner").field("<Line>k__BackingField");
    let statics = runtime.object("Shop.Cart", 64);
    let cart = runtime.object("Shop.Cart", 40);
    let runtime = runtime.class("Shop.Program").static_field("current", statics, 24).method("Main");
    let (class, program_class) = (runtime.class_id("Shop.Cart"), runtime.class_id("Shop.Program"));
    let program = load(runtime.reference(statics, 24, cart), Events::NONE);
    let (info, names) = (program.profiler().info(), NameCache::new());
    let layout = info.class_layout(class).unwrap();
    assert_eq!(layout.fields.iter().map(|(_, offset)| *offset).collect::<Vec<_>>(), [8, 16]);
    assert_eq!((layout.size, info.class_layout(program_class).unwrap().size), (32, 24));
    let at = |offset| names.member(info, class, offset);
    assert_eq!((at(8).as_deref(), at(16).as_deref(), at(0)), (Some("Owner"), Some("Line"), None));
    let fields = names.static_fields(info, program_class);
    let places: Vec<_> = fields.iter().map(|(place, name)| (place.as_raw(), name.as_str())).collect();
    assert_eq!(places, [(statics.address() + 24, "Shop.Program.current")]);
    assert_eq!(names.static_fields(info, class), [], "fields of objects are none");
    assert_eq!(program.unanswered(), []);
}

/// Gives each method that is compiled again this IL.
struct Again;

const ANSWER: [u8; 4] = [3 << 2 | 2, 0x00, 0x00, 0x2a];

impl Callbacks for Again {
    fn get_rejit_parameters(&self, _module: ModuleId, _method: Token, control: &FunctionControl<'_>) -> Result<()> {
        control.set_codegen_flags(CodegenFlags::DISABLE_INLINING)?;
        // SAFETY: no thread runs it.
        unsafe { control.set_il_function_body(&ANSWER) }
    }
}

#[test]
fn what_is_compiled_again_is_asked_for_and_its_parameters_are_kept() {
    let runtime = shop();
    let module = runtime.module_id("Shop");
    let mut program = runtime
        .load_with(|info| {
            let info = info.clone();
            Ok(((Again, Wants { info }), Setup::new(Events::ENABLE_REJIT)))
        })
        .unwrap();
    let info = program.profiler().1.info().clone();
    let pay = info.function_from_token(module, info_token(&info, module)).unwrap();
    let method = (module, info.function_info(pay).unwrap().token);
    info.request_rejit(&[method]).unwrap();
    assert_eq!(info.request_revert(&[method]).unwrap(), [Ok(())]);
    assert_eq!(program.rejit_requests(), [ReJitRequest::Compile(vec![method]), ReJitRequest::Revert(vec![method])]);
    program.play(&[on(1, GetReJITParameters(module, method.1.as_raw()))]);
    let parameters = program.rejit_parameters();
    assert_eq!((parameters[0].module, parameters[0].method), method);
    assert_eq!(parameters[0].flags, Some(CodegenFlags::DISABLE_INLINING));
    assert_eq!(parameters[0].il.as_deref(), Some(&ANSWER[..]));
    assert_eq!(program.il(pay), [6, 0x2a], "what came with the method");
    // SAFETY: no thread runs it.
    unsafe { info.set_il_function_body(method.0, method.1, &ANSWER) }.unwrap();
    assert_eq!(program.il(pay), ANSWER);
    assert_eq!(program.unanswered(), []);
}

fn info_token(info: &ProfilerInfo, module: ModuleId) -> Token {
    let metadata = info.module_metadata(module).unwrap();
    let checkout = metadata.find_type_def("Shop.Checkout", None).unwrap().unwrap();
    metadata.methods_named(checkout, "Pay").unwrap()[0]
}

/// Errors of the three queries that may load types, by their codes.
fn loading(info: &ProfilerInfo, module: ModuleId) -> [Option<HResult>; 3] {
    let token = info.module_metadata(module).unwrap().find_type_def("Shop.Checkout", None).unwrap().unwrap();
    let method = info_token(info, module);
    let code = |error: clr_profiler::Error| error.hresult();
    [
        info.class_from_token(module, token).err().map(code),
        info.class_from_token_and_type_args(module, token, &[]).err().map(code),
        info.function_from_token_and_type_args(module, method, None, &[]).err().map(code),
    ]
}

/// A profiler that wants compilation, and hears of methods that can't be compiled.
struct Hears(ProfilerInfo, Mutex<Vec<ModuleId>>);

impl Callbacks for Hears {
    fn rejit_error(&self, module: ModuleId, _method: Token, _function: clr_profiler::FunctionId, _status: Result<()>) {
        self.1.lock().unwrap().push(module);
    }
}

#[test]
fn what_may_load_types_is_refused_on_threads_that_the_runtime_does_not_know() {
    let runtime = shop();
    let module = runtime.module_id("Shop");
    let unknown = [Some(HResult::NOT_MANAGED_THREAD); 3];
    let program = load(runtime, Events::NONE);
    natively(program.profiler().info(), |info| {
        assert_eq!(loading(info, module), unknown);
        let refused = info.class_from_token(module, Token::new(0x0200_0002)).unwrap_err();
        assert!(refused.reason().is_some_and(|reason| reason.contains("does not know")), "{refused}");
        assert!(info.function_from_token(module, info_token(info, module)).is_ok(), "which loads nothing");
        info.initialize_current_thread().unwrap();
        assert_eq!(loading(info, module), unknown, "as before");
        let refused = info.adopt_current_thread().map_err(|error| error.hresult());
        assert_eq!((refused, loading(info, module)), (Err(HResult::REJIT_NOT_ENABLED), unknown));
    });

    let runtime = shop();
    let module = runtime.module_id("Shop");
    let mut program = runtime
        .load_with(|info| Ok((Hears(info.clone(), Mutex::default()), Setup::new(Events::ENABLE_REJIT))))
        .unwrap();
    let known = program.run_on(1, move |hears| loading(&hears.0, module));
    assert!(!known.contains(&Some(HResult::NOT_MANAGED_THREAD)), "{known:?}");
    natively(&program.profiler().0, |info| {
        assert_eq!(loading(info, module), unknown);
        let threads = info.threads().unwrap().len();
        assert_eq!((info.adopt_current_thread(), info.adopt_current_thread()), (Ok(()), Ok(())));
        assert_eq!((loading(info, module), info.threads().unwrap().len()), (known, threads + 1));
    });
    assert_eq!(program.rejit_requests(), [], "no method is meant");
    // Which the runtime says, too, of the module that there is not.
    program.play(&[on(1, ReJITError(ModuleId::NULL, 0, clr_profiler::FunctionId::NULL, HResult::INVALID_ARGUMENT))]);
    program.play(&[on(1, ReJITError(module, 0x0600_0001, clr_profiler::FunctionId::NULL, HResult::FAIL))]);
    assert_eq!(*program.profiler().1.lock().unwrap(), [module]);
}

#[test]
fn sessions_of_event_pipe_are_kept_and_need_their_event() {
    let runtime =
        ProviderConfig { name: "Microsoft-Windows-DotNETRuntime".into(), keywords: 1, level: 4, filter: None };
    let refused =
        load(shop(), Events::NONE).profiler().info().event_pipe_start_session(std::slice::from_ref(&runtime), false);
    assert_eq!(refused.map_err(|error| error.hresult()), Err(HResult::INCONSISTENT_WITH_FLAGS));
    let program = load(shop(), Events::EVENT_PIPE);
    let info = program.profiler().info();
    let session = info.event_pipe_start_session(&[runtime], false).unwrap();
    let own = info.event_pipe_create_provider("Own").unwrap();
    assert_eq!(info.event_pipe_provider_name(own).unwrap(), "Own");
    info.event_pipe_stop_session(session).unwrap();
    assert_eq!(program.sessions()[0].providers, [("Microsoft-Windows-DotNETRuntime".to_owned(), 1, 4)]);
    assert!(!program.sessions()[0].is_open);
}

#[test]
fn after_a_request_to_detach_nothing_is_answered() {
    let program = load(shop(), Events::DISABLE_INLINING);
    let refused = program.profiler().info().request_detach(0).unwrap_err();
    assert_eq!(refused.name(), Some("CORPROF_E_IMMUTABLE_FLAGS_SET"));
    assert!(!program.is_detaching());
    let mut program = load(shop(), Events::EXCEPTIONS);
    let info = program.profiler().info();
    info.request_detach(0).unwrap();
    assert!(program.is_detaching());
    assert_eq!(info.current_thread().unwrap_err().hresult(), HResult::PROFILER_DETACHING);
    program.play(&[on(0, ProfilerDetachSucceeded())]);
    assert_eq!(program.profiler().info().runtime_version().unwrap_err().hresult(), HResult::PROFILER_DETACHING);
}

/// Notes how many callbacks are under way while it is called.
struct Counting(ProfilerInfo, Mutex<Vec<usize>>);

impl Callbacks for Counting {
    fn module_load_finished(&self, _module: ModuleId, _status: Result<()>) {
        self.1.lock().unwrap().push(self.0.callbacks_under_way());
    }
}

#[test]
fn callbacks_under_way_are_counted_where_the_runtime_can_let_go() {
    for (events, expected) in [(Events::MODULE_LOADS, 1), (Events::MODULE_LOADS | Events::DISABLE_INLINING, 0)] {
        let runtime = shop();
        let module = runtime.module_id("Shop");
        let made = move |info: &ProfilerInfo| Ok((Counting(info.clone(), Mutex::default()), Setup::new(events)));
        let mut program = runtime.load_with(made).unwrap();
        program.play(&[on(1, ModuleLoadFinished(module, HResult::OK))]);
        let Counting(info, seen) = program.profiler();
        assert_eq!((seen.lock().unwrap().clone(), info.callbacks_under_way()), (vec![expected], 0), "{events:?}");
    }
}
