//! The profiler without .NET: a fake runtime loads it and plays a program.

use clr_profiler::HResult;
use clr_profiler_fake::Event::{ModuleUnloadFinished, ModuleUnloadStarted, ObjectAllocated, Shutdown};
use clr_profiler_fake::{FakeRuntime, on};

use super::Allocations;

#[test]
fn objects_and_bytes_are_summed_by_class() {
    let mut runtime = FakeRuntime::new().module("Shop").class("Shop.Item").class("Shop.Cart").module("Plugin");
    let (item, cart, plugin) =
        (runtime.class_id("Shop.Item"), runtime.class_id("Shop.Cart"), runtime.module_id("Plugin"));
    let [small, other] = [24, 32].map(|bytes| runtime.object("Shop.Item", bytes));
    let large = runtime.object("Shop.Cart", 400);
    let mut program = runtime.load::<Allocations>().expect("the runtime takes the profiler");
    program.play(&[
        on(1, ObjectAllocated(small, item)),
        on(2, ObjectAllocated(other, item)),
        // Identifiers of an unloaded module may be used again: sums go on by name.
        on(1, ModuleUnloadStarted(plugin)),
        on(1, ModuleUnloadFinished(plugin, HResult::OK)),
        on(1, ObjectAllocated(large, cart)),
        on(1, ObjectAllocated(small, item)),
        on(0, Shutdown()),
    ]);
    assert_eq!(program.profiler().report(), "400\t1\tShop.Cart\n80\t3\tShop.Item\n");
    assert_eq!(program.unanswered(), []);
}
