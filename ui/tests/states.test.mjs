// Flame graphs of wall time by state, in headless Chromium: of a program whose threads each do one thing for a while, by their own
// clocks (`dotnet/fixtures/States`). `crates/cli/tests/page.rs` records it, and has the tool print the same as JSON.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folder, open, opened as openedAny, until, useBrowser } from "./browser.mjs";

const clocks = () => Object.fromEntries(readFileSync(`${folder}/states.out`, "utf8").trim().split("\n").map((line) => line.split(" ")).map(([name, ns]) => [name, Number(ns)]));
const json = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
const PAGES = ["states", "served-states"];

useBrowser();

/** Opens the page with a state, which has complained of nothing when it is closed. */
async function opened(name, hash, options = {}) {
  const { page, trouble, close: closeAny } = await openedAny(name, { hash, ...options });
  const close = async () => {
    assert.deepEqual(trouble, [], name);
    await closeAny();
  };
  return { page, close };
}

/** Waits until the flame graph is there, with what was asked for. */
async function settled(page) {
  await page.waitForSelector(".flame .legend");
  await page.waitForSelector(".waiting", { state: "detached" });
}

/** Times of the states in the legend, nanoseconds as words say them, and their shares. */
async function legend(page) {
  await settled(page);
  const rows = await page.$$eval(".states button", (all) => all.map((one) => one.innerText.replace(/\s+/g, " ").trim()));
  const units = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };
  return new Map(rows.map((row) => {
    const [, label, number, unit, part] = /^(.*) ([\d.,]+) (ns|µs|ms|s) ([\d.]+) %$/.exec(row);
    return [label, { ns: Number(number.replaceAll(",", "")) * units[unit], part: Number(part) }];
  }));
}

/** Paths of the picture as it is downloaded, with their own amounts, in the order of the picture. */
async function pathsOf(page) {
  await settled(page);
  const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption(".download select", "shown 0")]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n").filter((line) => line !== "");
  return lines.map((line) => ({ path: line.slice(0, line.lastIndexOf(" ")).split(";"), ns: Number(line.slice(line.lastIndexOf(" "))) }));
}
const sumOf = (paths) => paths.reduce((sum, one) => sum + one.ns, 0);

/** Shows the time in some states alone. */
async function choose(page, states) {
  await page.evaluate((states) => (location.hash = `#tab=flame&states=${states}`), states);
  await until(page, "states", states);
  const pressed = states === "" ? 0 : states.split(",").length;
  await page.waitForFunction((pressed) => document.querySelectorAll(".states [aria-pressed=true]").length === pressed, pressed);
  await settled(page);
}

const isNear = (found, expected, slack, what) => assert.ok(Math.abs(found - expected) <= slack, `${what}: ${found} for ${expected}`);

test("states have the time that the program clocked itself", async () => {
  const clocked = clocks();
  for (const name of PAGES) {
    const { page, close } = await opened(name, "#tab=flame");
    const found = await legend(page);
    const slack = 150e6;
    for (const [label, key] of [["sleeping", "sleeping"], ["waiting for a lock", "lock"], ["blocked on a task", "task"], ["files, sockets", "io"]]) {
      isNear(found.get(label).ns, clocked[key], slack, `${name}: ${label}`);
    }
    // How long a thread that runs waits for a processor depends on the machine.
    const [runs, ready] = [found.get("running").ns, found.get("ready, no processor")?.ns ?? 0];
    assert.ok(runs + ready > clocked.running - slack, `${name}: ran ${runs}, was ready ${ready}`);
    assert.ok(found.get("waiting for events, others").ns > clocked.waiting - slack, name);
    // The idler, which sleeps all the time.
    assert.ok(found.get("idle threads").ns > clocked.waiting - slack, name);
    const parts = [...found.values()].reduce((sum, one) => sum + one.part, 0);
    isNear(parts, 100, 0.05 * found.size, `${name}: shares`);
    await close();
  }
});

