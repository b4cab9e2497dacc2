//! `clrscope env`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clrscope_symbols::CLibrary;

use super::recording::RecordingArgs;
use crate::commands::env::{EnvOptions, Form};
use crate::errors::{Failure, quoted};

const EXAMPLES: &str = "\
Examples:
  eval \"$(clrscope env --shell -o /tmp/web.clrs.d)\"; dotnet web.dll
  clrscope env --systemd -i calls:clock=tsc -o /var/lib/web/web.clrs.d
  clrscope env --systemd --only 'Shop.*' --only-from /etc/clrscope/programs
  clrscope env --systemd --user web --install /usr/local/lib/clrscope -o /var/lib/web/web.clrs.d
  clrscope env --systemd --watch --only 'Shop.*' --every 10m -o /var/lib/clrscope
  clrscope env --dockerfile --install . -o /data/web.clrs.d >> Dockerfile
  clrscope report /tmp/web.clrs.d          works while the program runs, too

With --only or --only-from the variables can be set for a whole machine, service or container:
in programs that don't match, the agent does nothing and leaves no trace, and precompiled code is
used. The file has one pattern per line and # comments; programs started after an edit follow it.
No program is profiled while the file is missing or others can write it: 'clrscope doctor', run with
the variables set, says so.";

/// Print the variables that load the agent without the launcher
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("triggers", |arg| arg.hide(true)),
    mut_arg("every", |arg| arg.hide(true)),
    mut_arg("keep", |arg| arg.hide(true))
)]
pub(super) struct Env {
    /// As export commands for a shell (the default)
    #[arg(long, group = "form")]
    shell: bool,

    /// As ENV lines of a Dockerfile
    #[arg(long, group = "form")]
    dockerfile: bool,

    /// As Environment= lines of a systemd unit
    #[arg(long, group = "form")]
    systemd: bool,

    /// As one JSON object
    #[arg(long, group = "form")]
    json: bool,

    /// Recording directory that the program writes [default: clrscope-PID.clrs.d in the program's
    /// working directory]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Path of the agent where the program runs, such as in a container [default: the agent in the
    /// cache]
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,

    /// Put the agent into this folder, where every user can read it; with --dockerfile a folder of
    /// the build context
    #[arg(long, value_name = "DIR", conflicts_with = "agent")]
    install: Option<PathBuf>,

    /// Leave the runtime's main slot to another profiler, and load the agent as a notification-only
    /// one; the default with --shell if the shell's variables name another profiler
    #[arg(long)]
    notification_only: bool,

    /// User that the program runs as: refuse an agent that this user can't load
    #[arg(long, value_name = "NAME", conflicts_with = "dockerfile")]
    user: Option<String>,

    /// C library of the programs, which decides the agent [default: that of this machine]
    #[arg(long, value_name = "NAME")]
    c_library: Option<CLibraryName>,

    /// With --systemd: print the whole unit of a service that runs 'clrscope watch'; takes that
    /// command's options
    #[arg(long, requires = "systemd")]
    watch: bool,

    #[command(flatten)]
    recording: RecordingArgs,
}

/// A C library on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CLibraryName {
    Glibc,
    Musl,
}

impl Env {
    pub(super) fn into_options(self) -> Result<EnvOptions, Failure> {
        let form = match (self.dockerfile, self.systemd, self.json) {
            (true, _, _) => Form::Dockerfile,
            (_, true, _) => Form::Systemd,
            (_, _, true) => Form::Json,
            _ => Form::Shell,
        };
        let request = self.recording.into_request()?;
        if let Some(trigger) = request.triggers.first() {
            let what = format!("env takes no --on {}", quoted(&trigger.to_string()));
            let why = "no clrscope runs next to the program to write a copy";
            let hint = "attach to the program: clrscope attach PID --last 60s --on 'request>2s'";
            return Err(Failure::usage(what, why, hint));
        }
        if request.every_ms.is_some() {
            let why = "no clrscope runs next to the program to write the recordings";
            let hint = "attach to the program: clrscope attach PID --every 1m -o recordings";
            return Err(Failure::usage("env takes no --every", why, hint));
        }
        let Self { output, agent, install, notification_only, user, c_library, .. } = self;
        let c_library = c_library.map(|name| match name {
            CLibraryName::Glibc => CLibrary::Gnu,
            CLibraryName::Musl => CLibrary::Musl,
        });
        Ok(EnvOptions { form, request, output, agent, install, notification_only, user, c_library })
    }
}
