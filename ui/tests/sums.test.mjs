// Sums of pages in headless Chromium: whatever is changed of a picture, it has all that the recording has. The recording is one of
// which a page has no room for most paths; what it has is known by how it was made (`cut` in `crates/cli/tests/page.rs`).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { open, opened as openedAny, until, useBrowser } from "./browser.mjs";

/** Nanoseconds of a step, and steps of the recording: of everything, and of its parts. */
const STEP = 1e6;
const [BIG, JOIN, LEAF, ODD] = [100_000, 10_000, 160_000, 20];
const ALL = BIG + JOIN + LEAF + ODD;
const SMALLER = "(smaller: open with clrscope view)";

useBrowser();

/** Opens the page with a state, in a file or served, which has complained of nothing when it is closed. */
async function opened(name, hash = "") {
  const { page, trouble, close: closeAny } = await openedAny(name, { hash });
  const close = async () => {
    assert.deepEqual(trouble, [], name);
    await closeAny();
  };
  return { page, close };
}

/** Steps of the root of the flame graph, as words say it: three digits. */
async function toldOf(page) {
  await open(page, "flame");
  await page.waitForSelector(".waiting", { state: "detached" });
  await page.waitForFunction(() => /threads? [\d.,]+ \S+ \(100/.test(document.querySelector("#frame-told")?.innerText.replace(/\s+/g, " ") ?? ""));
  const [, number, unit] = /threads? ([\d.,]+) (ms|s) \(100/.exec((await page.innerText("#frame-told")).replace(/\s+/g, " "));
  return Number(number.replaceAll(",", "")) * (unit === "s" ? 1_000 : 1);
}

/** Own amounts of the picture as it is downloaded, in steps, by function. */
async function ownOf(page) {
  await open(page, "flame");
  const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption(".download select", "shown 0")]);
  const own = new Map();
  for (const line of readFileSync(await download.path(), "utf8").trim().split("\n")) {
    const [path, amount] = [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))];
    const name = path.split(";").pop();
    own.set(name, (own.get(name) ?? 0) + amount / STEP);
  }
  return own;
}
const sumOf = (own) => [...own.values()].reduce((sum, one) => sum + one, 0);
const isNear = (found, expected, what) => assert.ok(Math.abs(found - expected) <= Math.max(0.006 * expected, 0.5), `${what}: ${found} steps for ${expected}`);

/** Makes a change by the menu of a function's row. */
async function change(page, name, item) {
  await open(page, "functions");
  await page.fill(".search input", `/${name}$/`);
  const row = page.locator("#panel .table-body [role=row]", { hasText: name }).first();
  await row.click({ button: "right" });
  await page.click(`[role=menuitem]:has-text("${item}")`);
  await page.waitForSelector(".chip");
  await page.fill(".search input", "");
}

/** Changes by the menu, and the steps that the recording has after each. */
const CHANGES = [
  ["App.Wide::Tiny", "Merge function into callers", ALL],
  ["App.Big::Run", "Merge function into callers", ALL],
  ["App.Wide::A17", "Collapse function", ALL],
  ["App.Wide::A17", "Collapse library", ALL],
  ["App.Wide::A17", "Collapse recursion", ALL],
  ["System.Text::Join", "Merge all code of its kind", ALL],
  ["App.Wide::Tiny", "Focus on function", LEAF],
  ["App.Wide::A17", "Focus on function", 400],
  ["App.Wide::B17", "Focus on function", 400],
  ["App.Big::Run", "Focus on function", BIG],
  ["App.Wide::Tiny", "Drop paths with function", ALL - LEAF],
  ["App.Wide::B17", "Drop paths with function", ALL - 400],
  ["App.Big::Run", "Drop paths with function", ALL - BIG],
];

test("sums of a file that was cut are those of the recording, whatever is changed of it", async () => {
  const { page, close } = await opened("cut", "#tab=flame");
  isNear(await toldOf(page), ALL, "the whole");
  const whole = await ownOf(page);
  assert.equal(sumOf(whole), ALL);
  assert.equal(whole.get(SMALLER), LEAF + ODD, "one frame stands for what there is no room for");
  for (const [name, item, expected] of CHANGES) {
    await change(page, name, item);
    isNear(await toldOf(page), expected, `${item}: ${name}`);
    assert.equal(sumOf(await ownOf(page)), expected, `${item}: ${name}`);
    assert.ok(!/is unknown: at most/.test(await page.innerText("#panel")), item);
    await page.click(".chip");
    await until(page, "changes", "");
  }
  for (const label of ["just my code"]) {
    await page.click(`label:has-text('${label}') input`);
    await page.waitForSelector(".chip");
    assert.equal(sumOf(await ownOf(page)), ALL, label);
    await page.click(".chip");
    await until(page, "changes", "");
  }
  await close();
});

