// The overview, and how tables, lanes and lines look, in headless Chromium. The tool's own JSON
// says what the numbers are: `crates/cli/tests/page.rs` has it printed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folder, open, opened, tabs, until, useBrowser } from "./browser.mjs";

useBrowser();

const summary = (name) => JSON.parse(readFileSync(`${folder}/${name}-summary.json`, "utf8"));
const share = (part) => `${(part * 100).toFixed(1)} %`;
/** Luminance of an element's background, from 0 to 255. */
const brightness = (page, selector) =>
  page.$eval(selector, (element) => {
    const [r, g, b] = getComputedStyle(element).backgroundColor.match(/[\d.]+/g).map(Number);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  });

test("the summary has the tool's findings as cards, and a card leads to what it names", async () => {
  for (const name of ["sampled", "served"]) {
    const { page, trouble, close } = await opened(name, { hash: "#tab=summary" });
    await page.waitForSelector(".card");
    const { findings } = summary("sampled");
    assert.deepEqual(await page.$$eval(".card-text", (all) => all.map((one) => one.innerText)), findings.map(({ text }) => text), name);
    const at = findings.findIndex(({ command }) => command?.includes("--view callers"));
    assert.ok(at >= 0, JSON.stringify(findings));
    await page.click(`.cards li:nth-child(${at + 1}) button.card`);
    await page.waitForSelector("#panel[aria-labelledby='tab-callers'] .of h2");
    assert.equal(await page.innerText(".of h2"), findings[at].function, name);
    await page.goBack();
    await page.waitForSelector(".card");
    assert.deepEqual(trouble, [], name);
    await close();
  }
});

test("kinds of work and states are bars with the numbers of the report", async () => {
  const { page, trouble, close } = await opened("idle", { hash: "#tab=summary" });
  await page.waitForSelector(".stacked");
  const { kinds, states } = summary("idle");
  const bars = await page.$$eval(".stacked", (all) => all.map((one) => ({
    shares: [...one.querySelectorAll("li b")].map((part) => part.innerText),
    wide: [...one.querySelectorAll(".work-bar > span")].map((part) => part.getBoundingClientRect().width),
  })));
  assert.deepEqual(bars.map(({ shares }) => shares), [kinds, states].map((rows) => rows.filter(({ time_ns }) => time_ns > 0).map((row) => share(row.share))));
  const [, { wide }] = bars;
  const whole = wide.reduce((sum, one) => sum + one, 0);
  states.forEach((state, at) => assert.ok(Math.abs(wide[at] / whole - state.share) < 0.02, `${state.state}: ${wide[at]} of ${whole}`));
  assert.deepEqual(trouble, []);
  await close();
});

test("the strip has a row for what was recorded, and none for the rest", async () => {
  const rows = (page) => page.$$eval(".over-row[data-row]", (all) => Object.fromEntries(all.map((one) => [one.dataset.row, one.querySelector(".faint").innerText])));
  const expected = [
    ["sampled", ["cpu"]],
    ["memory", ["cpu", "pauses"]],
    ["idle", ["cpu", "exceptions"]],
    ["requested", ["cpu", "requests"]],
    ["served-requested", ["cpu", "requests"]],
  ];
  for (const [name, keys] of expected) {
    const { page, trouble, close } = await opened(name, { hash: "#tab=summary" });
    await page.waitForSelector(".over-row[data-row]");
    const found = await rows(page);
    assert.deepEqual(Object.keys(found), keys, name);
    if (name === "memory") assert.match(found.pauses, /^20, /);
    if (name === "idle") assert.equal(found.exceptions, "none thrown");
    // The map of requests says 15 as well.
    if (keys.includes("requests")) assert.equal(found.requests, "15 served");
    // Something is drawn of it.
    const ink = await page.$eval(".over-row[data-row=cpu] canvas", (canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 3; at < data.length; at += 4) if (data[at] > 0) count++;
      return count;
    });
    assert.ok(ink > 100, `${name}: ${ink}`);
    if (name === "memory") {
      await page.click(".over-row[data-row=pauses] button");
      await page.waitForSelector("#panel[aria-labelledby='tab-gc']");
    }
    assert.deepEqual(trouble, [], name);
    await close();
  }
});

test("the CPU time of the strip is that of the report", async () => {
  const { page, close } = await opened("idle", { hash: "#tab=summary" });
  await page.waitForSelector(".over-row[data-row=cpu]");
  const sum = summary("idle").kinds.reduce((sum, { time_ns }) => sum + time_ns, 0);
  assert.equal(sum, 100e6);
  assert.match(await page.innerText(".over-row[data-row=cpu] .faint"), /^100 ms, /);
  await close();
});

test("idle threads of the timeline stand under one line that opens, and are dark on a dark page", async () => {
  const { page, trouble, close } = await opened("idle", { hash: "#tab=timeline", colorScheme: "dark" });
  await page.waitForSelector(".lane[data-lane]");
  const labels = () => page.$$eval(".lane[data-lane] .lane-label", (all) => all.map((one) => one.innerText.trim()));
  assert.deepEqual(await labels(), ["1 main", "2 waiter", "▸ 9 idle threads"]);
  assert.ok((await brightness(page, ".legend > span:has-text('idle') .mark")) < 90);
  // All that is drawn of them is dark.
  const drawn = await page.$eval(".lane[data-lane='2'] canvas", (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let [pixels, brightest] = [0, 0];
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] < 255) continue;
      pixels++;
      brightest = Math.max(brightest, data[at], data[at + 1], data[at + 2]);
    }
    return { pixels, brightest };
  });
  assert.ok(drawn.pixels > 100 && drawn.brightest < 100, JSON.stringify(drawn));
  await page.click(".fold");
  await page.waitForFunction(() => document.querySelectorAll(".lane[data-lane]").length === 12);
  assert.equal((await labels())[3], "3 timer 0");
  await page.click(".fold");
  await page.waitForFunction(() => document.querySelectorAll(".lane[data-lane]").length === 3);
  assert.deepEqual(trouble, []);
  await close();
});

