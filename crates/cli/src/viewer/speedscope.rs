//! The page of speedscope (npm package `speedscope`, MIT), as published. It shows a profile without
//! network access.
//!
//! `speedscope/release/` holds its files, except those that are only needed to import other tools'
//! profiles. `npm run build` in `ui/` copies the files there; their names change with speedscope's
//! version. A build without the feature `speedscope` has none of them, and `view` does not offer
//! the page.

use std::sync::Arc;

use super::door::Inside;
use super::http::{Answer, Status};

/// Whether this build has the page.
pub(crate) const IS_HERE: bool = cfg!(feature = "speedscope");
/// Maximum bytes of a profile: browsers end tabs that use more memory.
pub(crate) const MOST_BYTES: usize = 256 << 20;
/// The part of the address that makes the page load the profile.
pub(super) const FRAGMENT: &str = "#profileURL=profile.speedscope.json";
/// Path of the profile, after the token.
const PROFILE: &str = "profile.speedscope.json";

/// Content security policy: the page runs its own program, which is partly WebAssembly and creates
/// styles. The page contacts no other server.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
                      font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A file of the page: path, content type and bytes.
type File = (&'static str, &'static str, &'static [u8]);

macro_rules! files {
    ($($name:literal: $content:literal,)*) => {
        &[$(#[cfg(feature = "speedscope")] ($name, $content, include_bytes!(concat!("speedscope/release/", $name)))),*]
    };
}

/// The page itself first.
const FILES: &[File] = files! {
    "index.html": "text/html; charset=utf-8",
    "speedscope-Y2522XSH.js": "text/javascript; charset=utf-8",
    "speedscope-GHPHNKXC.css": "text/css; charset=utf-8",
    "SourceCodePro-Regular.ttf-ILST5JV6.woff2": "font/woff2",
    "favicon-16x16-VSI62OPJ.png": "image/png",
    "favicon-32x32-3EB2YCUY.png": "image/png",
    "favicon-FOKUP5Y5.ico": "image/x-icon",
};

/// The page with a profile.
#[derive(Debug, Clone)]
pub(super) struct Speedscope {
    profile: Arc<Vec<u8>>,
}

impl Speedscope {
    pub(super) fn new(profile: Vec<u8>) -> Self {
        Self { profile: Arc::new(profile) }
    }

    /// The page, one of its files, or the profile.
    pub(super) fn answer(&self, Inside { path, .. }: Inside<'_>) -> Result<Answer, Status> {
        if path == PROFILE {
            return Ok(Answer::shared(&self.profile));
        }
        let found = match path {
            "" => FILES.first(),
            _ => FILES.iter().find(|(name, ..)| *name == path),
        };
        found.map(|(_, content, bytes)| Answer::file(bytes, content, POLICY)).ok_or(Status::NotFound)
    }
}

#[cfg(all(test, feature = "speedscope"))]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_page_names_is_there_and_no_other() {
        let text = |name: &str| {
            let (.., bytes) = FILES.iter().find(|(known, ..)| *known == name).expect("a file");
            String::from_utf8_lossy(bytes).into_owned()
        };
        let naming = [text(FILES[0].0), text(FILES[2].0)].concat();
        for (name, ..) in &FILES[1..] {
            assert!(naming.contains(name), "{name}");
        }
        let named = text(FILES[0].0);
        let named = named.split('"').filter(|part| part.contains('.') && !part.contains(['/', ' ', '<', '=']));
        for name in named {
            assert!(FILES.iter().any(|(known, ..)| *known == name), "{name}");
        }
        let page = Speedscope::new(b"{}".to_vec());
        let status = |path| page.answer(Inside { path, query: "" }).map(|answer| answer.status);
        assert_eq!((status(""), status(PROFILE)), (Ok(Status::Fine), Ok(Status::Fine)));
        assert!(FRAGMENT.ends_with(PROFILE));
        for path in ["../index.html", "release.txt", "index.html/", "index", "document"] {
            assert_eq!(status(path), Err(Status::NotFound), "{path}");
        }
    }

    #[test]
    fn the_page_is_that_of_the_version_that_tests_load_exports_in() {
        let release = include_str!("speedscope/release/release.txt");
        let package: serde_json::Value =
            serde_json::from_str(include_str!("../../../../ui/package.json")).expect("JSON");
        let version = package["devDependencies"]["speedscope"].as_str().expect("a version");
        assert_eq!(release.lines().next(), Some(format!("speedscope@{version}").as_str()), "npm ci && npm run build");
    }
}
