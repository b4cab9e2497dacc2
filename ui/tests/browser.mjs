// What tests of pages share: the browser, pages that are opened in it, and what is asked of them. `cargo test -p clrscope --test page`
// makes the pages and starts the tests, with PAGES, the folder that they lie in, and CHROMIUM, the browser.
import { after, before } from "node:test";
import { chromium } from "playwright-core";

export const folder = process.env.PAGES;
/** Addresses of pages that the tool serves. */
export const SERVED = JSON.parse(process.env.SERVED ?? "{}");
/** A click may take so long on a busy machine. */
export const PATIENCE = 60_000;
let browser;

/** Starts the browser before the tests of a file, and ends it after them. */
export function useBrowser() {
  before(async () => {
    // Chromium does not run as root with a sandbox of its own.
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"], timeout: PATIENCE });
  });
  after(() => browser?.close());
}

/** Opens a page; what it complains about and what it asks the network for is collected. */
export async function opened(name, { hash = "", ...options } = {}) {
  const served = SERVED[name];
  const own = served ? new URL(served).origin : "file:";
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const trouble = [];
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && trouble.push(message.text()));
  page.on("request", (request) => !request.url().startsWith(own) && !request.url().startsWith("blob:") && trouble.push(`asked for ${request.url()}`));
  page.on("dialog", (dialog) => trouble.push(`dialog ${dialog.message()}`));
  await page.goto(`${served ?? `file://${folder}/${name}.html`}${hash}`);
  if (options.javaScriptEnabled !== false) await page.waitForSelector("[role=tab]");
  return { page, trouble, close: () => context.close() };
}

export const tabs = (page) => page.$$eval("[role=tab]", (all) => all.map((tab) => tab.id.replace("tab-", "")));
export const open = async (page, tab) => {
  await page.click(`#tab-${tab}`);
  await page.waitForSelector(`#panel[aria-labelledby="tab-${tab}"]`);
};
export const stateOf = async (page) => Object.fromEntries(new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)));
/** Paths that the legend of the flame graph counts. */
export const paths = (page) => page.$eval(".legend", (legend) => Number(/([\d,]+) paths/.exec(legend.innerText)[1].replaceAll(",", "")));
export const havePaths = (page) => page.waitForFunction(() => /paths/.test(document.querySelector(".legend")?.innerText ?? ""));
export const drawn = (page) => page.$eval(".flame canvas", (canvas) => Number(canvas.dataset.drawn));
/** Waits until a state is in the address. */
export const until = (page, key, value) => page.waitForFunction(([key, value]) => (new URLSearchParams(location.hash.slice(1)).get(key) ?? "") === value, [key, value]);

/** The heap of a page after a collection, in bytes. */
export async function heapOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize;
}