test("times by state are those of the tool, and add up to the whole", async () => {
  const roots = json("states-tree").roots;
  const whole = roots.reduce((sum, root) => sum + root.total_wall_ns, 0);
  const lanes = new Map();
  for (const row of json("states-timeline").rows) lanes.set(row.kind, (lanes.get(row.kind) ?? 0) + row.amount_ns);
  const lane = (...kinds) => kinds.reduce((sum, kind) => sum + (lanes.get(kind) ?? 0), 0);
  for (const name of PAGES) {
    const { page, close } = await opened(name, "#tab=flame");
    assert.equal(sumOf(await pathsOf(page)), whole, name);
    const told = await legend(page);
    const sums = new Map();
    for (const state of ["running", "ready", "lock", "task", "waiting", "io", "sleeping", "suspended", "idle", "unknown"]) {
      await choose(page, state);
      const paths = await pathsOf(page);
      sums.set(state, sumOf(paths));
      // Locks of the runtime may have been waited for elsewhere.
      if (state === "lock") isNear(sumOf(paths.filter(({ path }) => path.includes("States.Program::Lock"))), clocks().lock, 150e6, JSON.stringify(paths));
      // The legend goes on to say what all states have.
      for (const [label, { ns }] of told) assert.equal((await legend(page)).get(label).ns, ns, `${name}: ${label}`);
    }
    const of = (...states) => states.reduce((sum, state) => sum + sums.get(state), 0);
    assert.equal(of(...sums.keys()), whole, name);
    // The tool's timeline knows states of threads; the page has them, waits by what is waited for.
    for (const state of ["running", "ready", "suspended"]) assert.equal(of(state), lane(state), `${name}: ${state}`);
    assert.equal(of("lock", "task", "waiting", "io", "sleeping", "idle"), lane("lock", "waiting", "io", "sleeping"), name);
    await choose(page, "sleeping,io");
    assert.equal(sumOf(await pathsOf(page)), of("sleeping", "io"));
    await close();
  }
});

test("a click on a state leaves its time alone, a second one takes that back", async () => {
  for (const name of PAGES) {
    const { page, close } = await opened(name, "#tab=flame");
    await legend(page);
    await page.click(".states button:has-text('blocked on a task')");
    await until(page, "states", "task");
    await page.waitForFunction(() => /blocked on a task 100\.0 %/.test(document.querySelector("#frame-told")?.innerText ?? "") || document.querySelector(".chip")?.innerText.includes("only blocked on a task"));
    const paths = await pathsOf(page);
    assert.ok(paths.length > 0 && paths.every(({ path }) => path.some((one) => /::Block$/.test(one))), JSON.stringify(paths));
    await page.click(".states button:has-text('sleeping')", { modifiers: ["Control"] });
    await until(page, "states", "task,sleeping");
    // The other tabs of paths show the same, and say so.
    await open(page, "functions");
    await page.waitForSelector(".chip:has-text('only blocked on a task; sleeping')");
    await page.waitForFunction(() => [...document.querySelectorAll("#panel .table-body [role=row]")].some((row) => /Program::Block/.test(row.innerText)) && ![...document.querySelectorAll("#panel .table-body [role=row]")].some((row) => /Program::Listen/.test(row.innerText)));
    await page.click(".chip");
    await until(page, "states", "");
    await close();
  }
});

test("whatever is changed of the picture, its states add up to what it shows", async () => {
  for (const name of PAGES) {
    const { page, close } = await opened(name, "#tab=flame");
    const before = await legend(page);
    for (const hash of ["#tab=flame&invert=1", "#tab=flame&changes=o", "#tab=flame&changes=o&invert=1", "#tab=flame&nameless=1"]) {
      await page.evaluate((hash) => (location.hash = hash), hash);
      await page.waitForFunction((hash) => location.hash === hash, hash);
      const found = await legend(page);
      for (const [label, { ns }] of before) assert.equal(found.get(label)?.ns, ns, `${name} ${hash}: ${label}`);
    }
    // Own code alone: of each function that waits it says for what.
    await page.evaluate(() => (location.hash = "#tab=flame&changes=o&states=io"));
    await until(page, "states", "io");
    await page.waitForFunction(() => document.querySelectorAll(".states [aria-pressed=true]").length === 1);
    const paths = await pathsOf(page);
    assert.ok(paths.some(({ path }) => /::Read$/.test(path.at(-1))), JSON.stringify(paths));
    isNear(sumOf(paths), before.get("files, sockets").ns, 5e6, name);
    await close();
  }
});

