//! Checks of steps against two independent sources, at every instruction of compiled code.
//!
//! One source is the effect of the code itself on the stack: a disassembler follows its
//! instructions from the entry along all branches, without any unwind information. The other source
//! is another unwinder for the same unwind information (Mozilla's crate `pe-unwind-info`). It is
//! used only after prologs and outside of epilogs, as it takes every jump for the end of an epilog.
//! It does not know the operation that the runtime has added. The bodies are those of the
//! framework's precompiled images, and those that the runtime has compiled in a program that runs
//! without us, found by the runtime's own list of code.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clrscope_testkit::{Runtime, each_runtime, fixture, say, wait_until};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use pe_unwind_info::x86_64::{Register as PeRegister, UnwindInfo as PeInfo, UnwindState, XmmRegister};

use super::arch::{Base, FrameStep};
use super::images::ImagePiece;
use super::tables::{BodyCode, BodyStep, BodyUnwind, Memory, OwnMemory};

/// State of a frame at an instruction, in bytes below the caller's stack pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Frame {
    /// The stack pointer; `None` if it was moved by an amount that the code does not determine.
    sp: Option<i64>,
    bp: FramePointer,
    /// Position where the caller's frame pointer was pushed.
    saved: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FramePointer {
    /// The frame pointer of the caller, unchanged.
    Callers,
    At(i64),
    /// Another value: in handler blocks, the one of another method.
    Other,
}

impl Frame {
    const ENTRY: Self = Self { sp: Some(8), bp: FramePointer::Callers, saved: None };

    const UNKNOWN: Self = Self { sp: None, bp: FramePointer::Other, saved: None };

    /// The frame after an instruction.
    fn behind(mut self, instruction: &Instruction) -> Self {
        let constant = |at: u32| instruction.immediate(at) as i64;
        let is = |at: u32, register: Register| {
            instruction.op_kind(at) == OpKind::Register && instruction.op_register(at) == register
        };
        let has_constant = !matches!(instruction.op_kind(1), OpKind::Register | OpKind::Memory);
        match instruction.mnemonic() {
            Mnemonic::Push => {
                self.sp = self.sp.map(|sp| sp + 8);
                if is(0, Register::RBP) && self.bp == FramePointer::Callers {
                    self.saved = self.sp;
                }
            }
            Mnemonic::Pop => {
                if is(0, Register::RBP) {
                    let is_saved = self.saved.is_some() && self.saved == self.sp;
                    self.bp = if is_saved { FramePointer::Callers } else { FramePointer::Other };
                }
                self.sp = self.sp.map(|sp| sp - 8);
            }
            Mnemonic::Sub if is(0, Register::RSP) => {
                self.sp = self.sp.filter(|_| has_constant).map(|sp| sp + constant(1));
            }
            Mnemonic::Add if is(0, Register::RSP) => {
                self.sp = self.sp.filter(|_| has_constant).map(|sp| sp - constant(1));
            }
            Mnemonic::Lea if is(0, Register::RSP) => self.sp = self.address(instruction),
            Mnemonic::Mov if is(0, Register::RSP) => {
                self.sp = if is(1, Register::RBP) { self.frame_pointer() } else { None };
            }
            Mnemonic::Lea if is(0, Register::RBP) => self.set(self.address(instruction)),
            Mnemonic::Mov if is(0, Register::RBP) => {
                self.set(if is(1, Register::RSP) { self.sp } else { None });
            }
            Mnemonic::And if is(0, Register::RSP) => self.sp = None,
            _ => {}
        }
        self
    }

    fn frame_pointer(self) -> Option<i64> {
        if let FramePointer::At(at) = self.bp { Some(at) } else { None }
    }

    fn set(&mut self, at: Option<i64>) {
        self.bp = at.map_or(FramePointer::Other, FramePointer::At);
    }

    /// The memory address that an instruction computes.
    fn address(self, instruction: &Instruction) -> Option<i64> {
        let base = match instruction.memory_base() {
            Register::RSP => self.sp,
            Register::RBP => self.frame_pointer(),
            _ => None,
        };
        base.filter(|_| instruction.memory_index() == Register::None)
            .map(|base| base - instruction.memory_displacement64() as i64)
    }

