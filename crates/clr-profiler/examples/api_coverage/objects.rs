//! Queries about objects and static fields, made in the callback that passes an object.

use clr_profiler::callback_args::Generation;
use clr_profiler::{ClassId, HandleKind, ModuleId, ObjectId, Result, StaticAddress, StaticKind, Token};

use crate::State;

/// Writes the tracked objects, for comparison with the fixture's own list.
pub(crate) fn write_tracked(state: &State) {
    state.objects.for_each(|address, ()| state.checks.line(&format!("tracked {address:x}")));
}

pub(crate) fn ask(state: &State, look: ObjectId<'_>) -> Result<()> {
    let (info, checks) = (&state.info, &state.checks);
    let class = info.class_of_object(look)?;
    let layout = info.class_layout(class)?;
    checks.same("size", info.object_size(look)?, layout.size as usize);
    let place = info.object_generation(look)?;
    checks.holds("generation", place, place.generation == Generation::Gen0 && place.start <= look.address());
    checks.same("not frozen", info.is_frozen(look)?, false);
    handles(state, look)?;

    members(state, class)?;
    let vector = field(state, look, class, "Vector")?;
    let array = info.array_object(vector, 1)?;
    checks.same("vector", array.dimensions, vec![(3, 0)]);
    // SAFETY: the elements of a live array of three integers.
    let elements = unsafe { std::slice::from_raw_parts(array.data as *const i32, 3) };
    checks.same("elements", elements, &[1, 2, 3]);
    let element = info.array_class(info.class_of_object(vector)?)?.map(|array| (array.element_type, array.rank));
    checks.same("array class", element, Some((8, 1)));
    let matrix = field(state, look, class, "Matrix")?;
    let in_matrix = state.names.member(info, info.class_of_object(matrix)?, 16 + 2 * 8 + 8);
    checks.same("element by its place", in_matrix.as_deref(), Some("[1]"));
    checks.same("matrix", info.array_object(matrix, 2)?.dimensions, vec![(2, 10), (3, 20)]);
    checks.same("no array", info.array_object(look, 1).is_err(), true);
    checks.same("rank 0", info.array_object(vector, 0).is_err(), true);
    let boxed = field(state, look, class, "Boxed")?;
    checks.same("box", info.box_layout(info.class_of_object(boxed)?)?, 8);
    let large = field(state, look, class, "Large")?;
    checks.same("large", info.object_generation(large)?.generation, Generation::LargeObjects);
    checks.holds("threshold", (), info.object_size(large)? >= info.large_object_threshold()? as usize);
    let literal = field(state, look, class, "Literal")?;
    checks.same("literal", info.is_frozen(literal)?, true);
    let place = info.object_generation(literal).map_err(|error| error.name().unwrap_or_default());
    checks.same("literal's place", place, Err("CORPROF_E_NOT_GC_OBJECT"));
    checks.holds("objects that stay", (), info.non_gc_objects()?.contains(&literal.address()));
    let heap = info.non_gc_heap_bounds()?;
    checks.holds("their heap", &heap, heap.iter().any(|range| range.contains(literal.address())));
    nothing_moves(state, class)?;
    let _ = state.look.set(class);
    Ok(())
}

/// Checks that requests which could let a collection run are refused while an object is lent.
fn nothing_moves(state: &State, look: ClassId) -> Result<()> {
    let info = &state.info;
    let module = info.class_info(look)?.module;
    let method = Token::new(u32::from(Token::METHOD_DEF) << 24 | 1);
    let refused = [
        info.suspend().err(),
        info.force_gc().err(),
        info.apply_metadata(module).err(),
        info.request_rejit(&[(module, method)]).err(),
        info.request_rejit_with_inliners(&[(module, method)]).err(),
        info.request_revert(&[(module, method)]).err(),
        info.class_from_token(module, info.class_info(look)?.token).err(),
        info.function_from_token(module, method).err(),
        info.modules().err(),
    ];
    for error in refused {
        let reason = error.as_ref().and_then(|error| error.reason()).unwrap_or_default();
        state.checks.holds("refused where an object is lent", &error, reason.contains("lends objects"));
    }
    Ok(())
}

