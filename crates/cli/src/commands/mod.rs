//! One module per command. The modules are thin; the libraries do the work.

pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod counters;
pub(crate) mod cover;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod export;
mod follow;
pub(crate) mod heap;
pub(crate) mod man;
pub(crate) mod new;
pub(crate) mod pack;
pub(crate) mod probe;
pub(crate) mod ps;
pub(crate) mod push;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod run_profiler;
pub(crate) mod stacks;
mod thread_files;
pub(crate) mod top;
pub(crate) mod triage;
pub(crate) mod unit;
pub(crate) mod view;
pub(crate) mod watch;

use crate::errors::{Failure, cannot_print};

/// A command with its options.
#[derive(Debug)]
pub(crate) enum Task {
    /// `clrscope run`
    Run(Box<run::RunOptions>),
    /// `clrscope cover`
    Cover(Box<cover::CoverOptions>),
    /// `clrscope attach`
    Attach(Box<attach::AttachOptions>),
    /// `clrscope heap`
    Heap(heap::HeapOptions),
    /// `clrscope stacks`
    Stacks(stacks::StacksOptions),
    /// `clrscope triage`
    Triage(triage::TriageOptions),
    /// `clrscope counters`
    Counters(counters::CountersOptions),
    /// `clrscope top`
    Top(top::TopOptions),
    /// `clrscope watch`
    Watch(Box<crate::watch::WatchPlan>),
    /// `clrscope probe`
    Probe(probe::ProbeOptions),
    /// `clrscope ps`
    Ps(ps::PsOptions),
    /// `clrscope run --profiler`
    RunProfiler(run_profiler::RunProfilerOptions),
    /// `clrscope record`
    Record(record::RecordOptions),
    /// `clrscope report`
    Report(Box<report::ReportOptions>),
    /// `clrscope view`
    View(Box<view::ViewOptions>),
    /// `clrscope diff`
    Diff(Box<diff::DiffOptions>),
    /// `clrscope export`
    Export(Box<export::ExportTask>),
    /// `clrscope push`
    Push(Box<push::PushOptions>),
    /// `clrscope pack`
    Pack(pack::PackOptions),
    /// `clrscope demo`
    Demo(Box<demo::DemoOptions>),
    /// `clrscope doctor`
    Doctor(doctor::DoctorOptions),
    /// `clrscope env`
    Env(Box<env::EnvOptions>),
    /// `clrscope env --systemd --watch`
    Unit(unit::UnitOptions),
    /// `clrscope new`
    New(new::NewOptions),
    /// `clrscope completions`
    Completions(Box<completions::CompletionsOptions>),
    /// `clrscope man`
    Man(Box<man::ManOptions>),
}

impl Task {
    /// Performs the command. Returns the exit code.
    ///
    /// # Errors
    /// As three lines for the user.
    pub(crate) fn perform(self) -> Result<u8, Failure> {
        let done = |()| 0;
        match self {
            Self::Run(options) => run::perform(*options).map_err(Failure::under_run),
            Self::Cover(options) => cover::perform(*options).map_err(Failure::under_run),
            Self::Attach(options) => attach::perform(*options).map(done),
            Self::Heap(options) => heap::perform(options).map(done),
            Self::Stacks(options) => stacks::perform(&options).map(done),
            Self::Triage(options) => triage::perform(&options).map(done),
            Self::Counters(options) => counters::perform(&options).map(done),
            Self::Top(options) => top::perform(&options).map(done),
            Self::Watch(plan) => watch::perform(*plan).map(done),
            Self::Probe(options) => probe::perform(&options).map(done),
            Self::Ps(options) => ps::perform(&options).map(done),
            Self::RunProfiler(options) => run_profiler::perform(&options).map_err(Failure::under_run),
            Self::Record(options) => record::perform(&options).map(done),
            Self::Report(options) => report::perform(&options).map(done),
            Self::View(options) => view::perform(*options).map(done),
            Self::Diff(options) => diff::perform(&options),
            Self::Export(options) => export::perform(&options).map(done),
            Self::Push(options) => push::perform(&options),
            Self::Pack(options) => pack::perform(&options).map(done),
            Self::Demo(options) => demo::perform(*options),
            Self::Doctor(options) => doctor::perform(&options),
            Self::Env(options) => env::perform(*options).map(done),
            Self::Unit(options) => unit::perform(&options).map(done),
            Self::New(options) => new::perform(&options).map(done),
            Self::Completions(options) => completions::perform(*options).map(done),
            Self::Man(options) => man::perform(*options).map(done),
        }
    }
}

/// Prints a finished text.
///
/// # Errors
/// When it can't be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    crate::terminal::print(text).map_err(|error| cannot_print(&error))
}
