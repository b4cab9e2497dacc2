//! `cargo xtask picture`: writes `docs/page.png`, the picture of the demo's page in README.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_testkit::workspace_root;

/// Names under which distributions install Chromium.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Bytes of the picture at most: it is loaded with README.
const MOST_BYTES: u64 = 200_000;

/// Runs the demo, opens its page at the flame graph in a Chromium without a screen, and saves the
/// picture.
///
/// # Errors
/// A sentence, when there is no Chromium, or one of the steps fails.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run() -> Result<(), String> {
    let browser = found().ok_or("there is no Chromium on this machine")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let recording = folder.path().join("demo.clrs");
    let mut demo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    demo.current_dir(workspace_root()).args([
        "run",
        "--release",
        "--quiet",
        "--package",
        "clrscope",
        "--",
        "demo",
        "-o",
    ]);
    finished(demo.arg(&recording), "the demo")?;
    let picture = workspace_root().join("docs/page.png");
    let mut shot = Command::new(browser);
    // Chromium does not run as root with a sandbox of its own.
    shot.args([
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        "--window-size=1000,560",
        "--virtual-time-budget=20000",
    ]);
    shot.arg(format!("--user-data-dir={}", folder.path().join("browser").display()));
    shot.arg(format!("--screenshot={}", picture.display()));
    finished(shot.arg(address(&folder.path().join("demo.html"))), "Chromium")?;
    let size = std::fs::metadata(&picture).map_err(|error| error.to_string())?.len();
    if size > MOST_BYTES {
        return Err(format!("the picture has {size} bytes, and README loads it: {MOST_BYTES} at most"));
    }
    println!("docs/page.png: {size} bytes");
    Ok(())
}

/// The page at its flame graph.
fn address(page: &Path) -> String {
    format!("file://{}#tab=flame", page.display())
}

fn found() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let on_path = |name: &str| env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    BROWSERS.into_iter().find_map(on_path)
}

fn finished(command: &mut Command, what: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{what} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed: {status}")) }
}
