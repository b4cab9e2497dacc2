// Clicks through pages in headless Chromium.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { PATIENCE, drawn, folder, havePaths, open, opened, paths, stateOf, tabs, until, useBrowser } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

useBrowser();

test("tabs are there for what was recorded, and each shows it without a complaint", async () => {
  for (const [name, expected] of [
    ["recorded", ["summary", "flame", "tree", "functions", "callers", "lines", "exceptions", "threads", "modules", "events", "flow", "conditions"]],
    ["sampled", ["summary", "flame", "tree", "functions", "callers", "timeline", "lines", "threads", "modules", "conditions"]],
  ]) {
    const { page, trouble, close } = await opened(name);
    assert.deepEqual(await tabs(page), expected, name);
    for (const tab of expected) {
      await open(page, tab);
      const text = await page.innerText("#panel");
      assert.ok(text.trim().length > 20 || tab === "flame", `${name} ${tab}: ${text}`);
    }
    assert.deepEqual(trouble, [], name);
    await close();
  }
});

test("the flame graph is walked, zoomed, searched, inverted and changed, and the address keeps all that", async () => {
  const { page, trouble, close } = await opened("sampled", { hash: "#tab=flame" });
  await page.waitForFunction(() => Number(document.querySelector(".flame canvas")?.dataset.drawn) > 3);
  await page.focus(".flame-scroll");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.querySelector("#frame-told b").textContent !== "all threads");
  const label = await page.innerText("#frame-told b");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("zoom="));
  const narrow = await drawn(page);
  await page.keyboard.press("0");
  await until(page, "zoom", "");
  assert.ok((await drawn(page)) >= narrow);
  await page.fill(".search input", "Total");
  await page.waitForFunction(() => /matched \d/.test(document.querySelector(".search output").textContent));
  await page.press(".search input", "Enter");
  await page.press(".search input", "Escape");
  await until(page, "search", "");
  await page.keyboard.press("i");
  await until(page, "invert", "1");
  await page.keyboard.press("i");
  await until(page, "invert", "");
  // A change by key, on the frame that is selected, and its chip.
  await page.focus(".flame-scroll");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.querySelector("#frame-told b").textContent !== "all threads");
  await page.keyboard.press("f");
  await page.waitForSelector(".chip");
  assert.match(await page.innerText(".chip"), /^focus /);
  const { changes } = await stateOf(page);
  assert.match(changes, /^f\d+$/);
  await page.reload();
  await page.waitForSelector(".chip");
  await page.click(".chip");
  await until(page, "changes", "");
  await page.goBack();
  await until(page, "changes", changes);
  assert.ok(label.length > 0);
  assert.deepEqual(trouble, []);
  await close();
});

test("lines of covered files are marked by what was run, and found by keys", async () => {
  const { page, trouble, close } = await opened("covered", { hash: "#tab=coverage" });
  const line = (number) => page.innerText(`.source-line[aria-rowindex="${number}"]`);
  const kind = (number) => page.getAttribute(`.source-line[aria-rowindex="${number}"]`, "class");
  await page.waitForSelector(".source-line");
  assert.match(await line(4), /◐[\s\S]*1,234×[\s\S]*1\/2[\s\S]*if \(any\)/);
  assert.match(await line(5), /✗[\s\S]*not run[\s\S]*0×[\s\S]*Pay\(\);/);
  assert.match(await line(6), /✓[\s\S]*Count\(\);/);
  assert.match(await line(1), /<script>alert\(1\)/, "text");
  assert.match(await line(2), /no code/);
  assert.ok((await kind(5)).includes("not_covered") && (await kind(4)).includes("partly"));
  assert.match(await page.innerText(".source-head select"), /Cart\.cs: 2 of 3 lines/);
  await page.focus(".source-lines");
  await page.keyboard.press("n");
  await until(page, "line", "4");
  // A method leads to its first line, in the address as well.
  await page.click(".covered-code .table-row:has-text('App.Cart.Count()')");
  await page.waitForFunction(() => location.hash.includes("Cart.cs"));
  await page.reload();
  await page.waitForSelector(".source-line.at");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => [one.id, one.nodes[0].html]), []);
  assert.deepEqual(trouble, []);
  await close();
});

