// What holds of every tab of every page: it can be read by all, at any width, and is there at once, however large and hostile the recording is.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { havePaths, heapOf, open, opened, tabs, until, useBrowser } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

useBrowser();

test("a recording of a million frames stays below 500 MB in the tab", async () => {
  const { page, trouble, close } = await opened("million", { hash: "#tab=flame" });
  await havePaths(page);
  for (const key of ["i", "i"]) await page.keyboard.press(key);
  let most = await heapOf(page);
  for (const tab of await tabs(page)) {
    await open(page, tab);
    most = Math.max(most, await heapOf(page));
  }
  assert.ok(most < 500e6, `${most} bytes of heap`);
  assert.deepEqual(trouble, []);
  await close();
});

test("a hostile recording is served as text and hangs nothing", async () => {
  const { page, trouble, close } = await opened("served-hostile");
  for (const tab of await tabs(page)) {
    const begin = Date.now();
    await open(page, tab);
    await page.waitForSelector(".waiting", { state: "detached" });
    assert.ok(Date.now() - begin < 30_000, `${tab} took ${Date.now() - begin} ms`);
  }
  await open(page, "functions");
  assert.match(await page.innerText("#panel"), /<img src=x onerror=/);
  assert.equal(await page.$("img"), null);
  assert.ok((await heapOf(page)) < 500e6);
  assert.deepEqual(trouble, []);
  await close();
});

test("a tree is never empty for a moment, whatever is opened in it", async () => {
  for (const name of ["nameless", "served-nameless", "million"]) {
    const { page, trouble, close } = await opened(name, { hash: "#tab=tree" });
    await page.waitForSelector(".tree .table-body .table-row");
    const before = await page.$$eval(".tree .table-body .table-row", (rows) => rows.length);
    await page.evaluate(() => {
      window.fewest = Infinity;
      const count = () => (window.fewest = Math.min(window.fewest, document.querySelectorAll(".tree .table-body .table-row").length));
      const each = () => {
        count();
        requestAnimationFrame(each);
      };
      each();
      new MutationObserver(count).observe(document.querySelector(".tree"), { childList: true, subtree: true });
    });
    await page.click(".tree .table-body .table-row >> nth=0");
    // Opening nodes one by one lets a served page ask for more of them, which makes its tree anew.
    const keys = [...Array.from({ length: 8 }, () => "ArrowRight"), "*", "End", "*", "Home", "*"];
    for (const key of keys) {
      await page.keyboard.press(key);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
    }
    const fewest = await page.evaluate(() => window.fewest);
    assert.ok(fewest >= Math.min(before, 8), `${name}: ${fewest} rows of ${before} for a moment`);
    assert.deepEqual(trouble, [], name);
    await close();
  }
});

test("an accessibility checker finds nothing serious, light and dark", async () => {
  const pages = ["recorded", "memory", "compared", "nameless", "states", "requested"];
  for (const [name, colorScheme] of pages.flatMap((name) => [[name, "light"], [name, "dark"]])) {
    const { page, close } = await opened(name, { colorScheme, bypassCSP: true });
    for (const tab of await tabs(page)) {
      await open(page, tab);
      await page.evaluate(axe);
      // Of the two schemes only colours differ.
      const options = { resultTypes: ["violations"], ...(colorScheme === "dark" && { runOnly: ["color-contrast"] }) };
      const { violations } = await page.evaluate((options) => axe.run(document, options), options);
      const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
      const told = serious.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
      assert.deepEqual(told, [], `${name} ${colorScheme} ${tab}`);
    }
    await close();
  }
});

test("a narrow screen scrolls within tables only", async () => {
  for (const name of ["sampled", "recorded", "memory", "compared", "nameless", "states", "awaited", "requested", "measured"]) {
    const { page, close } = await opened(name, { viewport: { width: 390, height: 800 } });
    for (const tab of await tabs(page)) {
      await open(page, tab);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} ${tab}`);
    }
    await close();
  }
});

test("a hostile recording shows as text and hangs nothing", async () => {
  const { page, trouble, close } = await opened("hostile");
  const slowest = { tab: "", took: 0 };
  for (const tab of await tabs(page)) {
    const begin = Date.now();
    await open(page, tab);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    const took = Date.now() - begin;
    if (took > slowest.took) Object.assign(slowest, { tab, took });
  }
  assert.ok(slowest.took < 30_000, JSON.stringify(slowest));
  await open(page, "flame");
  await page.keyboard.press("i");
  await until(page, "invert", "1");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  await page.keyboard.press("i");
  await open(page, "tree");
  await page.focus(".tree");
  await page.keyboard.press("*");
  await page.keyboard.press("End");
  await open(page, "functions");
  assert.match(await page.innerText("#panel"), /<img src=x onerror=/);
  assert.match(await page.innerText("h1"), /<\/script>/);
  await open(page, "exceptions");
  assert.match(await page.innerText("#panel"), /<img src=x onerror=/);
  // Paths of files are text, too.
  await open(page, "modules");
  assert.match(await page.innerText("#panel"), /<\/script><script>alert\(1\)/);
  const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption(".download select", "json 0")]);
  const { rows } = JSON.parse(readFileSync(await download.path(), "utf8"));
  assert.ok(rows.some((row) => row.path.startsWith("/app/</script><script>alert(1)")), JSON.stringify(rows[0]));
  assert.equal(await page.$("img"), null);
  const used = await heapOf(page);
  assert.ok(used < 500e6, `${used} bytes of heap`);
  assert.deepEqual(trouble, []);
  await close();
});