/// Checks the names of fields by their offset in objects.
fn members(state: &State, class: ClassId) -> Result<()> {
    let (info, checks, names) = (&state.info, &state.checks, &state.names);
    let metadata = info.module_metadata(info.class_info(class)?.module)?;
    for (token, offset) in info.class_layout(class)?.fields {
        let name = metadata.field(token)?.name;
        checks.same("field by its place", names.member(info, class, offset as usize), Some(name));
    }
    // The first field of an exception belongs to a base class.
    checks.same("field of a base class", names.member(info, class, 8).as_deref(), Some("_exceptionMethod"));
    checks.same("no field", names.member(info, class, 0), None);
    Ok(())
}

/// Returns the object that a field refers to.
fn field<'cb>(state: &State, object: ObjectId<'cb>, class: ClassId, name: &str) -> Result<ObjectId<'cb>> {
    let metadata = state.info.module_metadata(state.info.class_info(class)?.module)?;
    let fields = state.info.class_layout(class)?.fields;
    let found = fields.iter().find(|(token, _)| metadata.field(*token).is_ok_and(|field| field.name == name));
    let offset = found.map_or(0, |(_, offset)| *offset as usize);
    // SAFETY: the object is alive and has a reference at this offset; what it refers to lives as
    // long.
    Ok(unsafe { ObjectId::from_address(*((object.address() + offset) as *const usize)) })
}

fn handles(state: &State, object: ObjectId<'_>) -> Result<()> {
    for kind in [HandleKind::Weak, HandleKind::Strong, HandleKind::Pinned] {
        let handle = state.info.create_handle(object, kind)?;
        let found = handle.with(|found| found.map(ObjectId::address))?;
        state.checks.same(&format!("{kind:?} handle"), found, Some(object.address()));
    }
    Ok(())
}

/// Checks static fields. Must not run while objects are lent, because it loads types.
pub(crate) fn statics(state: &State, look: ClassId) -> Result<()> {
    let (info, checks) = (&state.info, &state.checks);
    let module = info.class_info(look)?.module;
    let metadata = info.module_metadata(module)?;
    let class_token = metadata.find_type_def("Objects.Statics", None)?.unwrap_or_default();
    let class = info.class_from_token(module, class_token)?;
    let thread = info.current_thread()?;
    let domain = info.thread_app_domain(thread)?;
    let token = |name: &str| metadata.fields_named(class_token, name).map(|fields| fields[0]);
    // SAFETY: the fields are integers, which the program does not change meanwhile.
    let read = |address: StaticAddress| unsafe { *(address.as_raw() as *const i32) };
    let plain = token("Plain")?;
    checks.same("kind of a static", info.static_kind(class, plain)?, StaticKind::AppDomain);
    checks.same("static", read(info.static_address(class, plain, domain)?), 41);
    let per_thread = token("PerThread")?;
    checks.same("kind of a thread's", info.static_kind(class, per_thread)?, StaticKind::Thread);
    checks.same("thread's static", read(info.thread_static_address(class, per_thread, domain, thread)?), 17);
    checks.holds("constant", (), info.static_address(class, token("Constant")?, domain).is_err());
    let instance = metadata.find_type_def("Objects.Instance", None)?.unwrap_or_default();
    let field = metadata.fields_named(instance, "Field")?[0];
    let kind = info.static_kind(info.class_from_token(module, instance)?, field);
    checks.same("no static", kind, Ok(StaticKind::NotStatic));
    image(state, module)
}

/// Checks static data in the image: the compiler puts the numbers 1, 2, 3 there.
fn image(state: &State, module: ModuleId) -> Result<()> {
    let metadata = state.info.module_metadata(module)?;
    let Some(details) = metadata.find_type_def("<PrivateImplementationDetails>", None)? else {
        state.checks.line("WRONG the fixture has no data in its image");
        return Ok(());
    };
    let class = state.info.class_from_token(module, details)?;
    let is_data = |field: &Token| metadata.field(*field).is_ok_and(|field| field.is_static());
    for field in metadata.fields(details)?.into_iter().filter(is_data) {
        state.checks.same("kind of data", state.info.static_kind(class, field)?, StaticKind::Image);
        // From .NET 9 on the class must be initialized, which the fixture does not guarantee here.
        match state.info.image_static_address(class, field) {
            Ok(address) => state.checks.holds("data in the image", address, address.as_raw() != 0),
            Err(error) => state.checks.same("no data yet", error.name(), Some("CORPROF_E_DATAINCOMPLETE")),
        }
    }
    Ok(())
}
