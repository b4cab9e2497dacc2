// Counters in the timeline: which are there, what they say at the pointer, and how they are chosen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, opened, tabs, until, useBrowser } from "./browser.mjs";

useBrowser();

const labels = (page) => page.$$eval(".track-label > span:first-child", (all) => all.map((label) => label.textContent));
const told = (page) => page.$eval(".told", (told) => told.textContent);
const TELLING = ["cpu-usage", "gc-heap-size", "exception-count", "orders {kind=new}"];

/** Moves the pointer over a track, to a part of its width. */
async function pointAt(page, track, part) {
  const box = await page.locator(`.lane[data-track="${track}"] .strip`).boundingBox();
  await page.mouse.move(box.x + part * box.width, box.y + box.height / 2);
}

/** How high a track is drawn, as shares of its height, at parts of its width; null for nothing. */
const heightsAt = (page, track, parts) =>
  page.$eval(`.lane[data-track="${track}"] canvas`, (canvas, parts) => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    return parts.map((part) => {
      const x = Math.floor(part * width);
      // Lines are opaque, what is below them is not.
      for (let y = 0; y < height; y++) if (data[4 * (y * width + x) + 3] > 150) return 1 - y / height;
      return null;
    });
  }, parts);

test("the counters that tell most are tracks, with values at the pointer", async () => {
  for (const name of ["measured", "served-measured", "measured-alone"]) {
    const { page, trouble, close } = await opened(name, { hash: "#tab=timeline" });
    await page.waitForSelector(".track");
    const shown = await labels(page);
    assert.deepEqual(shown.slice(0, 3), TELLING.slice(0, 3), name);
    assert.ok(shown.includes(TELLING[3]) && shown.length === 5, `${name}: ${shown}`);
    assert.equal(await page.$("img"), null);
    const wanted = [["12.50 %", 0.1], ["50 %", 0.4], ["25 %", 0.6], ["0 %", 0.9]];
    for (const [value, part] of wanted) {
      await pointAt(page, 0, part);
      assert.match(await told(page), new RegExp(`^System.Runtime/cpu-usage at .* · ${value} in `), name);
    }
    await pointAt(page, 1, 0.6);
    assert.match(await told(page), /gc-heap-size at .* · 1,234 MB in 2.00 s to 3.00 s$/);
    await pointAt(page, shown.indexOf(TELLING[3]), 0.6);
    assert.match(await told(page), /^Shop\/orders{kind=new} at .* · 6 {order} per s in 2.00 s to 3.00 s$/);
    await pointAt(page, shown.findIndex((label) => label.startsWith("open")), 0.1);
    assert.match(await told(page), / · -2 in 0 ns to 1.00 s$/);
    // The picture has the same: most at the second value, half of it at the third, nothing at the last.
    const heights = await heightsAt(page, 0, [0.1, 0.4, 0.6, 0.9]);
    const [quarter, most, half, none] = heights;
    assert.ok(Math.abs(most - 0.93) < 0.06 && Math.abs(half - most / 2) < 0.06 && Math.abs(quarter - most / 4) < 0.06 && none !== null && none < 0.15, `${name}: ${heights}`);
    assert.equal((await page.$$(".lane[data-lane]")).length > 0, name !== "measured-alone", name);
    assert.equal((await page.innerText(".timeline .bar")).includes("60 threads"), name !== "measured-alone", name);
    assert.deepEqual(trouble, []);
    await close();
  }
});

test("tracks are zoomed with the threads, and a part of the time is chosen on them", async () => {
  const { page, trouble, close } = await opened("measured", { hash: "#tab=timeline" });
  await page.waitForSelector(".track");
  await pointAt(page, 0, 0.4);
  await page.keyboard.down("Control");
  for (let step = 0; step < 6; step++) await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await pointAt(page, 0, 0.01);
  await page.waitForFunction(() => /cpu-usage at 1\./.test(document.querySelector(".told").textContent));
  assert.match(await told(page), / · 50 % in 1.00 s to 2.00 s$/);
  const box = await page.locator('.lane[data-track="1"] .strip').boundingBox();
  await page.mouse.move(box.x + 20, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + 200, box.y + 10, { steps: 4 });
  await page.mouse.up();
  const [from, to] = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)).get("range").split(",").map(Number);
  assert.ok(from > 1e9 && to < 2e9 && to > from, `${from} to ${to}`);
  assert.deepEqual(trouble, []);
  await close();
});

