//! Reasons why a module has no line numbers, in words.

use std::fmt;
use std::path::PathBuf;

/// Reason why a module has no line numbers. The displayed text is half a sentence that follows the
/// module's name and a colon.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// The module is not on this machine.
    NoModule,
    /// The module does not name a PDB, or its reference to the PDB can't be read.
    NoPdbNamed,
    /// The PDB was not found.
    NoPdb {
        /// Path next to the module.
        beside: PathBuf,
        /// Path that the compiler wrote the PDB to.
        written: PathBuf,
    },
    /// The PDB at this path belongs to another build of the module.
    OtherBuild(PathBuf),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoModule => write!(out, "neither it nor a single-file program that holds it is on this machine"),
            Self::NoPdbNamed => write!(out, "it was compiled without symbols"),
            Self::NoPdb { beside, written } if written.is_absolute() && written != beside => {
                write!(out, "no PDB at {} or {}", beside.display(), written.display())
            }
            Self::NoPdb { beside, .. } => write!(out, "no PDB at {}", beside.display()),
            Self::OtherBuild(path) => write!(out, "the PDB at {} is of another build", path.display()),
        }
    }
}

impl Obstacle {
    /// Advice on how to remove the obstacle, as a sentence.
    #[must_use]
    pub const fn cure(&self) -> &'static str {
        match self {
            Self::NoModule => {
                "Report on the machine that the program runs on, or put the program and its PDBs at the same path here."
            }
            Self::NoPdbNamed => "Build it with <DebugType>embedded</DebugType>.",
            Self::NoPdb { .. } | Self::OtherBuild(_) => {
                "Put the PDB of the same build there, or build with <DebugType>embedded</DebugType>."
            }
        }
    }
}