test("what nobody can know of a file that was cut is said to be at most so much", async () => {
  const { page, close } = await opened("cut", "#tab=flame");
  for (const [name, item] of [["System.Text::Join", "Drop paths with code of its kind"]]) {
    await change(page, name, item);
    const own = await ownOf(page);
    assert.equal(sumOf(own), ALL - JOIN);
    assert.equal(own.get(SMALLER), LEAF + ODD);
    assert.match(await page.innerText("#panel"), /is unknown: at most this much/);
    await page.click(".chip");
    await until(page, "changes", "");
  }
  // What is not offered for CPU time may still stand in an address.
  await page.evaluate(() => (location.hash = "#tab=flame&changes=w"));
  await page.waitForSelector(".chip");
  assert.equal(sumOf(await ownOf(page)), ALL);
  assert.match(await page.innerText("#panel"), /is unknown: at most this much/);
  await page.click(".chip");
  await until(page, "changes", "");
  // The tool's table is of all threads.
  const thread = await page.$eval("select option:has-text('main')", (option) => option.value);
  await page.evaluate((thread) => (location.hash = `#tab=functions&threads=${thread}`), thread);
  await until(page, "threads", thread);
  await change(page, "App.Big::Run", "Focus on function");
  assert.deepEqual([...(await ownOf(page))].sort(), [[SMALLER, LEAF], ["App.Big::Run", BIG]]);
  assert.match(await page.innerText("#panel"), /is unknown: at most this much/);
  await close();
});

