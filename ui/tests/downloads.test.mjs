// What pages give as files is what the tool prints, table by table.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folder, open, opened, tabs, useBrowser } from "./browser.mjs";

useBrowser();

test("what is downloaded is what the tool prints", async () => {
  const { page, trouble, close } = await opened("recorded", { hash: "#tab=exceptions" });
  for (const [value, file] of [["json 0", "exceptions.json"], ["json 1", "exceptions-each.json"], ["csv 0", "exceptions.csv"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption(".download select", value)]);
    assert.equal(download.suggestedFilename(), file);
    const [saved, printed] = [readFileSync(await download.path(), "utf8"), readFileSync(`${folder}/${file}`, "utf8")];
    if (file.endsWith("json")) assert.deepEqual(JSON.parse(saved), JSON.parse(printed), file);
    else assert.equal(saved, printed, file);
  }
  await open(page, "flame");
  const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption(".download select", "json 0")]);
  assert.equal(JSON.parse(readFileSync(await download.path(), "utf8")).schema, "clrscope.tree/1");
  assert.deepEqual(trouble, []);
  await close();
});

/** The records of comma-separated values, each as its fields. */
function recordsOf(text) {
  const records = [[]];
  let field = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (isQuoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') field += text[++at];
      else isQuoted = false;
    } else if (letter === '"') isQuoted = true;
    else if (letter === "," || letter === "\n") {
      records[records.length - 1].push(field);
      field = "";
      if (letter === "\n") records.push([]);
    } else field += letter;
  }
  assert.ok(!isQuoted && field === "" && records.pop().length === 0, "the last line ends");
  return records;
}

/** Rows of a document's list, those below other rows included. */
function rowsOf(list) {
  let rows = 0;
  const ahead = [list];
  while (ahead.length > 0) {
    const some = ahead.pop();
    rows += some.length;
    for (const row of some) if (Array.isArray(row.children)) ahead.push(row.children);
  }
  return rows;
}

test("every table of every tab is downloaded as JSON and as comma-separated values, and read back", async () => {
  let files = 0;
  for (const name of ["recorded", "sampled", "memory", "compared", "covered", "served"]) {
    const { page, trouble, close } = await opened(name);
    for (const tab of await tabs(page)) {
      await open(page, tab);
      await page.waitForSelector(".waiting", { state: "detached" });
      const values = await page.$$eval(".download option", (all) => all.map((option) => option.value).filter((value) => /^(json|csv) /.test(value)));
      assert.ok(values.length >= 2 && values.length % 2 === 0, `${name} ${tab}: ${values}`);
      for (let at = 0; at < values.length / 2; at++) {
        const texts = {};
        for (const kind of ["json", "csv"]) {
          // Chromium drops the eleventh download of a page within a second, without a word.
          await page.waitForTimeout(120);
          const said = `${name} ${tab}: ${kind} ${at} of ${values}`;
          const [download] = await Promise.all([
            page.waitForEvent("download").catch((error) => assert.fail(`${said}: ${error}`)),
            page.selectOption(".download select", `${kind} ${at}`),
          ]);
          assert.ok(download.suggestedFilename().endsWith(`.${kind}`), said);
          texts[kind] = readFileSync(await download.path(), "utf8");
          files++;
        }
        const json = JSON.parse(texts.json);
        assert.match(json.schema, /^clrscope\./, `${name} ${tab} ${at}`);
        if (texts.csv === "") continue;
        const [heads, ...records] = recordsOf(texts.csv);
        assert.ok(heads.length > 0 && records.every((record) => record.length === heads.length), `${name} ${tab} ${at}: ${heads}`);
        if (Array.isArray(json.rows)) assert.equal(records.length, rowsOf(json.rows), `${name} ${tab} ${at}`);
      }
    }
    assert.deepEqual(trouble, [], name);
    await close();
  }
  assert.ok(files > 100, `${files} files`);
});
