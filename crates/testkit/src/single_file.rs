//! Single-file programs as the .NET SDK's bundler writes them, except for the code of the host.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The marker in the host's code.
const MARK: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9,
    0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];

/// Writes a single-file program. Each of `files` has a name, its content, and whether it is
/// deflated. `version` is the version of the bundle format.
///
/// # Panics
/// When it can't be written.
pub fn single_file(program: &Path, version: u32, files: &[(&str, &[u8], bool)]) {
    fs::write(program, bytes(version, files)).expect("a program can be written");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
}

fn bytes(version: u32, files: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let mut bytes = b"\x7fELF".to_vec();
    // The mark lies on the border of two blocks of a megabyte, by which files are read.
    bytes.resize((1 << 20) - 5, 0xcc);
    let place = bytes.len();
    bytes.extend([0; 8]);
    bytes.extend(MARK);
    let mut entries = Vec::new();
    for (name, content, is_deflated) in files {
        let deflated = deflated(content);
        entries.extend((bytes.len() as u64).to_le_bytes());
        entries.extend((content.len() as u64).to_le_bytes());
        if version >= 6 {
            entries.extend((if *is_deflated { deflated.len() as u64 } else { 0 }).to_le_bytes());
        }
        entries.extend([1, name.len() as u8]);
        entries.extend(name.bytes());
        bytes.extend(if *is_deflated { &deflated } else { *content });
    }
    let list = bytes.len() as u64;
    bytes[place..place + 8].copy_from_slice(&list.to_le_bytes());
    for number in [version, 0, files.len() as u32] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(*b"\x02id");
    bytes.extend([0; 40]);
    bytes.extend(entries);
    bytes
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflated.write_all(content).expect("memory can be written");
    deflated.finish().expect("memory can be written")
}
