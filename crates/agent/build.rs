//! Links the agent so that it is never unloaded: hooks run on after `Shutdown`.
#![expect(clippy::disallowed_macros, reason = "Cargo reads what a build script prints")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // A symbol that is nowhere must fail this build and not the loading in somebody's program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
}