test("nameless native code is a frame of its library, until it is shown function by function", async () => {
  const { page, trouble, close } = await opened("nameless", { hash: "#tab=flame" });
  const labels = async () => (await page.$$eval(".tree .table-body .table-row", (rows) => rows.map((row) => row.innerText.split("\n").pop().replace(/^[▾▸▶▼\s]+/, ""))));
  await havePaths(page);
  const folded = await paths(page);
  await open(page, "tree");
  await page.waitForSelector(".tree .table-body .table-row");
  const shown = await labels();
  assert.deepEqual(shown.slice(0, 3).map((label) => label.split(/\s/)[0]), ["[libcoreclr.so]", "App::Main", "[libcoreclr.so]"], shown.join());
  assert.ok(!shown.some((label) => label.includes("+0x")), shown.join());
  // A change made here holds for the functions that the frame stands for.
  await page.click(".tree .table-body .table-row >> nth=0");
  await page.keyboard.press("f");
  await page.waitForSelector(".chip");
  const focused = async () => (await page.innerText(".tree .table-body .table-row >> nth=0")).split("\n")[0];
  const whole = await focused();
  await page.click("label:has-text('fold nameless code') input");
  await until(page, "nameless", "1");
  assert.match((await labels())[0], /libcoreclr\.so\+0x/);
  await page.click(".chip");
  await until(page, "changes", "");
  await open(page, "flame");
  await havePaths(page);
  assert.ok((await paths(page)) > folded + 5, `${await paths(page)} after ${folded}`);
  await page.reload();
  await havePaths(page);
  assert.ok((await paths(page)) > folded + 5, "the address keeps it");
  assert.match(whole, /9\d/, "what is folded has the sum");
  // Functions without names lead to the callers of what they are folded into.
  await page.evaluate(() => (location.hash = "#tab=functions&nameless=1"));
  await page.locator("[role=row]", { hasText: "libcoreclr.so+0x103" }).first().waitFor();
  // The table has the library as one row, with what its functions have themselves: 60 and 30 steps.
  await page.click("label:has-text('fold nameless code') input");
  await until(page, "nameless", "");
  const library = page.locator("[role=row]", { hasText: "[libcoreclr.so]" });
  await library.first().waitFor();
  assert.equal(await library.count(), 1);
  assert.ok(!(await page.innerText("#panel")).includes("+0x"));
  assert.match(await library.innerText(), /^\[libcoreclr\.so\]\s+90\.0 ms\s/);
  await library.dblclick();
  await page.waitForSelector(".of");
  assert.match(await page.innerText(".of h2"), /^\[libcoreclr\.so\]$/);
  assert.deepEqual(trouble, []);
  await close();
});

test("paths are logical until a switch shows those that threads had, in a file and served, and the address keeps it", async () => {
  for (const name of ["resumed", "served-resumed"]) {
    const { page, trouble, close } = await opened(name, { hash: "#tab=functions" });
    const total = async (label) => {
      const row = page.locator("#panel .table-body [role=row]", { hasText: label });
      return (await row.count()) === 0 ? null : (await row.first().innerText()).replace(/\s+/g, " ");
    };
    await page.locator("#panel [role=row]", { hasText: "[unknown awaiter]" }).first().waitFor();
    assert.equal(await total("App.Other::Completes"), null, "it did not ask for what it completed");
    await page.click("label:has-text('physical paths') input");
    await until(page, "physical", "1");
    await page.locator("#panel [role=row]", { hasText: "App.Other::Completes" }).first().waitFor();
    assert.match(await total("App.Other::Completes"), /70\.0 ms/, name);
    assert.match(await total("App.Cart::Read"), /^App\.Cart::Read 100 ms/, "sums are the same");
    assert.equal(await total("[unknown awaiter]"), null);
    await page.reload();
    await page.locator("#panel [role=row]", { hasText: "App.Other::Completes" }).first().waitFor();
    await page.click("label:has-text('physical paths') input");
    await page.locator("#panel [role=row]", { hasText: "[unknown awaiter]" }).first().waitFor();
    assert.match(await total("App.Cart::Read"), /^App\.Cart::Read 100 ms/);
    assert.deepEqual(trouble, []);
    await close();
  }
  const { page, close } = await opened("sampled", { hash: "#tab=flame" });
  assert.equal(await page.locator("label:has-text('physical paths')").count(), 0, "nothing else would be shown");
  await close();
});