test("counters are chosen by name, and the address knows which", async () => {
  const { page, trouble, close } = await opened("measured", { hash: "#tab=timeline" });
  await page.waitForSelector(".track");
  await page.click(".track-choice summary");
  assert.match(await page.innerText(".track-choice summary"), /5 of 107 shown/);
  assert.equal((await page.$$(".track-choice li")).length, 107);
  await page.click("text=None");
  await until(page, "counter", "");
  await page.waitForFunction(() => document.querySelectorAll(".track").length === 0);
  await page.fill(".track-choice input[type=search]", "requests-st");
  assert.equal((await page.$$(".track-choice li")).length, 1);
  await page.click(".track-choice li input");
  await until(page, "counter", "System.Net.Http/requests-started");
  assert.deepEqual(await labels(page), ["requests-started"]);
  const hash = await page.evaluate(() => location.hash);
  const again = await opened("measured", { hash });
  await again.page.waitForSelector(".track");
  assert.deepEqual(await labels(again.page), ["requests-started"]);
  await again.close();
  await page.click("text=As at first");
  await page.waitForFunction(() => document.querySelectorAll(".track").length === 5);
  assert.deepEqual(trouble, []);
  await close();
});

test("threads below many tracks are there when they are scrolled to", async () => {
  const names = Array.from({ length: 100 }, (_, number) => `System.Runtime/nothing-${number}`);
  const hash = `#tab=timeline&${names.map((name) => `counter=${encodeURIComponent(name)}`).join("&")}`;
  const { page, trouble, close } = await opened("measured", { hash });
  await page.waitForFunction(() => document.querySelectorAll(".track").length === 100);
  // A function alone: the page evaluates no text.
  const inSight = (wanted) => {
    const of = (element) => element.getBoundingClientRect();
    const [top, bottom] = [of(document.querySelector(".lane.axis")).bottom, of(document.querySelector(".lanes")).bottom];
    const lanes = [...document.querySelectorAll(".lane[data-lane]")].filter((lane) => of(lane).top >= top - 1 && of(lane).bottom <= bottom + 1);
    const numbers = lanes.map((lane) => Number(lane.dataset.lane));
    return wanted ? numbers.at(wanted.at) === wanted.lane : numbers;
  };
  // The last track is gone from sight, and the first thread stands below the axis.
  await page.$eval(".lanes", (lanes) => lanes.scrollTo(0, document.querySelectorAll(".track").length * document.querySelector(".track").getBoundingClientRect().height));
  await page.waitForFunction(inSight, { at: 0, lane: 0 });
  const first = await page.evaluate(inSight);
  assert.ok(first.length > 5 && first.every((lane, at) => lane === at), first.join());
  await page.$eval(".lanes", (lanes) => lanes.scrollTo(0, lanes.scrollHeight));
  await page.waitForFunction(inSight, { at: -1, lane: 59 });
  assert.deepEqual(trouble, []);
  await close();
});

test("a recording without counters is offered none", async () => {
  for (const name of ["sampled", "served"]) {
    const { page, close } = await opened(name);
    const all = await tabs(page);
    assert.ok(all.includes("timeline") && !all.includes("counters"), all.join());
    await open(page, "timeline");
    await page.waitForSelector(".lane[data-lane]");
    assert.equal(await page.$(".track, .track-choice"), null);
    await close();
  }
});

test("the table of counters has a tab of its own", async () => {
  const { page, close } = await opened("measured", { hash: "#tab=counters" });
  await page.waitForSelector(".table-row");
  assert.match(await page.innerText("#panel"), /System.Runtime\/cpu-usage \(%\)/);
  await close();
});