    /// Whether a step leads to the caller from here; `None` if the code does not determine it.
    fn agrees(self, step: FrameStep) -> Option<bool> {
        let base = match step.base {
            Base::StackPointer => self.sp?,
            // In a handler's block, which has taken over its method's frame pointer or was given
            // it.
            Base::FramePointer if self.bp == FramePointer::Other => return None,
            Base::FramePointer if self.bp == FramePointer::Callers && self.saved.is_none() => return None,
            Base::FramePointer => self.frame_pointer().unwrap_or(i64::MIN),
        };
        let leads_on = match step.frame_pointer {
            None => self.bp == FramePointer::Callers,
            Some(at) => self.saved == Some(base.wrapping_sub(at.into())),
        };
        Some(base == i64::from(step.to_caller) && leads_on)
    }
}

/// Frames at the instructions of a piece of code that are reachable from its entry.
fn follow(code: &[u8], start: u64) -> HashMap<u64, (Frame, Instruction)> {
    let (mut found, mut waiting) = (HashMap::new(), vec![(start, Frame::ENTRY)]);
    let inside = start..start + code.len() as u64;
    while let Some((mut at, mut frame)) = waiting.pop() {
        while inside.contains(&at) && !found.contains_key(&at) {
            let mut decoder = Decoder::with_ip(64, &code[(at - start) as usize..], at, DecoderOptions::NONE);
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                break;
            }
            found.insert(at, (frame, instruction));
            frame = frame.behind(&instruction);
            match instruction.flow_control() {
                FlowControl::UnconditionalBranch => waiting.push((instruction.near_branch_target(), frame)),
                FlowControl::ConditionalBranch => waiting.push((instruction.near_branch_target(), frame)),
                _ => {}
            }
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall | FlowControl::ConditionalBranch => {}
                _ => break,
            }
            at = instruction.next_ip();
        }
    }
    found
}

/// Counts of a check.
#[derive(Default, Debug)]
struct CheckSums {
    bodies: u64,
    unknown: u64,
    /// Number of steps compared with the code, and with the other unwinder.
    by_code: u64,
    by_unwinder: u64,
    /// Number of steps that the code does not determine.
    silent: u64,
    reached: u64,
    wrong: Vec<String>,
}

impl CheckSums {
    fn add(&mut self, other: Self) {
        self.bodies += other.bodies;
        self.unknown += other.unknown;
        self.by_code += other.by_code;
        self.by_unwinder += other.by_unwinder;
        self.silent += other.silent;
        self.reached += other.reached;
        self.wrong.extend(other.wrong);
    }

    /// Checks all steps of a body, whose pieces have unwind information at these addresses.
    fn body(&mut self, body: BodyCode<'_>, pieces: &[(Range<usize>, usize)], name: &str) {
        self.bodies += 1;
        let unwind = BodyUnwind::find(body);
        if unwind == BodyUnwind::Unknown {
            self.unknown += 1;
            return;
        }
        for (nth, (piece, info)) in pieces.iter().enumerate() {
            let mut code = vec![0; piece.len()];
            assert!(body.memory.copy(piece.start, &mut code), "{name}: its code can't be read");
            let mut bytes = vec![0; 4 + 2 * 255];
            let there = body.memory.copy_while_there(*info, &mut bytes);
            let other = PeInfo::parse(&bytes[..there]);
            // If a body took over a running frame, its code begins in the middle of the operations
            // that its unwind information describes.
            let took_over = name.ends_with("OSR]");
            for (at, (frame, instruction)) in follow(&code, piece.start as u64) {
                self.reached += 1;
                let frame = if took_over { Frame::UNKNOWN } else { frame };
                let step = |address: u64, is_return| unwind.step(body, address as usize, is_return);
                let here = step(at, false);
                self.by_code((frame, nth > 0), here, || {
                    format!("{name}+{:#x}: {:?}", at as usize - body.code.start, instruction.code())
                });
                if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
                    let next = step(instruction.next_ip(), true);
                    self.by_code((frame, nth > 0), next, || {
                        format!("{name}+{:#x}: behind {:?}", at as usize - body.code.start, instruction.code())
                    });
                    let is_behind = at as usize - piece.start >= bytes[1].into();
                    let knows = nth == 0 && is_behind && !has_own_operation(&bytes);
                    if let Some(other) = other.as_ref().filter(|_| knows) {
                        self.by_unwinder(other, next, || format!("{name}+{:#x}", at as usize - body.code.start));
                    }
                }
            }
        }
    }

    /// Compares a step with the code. In a handler's block that has not taken over its method's
    /// frame yet, the step may be uncertain.
    fn by_code(&mut self, (frame, in_block): (Frame, bool), found: BodyStep, place: impl Fn() -> String) {
        match frame.agrees(found.step) {
            None => self.silent += 1,
            Some(agrees) => {
                self.by_code += 1;
                if !agrees || !found.is_certain && !in_block {
                    self.wrong.push(format!("{}: {found:?}, but {frame:?}", place()));
                }
            }
        }
    }

    /// Compares a step after the prolog with that of another unwinder, which applies all
    /// operations.
    fn by_unwinder(&mut self, other: &PeInfo<'_>, found: BodyStep, place: impl Fn() -> String) {
        const SP: u64 = 1 << 20;
        const BP: u64 = SP + (1 << 12);
        let mut state = Registers { sp: SP, bp: BP };
        let mut operations = other.unwind_operations();
        let done = operations.all(|(_, operation)| other.resolve_operation(&mut state, &operation).is_some());
        if !done {
            return;
        }
        self.by_unwinder += 1;
        let base = if found.step.base == Base::StackPointer { SP } else { BP };
        let at = |bytes: i32| base.wrapping_add_signed(bytes.into());
        let bp = found.step.frame_pointer.map_or(BP, |bytes| Registers::word(at(bytes)));
        if (state.sp + 8, state.bp) != (at(found.step.to_caller), bp) {
            self.wrong.push(format!("{}: {found:?}, but the other unwinder {state:?}", place()));
        }
    }
}

