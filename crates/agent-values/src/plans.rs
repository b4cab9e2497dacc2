//! The plans of functions by function index, and the number of samples of each function.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use clr_profiler::{FunctionId, NameCache};

use super::completion::Completion;
use super::plan::{Plan, PlannedCode as Of, make};
use super::types::Types;

/// The plans, in pages that never move.
static PAGES: [AtomicPtr<Page>; 4096] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 4096];
const PAGE: usize = 1024;

struct Page([AtomicPtr<PlannedFunction>; PAGE]);

/// A function with a plan. Made once, never freed.
struct PlannedFunction {
    plan: Plan,
    /// The pattern that names the function and its overloads; empty if no pattern chose it.
    pattern: String,
    samples: AtomicU64,
}

fn planned(function: u32) -> Option<&'static PlannedFunction> {
    let page = PAGES.get(function as usize / PAGE)?.load(Ordering::Acquire);
    // SAFETY: null, or a leaked page with null or leaked plans.
    unsafe { page.as_ref()?.0[function as usize % PAGE].load(Ordering::Acquire).as_ref() }
}

/// The plan of a function. For hooks.
#[inline]
pub fn plan_of(function: u32) -> Option<&'static Plan> {
    planned(function).map(|planned| &planned.plan)
}

/// The pattern that names a function and its overloads; empty if no pattern chose the function.
pub(super) fn pattern_of(function: u32) -> &'static str {
    planned(function).map_or("", |planned| &planned.pattern)
}

/// Notes a sample that was taken while this function's values were being read. For hooks.
#[inline]
pub fn sample(function: u32) {
    if let Some(planned) = planned(function) {
        planned.samples.fetch_add(1, Ordering::Relaxed);
    }
}

fn all() -> impl Iterator<Item = &'static PlannedFunction> {
    // SAFETY: null or leaked, both.
    let pages = PAGES.iter().filter_map(|page| unsafe { page.load(Ordering::Acquire).as_ref() });
    // SAFETY: as above.
    pages.flat_map(|page| &page.0).filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

/// The patterns of all functions whose plan turned out to be wrong.
pub(super) fn refuted() -> impl Iterator<Item = &'static str> {
    all().filter(|planned| planned.plan.evidence.is_refuted()).map(|planned| planned.pattern.as_str())
}

/// The patterns of all functions that [`sample`] has seen, with their numbers of samples.
pub(super) fn samples() -> impl Iterator<Item = (&'static str, u64)> {
    all().map(|planned| (planned.pattern.as_str(), planned.samples.load(Ordering::Relaxed)))
}

/// The first plan of a function stays, because compiled code already depends on it.
fn publish(function: u32, plan: Plan, pattern: String) {
    let Some(slot) = PAGES.get(function as usize / PAGE) else { return };
    let mut page = slot.load(Ordering::Acquire);
    if page.is_null() {
        let fresh = Box::leak(Box::new(Page([const { AtomicPtr::new(std::ptr::null_mut()) }; PAGE])));
        page = match slot.compare_exchange(page, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(other) => other,
        };
    }
    // SAFETY: a leaked page.
    let slot = unsafe { &(*page).0[function as usize % PAGE] };
    let planned = Box::leak(Box::new(PlannedFunction { plan, pattern, samples: AtomicU64::new(0) }));
    // Another thread may have made the same plan in the meantime.
    let _ = slot.compare_exchange(std::ptr::null_mut(), planned, Ordering::AcqRel, Ordering::Acquire);
}

/// The plan of a function, which is made if it does not exist yet. Not for hooks.
pub fn prepare(types: &Types, names: &NameCache, id: FunctionId, index: u32) -> Option<&'static Plan> {
    if plan_of(index).is_none() {
        let plan = make(types, id, Of::Function(index))?;
        let name = names.function(types.info(), id);
        publish(index, plan, format!("[{}]{}", name.module, name.name));
    }
    plan_of(index)
}

/// The plan of a function that is observed only because its calls end `async` methods.
pub fn prepare_completion(types: &Types, id: FunctionId, index: u32) -> Option<&'static Plan> {
    if plan_of(index).is_none() {
        let mut plan = make(types, id, Of::Function(index))?;
        plan.completes = plan.completes.map(|completes| Completion { is_silent: true, ..completes });
        publish(index, plan, String::new());
    }
    plan_of(index).filter(|plan| plan.completes.is_some())
}
