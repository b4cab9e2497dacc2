//! Links the agent so that it is never unloaded: hooks run on after `Shutdown`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // A symbol that is nowhere must fail this build and not the loading in somebody's program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    // A symbol that is missing must fail here, not when a program loads the agent.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
}
