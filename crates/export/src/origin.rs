//! The origin of a process, as columns of tables have it.

use clrscope_analysis::Resource;
use clrscope_recording::model::{Process, Recording};

/// Labels that identify a process among those of many recordings; a label that the process does not
/// have is empty.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) service: String,
    pub(crate) version: String,
    pub(crate) environment: String,
    pub(crate) host: String,
    pub(crate) container: String,
}

impl Origin {
    pub(crate) fn of(recording: &Recording, process: &Process) -> Self {
        let resource = Resource::from_process(recording, process);
        Self {
            service: resource.service().into_owned(),
            version: resource.version().into_owned(),
            environment: resource.environment().into_owned(),
            host: resource.host().into_owned(),
            container: resource.container().into_owned(),
        }
    }
}
