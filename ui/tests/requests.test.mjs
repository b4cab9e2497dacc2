// The heat map of requests, in a file and served. `requested` of `crates/cli/tests/page.rs` says what the recording has.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folder, open, opened, stateOf, until, useBrowser } from "./browser.mjs";

useBrowser();

const CELL = ".heat-cell";
const cells = (page) => page.$$eval(CELL, (all) => all.map((cell) => [cell.dataset.count, cell.dataset.failed].map(Number)));
/** Shows another group, after which the map has so many requests. */
const show = async (page, label) => {
  const value = await page.$eval(".heat select", (select, label) => [...select.options].find((option) => option.text.startsWith(label)).value, label);
  await page.selectOption(".heat select", value);
  await until(page, "map", value === "served" ? "served" : value);
};
/** Rows of the table of single requests. */
const rowsOf = (page) => page.$eval(".table[aria-label='Each one']", (table) => Number(table.getAttribute("aria-rowcount")) - 1);

test("cells count what the tool's rows say, and a cell that is chosen leaves its rows", async () => {
  const { page, trouble, close } = await opened("requested", { hash: "#tab=requests" });
  await page.waitForSelector(CELL);
  const { rows } = JSON.parse(readFileSync(`${folder}/requests-each.json`, "utf8"));
  const all = await rowsOf(page);
  assert.equal(all, rows.length);
  assert.deepEqual(await page.$$eval(".heat option", (all) => all.map((option) => option.text)), [
    "all served (15)",
    "served POST /carts (12)",
    "served GET /orders/{id} (3)",
    "made GET bank.example (1)",
  ]);
  assert.match(await page.innerText("#heat-told"), /^15 requests, 1 failed, 1 still running at the end, with their time until then\. .* leads to the rows/);
  for (const [label, expected] of [
    ["all served", [[1, 0], [1, 1], [12, 0], [1, 0]]],
    ["served GET", [[1, 0], [1, 1], [1, 0]]],
    ["made GET", [[1, 0]]],
  ]) {
    if (label !== "all served") await show(page, label);
    assert.deepEqual(await cells(page), expected, label);
    for (let at = 0; at < expected.length; at++) {
      await page.click(`${CELL} >> nth=${at}`);
      const { requests, tab } = await stateOf(page);
      assert.equal(tab, "requests", "a file has no work of single requests");
      const [shortest, longest, first, last, group] = requests.split(",");
      const [, direction, route] = /^(\w+) ?(.*)$/.exec(group);
      const meant = rows.filter((row) => row.direction === direction && (!route || row.route === route) && row.duration_ns >= shortest && row.duration_ns <= longest && row.time_ns >= first && row.time_ns <= last);
      assert.deepEqual([meant.length, meant.filter((row) => row.failed).length], expected[at], requests);
      await page.waitForSelector(`${CELL}.chosen >> nth=0`);
      assert.equal(await rowsOf(page), expected[at][0], requests);
    }
  }
  await open(page, "flame");
  assert.equal(await page.locator(".chip").count(), 0, "nothing is promised that a file can't do");
  await open(page, "requests");
  assert.match(await page.innerText(".chip"), /^made requests GET bank\.example, 700 to 720 ms, 5 to 10 ms/);
  await page.click(".chip");
  await until(page, "requests", "");
  assert.equal(await rowsOf(page), all);
  assert.deepEqual(trouble, []);
  await close();
});

test("the heat map is walked and told with keys, and marks what failed", async () => {
  const { page, trouble, close } = await opened("requested", { hash: "#tab=requests" });
  await page.waitForSelector(CELL);
  await page.focus(".heat-plot");
  const told = async () => (await page.innerText("#heat-told")).trim();
  assert.equal(await told(), "began 100 to 120 ms · took 200 to 500 ms · 1 request · 0 failed · GET /orders/{id} 1");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => /400 to 420 ms/.test(document.querySelector("#heat-told").innerText));
  assert.equal(await told(), "began 400 to 420 ms · took 20 to 50 ms · 1 request · 1 failed · GET /orders/{id} 1");
  const marked = await page.$$eval(CELL, (all) => all.map((cell) => getComputedStyle(cell).backgroundImage !== "none"));
  assert.deepEqual(marked, [false, true, false, false]);
  assert.match(await page.innerText(".heat .legend"), /requests:\s*1\s*2 to|some failed/);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".chip");
  assert.equal((await page.innerText(".chip span")).trim(), "served requests, 400 to 420 ms, 20 to 50 ms");
  assert.equal(await rowsOf(page), 1);
  await page.reload();
  await page.waitForSelector(".chip");
  assert.equal(await rowsOf(page), 1, "the address keeps it");
  await page.focus(".heat-plot");
  await page.keyboard.press("Escape");
  await until(page, "requests", "");
  assert.equal(await page.locator(".chip").count(), 0);
  assert.deepEqual(trouble, []);
  await close();
});

