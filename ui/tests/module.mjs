// Modules of the page, built alone, for tests that need no browser.
import { build } from "vite";

export async function moduleOf(entry) {
  const lib = { entry, formats: ["es"], fileName: "module" };
  const built = await build({ configFile: false, logLevel: "silent", build: { lib, write: false, minify: false } });
  const { code } = [built].flat()[0].output[0];
  return import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
}
