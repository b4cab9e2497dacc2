//! Handmade recordings of samples, with known results for code that reads samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::layout::{function, instrument};
use crate::model::{
    EventArena, EventChunk, Exit, Function, FunctionKind, Module, ModuleKind, Process, Recording, Run, Sample, Sampler,
    SamplingEngine, StackFrame, StacksBuilder, Thread, ThreadRole, Tier,
};

/// Nanoseconds per sample, unless a test sets another value.
pub const STEP_NS: u64 = 1_000_000;

/// A process, and the samples that a test adds to it.
#[derive(Debug)]
pub struct HandSampled {
    process: Process,
    functions: BTreeMap<String, u32>,
    modules: BTreeMap<String, u32>,
    stacks: StacksBuilder,
    samples: BTreeMap<&'static str, Vec<Sample>>,
    filters: String,
    tiers: BTreeMap<String, Tier>,
}

impl Default for HandSampled {
    fn default() -> Self {
        let process = Process {
            pid: 7,
            runtime: ".NET 9.0.0".to_owned(),
            duration_ns: 1_000 * STEP_NS,
            complete: true,
            functions: vec![Function::default(); function::FIRST as usize],
            modules: vec![Module::default()],
            ..Process::default()
        };
        Self {
            process,
            functions: BTreeMap::new(),
            modules: BTreeMap::new(),
            stacks: StacksBuilder::default(),
            samples: BTreeMap::new(),
            filters: String::new(),
            tiers: BTreeMap::new(),
        }
    }
}

impl HandSampled {
    /// Adds a thread; the first has the serial number 1.
    pub fn thread(&mut self, name: &str, role: ThreadRole) -> u32 {
        let id = self.process.threads.len() as u32 + 1;
        self.process.threads.push(Thread { id, os_id: 100 + id, name: name.to_owned(), role, ..Thread::default() });
        id
    }

    /// Sets the number of processors that the process may use; without a call the number is
    /// unknown.
    pub fn processors(&mut self, processors: u32) {
        self.process.processors = processors;
    }

    /// Sets the tier of a method's frames in later samples; the default is tier 1.
    pub fn tier(&mut self, method: &str, tier: Tier) {
        self.tiers.insert(method.to_owned(), tier);
    }

    /// Sets the filters of the request, as a recording stores them: `;just-my-code`.
    pub fn filters(&mut self, filters: &str) {
        filters.clone_into(&mut self.filters);
    }

    /// Adds a sample of `cpu` on a thread, `step` steps after the start. `path` lists the frames,
    /// outermost first: `App::Main > System.String::Concat > libc.so!memcpy`. The beginning of a
    /// name gives the assembly: `App` is the program's, `Lib` is a framework assembly, and other
    /// names belong to the framework's core library. A name with `!` belongs to a native library,
    /// or to the kernel if the library is `kernel`. `@` and a number after a method are an IL
    /// offset.
    pub fn cpu(&mut self, thread: u32, step: u64, path: &str) -> &mut Sample {
        self.add_sample(instrument::CPU, thread, step, path)
    }

    /// Adds a sample of `wall`; otherwise as [`cpu`](Self::cpu).
    pub fn wall(&mut self, thread: u32, step: u64, path: &str) -> &mut Sample {
        self.add_sample(instrument::WALL, thread, step, path)
    }

    fn add_sample(&mut self, instrument: &'static str, thread: u32, step: u64, path: &str) -> &mut Sample {
        let names = path.split('>').map(str::trim).filter(|name| !name.is_empty()).rev();
        let frames: Vec<StackFrame> = names.map(|name| self.frame(name)).collect();
        let stack = self.stacks.stack(&frames, false);
        let taken = self.samples.entry(instrument).or_default();
        let (time_ns, weight_ns) = (step * STEP_NS, STEP_NS);
        taken.push(Sample { time_ns, weight_ns, thread, stack, count: 1, complete: true, ..Sample::default() });
        taken.last_mut().expect("the sample that was pushed")
    }

