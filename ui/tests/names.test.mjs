// Names and colours of functions, as the page's own modules make them. Needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { moduleOf } from "./module.mjs";

test("short names are not cut inside tuples and type arguments", async () => {
  const { shorterNames, withoutNamespaces } = await moduleOf("src/data/names.ts");
  assert.deepEqual(shorterNames("Shop.Cart<(int, Shop.A)>+In<B.C+D>::Run<(int, System.String)>"), [
    "Shop.Cart<(int, Shop.A)>+In<B.C+D>::Run<(int, System.String)>",
    "Cart<(int, Shop.A)>+In<B.C+D>::Run<(int, System.String)>",
    "In<B.C+D>::Run<(int, System.String)>",
    "Run<(int, System.String)>",
  ]);
  assert.equal(shorterNames("Shop.Cart::System.IDisposable.Dispose (lambda, Cart.cs:1)").pop(), "Dispose (lambda, Cart.cs:1)");
  assert.equal(shorterNames("(System.Action<object>, object)[]").pop(), "(System.Action<object>, object)[]");
  assert.equal(withoutNamespaces("(System.Action<object>, object)[]"), "(Action<object>, object)[]");
});

/** A section of functions as documents have it. */
function section(rows, columns) {
  const column = (at, kind) => ({
    kind,
    value: (row) => rows[row][at],
    place: (row) => rows[row][at],
    words: () => undefined,
  });
  const known = Object.fromEntries(columns.map((key, at) => [key, column(at, key === "name" ? "function" : "text")]));
  return { rows: rows.length, column: (key) => known[key] };
}

test("libraries have the colour of their code, whichever table named them first", async () => {
  const { Functions } = await moduleOf("src/model/functions.ts");
  const library = ["[libcoreclr.so]", "[libcoreclr.so]", "libcoreclr.so"];
  const place = ["libcoreclr.so+0x10", "libcoreclr.so+0x10", "libcoreclr.so"];
  const table = section([library, place], ["name", "signature", "module"]);
  const tree = section([[...place, "runtime", "[libcoreclr.so]"]], ["name", "signature", "module", "code", "folded_into"]);
  for (const order of [[table, tree], [tree, table]]) {
    const functions = new Functions();
    const numbers = order.map((one) => functions.of(one));
    const ofTable = numbers[order.indexOf(table)];
    const [folded, member] = ofTable;
    assert.equal(functions.list[member].library, folded);
    assert.deepEqual([functions.list[folded].code, functions.list[member].code], ["runtime", "runtime"]);
  }
});
