//! Links the agent so that it is never unloaded: hooks run on after `Shutdown`.
#![expect(clippy::disallowed_macros, reason = "Cargo reads what a build script prints")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // An undefined symbol must fail this build, not the loading of the agent into a user's program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
}