test("the page folds nameless native code as the tool does", async () => {
  const { page, trouble, close } = await opened("nameless", { hash: "#tab=flame" });
  await havePaths(page);
  const byPath = (text) => text.trim().split("\n").map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]).sort();
  const same = async (file) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption(".download select", "shown 0")]);
    const [shown, printed] = [readFileSync(await download.path(), "utf8"), readFileSync(`${folder}/${file}`, "utf8")].map(byPath);
    assert.ok(printed.length > 10_000, String(printed.length));
    assert.deepEqual(shown, printed, file);
  };
  await same("nameless.folded");
  await page.click("label:has-text('fold nameless code') input");
  await until(page, "nameless", "1");
  await havePaths(page);
  await same("nameless.places");
  assert.deepEqual(trouble, []);
  await close();
});

test("more is asked for of all that a folded frame stands for", async () => {
  const { page, trouble, close } = await opened("served-nameless", { hash: "#tab=flame" });
  await havePaths(page);
  const before = await paths(page);
  await page.waitForFunction(() => Number(document.querySelector(".flame canvas").dataset.drawn) > 3);
  await page.focus(".flame-scroll");
  // Through the runtime and the method that it starts, to what the runtime calls there.
  for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  await page.waitForFunction(() => document.querySelector("#frame-told b").textContent !== "all threads");
  for (let at = 0; at < 3 && !(await toldOf(page)).includes("App.Wide::Run"); at++) await page.keyboard.press("ArrowRight");
  assert.match(await toldOf(page), /App\.Wide::Run/);
  await page.keyboard.press("ArrowDown");
  assert.match(await toldOf(page), /\[libcoreclr\.so\]/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => Number(/([\d,]+) paths/.exec(document.querySelector(".legend").innerText)[1].replaceAll(",", "")) > 11_000);
  assert.ok(before < 2_000, String(before));
  assert.deepEqual(trouble, []);
  await close();
});

test("the menu of a frame makes every change", async () => {
  const { page, trouble, close } = await opened("sampled", { hash: "#tab=tree" });
  for (let at = 0; at < 10; at++) {
    await page.waitForSelector(".tree .table-body .table-row");
    await page.click(".tree .table-body .table-row >> nth=1", { button: "right" });
    const item = page.locator("[role=menuitem]").nth(at);
    const name = await item.innerText();
    await item.click();
    await page.waitForSelector(".chip", { timeout: PATIENCE }).catch(() => assert.fail(name));
    await page.click(".chip");
    await page.waitForSelector(".chip", { state: "detached" });
  }
  assert.deepEqual(trouble, []);
  await close();
});

test("all code of a kind is merged into its callers or left out, and a chip takes that back", async () => {
  const { page, trouble, close } = await opened("sampled", { hash: "#tab=functions" });
  const framework = page.locator("[role=row]", { hasText: "System.String::Concat" }).first();
  for (const [item, chip] of [["Merge all code of its kind", "merged framework"], ["Drop paths with code of its kind", "dropped framework"]]) {
    await framework.click({ button: "right" });
    await page.click(`[role=menuitem]:has-text("${item}")`);
    assert.match(await page.innerText(".chip"), new RegExp(`^${chip}`));
    await framework.waitFor({ state: "detached" });
    assert.ok(await page.locator("[role=row]", { hasText: "App.Cart::Total" }).count());
    await page.click(".chip");
    await framework.waitFor();
  }
  assert.deepEqual(trouble, []);
  await close();
});

test("callers and callees are those of the tree", async () => {
  const { page, close } = await opened("sampled", { hash: "#tab=functions" });
  await page.locator("[role=row]", { hasText: "App.Cart::Total" }).first().dblclick();
  await page.waitForSelector("#panel[aria-labelledby='tab-callers'] .of");
  assert.match(await page.innerText(".of h2"), /App\.Cart::Total/);
  const side = (title) => page.innerText(`section:has(> h2:text-is("${title}"))`);
  assert.match(await side("Callers"), /App::Main/);
  assert.match(await side("Callees"), /System\.String::Concat/);
  await close();
});

