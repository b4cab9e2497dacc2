//! Samples, how they were taken, and names of native code: read while the program runs, after it
//! and from a packed file.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    Activity, Inlining, Module, ModuleKind, NativeSymbol, Recording, Sample, Sampler, SamplingEngine, StackFrame,
    ThreadState, Tier,
};
use clrscope_recording::writer::{Keep, ProcessRecord, ProcessWriter, monotonic_ns};

fn samples(recording: &Recording, instrument: &str) -> Vec<Sample> {
    let process = &recording.processes[0];
    let chunks = process.arenas(instrument).flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| Sample::all(&chunk.bytes.load()).collect::<Vec<_>>()).collect()
}

#[test]
fn samples_are_read_while_the_program_runs_and_from_a_packed_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    let process = ProcessRecord { pid: 7, mono_ns: monotonic_ns(), ..ProcessRecord::default() };
    let writer = ProcessWriter::create(&name, &process).expect("a process");
    let library = Module {
        name: "libx.so".to_owned(),
        path: "/lib/libx.so".to_owned(),
        kind: ModuleKind::Native,
        build_id: "c0ffee".to_owned(),
        ..Module::default()
    };
    writer.module(2, library);
    let asked = Sampler {
        instrument: instrument::CPU.to_owned(),
        engine: SamplingEngine::Timer,
        interval_ns: 1_000_000,
        why_engine: "perf events are not allowed here".to_owned(),
        ..Sampler::default()
    };
    writer.sampler(&asked);
    let reached = Sampler { reached_ns: 4_000_000, ..asked };
    writer.sampler(&reached);
    let table = writer.create_stacks().expect("a table");
    let frames = [
        StackFrame::Native { module: 2, offset: 0x1234 },
        StackFrame::Method { function: 40, il_offset: Some(3), il_span: 40, tier: Tier::Tier1 },
        StackFrame::Method { function: 40, il_offset: Some(3), il_span: 0, tier: Tier::Tier0 },
    ];
    let stack = table.intern(&frames, false).expect("room");
    let taken = |number: u32| Sample {
        time_ns: u64::from(number) * 1_000_000,
        weight_ns: 1_000_000,
        thread: 1,
        stack,
        count: 1,
        state: ThreadState::Running,
        activity: Activity::None,
        complete: true,
        kernel: false,
        profiler: false,
        guessed: false,
        inlining: Inlining::Named,
    };
    let store = writer.create_events(instrument::CPU, 1 << 20, Keep::First).expect("a store");
    let all: Vec<_> = (0..300).map(taken).collect();
    for part in all.chunks(100) {
        let chunk = store.allocate_chunk(0, 4 << 10, monotonic_ns()).expect("room");
        part.iter().for_each(|sample| assert!(chunk.append(&sample.to_bytes(), monotonic_ns())));
    }
    let check = |recording: &Recording| {
        assert_eq!(recording.problems, []);
        assert_eq!(samples(recording, instrument::CPU), all);
        let process = &recording.processes[0];
        assert_eq!(process.samplers, std::slice::from_ref(&reached), "the last word counts");
        assert_eq!(process.stacks.frames(stack).collect::<Vec<_>>(), frames);
        assert_eq!((process.modules[2].kind, process.modules[2].build_id.as_str()), (ModuleKind::Native, "c0ffee"));
    };
    let mut recording = clrscope_recording::open(&name).expect("a recording");
    check(&recording);
    recording.processes[0].native_symbols =
        vec![NativeSymbol { module: 2, offset: 0x1200, size: 0x40, name: "x_begin".to_owned() }];
    let mut packed = Vec::new();
    clrscope_recording::pack::write(&recording, &mut packed).expect("written");
    let file = folder.path().join("x.clrs");
    std::fs::write(&file, packed).expect("written");
    let again = clrscope_recording::open(&file).expect("a recording");
    check(&again);
    let symbols = &again.processes[0].native_symbols;
    assert_eq!(NativeSymbol::find(symbols, 2, 0x1234).map(|found| found.name.as_str()), Some("x_begin"));
}
