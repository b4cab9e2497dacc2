// One program and one style, without a name that changes: what the Rust side puts into pages.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../crates/report/src/page/built",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    lib: { entry: "src/main.tsx", formats: ["iife"], name: "clrscope", fileName: () => "page.js", cssFileName: "page" },
  },
  define: { "process.env.NODE_ENV": '"production"' },
});
