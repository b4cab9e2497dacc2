// Exports for pprof, decoded by a library that is not ours; `cargo test -p clrscope --test page` makes them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";

const folder = process.env.PAGES;

/** The profile, with what each sample's numbers stand for. */
function decoded(name) {
  const bytes = readFileSync(`${folder}/${name}.pprof`);
  const profile = Profile.decode(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes);
  const text = (at) => profile.stringTable.strings[Number(at)];
  const functions = new Map(profile.function.map((one) => [String(one.id), text(one.name)]));
  const locations = new Map(profile.location.map((one) => [String(one.id), one.line.map((line) => functions.get(String(line.functionId)))]));
  const samples = profile.sample.map((one) => ({
    path: one.locationId.flatMap((id) => locations.get(String(id)) ?? assert.fail(`no location ${id}`)),
    values: one.value.map(Number),
  }));
  const types = profile.sampleType.map((type) => `${text(type.type)} ${text(type.unit)}`);
  assert.equal(text(0), "", "as the format wants it");
  assert.ok(samples.every((one) => one.values.length === types.length && one.path.every((name) => typeof name === "string")));
  return { profile, samples, types };
}

test("pprof exports are decoded by another library, with the sums of the recording", () => {
  const { samples, types } = decoded("sampled");
  const cpu = types.findIndex((type) => type.startsWith("cpu "));
  assert.ok(cpu >= 0, types.join());
  const sum = (all) => all.reduce((sum, one) => sum + one.values[cpu], 0);
  // 400 steps of the main thread and 100 of the mailer.
  assert.equal(sum(samples), 500_000_000);
  assert.equal(sum(samples.filter(({ path }) => path[0].includes("memcpy"))), 266_000_000);
  const totals = samples.filter(({ path }) => path.some((name) => name.includes("App.Cart::Total")));
  assert.equal(sum(totals), 400_000_000);
  assert.ok(totals.every(({ path }) => path[path.length - 1].includes("App::Main")), "the innermost frame comes first");
});

test("pprof exports keep names that are programs as text", () => {
  const { samples } = decoded("hostile");
  assert.ok(samples.some(({ path }) => path.some((name) => name.includes("</script><script>alert(1)"))));
});
