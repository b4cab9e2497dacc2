//! Processes as OpenTelemetry names them.

use clrscope_analysis::one_line;
use clrscope_recording::model::Process;

use crate::protobuf::Message;
use crate::threads::command_of;

/// Appends an attribute, a text, control characters written out.
pub(crate) fn put_attribute(of: &mut Message, field: u64, key: &str, value: &str) {
    of.message(field, |attribute| {
        attribute.bytes(1, one_line(key).as_bytes());
        attribute.message(2, |any| any.bytes(1, one_line(value).as_bytes()));
    });
}

/// Appends the resource that a process is, the first field of what was measured there.
pub(crate) fn put_resource(message: &mut Message, process: &Process) {
    message.message(1, |of| {
        put_attribute(of, 1, "process.command_line", &command_of(process));
        put_attribute(of, 1, "process.runtime.name", ".NET");
        put_attribute(of, 1, "process.runtime.description", &process.runtime);
        of.message(1, |attribute| {
            attribute.bytes(1, b"process.pid");
            attribute.message(2, |any| any.number(3, process.pid.into()));
        });
    });
}

/// Appends the scope, the first field of what comes from it.
pub(crate) fn put_scope(message: &mut Message, name: &str, version: Option<&str>) {
    message.message(1, |of| {
        of.bytes(1, name.as_bytes());
        if let Some(version) = version {
            of.bytes(2, version.as_bytes());
        }
    });
}
