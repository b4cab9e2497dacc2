// One request over time: its lanes, as the page's own modules make them. Needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { moduleOf } from "./module.mjs";

/** A document of the view `request` with these steps. */
const document = (steps, took) => {
  const section = (rows) => ({
    rows: rows.length,
    packed: {},
    column: (key) => (rows.some((row) => key in row) ? { value: (row) => rows[row][key], number: (row) => rows[row][key] ?? 0 } : undefined),
  });
  const request = { ...section([{ duration_ns: took }]), packed: { key: "request" } };
  return { main: section(steps), sections: [request] };
};

test("steps at the same time lie in lanes of their own, threads first", async () => {
  const { stepsOf } = await moduleOf("src/model/steps.ts");
  const awaits = (after_ns, duration_ns, name, what) => ({ kind: "awaits", after_ns, duration_ns, name, what, file: "/src/Cart.cs", line: 7 });
  const runs = (after_ns, duration_ns, thread_id) => ({ kind: "runs", after_ns, duration_ns, thread_id, name: "Shop.Cart::Load" });
  const steps = stepsOf(document([
    awaits(5, 40, "Shop.Cart::Load", "System.Threading.Tasks.Task`1"), runs(0, 5, 7), runs(45, 5, 9), runs(50, 4, 7), { ...runs(47, 0, 9), kind: "throws", what: "Shop.Sold" },
    awaits(20, 10, "Shop.Cart::Load", "Shop.Stock::Find"), awaits(45, 5, "Shop.Cart::Load", "later"), awaits(60, 1, "", "nobody"),
  ], 100));
  assert.equal(steps.took, 100);
  assert.deepEqual(steps.lanes.map(({ label, steps }) => [label, ...steps.map(({ after, took }) => `${after}+${took}`)]), [
    ["thread 7", "0+5", "50+4"], ["thread 9", "45+5", "47+0"],
    ["Cart::Load", "5+40", "45+5"], ["Cart::Load", "20+10"], ["an async method", "60+1"],
  ]);
  const { method, line, what } = steps.lanes[3].steps[0];
  assert.deepEqual([method, line, what], ["Cart::Load", "Cart.cs:7", "Stock::Find"]);
  // One that began before the recording has no duration.
  assert.equal(stepsOf(document([runs(0, 5, 7)], null)).took, 5);
  assert.equal(stepsOf(document([], 5)), null);
});
