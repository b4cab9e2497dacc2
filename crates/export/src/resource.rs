//! Processes as OpenTelemetry resources.

use clrscope_analysis::{AttributeValue, Resource, one_line};
use clrscope_recording::model::{Process, Recording};

use crate::json::quoted;
use crate::protobuf::Message;

/// Appends a text attribute, with control characters escaped.
pub(crate) fn put_attribute(of: &mut Message, field: u64, key: &str, value: &str) {
    of.message(field, |attribute| {
        attribute.bytes(1, one_line(key).as_bytes());
        attribute.message(2, |any| any.bytes(1, one_line(value).as_bytes()));
    });
}

/// Appends the resource of a process, which is the first field of the process's data.
pub(crate) fn put_resource(message: &mut Message, recording: &Recording, process: &Process) {
    message.message(1, |of| {
        for (key, value) in Resource::from_process(recording, process).attributes() {
            match value {
                AttributeValue::Text(text) => put_attribute(of, 1, key, text),
                AttributeValue::Number(number) => of.message(1, |attribute| {
                    attribute.bytes(1, one_line(key).as_bytes());
                    attribute.message(2, |any| any.number(3, *number));
                }),
            }
        }
    });
}

/// The resources of all processes as a list of JSON objects.
pub(crate) fn resources_as_json(recording: &Recording) -> String {
    let of_process = |process: &Process| {
        let resource = Resource::from_process(recording, process);
        let member = |(key, value): (&str, &AttributeValue<'_>)| match value {
            AttributeValue::Text(text) => format!("{}:{}", quoted(&one_line(key)), quoted(&one_line(&**text))),
            AttributeValue::Number(number) => format!("{}:{number}", quoted(&one_line(key))),
        };
        format!("{{{}}}", resource.attributes().map(member).collect::<Vec<_>>().join(","))
    };
    format!("[{}]", recording.processes.iter().map(of_process).collect::<Vec<_>>().join(","))
}

/// Appends the scope, which is the first field of the scope's data.
pub(crate) fn put_scope(message: &mut Message, name: &str, version: Option<&str>) {
    message.message(1, |of| {
        of.bytes(1, name.as_bytes());
        if let Some(version) = version {
            of.bytes(2, version.as_bytes());
        }
    });
}
