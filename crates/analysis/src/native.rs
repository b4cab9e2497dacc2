//! Names of native code: frames with offsets in libraries and in the kernel become frames of
//! functions.

use std::collections::BTreeSet;
use std::sync::Arc;

use clrscope_recording::model::{
    Derived, Function, FunctionKind, Module, ModuleKind, NamedPlace, NativeSymbol, Process, Recording, Stacks,
};
use rustc_hash::FxHashMap;

use crate::function::{FunctionRef, library_frame, library_of};

/// Creates functions for the native code on call stacks, and makes frames refer to them. Each
/// symbol becomes one function of its library. In a library without symbols, a function is named by
/// the offset of its start, such as `libcoreclr.so+0x1234`. If the start is unknown, too, it is
/// named by the address's own offset. A kernel without symbols becomes one function. Interrupts of
/// the kernel have no caller.
pub fn name_native_code(recording: &mut Recording) {
    for process in &mut recording.processes {
        let Process { functions, modules, native_symbols, stacks, .. } = process;
        if stacks.native_places().next().is_none() {
            add_libraries(process);
            continue;
        }
        let mut known = FxHashMap::default();
        let thread_start = thread_start(modules, native_symbols, stacks);
        Arc::make_mut(stacks).name_native_places(|module, offset| {
            let symbol = NativeSymbol::find(native_symbols, module, offset);
            let mut named = function_at(modules.get(module as usize), module, symbol, offset);
            if symbol.is_some_and(|symbol| Some((module, symbol.offset)) == thread_start) {
                [named.name, named.signature, named.raw_name] = [THREAD_START; 3].map(str::to_owned);
            }
            let has_caller = named.name != INTERRUPTS;
            let function = *known.entry((module, named.name.clone())).or_insert_with(|| {
                functions.push(named);
                functions.len() as u32 - 1
            });
            NamedPlace { function, has_caller }
        });
        add_libraries(process);
    }
}

/// Removes the frames of inlined methods. Their time then counts for the methods that contain them.
/// Call it before any view reads the recording.
pub fn leave_inlined_out(recording: &mut Recording) {
    for process in &mut recording.processes {
        Arc::make_mut(&mut process.stacks).leave_inlined_out();
        process.derived = Derived::default();
    }
}

/// Adds a function for each library that has functions without symbols. Those functions are folded
/// into it.
fn add_libraries(process: &mut Process) {
    let named = |function| FunctionRef::new(process, Some(function));
    let nameless = process.functions.iter().filter(|function| named(function).is_nameless());
    let modules: BTreeSet<u32> = nameless.map(|function| function.module).collect();
    let added = modules.into_iter().map(|module| {
        let name = library_frame(process.modules.get(module as usize));
        Function {
            signature: name.clone(),
            raw_name: name.clone(),
            name,
            module,
            kind: FunctionKind::Native,
            ..Function::default()
        }
    });
    let added: Vec<Function> = added.collect();
    process.functions.extend(added);
}

/// Name of the C library's function in which threads start, which has no symbol.
const THREAD_START: &str = "[thread start]";

/// The C library's function in which threads start, as module and offset: the function without a
/// symbol that is outermost on most stacks. Other stacks end in the library only where unwinding
/// failed.
fn thread_start(modules: &[Module], symbols: &[NativeSymbol], stacks: &Stacks) -> Option<(u32, u32)> {
    let is_c_library = |module: u32| {
        let named = modules.get(module as usize).filter(|module| module.kind == ModuleKind::Native);
        named.is_some_and(|module| ["libc.so", "libc-2", "libpthread"].iter().any(|name| module.name.starts_with(name)))
    };
    let mut counts: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    for (module, offset, count) in stacks.native_roots().filter(|(module, ..)| is_c_library(*module)) {
        let symbol = NativeSymbol::find(symbols, module, offset).filter(|symbol| symbol.name.is_empty());
        symbol.into_iter().for_each(|symbol| *counts.entry((module, symbol.offset)).or_default() += count);
    }
    counts.into_iter().max_by_key(|(place, count)| (*count, *place)).map(|(place, _)| place)
}

