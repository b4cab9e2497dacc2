//! Results of `async` methods, read where their code passes them to the builder (see
//! [`completion`](clrscope_agent_values::completion)).

use clrscope_recording::layout::{flow, value};
use clrscope_agent_values::completion::{AwaitedTask, Completion, Outcome, cancels};
use clrscope_agent_values::arguments::{ArgumentRegisters, depth};
use clrscope_agent_values::kinds::{Kind, Task};
use clrscope_agent_values::memory::{At, MemoryReader};
use clrscope_agent_values::plan::ArgumentLocation;
use clrscope_agent_values::read::Writer;

use super::by_reference;
use super::ring::{MOST_VALUES, here};

/// Call it when a function that ends `async` methods was entered. If calls of its caller are
/// recorded, the result is noted for the caller's activation.
pub(super) fn completed(completion: Completion, sp: usize, registers: &ArgumentRegisters) {
    let builder = registers.word(ArgumentLocation::General(0), sp);
    let Some((of, awaited)) = by_reference::complete(sp, builder) else { return };
    let Some((ring, record)) = here() else { return };
    ring.append_with(record, flow::RESULT, of, MOST_VALUES, |buffer| {
        let mut writer = Writer::new(buffer, false);
        write(&mut writer, completion, awaited, sp, registers);
        writer.used()
    });
}

/// Writes the outcome that a call reports. The registers belong to the function of `completion`.
fn write(writer: &mut Writer<'_>, completion: Completion, awaited: AwaitedTask, sp: usize, registers: &ArgumentRegisters) {
    let mut both = [0; 16];
    match completion.outcome {
        Outcome::Exception(place) => {
            let exception = registers.word(place, sp);
            let class = MemoryReader::new().word(At::unknown(exception));
            let state = if class.is_some_and(cancels) { Task::CANCELED } else { Task::FAULTED };
            writer.task_in_state(awaited, state, false);
        }
        Outcome::Result(result) => {
            let result = result.filter(|(_, kind)| !matches!(kind, Kind::Opaque(0)));
            writer.task_in_state(awaited, Task::COMPLETED, result.is_some());
            let Some((place, kind)) = result else { return };
            match registers.slot(place, kind.size() as usize, sp, &mut both) {
                Some(at) => writer.value(kind, at, depth()),
                None => writer.word(value::UNKNOWN),
            }
        }
    }
}