test("a double click in tree and functions shows the lines of the source, in a file and served", async () => {
  for (const name of ["counted", "served-counted"]) {
    const { page, trouble, close } = await opened(name, { hash: "#tab=functions" });
    const seen = async () => {
      await page.waitForSelector("#panel[aria-labelledby='tab-lines'] .function-source .source-line[role=row][data-heat]");
      const text = await page.innerText(".function-source");
      assert.match(text, /^Source of Counter\.Program::Step/, name);
      assert.match(text, /private static void Step\(\) => steps\+\+;/, name);
      assert.match(text, /Counter\.cs/, name);
      assert.ok(!text.includes("static int Main"), "a piece of another function");
    };
    const step = () => page.locator("#panel [role=row]", { hasText: "Counter.Program::Step" }).first();
    await step().dblclick();
    await seen();
    await page.goBack();
    await open(page, "tree");
    await step().dblclick();
    await seen();
    await page.goBack();
    await page.waitForSelector("#panel[aria-labelledby='tab-tree']");
    // What has no lines opens, as by Enter.
    const outermost = page.locator("#panel .table-body [role=row]").first();
    for (const open of ["false", "true"]) {
      await outermost.dblclick();
      assert.equal(await outermost.getAttribute("aria-expanded"), open);
    }
    await step().click({ button: "right" });
    await page.click("[role=menuitem]:has-text('Source lines')");
    await seen();
    assert.deepEqual(trouble, []);
    await close();
  }
});

test("functions of the summary lead to their callers and callees, by mouse and by keys", async () => {
  const { page, trouble, close } = await opened("sampled", { hash: "#tab=summary" });
  const row = page.locator("[role=row]", { hasText: "App.Cart::Total" }).first();
  await row.dblclick();
  await page.waitForSelector("#panel[aria-labelledby='tab-callers'] .of");
  assert.match(await page.innerText(".of h2"), /App\.Cart::Total/);
  await page.goBack();
  await row.click();
  await page.click(".details button:has-text('Callers and callees')");
  await page.waitForSelector("#panel[aria-labelledby='tab-callers'] .of");
  await open(page, "timeline");
  const ticks = await page.$$eval(".axis .ticks > span", (all) => all.map((tick) => tick.textContent));
  assert.ok(ticks.length > 3 && ticks[0].startsWith("0") && new Set(ticks).size === ticks.length, ticks.join());
  assert.deepEqual(trouble, []);
  await close();
});

test("a range of the timeline filters what has times", async () => {
  const { page, trouble, close } = await opened("recorded", { hash: "#tab=events" });
  await page.waitForSelector(".table-body .table-row");
  const rows = () => page.$eval("[role=grid]", (grid) => Number(grid.getAttribute("aria-rowcount")));
  const all = await rows();
  await page.evaluate(() => (location.hash = "#tab=events&range=0,100000000"));
  await page.waitForFunction((all) => Number(document.querySelector("[role=grid]").getAttribute("aria-rowcount")) < all, all);
  assert.deepEqual(trouble, []);
  await close();
  const sampled = await opened("sampled", { hash: "#tab=timeline" });
  const strip = await sampled.page.waitForSelector(".strip");
  const box = await strip.boundingBox();
  await sampled.page.mouse.move(box.x + box.width * 0.2, box.y + 8);
  await sampled.page.mouse.down();
  await sampled.page.mouse.move(box.x + box.width * 0.6, box.y + 8, { steps: 4 });
  await sampled.page.mouse.up();
  await sampled.page.waitForFunction(() => location.hash.includes("range="));
  assert.deepEqual(sampled.trouble, []);
  await sampled.close();
});

/** Words about the frame that is told about, the root where none is. */
const toldOf = (page) => page.innerText("#frame-told");

