// Exports for the Firefox Profiler, read by the profiler's own program for terminals; `cargo test -p clrscope --test page` makes
// them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const folder = process.env.PAGES;
const manifest = createRequire(import.meta.url).resolve("@firefox-devtools/profiler-cli/package.json");
const program = join(manifest, "../dist/profiler-cli.js");

/** Loads a profile. Its server has half a second to start, which is little on a busy machine: it says itself that one should try again. */
function loaded(load, left = 5) {
  try {
    load();
  } catch (error) {
    if (left === 0 || !`${error.stderr}`.includes("did not become ready")) throw error;
    loaded(load, left - 1);
  }
}

/** What the profiler says of a profile to each of some questions. */
function asked(name, questions) {
  const sessions = mkdtempSync(join(tmpdir(), "firefox-"));
  const env = { ...process.env, PROFILER_CLI_SESSION_DIR: sessions };
  const run = (...words) => execFileSync(process.execPath, [program, ...words], { env, encoding: "utf8", timeout: 60_000 });
  try {
    // Nobody is asked for names: there is no server at that port.
    const load = () => run("load", `${folder}/${name}.firefox.json`, "--symbol-server", "http://127.0.0.1:9/");
    loaded(load);
    return questions.map((words) => JSON.parse(run(...words, "--json")));
  } finally {
    run("stop", "--all");
    rmSync(sessions, { recursive: true, force: true });
  }
}

const functions = (thread) => ["thread", "functions", "--thread", thread, "--limit", "0", "--include-idle"];
const samples = ({ functions }) => Object.fromEntries(functions.map((one) => [one.name.split("  ")[0], [one.selfSamples, one.totalSamples]]));

test("the Firefox Profiler finds the threads and samples of the recording", () => {
  const [info, main, mailer] = asked("sampled", [["profile", "info"], functions("t-0"), functions("t-1")]);
  assert.deepEqual([info.threadCount, info.processCount], [2, 1]);
  // 400 steps of the main thread, of which every third ends in the method itself, and 100 of the mailer.
  assert.deepEqual(samples(main), { "App::Main": [0, 400], "App.Cart::Total": [134, 400], "System.String::Concat": [0, 266], memcpy: [266, 266] });
  assert.deepEqual(samples(mailer), { "System.Threading.Thread::Start": [0, 100], "App.Mail::Send": [100, 100] });
});
