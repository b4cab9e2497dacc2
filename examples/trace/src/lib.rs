//! A trace of all calls: one line per call, indented by depth, one file per thread.
//!
//! The folder's name comes from `TRACE_PROFILER_OUTPUT`. Hooks must be short, so they only note the
//! call. The text is written at the end of each thread and at the end of the program. The profiler
//! keeps the first four million calls of each thread.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clr_profiler::{
    Block, Call, CallObserver, CallStacks, Callbacks, NamedFunctions, Profiler, ProfilerInfo, Result, Setup,
};

clr_profiler::export_profiler!(Trace, "{E8B0E2D3-5E0C-4C57-8B7D-1D5D4F4C9B32}");

/// Calls kept per thread, 24 bytes each.
const LIMIT: usize = 4 << 20;

/// The profiler the runtime makes when it loads this library.
struct Trace(Arc<CallStacks<Tracer>>);

impl Profiler for Trace {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        // From .NET 9 on the runtime throws by managed code of its own, which is not the program's
        // flow.
        let functions = Arc::new(NamedFunctions::new(info, |function| !function.is_exception_handling()));
        let stacks = CallStacks::new(info, Tracer { functions: functions.clone() })?;
        Ok((Self(stacks.clone()), Setup::default().with_call_stacks(stacks, functions).without_inlining()))
    }
}

impl Callbacks for Trace {
    fn shutdown(&self) {
        self.0.for_each_thread(|number, lines, _stack| self.0.observer().on_thread_end(number, lines));
    }
}

struct Tracer {
    functions: Arc<NamedFunctions>,
}

/// Calls of one thread, and the handler blocks that ran because of exceptions.
#[derive(Default)]
struct Lines {
    kept: Vec<(Call, Option<Block>)>,
    left_out: u64,
}

impl Lines {
    fn note(&mut self, call: Call, block: Option<Block>) {
        if self.kept.len() < LIMIT {
            self.kept.push((call, block));
        } else {
            self.left_out += 1;
        }
    }
}

impl CallObserver for Tracer {
    type Data = Lines;

    fn on_enter(&self, lines: &mut Lines, call: Call) {
        lines.note(call, None);
    }

    fn on_block(&self, lines: &mut Lines, block: Block, owner: Call) {
        lines.note(owner, Some(block));
    }

    fn on_thread_end(&self, number: usize, lines: &Lines) {
        let mut text = String::new();
        for (Call { function, depth, .. }, block) in &lines.kept {
            let name = self.functions.get(*function).map_or("?", |name| &name.name);
            let block = block.map_or("", |block| match block {
                Block::Filter => "filter of ",
                Block::Finally => "finally of ",
                Block::Catch => "catch of ",
            });
            // Deep recursion is shown by the number: its spaces would fill the disk.
            let _ = writeln!(text, "{depth}\t{:indent$}{block}{name}", "", indent = depth.min(&60) * 2);
        }
        if lines.left_out > 0 {
            let _ = writeln!(text, "{} later calls were left out", lines.left_out);
        }
        let folder = PathBuf::from(std::env::var_os("TRACE_PROFILER_OUTPUT").unwrap_or_else(|| "trace".into()));
        // A failure is ignored: the program's output is not ours.
        drop(std::fs::create_dir_all(&folder));
        drop(std::fs::write(folder.join(format!("thread-{number}.txt")), text));
    }
}