test("a part of the time has its own states", async () => {
  for (const name of PAGES) {
    const { page, close } = await opened(name, "#tab=flame&range=0,200000000");
    const first = sumOf(await pathsOf(page));
    const found = await legend(page);
    isNear([...found.values()].reduce((sum, one) => sum + one.ns, 0), first, first * 0.01, name);
    assert.ok((found.get("sleeping")?.ns ?? 0) < 200e6, `${name}: ${found.get("sleeping")?.ns}`);
    await close();
  }
});

test("own code comes first, and threads that are there to wait behind it", async () => {
  for (const name of PAGES) {
    const { page, close } = await opened(name, "#tab=flame");
    const paths = await pathsOf(page);
    const isOwn = ({ path }) => path.some((one) => one.startsWith("States.Program::"));
    const roots = [...new Set(paths.map(({ path }) => path[0]))];
    const own = roots.map((root) => paths.filter((one) => isOwn(one) && one.path[0] === root && !one.path.includes("States.Program::Rest")).reduce((sum, { ns }) => sum + ns, 0));
    assert.deepEqual(own, [...own].sort((a, b) => b - a), `${name}: ${roots}`);
    assert.ok(own[0] > 0, name);
    // Below the start of threads the idler has as much time as others.
    const below = paths.filter(({ path }) => path[0] === roots[0] && isOwn({ path })).map(({ path }) => path.find((one) => one.startsWith("States.Program::")));
    const last = below.lastIndexOf("States.Program::Rest");
    assert.ok(last >= 0 && below.slice(last + 1).every((one) => one === "States.Program::Rest"), `${name}: ${below}`);
    assert.notEqual(below[0], "States.Program::Rest");
    await close();
  }
});

/** Colours of a flame graph's pixels, without those that only edges of text have. */
const colours = (page) =>
  page.$eval(".flame canvas", (canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] < 255) continue;
      const colour = `#${[0, 1, 2].map((part) => data[at + part].toString(16).padStart(2, "0")).join("")}`;
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    return [...counts].filter(([, count]) => count > 500).map(([colour]) => colour);
  });

test("frames have the colours of their states, and of kinds of code where that is asked for", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, close } = await opened("states", "#tab=flame", { colorScheme });
    await settled(page);
    const byState = await colours(page);
    const marks = await page.$$eval(".states .mark:not(.striped)", (all) => all.map((one) => getComputedStyle(one).backgroundColor.match(/\d+/g).slice(0, 3).map((part) => Number(part).toString(16).padStart(2, "0")).join("")));
    for (const mark of marks) assert.ok(byState.includes(`#${mark}`), `${colorScheme}: ${mark} of ${byState}`);
    await page.click(".legend label:has-text('colours by state') input");
    await until(page, "colour", "code");
    await page.waitForSelector(".legend:has-text('framework')");
    assert.ok(!(await colours(page)).includes("#b4c9d6"), "sleeping");
    assert.ok((await colours(page)).includes("#7cc4f0"), "framework");
    await close();
  }
});

test("a frame is told with its states in words", async () => {
  for (const name of PAGES) {
    const { page, close } = await opened(name, "#tab=flame");
    await settled(page);
    await page.focus(".flame-scroll");
    for (let depth = 0; depth < 4; depth++) await page.keyboard.press("ArrowDown");
    assert.match(await page.innerText("#frame-told .split"), /^(\S.* \d+\.\d %)( · .* \d+\.\d %)*$/);
    await close();
  }
});

test("awaited time has a colour that nothing else has", async () => {
  const { page, close } = await opened("awaited", "#tab=flame");
  const metric = await page.$eval("select option:has-text('awaited time')", (option) => option.value);
  await page.evaluate((metric) => (location.hash = `#tab=flame&metric=${metric}`), metric);
  await until(page, "metric", metric);
  await page.waitForSelector(".legend:has-text('awaited: no thread ran or was blocked')");
  const awaited = "#b3a6f7";
  assert.ok((await colours(page)).includes(awaited));
  await open(page, "tree");
  const mark = await page.$eval(".tree .table-body .mark", (one) => getComputedStyle(one).backgroundColor);
  assert.equal(mark, "rgb(179, 166, 247)");
  const source = readFileSync(new URL("../src/colours.ts", import.meta.url), "utf8");
  assert.equal(source.split(awaited).length, 2, "once");
  await close();
});
