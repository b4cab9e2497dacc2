//! `clrscope attach`.

use clap::Args;
use clrscope_contract::instruments::{ALL, Spec, check_all, check_for_attach};

use super::push::PushArgs;
use super::recording::{RecordingArgs, ResultArgs, refuse_view};
use crate::commands::attach::AttachOptions;
use crate::errors::{Failure, quoted};
use crate::periods::Watched;
use crate::process_name::process_named;

const EXAMPLES: &str = "\
Examples:
  clrscope ps                                      which processes there are
  clrscope attach 4711                             where its CPU time goes, until Ctrl-C
  clrscope attach 4711 -i exceptions --duration 30s
  clrscope attach 4711 -i 'events:gc,threads' -o slow.clrs
  clrscope attach 4711 --every 1m --keep 24h,10GiB -o recordings
  clrscope attach 4711 --probe 'Shop.Cart::*' --duration 1m     calls of these methods
  clrscope attach 4711 --probe-at Cart.cs:42                    how often this line is reached

The recording ends with Ctrl-C, --duration, the program or clrscope itself. Then the agent detaches:
its threads, descriptors and mappings go, and only the code of its library stays, which can't be
unloaded from a running program. After --probe, -i awaits and -i requests the runtime can't detach
the agent: it sleeps until the next attach wakes it. Methods with probes get their own code back;
methods changed for awaits and requests keep the changed code, which then does nothing.";

/// The instruments that can begin in a running program, and the examples.
fn help() -> String {
    let (late, never): (Vec<&Spec>, Vec<&Spec>) = ALL.iter().copied().partition(|spec| spec.may_attach());
    let lines: String = late.iter().map(|spec| format!("  {:<12}{}\n", spec.name, first_words(spec.about))).collect();
    let never = never.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    format!(
        "Instruments (their options are in 'clrscope run --help'):\n{lines}Only from the start of a program, with \
         'clrscope run': {never}\n\n{EXAMPLES}"
    )
}

/// What an instrument records, without the details after the first colon.
fn first_words(about: &str) -> &str {
    about.split(':').next().unwrap_or(about)
}

/// Record a running program, then detach from it
#[derive(Debug, Args)]
#[command(
    after_help = help(),
    mut_arg("delay", |arg| arg.help("Begin the recording this long after the attach, such as 500ms, 10s or 2m")),
    mut_arg("trust_writable", |arg| {
        arg.help("Accept an agent even if other users can write it or its folder")
    }),
    mut_arg("redact", |arg| arg.hide(true)),
    mut_arg("inlined", |arg| arg.hide(true)),
    mut_arg("only", |arg| arg.hide(true)),
    mut_arg("only_from", |arg| arg.hide(true)),
    mut_arg("no_children", |arg| arg.hide(true))
)]
pub(super) struct Attach {
    #[command(flatten)]
    recording: RecordingArgs,

    #[command(flatten)]
    result: ResultArgs,

    #[command(flatten)]
    push: PushArgs,

    /// Serve the recording's page while it grows, until Ctrl-C, and open it in a browser
    #[arg(long)]
    view: bool,

    /// The 'clrscope watch' that this process records for
    #[arg(long, hide = true, value_name = "WATCH", requires = "every")]
    watched: Option<Watched>,

    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID|NAME")]
    process: String,
}

impl Attach {
    pub(super) fn into_options(self) -> Result<AttachOptions, Failure> {
        let instruments_given = self.recording.instruments_given();
        let mut push = self.push.into_plan()?;
        let mut periods = self.recording.periods(&self.result, &mut push)?;
        if let Some(periods) = &mut periods {
            periods.watched = self.watched;
        }
        refuse_view(periods.as_ref(), self.view)?;
        let request = self.recording.into_request()?;
        if request.inlined_exact {
            let why = "the runtime keeps the needed data only if its environment asked for it at the start";
            let hint = "start the program instead: clrscope run --inlined=exact -- PROGRAM";
            return Err(Failure::usage("attach takes no --inlined", why, hint));
        }
        check_all(&request).and_then(|checked| check_for_attach(&checked)).map_err(|refusal| {
            Failure::usage(format!("cannot attach for {}", quoted(&instruments_given)), refusal.why, refusal.hint)
        })?;
        if request.programs.are_limited() || !request.children || !request.redact.is_empty() {
            let what = "attach takes no --only, --only-from, --no-children and --redact";
            return Err(Failure::usage(what, "it records one process, and no values", "leave them out"));
        }
        Ok(AttachOptions {
            pid: process_named(&self.process)?,
            request,
            periods,
            instruments_given,
            output: self.result.output,
            force: self.result.force,
            quiet: self.result.quiet,
            view: self.view,
            push,
        })
    }
}