test("a range filters flame graph, tree and functions, in a file by pieces and served exactly", async () => {
  // Main works for the first 400 of 1,000 ms; the mailer every eighth millisecond up to 800.
  for (const name of ["sampled", "served"]) {
    const { page, trouble, close } = await opened(name, { hash: "#tab=flame" });
    await page.waitForFunction(() => /^all threads 500 ms/.test(document.querySelector("#frame-told")?.innerText.replace(/\s+/g, " ") ?? ""), undefined, { timeout: PATIENCE });
    await page.evaluate(() => (location.hash = "#tab=flame&range=200000000,800000000"));
    await page.waitForFunction(() => !/500 ms/.test(document.querySelector("#frame-told")?.innerText ?? "500 ms"));
    // 200 of the one, and 75 of the other.
    assert.match((await toldOf(page)).replace(/\s+/g, " "), /^all threads 27[3-7] ms/, name);
    await open(page, "functions");
    assert.match(await page.innerText("#panel"), /App\.Cart::Total/);
    await page.evaluate(() => (location.hash = "#tab=functions&range=900000000,990000000"));
    await page.waitForFunction(() => !/App\.Cart::Total/.test(document.querySelector("#panel").innerText));
    await page.click(".chip");
    await until(page, "range", "");
    await page.waitForFunction(() => /App\.Cart::Total/.test(document.querySelector("#panel").innerText));
    assert.deepEqual(trouble, [], name);
    await close();
  }
});

test("the page of an attach follows the recording, keeps what was set, and stays when the program has ended", async () => {
  const { page, trouble, close } = await opened("live", { hash: "#tab=functions" });
  await page.waitForSelector(".standing.recording");
  // Bars and numbers of functions come from samples: more of them each second.
  const cpu = () => page.$$eval("#panel .table-body .table-row", (rows) => rows.map((row) => row.innerText).join("\n"));
  const recorded = () => page.$eval("header .title p", (facts) => facts.innerText.split(" from ")[0]);
  await page.waitForSelector("#panel .table-body .table-row");
  await page.fill(".search input", "Server");
  await page.press(".search input", "Enter");
  const set = () => page.evaluate(() => [location.hash, document.querySelector(".search input").value, document.querySelector("[role=tab][aria-selected=true]").id]);
  const wanted = await set();
  assert.equal(wanted[1], "Server");
  assert.equal(wanted[2], "tab-functions");
  for (let round = 0; round < 3; round++) {
    const [before, time] = [await cpu(), await recorded()];
    await page.waitForFunction(([before, time]) => {
      const rows = [...document.querySelectorAll("#panel .table-body .table-row")].map((row) => row.innerText).join("\n");
      return rows !== "" && rows !== before && document.querySelector("header .title p").innerText.split(" from ")[0] !== time;
    }, [before, time]);
    assert.deepEqual(await set(), wanted);
  }
  process.kill(Number(process.env.LIVE), "SIGTERM");
  await page.waitForSelector(".standing.recording", { state: "detached" });
  await page.waitForFunction(() => document.querySelector("header .title p").innerText.includes("exit code 0"));
  assert.deepEqual(await set(), wanted);
  for (const tab of await tabs(page)) {
    await open(page, tab);
    await page.waitForSelector(".waiting", { state: "detached" });
    assert.ok((await page.innerText("#panel")).trim().length > 20, tab);
  }
  assert.deepEqual(trouble, []);
  await close();
});

test("frames of a served page have the colours of their code, whatever tab named the functions first", async () => {
  const { page, trouble, close } = await opened("served", { hash: "#tab=summary" });
  await page.waitForSelector("[role=row]:has-text('App.Cart::Total')");
  await open(page, "flame");
  await page.waitForFunction(() => /paths/.test(document.querySelector(".legend")?.innerText ?? ""));
  const legend = await page.innerText(".legend");
  assert.ok(legend.includes("own code") && !legend.includes("unknown"), legend);
  assert.deepEqual(trouble, []);
  await close();
});