    fn frame(&mut self, name: &str) -> StackFrame {
        let (name, place) = match name.split_once('@') {
            Some((name, offset)) => (name, offset),
            None => (name, ""),
        };
        let (il_offset, il_span) = match place.split_once('+') {
            Some((offset, span)) => (offset.parse().ok(), span.parse().unwrap_or(0)),
            None => (place.parse().ok(), 0),
        };
        let tier = self.tiers.get(name).copied().unwrap_or(Tier::Tier1);
        if let Some(&known) = self.functions.get(name) {
            return StackFrame::Method { function: known, il_offset, il_span, tier };
        }
        let (module, plain, kind) = match name.split_once('!') {
            Some(("kernel", plain)) => ("[kernel]", plain, FunctionKind::Kernel),
            Some((library, plain)) => (library, plain, FunctionKind::Native),
            None if name.starts_with("App") => ("App", name, FunctionKind::Managed),
            None if name.starts_with("Lib") => ("Lib", name, FunctionKind::Managed),
            None => ("System.Private.CoreLib", name, FunctionKind::Managed),
        };
        let module = self.module(module, kind);
        let token = if kind == FunctionKind::Managed { 0x0600_0000 + self.functions.len() as u32 + 1 } else { 0 };
        let plain = plain.to_owned();
        let made = Function {
            signature: plain.clone(),
            raw_name: plain.clone(),
            name: plain,
            module,
            token,
            kind,
            ..Function::default()
        };
        self.process.functions.push(made);
        let index = self.process.functions.len() as u32 - 1;
        self.functions.insert(name.to_owned(), index);
        StackFrame::Method { function: index, il_offset, il_span, tier }
    }

    fn module(&mut self, name: &str, kind: FunctionKind) -> u32 {
        if let Some(&known) = self.modules.get(name) {
            return known;
        }
        let kind = match kind {
            FunctionKind::Kernel => ModuleKind::Kernel,
            FunctionKind::Native => ModuleKind::Native,
            _ => ModuleKind::Managed,
        };
        let framework = kind == ModuleKind::Managed && name != "App";
        let path = format!("/app/{name}.dll");
        self.process.modules.push(Module { name: name.to_owned(), path, framework, kind, ..Module::default() });
        let index = self.process.modules.len() as u32 - 1;
        self.modules.insert(name.to_owned(), index);
        index
    }

    /// The process.
    #[must_use]
    pub fn process(self) -> Process {
        let mut process = self.process;
        process.stacks = Arc::new(self.stacks.finish());
        for (instrument, samples) in self.samples {
            let chunk = |(sequence, part): (u64, &[Sample])| {
                let bytes: Vec<u8> = part.iter().flat_map(Sample::to_bytes).collect();
                EventChunk { thread: u32::MAX, sequence, bytes: bytes.into() }
            };
            let chunks = (1..).zip(samples.chunks(100)).map(chunk).collect();
            process.events.push(EventArena { instrument: instrument.to_owned(), chunks });
            let is_cpu = instrument == instrument::CPU;
            process.samplers.push(Sampler {
                instrument: instrument.to_owned(),
                engine: if is_cpu { SamplingEngine::Timer } else { SamplingEngine::Signals },
                interval_ns: STEP_NS,
                reached_ns: if is_cpu { 4 * STEP_NS } else { STEP_NS },
                ..Sampler::default()
            });
        }
        process
    }

    /// A recording that consists of this process.
    #[must_use]
    pub fn recording(self) -> Recording {
        let instruments: Vec<&str> = self.samples.keys().copied().collect();
        let given = instruments.join(";");
        let filled = format!("{given}{}", self.filters);
        let process = self.process();
        let run = Run {
            command: vec!["dotnet".to_owned(), "app.dll".to_owned()],
            duration_ns: process.duration_ns,
            exit: Some(Exit::Code(0)),
            given: given.into(),
            filled: filled.into(),
            ..Run::default()
        };
        Recording { run, processes: vec![process], ..Recording::default() }
    }
}
