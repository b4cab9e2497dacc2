//! Recordings with any number of samples. The made-up program runs on many threads for a while.

use std::sync::Arc;

use super::samples::STEP_NS;
use crate::layout::{function, instrument};
use crate::model::{
    EventArena, EventChunk, Exit, Function, Module, Process, Recording, Run, Sample, Sampler, SamplingEngine,
    StackFrame, StacksBuilder, Thread, ThreadRole, ThreadState, Tier,
};

/// Size of a made-up recording.
#[derive(Debug, Clone, Copy)]
pub struct Many {
    /// Samples of `cpu`.
    pub samples: u32,
    /// Distinct stacks.
    pub stacks: u32,
    /// Threads.
    pub threads: u32,
}

/// Functions of the program.
const FUNCTIONS: u32 = 20_000;
/// Maximum number of functions that one function calls.
const CALLEES: u32 = 6;
/// Samples per chunk.
const CHUNK: usize = 4_000;
/// Maximum number of frames of a stack.
const DEEPEST: usize = 60;

/// A generator of pseudo-random numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(most.max(1))) as u32
    }
}

impl Many {
    /// The recording with `wall` samples instead of `cpu` samples: threads run, are ready, or wait
    /// in callees of some of the functions.
    #[must_use]
    pub fn by_the_clock(&self) -> Recording {
        let mut recording = self.recording();
        let wall = || instrument::WALL.to_owned();
        (recording.run.given, recording.run.filled) = ("wall".into(), "wall".into());
        for process in &mut recording.processes {
            process.samplers.iter_mut().for_each(|sampler| sampler.instrument = wall());
            for arena in &mut process.events {
                arena.instrument = wall();
                for chunk in &mut arena.chunks {
                    let bytes = chunk.bytes.load();
                    let samples = Sample::all(&bytes).map(|sample| {
                        let state = ThreadState::from_number(1 + sample.stack % 5 * (sample.thread % 2));
                        Sample { state, ..sample }.to_bytes()
                    });
                    let states: Vec<u8> = samples.flatten().collect();
                    chunk.bytes = states.into();
                }
            }
        }
        recording
    }

    /// The recording.
    #[must_use]
    pub fn recording(&self) -> Recording {
        let mut numbers = Numbers(7);
        let mut table = StacksBuilder::default();
        let stacks: Vec<u32> = (0..self.stacks.max(1)).map(|_| table.stack(&path(&mut numbers), false)).collect();
        let duration_ns = u64::from(self.samples / self.threads.max(1)).max(1) * STEP_NS;
        let mut samples = (0..self.samples).map(|number| {
            // Most samples fall into few stacks, as they do.
            let most = if numbers.below(3) == 0 { stacks.len() as u32 } else { stacks.len() as u32 / 50 + 1 };
            let stack = stacks[numbers.below(most) as usize];
            let (round, thread) = (number / self.threads.max(1), number % self.threads.max(1));
            let time_ns = u64::from(round) * STEP_NS;
            Sample {
                time_ns,
                weight_ns: STEP_NS,
                thread: thread + 1,
                stack,
                count: 1,
                complete: true,
                ..Sample::default()
            }
        });
        let mut chunks = Vec::new();
        for sequence in 1.. {
            let bytes: Vec<u8> = samples.by_ref().take(CHUNK).flat_map(|sample| sample.to_bytes()).collect();
            if bytes.is_empty() {
                break;
            }
            chunks.push(EventChunk { thread: u32::MAX, sequence, bytes: bytes.into() });
        }
        drop(samples);
        let process = Process {
            pid: 7,
            runtime: ".NET 10.0.0".to_owned(),
            duration_ns,
            complete: true,
            functions: functions(),
            modules: modules(),
            threads: (1..=self.threads).map(thread).collect(),
            stacks: Arc::new(table.finish()),
            events: vec![EventArena { instrument: instrument::CPU.to_owned(), chunks }],
            samplers: vec![Sampler {
                instrument: instrument::CPU.to_owned(),
                engine: SamplingEngine::Timer,
                interval_ns: STEP_NS,
                reached_ns: STEP_NS,
                ..Sampler::default()
            }],
            ..Process::default()
        };
        let run = Run {
            command: vec!["dotnet".to_owned(), "many.dll".to_owned()],
            duration_ns,
            exit: Some(Exit::Code(0)),
            given: "cpu".into(),
            filled: "cpu".into(),
            ..Run::default()
        };
        Recording { run, processes: vec![process], ..Recording::default() }
    }
}

/// A path of calls, innermost frame first. The first callee of each function is the likeliest.
fn path(numbers: &mut Numbers) -> Vec<StackFrame> {
    let depth = 6 + numbers.below(DEEPEST as u32 - 6) as usize;
    let mut at = numbers.below(3);
    let mut frames = Vec::with_capacity(depth);
    for _ in 0..depth {
        frames.push(StackFrame::Method {
            function: function::FIRST + at,
            il_offset: Some(1),
            il_span: 0,
            tier: Tier::Tier1,
        });
        let callee = numbers.below(CALLEES).min(numbers.below(CALLEES));
        at = (at.wrapping_mul(31).wrapping_add(callee * 97 + 1)) % FUNCTIONS;
    }
    frames.reverse();
    frames
}

fn functions() -> Vec<Function> {
    let mut all = vec![Function::default(); function::FIRST as usize];
    all.extend((0..FUNCTIONS).map(|index| {
        let own = index % 3 > 0;
        let name = match own {
            true => format!("App.Area{}.Class{}::Method{index}", index % 50, index % 2_000),
            false => format!("System.Area{}.Class{}::Method{index}", index % 50, index % 2_000),
        };
        let module = if own { 1 } else { 2 };
        let signature = format!("{name}(System.Int32, System.Collections.Generic.List<System.String>)");
        Function { raw_name: name.clone(), name, signature, module, token: 0x0600_0001 + index, ..Function::default() }
    }));
    all
}

fn modules() -> Vec<Module> {
    let module = |name: &str, framework| {
        let path = format!("/app/{name}.dll");
        Module { name: name.to_owned(), path, framework, ..Module::default() }
    };
    vec![Module::default(), module("App", false), module("System.Private.CoreLib", true)]
}

fn thread(id: u32) -> Thread {
    let role = if id == 1 { ThreadRole::Main } else { ThreadRole::Pool };
    Thread { id, os_id: 1_000 + id, name: String::new(), role, ..Thread::default() }
}
