// Writes built/seal.json: the hashes that the page's content security policy names, and that of the sources, by which a test
// of the Rust side sees that the committed program is the one that they make.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const built = join(root, "../crates/report/src/page/built");

/** Files below a folder of `root`, as paths with slashes. */
function files(folder) {
  return readdirSync(join(root, folder)).flatMap((name) => {
    const path = `${folder}/${name}`;
    return statSync(join(root, path)).isDirectory() ? files(path) : [path];
  });
}

const sources = createHash("sha256");
for (const path of [...files("src"), ...files("build"), "package.json", "package-lock.json", "tsconfig.json", "vite.config.mjs"].sort()) {
  sources.update(`${path}\n`).update(readFileSync(join(root, path))).update("\n");
}

/** The text of a built file, fit to stand in an element. */
function inline(name) {
  const path = join(built, name);
  const plain = readFileSync(path, "utf8").trim().replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  // Control characters in strings are written out, as they are in everything that the tool prints.
  const text = plain.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
  writeFileSync(path, text);
  return text;
}

const hash = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
const seal = { sources: sources.digest("hex"), script: hash(inline("page.js")), style: hash(inline("page.css")) };

/** The libraries that are built into the program, with the texts of their licences. */
const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const licences = Object.keys(dependencies).sort().map((name) => {
  const folder = join(root, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  return { name, version, licence: license, text: readFileSync(join(folder, file), "utf8") };
});

/** The page of speedscope, which `clrscope view --with speedscope` serves as it is: without an example, and the reader of Java's
 * recordings. */
const speedscope = join(root, "node_modules/speedscope");
const served = join(root, "../crates/cli/src/viewer/speedscope/release");
rmSync(served, { recursive: true, force: true });
mkdirSync(served, { recursive: true });
const release = join(speedscope, "dist/release");
const isServed = (name) => !/^(perf-vertx-|jfrview_|favicon-.*\.js$|file-format-schema)/.test(name);
for (const name of readdirSync(release).filter(isServed)) copyFileSync(join(release, name), join(served, name));
copyFileSync(join(speedscope, "LICENSE"), join(served, "LICENSE"));
const { version, license } = JSON.parse(readFileSync(join(speedscope, "package.json"), "utf8"));
licences.push({ name: "speedscope", version, licence: license, text: readFileSync(join(served, "LICENSE"), "utf8") });
const ofFont = readFileSync(join(served, "source-code-pro.LICENSE.md"), "utf8");
licences.push({ name: "speedscope (its font, Source Code Pro)", version, licence: "OFL-1.1", text: ofFont });
writeFileSync(join(built, "licences.json"), `${JSON.stringify(licences, null, 2)}\n`);
writeFileSync(join(built, "seal.json"), `${JSON.stringify(seal, null, 2)}\n`);
