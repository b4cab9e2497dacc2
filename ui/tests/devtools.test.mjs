// The export heapsnapshot: loaded by the memory panel of Chromium's own developer tools. PAGES is the folder of the export, CHROMIUM
// the browser, as in browser.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const PANEL = "devtools://devtools/bundled/devtools_app.html?panel=heap-profiler";
const PATIENCE = 120_000;
const file = join(process.env.PAGES, "memory.heapsnapshot");
let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"], timeout: PATIENCE });
});
after(() => browser?.close());

/** Texts of the rows of all tables, which stand in shadow trees. */
const rows = (page) =>
  page.evaluate(() => {
    const within = (node) =>
      [...node.querySelectorAll("*")].flatMap((element) => [
        ...(element.matches("tr") ? [element.innerText.replace(/\s+/g, " ").trim()] : []),
        ...(element.shadowRoot ? within(element.shadowRoot) : []),
      ]);
    return within(document);
  });

/** The first of some texts that is like a pattern, as soon as there is one. */
async function until(page, pattern, texts) {
  for (const end = Date.now() + PATIENCE; ; await page.waitForTimeout(100)) {
    const all = await texts();
    const found = all.find((text) => pattern.test(text));
    if (found !== undefined) return found;
    assert.ok(Date.now() < end, `nothing like ${pattern} in ${all.join("\n")}`);
  }
}

test("the memory panel of developer tools shows types, their numbers, and what holds an object", async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE);
  const trouble = [];
  page.on("pageerror", (error) => trouble.push(String(error)));
  await page.goto(PANEL);
  const chooser = page.waitForEvent("filechooser");
  await page.getByText("Load profile").click();
  await (await chooser).setFiles(file);
  // The size stands there when it is loaded; what is selected before stays empty.
  const loaded = page.getByRole("treeitem", { name: /^memory/ });
  await until(page, /B\)$/, () => loaded.allInnerTexts());
  await loaded.click();
  const { nodes, strings, snapshot } = JSON.parse(readFileSync(file, "utf8"));
  const fields = snapshot.meta.node_fields;
  const names = nodes.filter((_, at) => at % fields.length === fields.indexOf("name")).map((name) => strings[name]);
  const orders = names.filter((name) => name === "Shop.Order").length;
  assert.ok(orders > 1);
  const row = (pattern) => until(page, pattern, () => rows(page));
  // With the number of objects, the distance from the roots, and sizes.
  await row(new RegExp(`^Shop\\.Order×${orders} 3 `));
  await row(/^Shop\.Cache 1 /);
  await row(/^System\.Collections\.Generic\.List<Shop\.Order> 1 /);
  // The first order, and who holds it: the array, the list, the static field.
  await page.getByRole("row", { name: /^Shop\.Order×/ }).click();
  await page.keyboard.press("ArrowRight");
  await row(/^Shop\.Order@/);
  await page.keyboard.press("ArrowDown");
  await row(/^\[\d+\] ?in ?Shop\.Order\[\] ?@\d+ 2 /);
  await row(/^_items ?in ?System\.Collections\.Generic\.List<Shop\.Order> ?@\d+ 1 /);
  assert.deepEqual(trouble, []);
  await page.close();
});
