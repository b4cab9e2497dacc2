// Requests by time and duration, as the page's own modules sum them up. Needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { moduleOf } from "./module.mjs";

const MS = 1e6;

/** Single requests as the page reads them. */
const requests = (all) => ({
  rows: all.length,
  began: (row) => all[row].began,
  took: (row) => all[row].took,
  direction: (row) => all[row].direction ?? "served",
  route: (row) => all[row].route ?? "GET /a",
  failed: (row) => all[row].failed ?? false,
  aborted: (row) => all[row].aborted ?? false,
  isUnderWay: (row) => all[row].isUnderWay ?? false,
});
const served = { direction: "served", route: null };

test("each request is in one cell, and a cell's requests are those that are chosen with it", async () => {
  const { heatMapOf, chosenOf, isChosen } = { ...(await moduleOf("src/model/heatmap.ts")), ...(await moduleOf("src/model/requests.ts")) };
  // Also at the bounds of cells, and of times that have no round numbers.
  const all = [];
  for (let at = 0; at < 400; at++) all.push({ began: at * 7_919_777, took: Math.round(1.05 ** at), route: `GET /${at % 3}`, failed: at % 5 === 0 });
  for (const took of [0, 1, 2, 5, 10, 999_999, MS, 2 * MS - 1, 2 * MS, 1000 * MS]) all.push({ began: 200 * MS, took });
  all.push({ began: 10, took: 700, isUnderWay: true }, { began: 10, took: null }, { began: 10, took: 5, direction: "made" });
  const rows = requests(all);
  const map = heatMapOf(rows, served, [0, 4e9], 60);
  assert.equal(map.count, 411);
  assert.deepEqual([map.partial, map.underWay], [1, 1]);
  assert.equal(map.failed, 80);
  assert.ok(map.columns <= 61 && map.step === 100 * MS, `${map.columns} columns of ${map.step}`);
  const counted = all.map(() => 0);
  for (const cell of map.cells) {
    const chosen = chosenOf(map, cell);
    const those = all.map((_, row) => row).filter((row) => isChosen(rows, row, chosen));
    those.forEach((row) => counted[row]++);
    assert.equal(those.length, cell.count, JSON.stringify(chosen));
    assert.equal(those.filter((row) => all[row].failed).length, cell.failed);
    assert.equal([...cell.routes.values()].reduce((a, b) => a + b), cell.count);
  }
  assert.deepEqual(counted, all.map(({ took, direction }) => (took === null || direction === "made" ? 0 : 1)));
  assert.equal(heatMapOf(rows, { direction: "served", route: "GET /1" }, [0, 4e9], 60).count, 133);
  assert.equal(heatMapOf(rows, served, [3.9e9, 4e9], 60), null, "none began there");
});

test("durations are parted by 1, 2 and 5, and levels by as many times the one before", async () => {
  const { heatMapOf, levelsOf } = await moduleOf("src/model/heatmap.ts");
  const bounds = (...took) => heatMapOf(requests(took.map((took) => ({ began: 0, took }))), served, [0, 1e9], 60).bounds;
  assert.deepEqual(bounds(1.5 * MS, 40 * MS), [1, 2, 5, 10, 20, 50].map((ms) => ms * MS));
  assert.deepEqual(bounds(1000 * MS), [1000 * MS, 2000 * MS]);
  assert.deepEqual(bounds(0, 1), [0, 2]);
  const levels = (most) => levelsOf(most).map(({ least, most, shade }) => `${least}-${most} ${shade}`);
  assert.deepEqual(levels(1), ["1-1 5"]);
  assert.deepEqual(levels(2), ["1-1 3", "2-2 5"]);
  assert.deepEqual(levels(1000), ["1-3 1", "4-15 2", "16-62 3", "63-250 4", "251-1000 5"]);
});

test("arrow keys lead to all cells", async () => {
  const { heatMapOf, cellBeside } = await moduleOf("src/model/heatmap.ts");
  const all = [[0, 1], [0, 50], [0, 3000], [2, 7], [9, 1], [9, 9000]].map(([second, ms]) => ({ began: second * 1e9, took: ms * MS }));
  const map = heatMapOf(requests(all), served, [0, 10e9], 60);
  const seen = new Set([map.cells[0]]);
  for (const cell of seen) for (const key of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]) seen.add(cellBeside(map, cell, key));
  assert.equal(seen.size, 6);
});

test("chosen requests have an address, parameters for the tool, and words", async () => {
  const { parametersOf, readChosen, writtenChosen, wordsOf } = await moduleOf("src/model/requests.ts");
  const chosen = { direction: "served", route: "GET /a b/{id},x", took: [200 * MS, 500 * MS - 1], began: [10_200 * MS, 10_400 * MS - 1] };
  assert.deepEqual(readChosen(writtenChosen(chosen)), chosen);
  assert.deepEqual(parametersOf(chosen), ["request=GET%20%2Fa%20b%2F%7Bid%7D%2Cx", "slower=199999999", "faster=499999999", "began=10200000000.10399999999"]);
  assert.equal(wordsOf(chosen), "requests GET /a b/{id},x, 10.2 to 10.4 s, 200 to 500 ms");
  const all = { ...chosen, route: null, took: [0, 1], began: [0, 999_999] };
  assert.deepEqual(readChosen(writtenChosen(all)), all);
  assert.deepEqual(parametersOf(all), ["faster=1", "began=0.999999"], "all of the shortest");
  assert.equal(wordsOf({ ...all, took: [500_000, MS - 1] }), "served requests, 0 to 1 ms, 500 µs to 1 ms");
  assert.deepEqual(parametersOf({ ...all, direction: "made" }), [], "nobody knows the work for these");
  for (const senseless of ["", "1,2,3,served", "5,1,0,1,served", "1,5,0,1,taken", "1,5,0,1,servedGET", "1,x,0,1,served", "-1,5,0,1,served"]) assert.equal(readChosen(senseless), null, senseless);
});