/// Whether unwind information contains the operation that the runtime has added.
fn has_own_operation(info: &[u8]) -> bool {
    let mut codes = info.get(4..4 + 2 * usize::from(info[2])).unwrap_or_default().as_chunks::<2>().0;
    while let [[_, code], ..] = codes {
        let slots = match (code & 0xF, code >> 4) {
            (11, _) => return true,
            (1, 1) | (5 | 9, _) => 3,
            (1 | 4 | 8, _) => 2,
            _ => 1,
        };
        codes = codes.get(slots..).unwrap_or_default();
    }
    false
}

/// Registers of the other unwinder, and a stack with a different word at each address.
#[derive(Debug)]
struct Registers {
    sp: u64,
    bp: u64,
}

impl Registers {
    fn word(address: u64) -> u64 {
        address ^ 0x5A5A_0000_0000
    }
}

impl UnwindState for Registers {
    fn read_register(&mut self, register: PeRegister) -> u64 {
        match register {
            PeRegister::RSP => self.sp,
            PeRegister::RBP => self.bp,
            _ => 0,
        }
    }

    fn read_stack(&mut self, address: u64) -> Option<u64> {
        Some(Self::word(address))
    }

    fn write_register(&mut self, register: PeRegister, value: u64) {
        match register {
            PeRegister::RSP => self.sp = value,
            PeRegister::RBP => self.bp = value,
            _ => {}
        }
    }

    fn write_xmm_register(&mut self, _register: XmmRegister, _value: u128) {}
}

/// Whether everything is checked, not only a part.
fn whole() -> bool {
    std::env::var_os("CLRSCOPE_TEST_ALL").is_some_and(|is| is == "1")
}

/// An image as the runtime lays it out in memory; `None` for one without precompiled code.
fn laid_out(file: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(file).expect("the image");
    let number = |at: usize, width: usize| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(&bytes[at..at + width]);
        usize::from_le_bytes(word)
    };
    let head = number(0x3C, 4);
    let (sections, optional) = (number(head + 6, 2), number(head + 20, 2));
    // The number of the system is mixed into that of the processor.
    if number(head + 4, 2) == 0x14C || number(head + 24, 2) != 0x20B {
        return None;
    }
    let mut image = vec![0; number(head + 24 + 56, 4)];
    let headers = number(head + 24 + 60, 4);
    image[..headers].copy_from_slice(&bytes[..headers]);
    for section in (0..sections).map(|nth| head + 24 + optional + 40 * nth) {
        let [size, address, stored, offset] = [8, 12, 16, 20].map(|at| number(section + at, 4));
        let length = size.min(stored);
        image[address..address + length].copy_from_slice(&bytes[offset..offset + length]);
    }
    Some(image)
}

/// Checks the bodies of an image: all, or one in `one_of`.
fn check_image(file: &Path, one_of: usize) -> Option<CheckSums> {
    let bytes = laid_out(file)?;
    let base = bytes.as_ptr().expose_provenance();
    let image = super::images::image_at(base)?;
    let pieces = image.pieces_in(0..u32::MAX);
    let mut checked = CheckSums::default();
    // Only the runtime's tables say which pieces belong together. Bodies of one piece each are
    // enough to walk methods without handlers.
    for piece in pieces.iter().step_by(one_of) {
        let ImagePiece { begin, end, unwind_info } = *piece;
        let code = base + begin as usize..base + end as usize;
        let name = format!("{}+{begin:#x}", file.file_name().unwrap_or_default().to_string_lossy());
        let body = BodyCode { code: &code, image: Some(&image), memory: &OwnMemory };
        checked.body(body, &[(code.clone(), base + unwind_info as usize)], &name);
    }
    Some(checked)
}