test("a cell of a served page leads to the flame graph of its requests, and the chip to that of everything", async () => {
  const { page, trouble, close } = await opened("served-requested", { hash: "#tab=requests&metric=0.cpu" });
  await page.waitForSelector(CELL);
  const asked = [];
  page.on("request", (request) => request.url().includes("/document?") && asked.push(Object.fromEntries(new URL(request.url()).searchParams)));
  await show(page, "served GET");
  await page.click(`${CELL} >> nth=0`);
  await until(page, "tab", "flame");
  // The whole tree and what it is made of: 200 ms of the slow request, of 330.
  const whole = (ms) => page.waitForFunction((ms) => document.querySelector("#frame-told")?.innerText.includes(`${ms} ms (100`), ms);
  await whole(200);
  const ofRequest = { request: "GET /orders/{id}", slower: "199999999", faster: "499999999", began: "100000000.119999999" };
  assert.deepEqual(asked.filter(({ key }) => key === "tree.cpu"), [{ key: "tree.cpu", ...ofRequest }]);
  assert.equal((await page.innerText(".chip span")).trim(), "requests GET /orders/{id}, 100 to 120 ms, 200 to 500 ms");
  await open(page, "tree");
  const labels = async () => (await page.$$eval(".tree .table-body .table-row", (rows) => rows.map((row) => row.innerText))).join("\n");
  await page.waitForFunction(() => /Orders::Slow/.test(document.querySelector("#panel").innerText));
  assert.ok(!/Failing|Other/.test(await labels()), await labels());
  // What does not know its request says so.
  await open(page, "conditions");
  await page.waitForSelector(".note.warning");
  assert.match(await page.innerText(".note.warning"), /of all requests/);
  // The map still has all, the table those that were chosen.
  await open(page, "requests");
  await page.waitForSelector(`${CELL}.chosen`);
  await page.waitForSelector(".waiting", { state: "detached" });
  assert.deepEqual(await cells(page), [[1, 0], [1, 1], [1, 0]]);
  assert.equal(await rowsOf(page), 1);
  assert.ok(asked.every(({ slower }) => slower === ofRequest.slower), "documents of all are there already");
  await open(page, "flame");
  await page.click(".chip");
  await until(page, "requests", "");
  await whole(330);
  assert.deepEqual(asked.pop(), { key: "tree.cpu" });
  await page.goBack();
  await page.waitForSelector(".chip");
  await whole(200);
  assert.deepEqual(trouble, []);
  await close();
});

test("a row says where the time of its request went, where that is known", async () => {
  const { page, trouble, close } = await opened("requested", { hash: "#tab=requests" });
  const row = (text) => page.click(`.table[aria-label='Each one'] .table-row:has-text('${text}')`);
  await row("200 ms");
  await page.waitForSelector(".work");
  const legend = (await page.innerText(".work .legend")).replace(/\s+/g, " ");
  assert.match(legend, /^running 150 ms 75\.0 % waiting for a lock 50\.0 ms 25\.0 %$/);
  const widths = await page.$$eval(".work-bar > span", (parts) => parts.map((part) => part.getBoundingClientRect().width));
  assert.ok(Math.abs(widths[0] / widths[1] - 3) < 0.05, widths.join());
  await row("bank.example");
  await page.waitForFunction(() => /bank\.example/.test(document.querySelector(".details").innerText));
  assert.equal(await page.locator(".work").count(), 0, "nobody knows");
  assert.deepEqual(trouble, []);
  await close();
});

test("a file without requests has no heat map", async () => {
  const { page, trouble, close } = await opened("sampled", { hash: "#tab=requests" });
  assert.equal(await page.locator(".heat").count(), 0);
  assert.deepEqual(trouble, []);
  await close();
});

test("a file shows the longest request over time, with words at the pointer", async () => {
  const { page, trouble, close } = await opened("requested", { hash: "#tab=request" });
  await page.waitForSelector(".step");
  const strip = await page.$eval(".step-strip", (one) => one.getBoundingClientRect().width);
  const steps = await page.$$eval(".step", (all) => all.map((one) => [one.innerText, one.getBoundingClientRect().width]));
  assert.equal(steps.length, 1);
  assert.equal(steps[0][0], "Orders::Slow");
  assert.ok(Math.abs(steps[0][1] - strip) < 4, `${steps[0][1]} of ${strip}: its thread worked for it all the time`);
  await page.hover(".step");
  await page.waitForFunction(() => /^runs on thread \d+ · in Orders::Slow · 0 to 200 ms after its start/.test(document.querySelector(".told").innerText));
  assert.match(await page.innerText(".sections"), /Orders::Slow/, "the table has the same");
  assert.deepEqual(trouble, []);
  await close();
});
