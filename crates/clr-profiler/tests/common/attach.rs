//! Attaching a profiler to a running program, as the runtime's diagnostic port takes it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use clr_profiler::Guid;
use clrscope_testkit as testkit;

/// The port of a process, once the runtime has opened it.
fn port(pid: u32) -> PathBuf {
    let folder = std::env::temp_dir();
    testkit::wait_for("the diagnostic port", || {
        let entries = std::fs::read_dir(&folder).ok()?;
        let is_port = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(&format!("dotnet-diagnostic-{pid}-")) && name.ends_with("-socket")
        };
        entries.flatten().map(|entry| entry.path()).find(is_port)
    })
}

/// Attaches the profiler, with bytes for its `initialize_for_attach`; gives the runtime's answer.
pub(crate) fn attach(pid: u32, library: &Path, class: Guid, client_data: &[u8]) -> i32 {
    let path: Vec<u16> = library.to_str().expect("a path").encode_utf16().chain([0]).collect();
    let number = class.to_u128();
    let mut payload = 10_000_u32.to_le_bytes().to_vec();
    payload.extend(((number >> 96) as u32).to_le_bytes());
    payload.extend(((number >> 80) as u16).to_le_bytes());
    payload.extend(((number >> 64) as u16).to_le_bytes());
    payload.extend((number as u64).to_be_bytes());
    payload.extend((path.len() as u32).to_le_bytes());
    payload.extend(path.iter().flat_map(|unit| unit.to_le_bytes()));
    payload.extend((client_data.len() as u32).to_le_bytes());
    payload.extend(client_data);
    let mut message = b"DOTNET_IPC_V1\0".to_vec();
    message.extend((20 + payload.len() as u16).to_le_bytes());
    // Commands about profilers, the first of them.
    message.extend([3, 1, 0, 0]);
    message.extend(payload);
    let mut stream = UnixStream::connect(port(pid)).expect("the port takes connections");
    stream.write_all(&message).expect("the port reads");
    let mut answer = [0; 24];
    stream.read_exact(&mut answer).expect("the runtime answers");
    i32::from_le_bytes([answer[20], answer[21], answer[22], answer[23]])
}