fn report(what: &str, checked: &CheckSums) {
    let CheckSums { bodies, unknown, by_code, by_unwinder, silent, reached, wrong } = checked;
    say(&format!(
        "{what}: {bodies} bodies ({unknown} without unwind information), {reached} instructions; {by_code} steps as the \
         code has it ({silent} times it says nothing), {by_unwinder} as another unwinder has it, {} wrong",
        wrong.len()
    ));
    assert!(*bodies > 0 && *unknown * 1000 <= *bodies, "{what}: {unknown} of {bodies} have no unwind information");
    assert!(wrong.is_empty(), "{what}: {} wrong, the first {:#?}", wrong.len(), &wrong[..wrong.len().min(12)]);
}

#[test]
fn steps_from_every_instruction_of_precompiled_code_lead_where_the_code_itself_goes() {
    each_runtime(|runtime: &Runtime| {
        let folder = |name: &str| runtime.root.join(format!("shared/{name}/{}", runtime.version));
        let mut checked = CheckSums::default();
        if whole() {
            let folders = ["Microsoft.NETCore.App", "Microsoft.AspNetCore.App"].map(folder);
            let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
            let images = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|is| is == "dll"));
            images.filter_map(|file| check_image(&file, 1)).for_each(|image| checked.add(image));
        } else {
            let core = folder("Microsoft.NETCore.App").join("System.Private.CoreLib.dll");
            checked.add(check_image(&core, 23).expect("precompiled code"));
        }
        report(&format!("precompiled code of .NET {}", runtime.version), &checked);
    });
}

/// Memory of another process.
struct OtherMemory(File);

impl Memory for OtherMemory {
    fn copy_while_there(&self, address: usize, into: &mut [u8]) -> usize {
        self.0.read_at(into, address as u64).unwrap_or(0)
    }
}

/// A method in the runtime's own list of compiled code: `start size name[tier]`.
fn compiled(line: &str) -> Option<(Range<usize>, &str)> {
    let (start, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let hex = |text: &str| usize::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let start = hex(start)?;
    let is_method = name.ends_with(']') && !name.ends_with("[PreJIT]") && !name.ends_with("[ReadyToRun]");
    is_method.then_some((start..start + hex(size)?, name))
}

/// Runs a program without us that compiles everything itself. Checks the runtime's compiled code
/// while the program waits.
fn check_compiled(runtime: &Runtime, variables: &[(&str, &str)], one_of: usize) -> CheckSums {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = runtime.command(&fixture("Counter"));
    command.args(["-", "200000"]).envs(variables.iter().copied());
    command.env("DOTNET_PerfMapEnabled", "1").env("DOTNET_PerfMapJitDumpPath", folder.path());
    let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut answers = BufReader::new(program.stdout.take().expect("its output")).lines();
    writeln!(program.stdin.as_mut().expect("its input"), "go").expect("a word");
    answers.next().expect("an answer").expect("text");
    let map: PathBuf = folder.path().join(format!("perf-{}.map", program.id()));
    let mut list = String::new();
    wait_until("the list of compiled code", || {
        let before = list.len();
        list = fs::read_to_string(&map).unwrap_or_default();
        !list.is_empty() && list.len() == before
    });
    let memory = OtherMemory(File::open(format!("/proc/{}/mem", program.id())).expect("its memory"));
    let mut checked = CheckSums::default();
    for (code, name) in list.lines().filter_map(compiled).step_by(one_of) {
        let body = BodyCode { code: &code, image: None, memory: &memory };
        checked.body(body, &body.pieces_with_info(), name);
    }
    drop(program.stdin.take());
    program.wait().expect("it ends");
    checked
}

#[test]
fn steps_from_every_instruction_of_code_that_was_compiled_a_moment_ago_lead_where_the_code_itself_goes() {
    each_runtime(|runtime| {
        let one_of = if whole() { 1 } else { 5 };
        for variables in [
            &[("DOTNET_ReadyToRun", "0")][..],
            &[("DOTNET_ReadyToRun", "0"), ("DOTNET_TieredCompilation", "0")],
            &[("DOTNET_ReadyToRun", "0"), ("DOTNET_TC_CallCountThreshold", "1"), ("DOTNET_TC_BackgroundDelay", "0")],
        ] {
            let checked = check_compiled(runtime, variables, one_of);
            report(&format!("code compiled by .NET {} with {variables:?}", runtime.version), &checked);
        }
    });
}
