// Exports for speedscope: checked by its own JSON schema, and loaded by its own page in headless Chromium. PAGES is the folder
// of the exports, CHROMIUM the browser, as in browser.mjs.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import Ajv from "ajv";
import { chromium } from "playwright-core";

const folder = process.env.PAGES;
const release = join(dirname(createRequire(import.meta.url).resolve("speedscope/package.json")), "dist/release");
const PATIENCE = 60_000;
let browser;

before(async () => {
  // Its picture is drawn by WebGL, which a machine without a graphics card computes.
  const args = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args, timeout: PATIENCE });
});
after(() => browser?.close());

const written = (name) => readFileSync(join(folder, `${name}.speedscope.json`));

/** Opens speedscope's page with an export, the way its own command line does. */
async function opened(name) {
  const script = join(folder, `${name}.speedscope.js`);
  writeFileSync(script, `speedscope.loadFileFromBase64("${name}.speedscope.json", "${written(name).toString("base64")}")`);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE);
  const trouble = [];
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("dialog", (dialog) => trouble.push(`dialog ${dialog.message()}`));
  await page.goto(`file://${join(release, "index.html")}#localProfilePath=${script}`);
  return { page, trouble };
}

const until = (page, text) => page.waitForFunction((text) => document.body.innerText.includes(text), text);

test("exports are as speedscope's schema wants them", () => {
  const schema = JSON.parse(readFileSync(join(release, "file-format-schema.json"), "utf8"));
  const validate = new Ajv({ strict: false }).compile(schema);
  for (const name of ["sampled", "recorded", "hostile"]) {
    assert.ok(validate(JSON.parse(written(name))), `${name}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
  }
  assert.ok(!validate({ ...JSON.parse(written("sampled")), shared: {} }), "the schema refuses what is none");
});

test("speedscope shows samples, thread by thread, and their functions", async () => {
  const { page, trouble } = await opened("sampled");
  await until(page, "all threads");
  await until(page, "(1/3)");
  // The table of functions beside their callers and callees.
  await page.keyboard.press("3");
  await until(page, "App.Cart::Total");
  await until(page, "App.Mail::Send");
  assert.deepEqual(trouble, []);
  await page.close();
});

test("speedscope's page is served with a profile, and asks nobody else", async () => {
  const { speedscope } = JSON.parse(process.env.SERVED);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE);
  const trouble = [];
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => message.type() === "error" && trouble.push(message.text()));
  page.on("dialog", (dialog) => trouble.push(`dialog ${dialog.message()}`));
  page.on("request", (request) => !request.url().startsWith(speedscope.split("#")[0]) && !request.url().startsWith("data:") && trouble.push(`asked for ${request.url()}`));
  page.on("response", (response) => response.status() !== 200 && trouble.push(`${response.status()} ${response.url()}`));
  await page.goto(speedscope);
  await until(page, "all threads");
  await until(page, "(1/3)");
  await page.keyboard.press("3");
  await until(page, "App.Cart::Total");
  assert.deepEqual(trouble, []);
  await page.close();
});

test("speedscope shows the calls of flow", async () => {
  const { page, trouble } = await opened("recorded");
  const { profiles } = JSON.parse(written("recorded"));
  assert.equal(profiles[0].type, "evented");
  await until(page, profiles[0].name);
  await page.keyboard.press("3");
  const { shared } = JSON.parse(written("recorded"));
  await until(page, shared.frames[profiles[0].events[0].frame].name);
  assert.deepEqual(trouble, []);
  await page.close();
});