test("a file that was cut names functions by their own amounts when it is inverted, whose paths have no room", async () => {
  const { page, close } = await opened("cut", "#tab=tree&invert=1");
  await page.waitForSelector(".tree .table-body .table-row");
  const rows = (await page.$$eval(".tree .table-body .table-row", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")))).filter((row) => /\d (ms|s) /.test(row));
  assert.match(rows[0], /^160 s 59\.\d %.*App\.Wide::Tiny/, rows.slice(0, 4).join("\n"));
  assert.ok(rows.some((row) => /^100 s 37\.0 %.*App\.Big::Run/.test(row)), rows.slice(0, 6).join("\n"));
  isNear(await toldOf(page), ALL, "inverted");
  await close();
});

test("threads, parts of the time and searches of a file that was cut have true sums", async () => {
  const { page, close } = await opened("cut", "#tab=flame");
  const thread = await page.$eval("select option:has-text('odd')", (option) => option.value).catch(() => null);
  assert.ok(thread, "a thread of small paths alone is there");
  await page.evaluate((thread) => (location.hash = `#tab=flame&threads=${thread}`), thread);
  await until(page, "threads", thread);
  isNear(await toldOf(page), ODD, "a thread of small paths");
  await page.evaluate(() => (location.hash = "#tab=flame&invert=1"));
  await until(page, "threads", "");
  isNear(await toldOf(page), ALL, "inverted");
  await page.evaluate(() => (location.hash = "#tab=flame&range=500000000,1000000000"));
  await until(page, "invert", "");
  isNear(await toldOf(page), LEAF / 2 + ODD / 2, "the second half");
  await page.evaluate(() => (location.hash = "#tab=flame&range=500000000,1000000000&invert=1"));
  await until(page, "invert", "1");
  isNear(await toldOf(page), LEAF / 2 + ODD / 2, "the second half, inverted");
  await page.evaluate(() => (location.hash = "#tab=flame&search=Big"));
  await until(page, "search", "Big");
  await page.waitForFunction(() => /matched at least 37\.0 %/.test(document.querySelector(".search output").textContent));
  await page.evaluate(() => (location.hash = "#tab=flame&search=App::Main"));
  await page.waitForFunction(() => /matched at least (99|100)/.test(document.querySelector(".search output").textContent));
  await close();
});

test("sums of a served page are those of the recording, whatever is changed of it: nothing is cut", async () => {
  const { page, close } = await opened("served-cut", "#tab=flame");
  isNear(await toldOf(page), ALL, "the whole");
  const more = [
    ["System.Text::Join", "Drop paths with code of its kind", ALL - JOIN],
    ["App.Big::Run", "Merge all code of its kind", ALL],
  ];
  for (const [name, item, expected] of [...CHANGES, ...more]) {
    await change(page, name, item);
    await toldUntil(page, expected, `${item}: ${name}`);
    for (const invert of ["1", ""]) {
      await page.keyboard.press("i");
      await until(page, "invert", invert);
      await toldUntil(page, expected, `${item}: ${name}, ${invert ? "inverted" : "upright again"}`);
    }
    await page.click(".chip");
    await until(page, "changes", "");
  }
  // What the file does not know.
  await change(page, "App.Wide::A17", "Focus on function");
  await open(page, "functions");
  const tiny = page.locator("#panel .table-body [role=row]", { hasText: "App.Wide::Tiny" }).first();
  await tiny.waitFor();
  // Sums of functions are of all paths.
  await page.waitForFunction(() => [...document.querySelectorAll("#panel .table-body [role=row]")].some((row) => /^App\.Wide::Tiny 400 ms/.test(row.innerText.replace(/\s+/g, " "))));
  await tiny.click({ button: "right" });
  await page.click("[role=menuitem]:has-text('Drop paths with function')");
  await until(page, "changes", (await page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("changes"))));
  await page.waitForFunction(() => document.querySelectorAll(".chip").length === 2);
  await page.click(".chip >> nth=0");
  await toldUntil(page, ALL - LEAF, "dropped alone");
  assert.ok(!(await page.innerText("#panel")).includes("too small for this page"));
  await close();
});

/** A function that only tables name was left out of what matches where both answers about functions came in the same moment. */
test("a function that is searched for is there, though its tables come in the same moment", async () => {
  const { page, close } = await opened("served-cut", "#tab=flame");
  await page.waitForSelector(".waiting", { state: "detached" });
  await page.evaluate(() => {
    const read = Response.prototype.json;
    const held = [];
    Response.prototype.json = async function () {
      const answer = await read.call(this);
      if (!this.url.includes("document?")) return answer;
      await new Promise((give) => held.push(give));
      return answer;
    };
    globalThis.held = held;
  });
  await open(page, "functions");
  await page.fill(".search input", "/App.Wide::Tiny$/");
  await page.waitForFunction(() => globalThis.held.length === 2);
  await page.evaluate(() => globalThis.held.forEach((give) => give()));
  await page.locator("#panel .table-body [role=row]", { hasText: "App.Wide::Tiny" }).first().waitFor({ timeout: 20_000 });
  await close();
});

/** Waits until the root of the flame graph has so many steps. */
async function toldUntil(page, expected, what) {
  let told = NaN;
  for (let tries = 0; tries < 600; tries++) {
    told = await toldOf(page);
    if (Math.abs(told - expected) <= Math.max(0.006 * expected, 0.5)) return;
    await page.evaluate(() => new Promise((done) => setTimeout(done, 100)));
  }
  assert.fail(`${what}: ${told} steps for ${expected}`);
}

test("a served page names every function inverted, counts what a search matches, and shows all callers and callees", async () => {
  const { page, close } = await opened("served-cut", "#tab=tree&invert=1");
  await page.waitForFunction(() => [...document.querySelectorAll(".tree .table-body .table-row")].some((row) => /^160 s/.test(row.innerText)));
  const rows = await page.$$eval(".tree .table-body .table-row", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));
  assert.match(rows[0], /^160 s 59\.\d %.*App\.Wide::Tiny/);
  await page.evaluate(() => (location.hash = "#tab=flame&search=Tiny"));
  await page.waitForFunction(() => /^matched 59\.\d %/.test(document.querySelector(".search output").textContent));
  // Of paths that are too small to be seen each.
  await page.evaluate(() => (location.hash = "#tab=flame&search=Wide::B17"));
  await page.waitForFunction(() => /^matched (0\.\d|1\.\d|1\d\.\d) %/.test(document.querySelector(".search output").textContent));
  await change(page, "App.Wide::Tiny", "Merge function into callers");
  await page.click(".chip");
  await until(page, "changes", "");
  await open(page, "functions");
  await page.fill(".search input", "/App.Wide::B17$/");
  await page.waitForFunction(() => document.querySelectorAll("#panel .table-body [role=row]").length === 1);
  await page.locator("#panel .table-body [role=row]", { hasText: "App.Wide::B17" }).first().click({ button: "right" });
  await page.click("[role=menuitem]:has-text('Callers and callees')");
  await page.waitForSelector("#panel[aria-labelledby='tab-callers'] .of");
  await page.waitForFunction(() => /cpu time 400 ms/i.test(document.querySelector(".of").innerText.replace(/\s+/g, " ")));
  const side = (title) => page.getAttribute(`section:has(> h2:text-is("${title}")) [role=grid]`, "aria-rowcount");
  assert.equal(Number(await side("Callers")), 401, "400 callers, and the head");
  assert.equal(Number(await side("Callees")), 2);
  await close();
});

test("a part of the time and a thread of a served page have true sums upright and inverted", async () => {
  const { page, close } = await opened("served-cut", "#tab=flame&range=500000000,1000000000&invert=1");
  await toldUntil(page, LEAF / 2 + ODD / 2, "the second half, inverted");
  await page.evaluate(() => (location.hash = "#tab=flame&range=500000000,1000000000"));
  await until(page, "invert", "");
  await toldUntil(page, LEAF / 2 + ODD / 2, "the second half");
  const thread = await page.$eval("select option:has-text('odd')", (option) => option.value);
  for (const invert of ["&invert=1", ""]) {
    await page.evaluate(([thread, invert]) => (location.hash = `#tab=flame&threads=${thread}${invert}`), [thread, invert]);
    await toldUntil(page, ODD, "a thread");
  }
  await close();
});
