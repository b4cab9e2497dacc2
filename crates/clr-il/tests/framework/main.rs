//! Every body of every assembly that comes with the runtimes at hand, read, changed and written.

mod image;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clr_il::{
    Body, Code, Edits, Error, Instruction, Opcode, Operand, ResultPlace, length, method_shape, raw_instructions,
};
use clrscope_testkit as testkit;
use image::{Image, MEMBER_REF, METHOD_DEF, METHOD_SPEC, STAND_ALONE_SIG};

/// Bodies that each runtime has at least: one that is read as empty would pass any test.
const FEWEST: usize = 50_000;

/// Calls `test` with each method that has a body, of all assemblies of a folder, on all processors.
/// Gives their number.
fn each_body(folder: &Path, test: impl Fn(&Image<'_>, usize, &[u8]) + Sync) -> usize {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the runtime").map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "dll"));
    let files = Mutex::new(files);
    let count = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let file = files.lock().expect("no test panics with it").pop();
                    let Some(file) = file else { return };
                    let bytes = fs::read(&file).expect("the file can be read");
                    count.fetch_add(bodies_of(&bytes, &test), Ordering::Relaxed);
                }
            });
        }
    });
    count.into_inner()
}

fn bodies_of(file: &[u8], test: impl Fn(&Image<'_>, usize, &[u8])) -> usize {
    let image = Image::new(file);
    let mut count = 0;
    for row in 1..=image.rows(METHOD_DEF) {
        let (address, kind) = (image.cell(METHOD_DEF, row, 0), image.cell(METHOD_DEF, row, 1));
        // Abstract methods and those of the runtime have no body; native ones have no IL.
        if address == 0 || kind & 3 != 0 {
            continue;
        }
        let bytes = image.at(address);
        let bytes = &bytes[..length(bytes).expect("a body")];
        test(&image, row, bytes);
        count += 1;
    }
    count
}

fn each_framework_body(test: impl Fn(&Image<'_>, usize, &[u8]) + Sync) {
    testkit::each_runtime(|runtime| {
        let mut count = 0;
        for framework in ["Microsoft.NETCore.App", "Microsoft.AspNetCore.App"] {
            let folder = runtime.root.join(format!("shared/{framework}/{}", runtime.version));
            if folder.is_dir() {
                count += each_body(&folder, &test);
            }
        }
        testkit::say(&format!("{count} bodies"));
        assert!(count > FEWEST, "{count} bodies of .NET {}", runtime.version);
    });
}

/// The body with all branches long and a `nop` before each instruction that takes one.
fn changed(body: &Body) -> Body {
    let mut changed = body.clone();
    let mut edits = Edits::new();
    edits.lengthen_branches();
    for place in body.places() {
        edits.before(place, Code::new().plain(Opcode::Nop));
    }
    changed.apply(&edits).expect("nops go anywhere");
    changed
}

/// Values that a call takes and gives, and what `ret` takes, by the signatures of the assembly.
fn amounts(image: &Image<'_>, method: usize, instruction: &Instruction) -> Option<(u16, u16)> {
    let signature_of = |table: usize, row: usize| match table {
        METHOD_DEF => Some(image.blob(image.cell(METHOD_DEF, row, 4))),
        MEMBER_REF => Some(image.blob(image.cell(MEMBER_REF, row, 2))),
        STAND_ALONE_SIG => Some(image.blob(image.cell(STAND_ALONE_SIG, row, 0))),
        _ => None,
    };
    if instruction.opcode() == Opcode::Ret {
        let shape = method_shape(signature_of(METHOD_DEF, method)?).ok()?;
        return Some((shape.result.is_some().into(), 0));
    }
    let &Operand::Token(token) = instruction.operand() else { return None };
    let (mut table, mut row) = ((token >> 24) as usize, (token & 0x00ff_ffff) as usize);
    if table == METHOD_SPEC {
        let method = image.cell(METHOD_SPEC, row, 0);
        (table, row) = (if method & 1 == 0 { METHOD_DEF } else { MEMBER_REF }, method >> 1);
    }
    let shape = method_shape(signature_of(table, row)?).ok()?;
    let (takes, gives) = (u16::try_from(shape.takes).ok()?, u16::from(shape.result.is_some()));
    match instruction.opcode() {
        // The object that is made stands for `this`.
        Opcode::Newobj => Some((takes - 1, 1)),
        Opcode::Calli => Some((takes + 1, gives)),
        _ => Some((takes, gives)),
    }
}

#[test]
fn bodies_of_the_framework_come_out_as_they_were_and_mean_the_same_when_changed() {
    each_framework_body(|_, row, bytes| {
        let body = Body::read(bytes).unwrap_or_else(|error| panic!("method {row}: {error}"));
        assert_eq!(body.write().as_deref(), Ok(bytes), "method {row}");
        let raw = raw_instructions(bytes).expect("it was read").map(|one| one.map(|one| (one.offset, one.opcode)));
        let raw: Result<Vec<_>, Error> = raw.collect();
        let read = body.instructions().iter().map(|one| (one.label().offset().expect("read"), one.opcode()));
        assert_eq!(raw, Ok(read.collect()), "method {row}");

        let written = changed(&body).write().unwrap_or_else(|error| panic!("method {row}: {error}"));
        assert!(written.len() > bytes.len(), "method {row}");
        let again = Body::read(&written).unwrap_or_else(|error| panic!("method {row}: {error}"));
        assert!(again.means(&body), "method {row} means something else");
        assert!(again.max_stack() >= body.max_stack(), "method {row}");
        let is_short = |opcode: Opcode| opcode.long_form() != opcode;
        assert!(!again.instructions().iter().any(|one| is_short(one.opcode())), "method {row} has a short branch");
    });
}

#[test]
fn the_depth_of_the_stack_is_within_what_headers_say_and_stays_so_around_exits() {
    let exact = AtomicUsize::new(0);
    let fat = AtomicUsize::new(0);
    each_framework_body(|image, row, bytes| {
        let body = Body::read(bytes).expect("a body");
        let depth_of = |body: &Body| {
            let depth = body.deepest_stack(|instruction| amounts(image, row, instruction));
            depth.unwrap_or_else(|error| panic!("method {row}: {error}"))
        };
        let depth = depth_of(&body);
        assert!(depth <= u32::from(body.max_stack()), "method {row}: {depth} of {}", body.max_stack());
        if bytes[0] & 3 == 3 {
            fat.fetch_add(1, Ordering::Relaxed);
            exact.fetch_add(usize::from(depth == u32::from(body.max_stack())), Ordering::Relaxed);
        }

        let shape = method_shape(image.blob(image.cell(METHOD_DEF, row, 4))).expect("a signature");
        let mut edits = Edits::new();
        edits.at_entry(Code::add_one(1));
        edits.at_returns(Code::set_one(2));
        edits.at_exits(Code::add_one(3));
        edits.set_result(if shape.result.is_some() { ResultPlace::Local(u16::MAX) } else { ResultPlace::None });
        edits.drop_tail_calls();
        let mut wrapped = body.clone();
        wrapped.apply(&edits).unwrap_or_else(|error| panic!("method {row}: {error}"));
        let again = Body::read(&wrapped.write().expect("written")).expect("read again");
        assert!(again.means(&wrapped), "method {row} is written as something else");
        assert_eq!(again.clauses().len(), body.clauses().len() + 1, "method {row}");
        let depth = depth_of(&again);
        assert!(depth <= u32::from(again.max_stack()), "method {row}: {depth} of {}", again.max_stack());
    });
    // Compilers say the exact depth nearly always: a table that takes or gives too little would be
    // seen.
    let (exact, fat) = (exact.into_inner(), fat.into_inner());
    testkit::say(&format!("{exact} of {fat} headers say the exact depth"));
    assert!(exact * 10 > fat * 9, "{exact} of {fat} headers say the exact depth");
}