/// Name and symbol of the frame between a signal handler and the interrupted code.
const SIGNAL: &str = "[signal]";
const SIGNAL_RETURN: &str = "__restore_rt";

/// Name of the function that represents all entry points of interrupts in the kernel.
const INTERRUPTS: &str = "[interrupts]";

/// Whether a function of the kernel is the entry point of an interrupt from a device, another
/// processor or a timer. Page faults and the like are not interrupts, because their time belongs to
/// the code in which they occurred.
fn enters_interrupt(name: &str) -> bool {
    const OTHERS: [&str; 3] = ["asm_common_interrupt", "asm_spurious_interrupt", "asm_exc_nmi"];
    name.starts_with("asm_sysvec_") || OTHERS.contains(&name)
}

/// The function for a place in a module.
fn function_at(of: Option<&Module>, module: u32, symbol: Option<&NativeSymbol>, offset: u32) -> Function {
    let library = library_of(of);
    let kind = of.map_or(ModuleKind::Native, |module| module.kind);
    let name = match (symbol, kind) {
        // Time at an unknown place in the kernel is charged to the kernel's first byte.
        (_, ModuleKind::Kernel) if offset == 0 => library.to_owned(),
        (Some(symbol), ModuleKind::Kernel) if enters_interrupt(&symbol.name) => INTERRUPTS.to_owned(),
        (Some(symbol), ModuleKind::Native) if symbol.name == SIGNAL_RETURN => SIGNAL.to_owned(),
        (Some(symbol), _) if !symbol.name.is_empty() => symbol.name.clone(),
        (_, ModuleKind::Kernel | ModuleKind::Stub) => library.to_owned(),
        (Some(symbol), _) => format!("{library}+{:#x}", symbol.offset),
        (None, _) => format!("{library}+{offset:#x}"),
    };
    let kind = match kind {
        ModuleKind::Managed | ModuleKind::Native => FunctionKind::Native,
        ModuleKind::Kernel => FunctionKind::Kernel,
        ModuleKind::Stub => FunctionKind::Stub,
    };
    Function { signature: name.clone(), raw_name: name.clone(), name, module, kind, ..Function::default() }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{StackFrame, StacksBuilder};

    use super::*;

    #[test]
    fn places_in_native_code_become_functions_of_their_libraries() {
        let module = |name: &str, kind| Module { name: name.into(), kind, ..Module::default() };
        let mut stacks = StacksBuilder::default();
        let native = |module, offset| StackFrame::Native { module, offset };
        let places = [(1, 0x12), (1, 0x15), (1, 0x20), (1, 0x31), (1, 0x90), (2, 7), (2, 0), (3, 1), (9, 1)];
        let numbers = places.map(|(module, offset)| stacks.stack(&[native(module, offset)], false));
        let symbol = |offset, name: &str| NativeSymbol { module: 1, offset, size: 8, name: name.into() };
        let process = Process {
            functions: vec![Function::default(); 3],
            modules: vec![
                Module::default(),
                module("libx.so", ModuleKind::Native),
                module("[kernel]", ModuleKind::Kernel),
                module("[stub]", ModuleKind::Stub),
            ],
            native_symbols: vec![
                symbol(0x10, "begin"),
                symbol(0x1e, ""),
                symbol(0x30, "__restore_rt"),
                NativeSymbol { module: 2, offset: 0, size: 4, name: "_text".into() },
            ],
            stacks: Arc::new(stacks.finish()),
            ..Process::default()
        };
        let mut recording = Recording { processes: vec![process], ..Recording::default() };
        name_native_code(&mut recording);
        let process = &recording.processes[0];
        let name = |number: u32| match process.stacks.frames(number).next() {
            Some(StackFrame::Method { function, .. }) => {
                let function = &process.functions[function as usize];
                (function.name.as_str(), function.kind.name(), function.module)
            }
            other => panic!("{other:?}"),
        };
        let expected = [
            ("begin", "native", 1),
            ("begin", "native", 1),
            ("libx.so+0x1e", "native", 1),
            ("[signal]", "native", 1),
            ("libx.so+0x90", "native", 1),
            ("[kernel]", "kernel", 2),
            ("[kernel]", "kernel", 2),
            ("[stub]", "stub", 3),
            ("(unknown)+0x1", "native", 9),
        ];
        assert_eq!(numbers.map(name), expected);
        assert_eq!(process.functions.len(), 3 + 7 + 2);
        let libraries: Vec<&str> = process.functions[10..].iter().map(|function| function.name.as_str()).collect();
        assert_eq!(libraries, ["[libx.so]", "[unknown library]"], "code without names is folded into these");
        assert_eq!(process.stacks.native_places().count(), 0);
    }

    #[test]
    fn the_function_that_threads_start_in_has_a_name() {
        let mut stacks = StacksBuilder::default();
        let native = |module, offset| StackFrame::Native { module, offset };
        let own = StackFrame::method(0, None);
        // Lost in the C library; then two threads.
        stacks.stack(&[own, native(1, 0x88)], false);
        let numbers =
            [1, 2].map(|method| stacks.stack(&[StackFrame::method(method, None), own, native(1, 0x14)], false));
        let symbol = |offset| NativeSymbol { module: 1, offset, size: 0x20, name: String::new() };
        let module = Module { name: "libc.so.6".into(), kind: ModuleKind::Native, ..Module::default() };
        let process = Process {
            functions: vec![Function::default(); 3],
            modules: vec![Module::default(), module],
            native_symbols: vec![symbol(0x10), symbol(0x80)],
            stacks: Arc::new(stacks.finish()),
            ..Process::default()
        };
        let mut recording = Recording { processes: vec![process], ..Recording::default() };
        name_native_code(&mut recording);
        let process = &recording.processes[0];
        let names: Vec<&str> = process.functions[3..].iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["libc.so.6+0x80", "[thread start]", "[libc.so.6]"]);
        for number in numbers {
            let outermost = process.stacks.frames(number).last();
            assert_eq!(outermost, Some(StackFrame::method(4, None)));
        }
    }

    #[test]
    fn interrupts_are_no_callees_of_what_they_interrupted() {
        let mut stacks = StacksBuilder::default();
        let [irq, entry, fault] = [0x30, 0x20, 0x40].map(|offset| StackFrame::Native { module: 1, offset });
        let own = StackFrame::method(0, None);
        let interrupted = stacks.stack(&[irq, entry, own], false);
        let faulted = stacks.stack(&[fault, own], false);
        let symbol = |offset, name: &str| NativeSymbol { module: 1, offset, size: 8, name: name.into() };
        let kernel = Module { name: "[kernel]".into(), kind: ModuleKind::Kernel, ..Module::default() };
        let process = Process {
            functions: vec![Function { name: "Shop.Cart::Add".into(), ..Function::default() }],
            modules: vec![Module::default(), kernel],
            native_symbols: vec![
                symbol(0x20, "asm_sysvec_apic_timer_interrupt"),
                symbol(0x30, "irq_exit_rcu"),
                symbol(0x40, "asm_exc_page_fault"),
            ],
            stacks: Arc::new(stacks.finish()),
            ..Process::default()
        };
        let mut recording = Recording { processes: vec![process], ..Recording::default() };
        name_native_code(&mut recording);
        let process = &recording.processes[0];
        let names = |number: u32| -> Vec<&str> {
            let name = |frame| match frame {
                StackFrame::Method { function, .. } => process.functions[function as usize].name.as_str(),
                other => panic!("{other:?}"),
            };
            process.stacks.frames(number).map(name).collect()
        };
        assert_eq!(names(interrupted), ["irq_exit_rcu", "[interrupts]"]);
        assert_eq!(names(faulted), ["asm_exc_page_fault", "Shop.Cart::Add"]);
    }
}