test("a served page shows every tab, and more of a node that is zoomed to", async () => {
  const { page, trouble, close } = await opened("served");
  for (const tab of await tabs(page)) {
    await open(page, tab);
    await page.waitForSelector(".waiting", { state: "detached" });
    const text = await page.innerText("#panel");
    assert.ok(text.trim().length > 20, `${tab}: ${text}`);
  }
  assert.deepEqual(trouble, []);
  await close();
  // 2,000 callees are too narrow to be seen before.
  const wide = await opened("wide", { hash: "#tab=flame" });
  const paths = () => wide.page.$eval(".legend", (legend) => Number(/([\d,]+) paths/.exec(legend.innerText)[1].replaceAll(",", "")));
  await wide.page.waitForFunction(() => /paths/.test(document.querySelector(".legend")?.innerText ?? ""));
  const before = await paths();
  assert.ok(before < 100, String(before));
  await wide.page.focus(".flame-scroll");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "Enter"]) await wide.page.keyboard.press(key);
  await wide.page.waitForFunction(() => Number(/([\d,]+) paths/.exec(document.querySelector(".legend").innerText)[1].replaceAll(",", "")) > 1_500);
  await wide.page.waitForFunction(() => Number(document.querySelector(".flame canvas").dataset.drawn) > 200);
  assert.deepEqual(wide.trouble, []);
  await wide.close();
});

test("collections have charts, and the heap has boxes and a tree of what holds what", async () => {
  const { page, trouble, close } = await opened("memory", { hash: "#tab=dominators" });
  await page.waitForFunction(() => Number(document.querySelector(".boxes canvas")?.dataset.drawn) > 2);
  await page.focus(".dominators .table");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.innerText(".boxes .told"), /retains/);
  await open(page, "gc");
  await page.waitForSelector(".chart canvas");
  assert.match(await page.innerText(".charts"), /collections stopped the program/);
  const box = await (await page.$(".chart .u-over")).boundingBox();
  await page.mouse.move(box.x + box.width * 0.1, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes("range="));
  assert.deepEqual(trouble, []);
  await close();
});

test("a comparison has a flame graph of both sides, where new and gone paths are told apart", async () => {
  const { page, trouble, close } = await opened("compared", { hash: "#tab=changes" });
  await page.waitForFunction(() => Number(document.querySelector(".flame canvas")?.dataset.drawn) > 4);
  assert.match(await page.innerText(".legend"), /more\s+new \(thick edge\)\s+less\s+gone \(thick edge\)/);
  await page.focus(".flame-scroll");
  for (const key of ["ArrowDown", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
  await page.waitForFunction(() => /App\.Mail::Send/.test(document.querySelector("#frame-told").innerText));
  assert.match((await toldOf(page)).replace(/\s+/g, " "), /100 ms before, 400 ms after \(\+300/);
  await open(page, "diff-tree");
  const text = await page.innerText("#panel");
  assert.match(text, /App\.Report::Print/);
  assert.match(text, /new/);
  assert.deepEqual(trouble, []);
  await close();
});

test("logs are read from the left: what happened, indented by depth, then when, with values as C# has them", async () => {
  const { page, trouble, close } = await opened("recorded", { hash: "#tab=flow" });
  const row = (name) => page.locator(".table-body .table-row", { hasText: name }).first();
  await row("Throws.Program::Main").waitFor();
  const left = async (name) => (await row(name).locator(".cell-text").first().boundingBox()).x;
  const places = [await left("Throws.Program::Main"), await left("Throws.Program::Wrapped"), await left("Throws.Program+Failing::Fail")];
  assert.ok(places[0] < places[1] && places[1] < places[2], places.join());
  const heads = await page.$eval(".table-head", (head) => [...head.querySelectorAll("[role=columnheader]")].map((one) => one.innerText.trim()));
  assert.deepEqual(heads.slice(0, 4), ["function", "event", "time", "duration"]);
  assert.match(await row("Throws.Program::Generic").innerText(), /value = "x"/);
  await open(page, "events");
  await row("Initialize").waitFor();
  const events = await page.innerText("#panel");
  assert.ok(!events.includes("{}") && !/\bnames\b|\bids\b/.test(events), events);
  // Names of exceptions' types are whole at 1280 pixels.
  await open(page, "exceptions");
  const type = row("System.Reflection.TargetInvocationException").locator("[role=gridcell]").first();
  assert.ok(await type.evaluate((cell) => cell.scrollWidth <= cell.clientWidth));
  assert.deepEqual(trouble, []);
  await close();
});

test("names give up their namespaces before their ends where there is no room", async () => {
  const { page, trouble, close } = await opened("recorded", { hash: "#tab=functions" });
  const cells = async (width) => {
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100))));
    return page.$$eval(".table-body .table-row > :first-child", (all) =>
      all.map((cell) => ({ whole: cell.title.split("\n")[0], text: cell.querySelector(".cell-text").textContent, fits: cell.scrollWidth <= cell.clientWidth })),
    );
  };
  const isShort = ({ whole, text }) => text !== whole;
  const wide = await cells(2000);
  assert.ok(wide.length > 5 && !wide.some(isShort), JSON.stringify(wide));
  const narrow = await cells(390);
  assert.ok(narrow.every(({ whole, text }) => whole.endsWith(text)), JSON.stringify(narrow));
  assert.ok(narrow.some(isShort), JSON.stringify(narrow));
  // A namespace is there only where all of the name is.
  assert.ok(narrow.every(({ whole, text, fits }) => fits || !/^\w+\./.test(text) || !whole.includes("::")), JSON.stringify(narrow));
  assert.deepEqual(trouble, []);
  await close();
  const memory = await opened("memory", { hash: "#tab=heap", viewport: { width: 390, height: 800 } });
  const list = memory.page.locator("[title='System.Collections.Generic.List<Shop.Order>']").first();
  await list.waitFor();
  assert.equal(await list.innerText(), "List<Shop.Order>");
  assert.deepEqual(memory.trouble, []);
  await memory.close();
});

