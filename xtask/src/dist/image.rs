//! The image: one layer with tool and agent, as an archive in the layout of the Open Container
//! Initiative.
//!
//! The image contains nothing else: other images copy files out of it, and Kubernetes mounts it as
//! a volume. The formats follow the image specification 1.1 (`image-layout.md`, `config.md`,
//! `manifest.md`).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::binaries::{Binaries, Platform};
use super::entries::{Entry, gzip, hex, tar};
use super::tarball::NOTICES;
use super::{VERSION, read};

/// The time that the image says it was made at: that of its files.
const CREATED: &str = "1980-01-01T00:00:00Z";

/// Returns the file name and the bytes of the image.
pub(super) fn make(binaries: &Binaries) -> Result<(String, Vec<u8>), String> {
    let mut files = vec![
        // The one that runs in every other image.
        Entry::program("usr/local/bin/clrscope", binaries.of(Platform::Musl).tool.clone()),
        // The place that `clrscope env --dockerfile` names.
        Entry::file("usr/local/lib/clrscope/libclrscope_agent.so", binaries.of(Platform::Gnu).agent.clone()),
        Entry::file("usr/local/lib/clrscope/musl/libclrscope_agent.so", binaries.of(Platform::Musl).agent.clone()),
    ];
    for file in NOTICES {
        files.push(Entry::file(format!("usr/local/share/doc/clrscope/{file}"), read(file)?));
    }
    Ok((format!("clrscope-{VERSION}-image.tar"), archive(files)?))
}

/// An archive of an image with one layer.
fn archive(files: Vec<Entry>) -> Result<Vec<u8>, String> {
    let mut blobs = Vec::new();
    let mut blob = |media_type: &str, bytes: Vec<u8>| {
        let sum = hex(&Sha256::digest(&bytes));
        let descriptor = json!({ "mediaType": media_type, "digest": format!("sha256:{sum}"), "size": bytes.len() });
        blobs.push(Entry::file(format!("blobs/sha256/{sum}"), bytes));
        descriptor
    };
    let layer = tar(files)?;
    let unpacked = format!("sha256:{}", hex(&Sha256::digest(&layer)));
    let layer = blob("application/vnd.oci.image.layer.v1.tar+gzip", gzip(&layer)?);
    let config = json!({
        "created": CREATED,
        "architecture": "amd64",
        "os": "linux",
        "config": { "Labels": {
            "org.opencontainers.image.title": "clrscope",
            "org.opencontainers.image.version": VERSION,
            "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
            "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
        } },
        "rootfs": { "type": "layers", "diff_ids": [unpacked] },
        "history": [{ "created": CREATED, "created_by": "cargo xtask dist" }],
    });
    let config = blob("application/vnd.oci.image.config.v1+json", text(&config));
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut manifest = blob("application/vnd.oci.image.manifest.v1+json", text(&manifest));
    manifest["platform"] = json!({ "architecture": "amd64", "os": "linux" });
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    blobs.push(Entry::file("index.json", text(&index)));
    blobs.push(Entry::file("oci-layout", text(&json!({ "imageLayoutVersion": "1.0.0" }))));
    tar(blobs)
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let (mut entry, mut bytes) = (entry.expect("an entry"), Vec::new());
            entry.read_to_end(&mut bytes).expect("its bytes");
            (entry.path().expect("a path").to_string_lossy().into_owned(), bytes)
        };
        archive.entries().expect("entries").map(read).collect()
    }

    #[test]
    fn every_digest_is_the_sum_of_what_it_names_down_to_the_files() {
        let files = vec![Entry::program("bin/a", "a"), Entry::file("lib/b", "b")];
        let entries = unpack(&archive(files).expect("an image"));
        let named = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().expect("a digest").strip_prefix("sha256:").expect("its kind");
            let bytes = &entries[&format!("blobs/sha256/{digest}")];
            assert_eq!(hex(&Sha256::digest(bytes)), digest);
            assert_eq!(descriptor["size"], bytes.len());
            bytes
        };
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
        let manifest = json(named(&json(&entries["index.json"])["manifests"][0]));
        let config = json(named(&manifest["config"]));
        let mut layer = Vec::new();
        flate2::read::GzDecoder::new(&named(&manifest["layers"][0])[..]).read_to_end(&mut layer).expect("gzip");
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", hex(&Sha256::digest(&layer))));
        let names: Vec<String> = unpack(&layer).into_keys().collect();
        assert_eq!(names, ["bin/", "bin/a", "lib/", "lib/b"]);
    }
}
