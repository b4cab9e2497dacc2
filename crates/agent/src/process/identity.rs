//! The identity of a process, by which recordings of many programs on many machines are
//! distinguished.

use clrscope_agent_base::os::process;
use clrscope_contract::labels::{Label, RESOURCE_VARIABLE, SERVICE_NAME_VARIABLE, labels_of_process};
use clrscope_recording::model::Identity;
use clrscope_recording::writer::random_id;

/// The identity of this process, with the given labels. Also returns the parts of the environment
/// that could not be used.
///
/// No other variables of the environment are kept.
pub(crate) fn identity(given: &[Label]) -> (Identity, Vec<String>) {
    let [service, attributes] = process::variables_at_start([SERVICE_NAME_VARIABLE, RESOURCE_VARIABLE]);
    let (labels, problems) = labels_of_process(given, service.as_deref(), attributes.as_deref());
    let identity = Identity { id: random_id(), host: process::host_name(), container: process::container_id(), labels };
    (identity, problems)
}