test("a page of memory alone says nothing of functions, and its boxes have short names", async () => {
  const { page, trouble, close } = await opened("held");
  const text = await page.innerText("#panel");
  assert.ok(/snapshot 1 of the heap/.test(text) && !/\bfunctions\b/.test(text), text);
  // What is written on a canvas is seen where it is written.
  await page.evaluate(() => {
    window.written = [];
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      window.written.push(text);
      return fillText.call(this, text, ...rest);
    };
  });
  await open(page, "dominators");
  await page.waitForFunction(() => Number(document.querySelector(".boxes canvas")?.dataset.drawn) > 2);
  const written = await page.evaluate(() => window.written);
  assert.ok(written.some((text) => text.startsWith("List<Order> ")) && !written.some((text) => /Generic|Shop\.Order/.test(text)), written.join("; "));
  assert.deepEqual(trouble, []);
  await close();
});

test("calls of probed methods have their own rows, with values, and columns without a word are left out", async () => {
  const { page, trouble, close } = await opened("probed", { hash: "#tab=probes" });
  const tables = page.locator("#panel .table");
  const heads = async (at) => (await tables.nth(at).locator("[role=columnheader]").allInnerTexts()).map((text) => text.replace(/[▾▴]/g, "").trim());
  assert.deepEqual((await heads(0)).slice(0, 3), ["method", "calls", "failed"]);
  assert.ok(!(await heads(0)).includes("line"), "no line was probed");
  assert.match(await tables.nth(0).innerText(), /Counter\.Program\.Answer\(long\)/);
  const each = await heads(1);
  assert.ok(["time", "duration", "arguments", "method"].every((title) => each.includes(title)) && !each.includes("result") && !each.includes("this"), each.join());
  assert.match(await tables.nth(1).innerText(), /batch = 7/);
  assert.deepEqual((await page.locator("#panel h2").allInnerTexts()).slice(1), ["Each one", "Who calls them"]);
  const callers = tables.nth(2).locator(".table-body .table-row");
  const left = async (name) => (await callers.filter({ hasText: name }).first().locator(".cell-text").first().boundingBox()).x;
  assert.ok((await left("Program::Answer")) < (await left("Program::Main")), "callers stand to the right, below what they call");
  assert.deepEqual(trouble, []);
  await close();
});

test("without script the summary is there", async () => {
  const { page, close } = await opened("recorded", { javaScriptEnabled: false });
  const text = await page.innerText("main.plain");
  assert.match(text, /Own code by CPU time/);
  assert.match(text, /exceptions/);
  await close();
});
