//! Reports: views, each declared once, and renderers that can show every view.
//!
//! A [`View`] has a name, the instruments that feed it, its options, and its columns: each with a
//! key, a title, a kind of value, and a function that takes the value from a row. [`VIEWS`] is the
//! only list of them. [`View::open`] answers a [`Request`] about a recording with a [`Report`],
//! which hands its rows, one by one, to a [`Renderer`]: text, JSON or CSV. A page for browsers
//! shows all views of a recording.
//!
//! ```no_run
//! use clrscope_report::{Format, Request, view};
//!
//! # let recording = clrscope_recording::model::Recording::default();
//! let functions = view("functions").expect("a view");
//! let report = functions.open(&recording, &Request::default())?;
//! let mut text = Vec::new();
//! report.write(Format::Csv, 100, &mut text).expect("memory takes all");
//! # Ok::<(), clrscope_analysis::QueryProblem>(())
//! ```
//!
//! This crate neither reads recordings nor writes to a terminal. Where it shows single exceptions,
//! `clrscope-symbols` looks up their source lines.

mod cell;
mod check;
mod column;
mod comparisons;
mod export;
mod page;
mod recorded;
mod render;
mod request;
mod spot;
mod triage;
mod view;
mod views;
mod write;

pub use cell::{Cell, ColumnInfo, FunctionCell, Kind};
pub use check::Refusal;
pub use clrscope_analysis::one_line;
pub use comparisons::{COMPARISONS, ChangedFrame, Comparison, changed_stacks, gate_words};
pub use export::exporters;
pub use page::{
    ChosenRequests, DocumentRequest, PictureAnswer, PictureRequest, ReportsPage, Room, ServedRecording, served_page,
    served_policy,
};
pub use render::text::{FollowState, NameKind, UNLIMITED, first_functions};
pub use render::{
    About, Entry, Format, Guard, LogEntry, LogGroup, Renderer, Rows, Section, Style, Tail, TextColumn, ThreadKey, Title,
};
pub use request::{Flag, Request};
pub use triage::{TriageSubject, triage_json, write_triage};
pub use view::{Report, View};
pub use views::{STACKS, VIEWS, first_counted, first_coverage, view};