test("bars stand next to their digits, in tables and trees", async () => {
  for (const [tab, bar] of [["summary", ".table .barred"], ["functions", ".table .barred"], ["tree", ".tree .barred"]]) {
    const { page, close } = await opened("sampled", { hash: `#tab=${tab}` });
    await page.waitForSelector(bar);
    const cells = await page.$$eval(bar, (all) => all.map((cell) => {
      const [room, text] = [".bar-room", ".cell-text"].map((part) => cell.querySelector(part).getBoundingClientRect());
      return { room: room.right, text: text.left, wide: room.width, fits: cell.scrollWidth <= cell.clientWidth };
    }));
    assert.ok(cells.length > 2 && cells.every(({ room, text, wide, fits }) => room <= text && wide > 20 && fits), `${tab}: ${JSON.stringify(cells.slice(0, 3))}`);
    await close();
  }
});

test("columns are as wide as their words, so that none is cut where there is room", async () => {
  const { page, close } = await opened("memory", { hash: "#tab=gc", viewport: { width: 1600, height: 800 } });
  const table = page.locator(".table[aria-label='Collections']");
  await table.locator(".table-body .table-row").first().waitFor();
  const cut = await table.locator("[role=gridcell], [role=columnheader]").evaluateAll((all) => all.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.innerText));
  assert.deepEqual(cut, []);
  const kind = await table.locator("[role=columnheader]").first().evaluate((cell) => cell.clientWidth);
  assert.ok(kind < 160, `kind has ${kind} pixels`);
  await close();
});

test("a tab of what was recorded and did not happen says so, and an address of what was not says how to record it", async () => {
  const { page, close } = await opened("idle", { hash: "#tab=exceptions" });
  await page.waitForSelector("#panel[aria-labelledby='tab-exceptions'] .nothing");
  assert.match(await page.innerText("#panel .nothing"), /No exception/);
  assert.ok(!(await tabs(page)).includes("gc"));
  await page.evaluate(() => (location.hash = "#tab=gc"));
  await page.waitForSelector(".absent");
  assert.equal(await page.innerText(".absent"), "GC was not recorded: record it with -i gc.");
  await open(page, "summary");
  await page.waitForSelector(".absent", { state: "detached" });
  await page.click(".not-recorded summary");
  const told = await page.innerText(".not-recorded");
  assert.match(told, /GC: record with -i gc/);
  assert.ok(!/Exceptions:/.test(told), told);
  await close();
});

test("only what changes something is offered: waiting of wall time, nameless code where there is some", async () => {
  const offered = (page) => page.$$eval(".bar .check", (all) => all.map((one) => one.innerText.trim()));
  const { page, close } = await opened("idle", { hash: "#tab=tree&metric=0.cpu" });
  await page.waitForSelector(".tree .table-body .table-row");
  assert.deepEqual(await offered(page), ["invert", "just my code"]);
  const wall = await page.$eval(".bar select", (select) => [...select.options].find((option) => /wall/i.test(option.text)).value);
  await page.selectOption(".bar select", wall);
  await until(page, "metric", wall);
  await page.waitForFunction(() => [...document.querySelectorAll(".bar .check")].some((one) => /without waiting/.test(one.innerText)));
  await close();
  const nameless = await opened("nameless", { hash: "#tab=tree" });
  await nameless.page.waitForSelector(".tree .table-body .table-row");
  assert.ok((await offered(nameless.page)).includes("fold nameless code"));
  await nameless.close();
});

test("on a phone the call tree begins with names", async () => {
  const { page, close } = await opened("sampled", { hash: "#tab=tree", viewport: { width: 390, height: 800 } });
  await page.waitForSelector(".tree .table-body .table-row");
  const names = await page.$$eval(".tree .table-body .table-row", (rows) => rows.map((row) => {
    const box = row.querySelector("[role=gridcell]:last-child .cell-text").getBoundingClientRect();
    return { text: row.innerText, left: box.left, seen: Math.min(innerWidth, box.right) - box.left };
  }));
  assert.ok(names.length > 2 && names.every(({ left, seen }) => left < 150 && seen > 50), JSON.stringify(names));
  const part = await page.$eval(".tree .barred .cell-text", (text) => text.getBoundingClientRect().right);
  assert.ok(part <= 390, `the share ends at ${part}`);
  await close();
});

test("lines of the source are warmer the more they have, and cold where that rounds to nothing", async () => {
  const { page, close } = await opened("counted", { hash: "#tab=functions" });
  await page.locator("#panel [role=row]", { hasText: "Counter.Program::Step" }).first().dblclick();
  await page.waitForSelector(".function-source .source-line[role=row][data-heat]");
  const lines = await page.$$eval(".function-source .source-line[role=row]", (all) => all.map((line) => ({ part: parseFloat(line.querySelector(".hits").innerText) || 0, heat: Number(line.dataset.heat ?? 0) })));
  for (const { part, heat } of lines) assert.equal(heat, [0.05, 1, 5, 15, 40].filter((least) => part >= least).length, `${part} %`);
  const colours = await page.$$eval(".heat-key .source-line", (all) => all.map((one) => getComputedStyle(one).backgroundColor));
  assert.equal(new Set(colours).size, 5, colours.join());
  await close();
});
