// The page: tabs, what is shared between them, keys that hold everywhere.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Document, Page } from "../data/document";
import { save, toCsv, toJson } from "../data/download";
import { matchedIn, matching as matchingOf } from "../model/search";
import { inverted } from "../model/invert";
import { Functions, Profile } from "../model/profile";
import { KINDS, changed, parsed, type Transform, written as writtenChanges } from "../model/transforms";
import { arranged, pathTo, sumsOf } from "../model/tree";
import { read, type State, written } from "../state";
import { tabsOf } from "../tabs";
import { collapsed } from "../data/collapsed";
import { type Choice, PathBar, Search } from "./bar";
import { Flame } from "./flame";
import { CallersAndCallees, FunctionTable } from "./functions";
import { Head } from "./head";
import { Help } from "./help";
import { Menu, type MenuAt } from "./menu";
import { Sections } from "./section";
import type { Shown } from "./shown";
import { Timeline } from "./timeline";
import { Tree } from "./tree";

/** Tabs of a page and everything that is read of it once. */
export class Model {
  readonly tabs;
  readonly functions = new Functions();
  readonly profiles: Profile[];
  readonly rowFunctions = new Map<Document, Int32Array>();

  constructor(readonly page: Page) {
    this.tabs = tabsOf(page);
    const paths = page.of("tree").filter((document) => document.hasRows && document.main);
    this.profiles = paths.map((document) => new Profile(document, this.functions));
    for (const document of page.of("functions")) {
      if (document.main) this.rowFunctions.set(document, this.functions.of(document.main));
    }
  }

  /** The metrics of all documents of paths. */
  get metrics(): Choice[] {
    return this.profiles.flatMap((profile, at) =>
      profile.measures.filter((measure) => profile.has(measure)).map((measure) => ({ value: `${at}.${measure.name}`, label: measure.title })),
    );
  }

  /** The tab that is shown first. */
  get first(): string {
    const opened = this.page.open === "tree" ? "tree" : this.page.open;
    return this.tabs.find((tab) => tab.id === opened || tab.documents.some((document) => document.view === opened))?.id ?? this.tabs[0]?.id ?? "";
  }
}

const isTyping = (event: KeyboardEvent): boolean => {
  const target = event.target as HTMLElement | null;
  return !!target && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
};

export function App({ model }: { model: Model }) {
  const { page, tabs } = model;
  const [state, setState] = useState<State>(() => read(location.hash));
  const [menu, setMenu] = useState<MenuAt | null>(null);
  const [help, setHelp] = useState(false);
  const [dark, setDark] = useState(isDark);
  const search = useRef<HTMLInputElement>(null);

  const update = useCallback((change: Partial<State>, push = false) => {
    setState((before) => {
      const next = { ...before, ...change };
      const address = `#${written(next)}`;
      if (address !== location.hash) {
        if (push) history.pushState(null, "", address);
        else history.replaceState(null, "", address);
      }
      return next;
    });
  }, []);
  useEffect(() => {
    const follow = () => setState(read(location.hash));
    addEventListener("popstate", follow);
    addEventListener("hashchange", follow);
    return () => {
      removeEventListener("popstate", follow);
      removeEventListener("hashchange", follow);
    };
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }, [dark]);

  const tab = tabs.find((one) => one.id === state.tab) ?? tabs.find((one) => one.id === model.first);
  const isPaths = tab !== undefined && ["flame", "tree", "functions", "neighbours"].includes(tab.form);
  const functions = model.functions.list;
  const metrics = useMemo(() => model.metrics, [model]);
  const metric = metrics.some((one) => one.value === state.metric) ? state.metric : (metrics[0]?.value ?? "");
  const [number, name] = metric.split(".");
  const profile = model.profiles[Number(number)];
  const measure = profile?.measures.find((one) => one.name === name);
  const changes = useMemo(() => parsed(state.changes, functions.length), [state.changes]);
  const setChanges = (all: Transform[]) => update({ changes: writtenChanges(all), zoom: null }, true);

  // Trees are only made where a tab shows them.
  const merged = useMemo(() => (isPaths && profile && measure ? profile.merged(measure, new Set(state.threads)) : null), [isPaths, profile, measure, state.threads.join()]);
  const upright = useMemo(() => merged && arranged(changes.reduce((nodes, change) => changed(nodes, change, functions), merged)), [merged, changes]);
  const upsideDown = useMemo(() => (upright && state.invert ? inverted(upright) : null), [upright, state.invert]);
  const tree = useMemo(() => (upsideDown ? arranged(upsideDown.nodes) : upright), [upright, upsideDown]);
  const sums = useMemo(() => upright && sumsOf(upright, functions.length), [upright]);
  const matching = useMemo(() => matchingOf(functions, state.search), [functions, state.search]);
  const matched = useMemo(() => (matching && upright && isPaths ? matchedIn(upright, matching) : null), [matching, upright, isPaths]);

  const add = (change: Transform) => setChanges([...changes, change]);
  const lookAt = (func: number) => update({ tab: "callers", func }, true);
  const menuItems = (func: number, node: number | null) => {
    const path = node !== null && tree && !state.invert ? pathTo(tree, node) : null;
    const possible = KINDS.filter(({ kind }) => path !== null || (kind !== "F" && kind !== "M"));
    const items = possible.map(({ kind, menu }) => ({
      label: menu,
      key: kind === "d" && tab?.form === "flame" ? "x" : kind,
      act: () => add({ kind, path: kind === "F" || kind === "M" ? path! : [func] }),
    }));
    const label = functions[func].label;
    return [
      ...items,
      { label: "Callers and callees", act: () => lookAt(func) },
      { label: "Search for the name", act: () => update({ search: label }) },
      { label: "Copy name", act: () => void navigator.clipboard?.writeText(functions[func].signature).catch(() => {}) },
    ];
  };
  const openMenu = (func: number, node: number | null, x: number, y: number) => setMenu({ x, y, title: functions[func].label, items: menuItems(func, node) });
  const onKey = (func: number, node: number | null, event: KeyboardEvent): boolean => {
    if (event.key === "F10" && event.shiftKey) {
      openMenu(func, node, innerWidth / 3, innerHeight / 3);
      return true;
    }
    const kind = event.key === "x" ? "d" : event.key;
    const is = KINDS.find((one) => one.kind === kind);
    const needsPath = kind === "F" || kind === "M";
    if (!is || (needsPath && (node === null || state.invert))) return false;
    add({ kind: is.kind, path: needsPath && tree ? pathTo(tree, node!) : [func] });
    return true;
  };

  const shown: Shown | null = profile && measure && tree && upright && sums ? {
    profile, measure, functions, tree, upright, sums, matching, state, dark, update,
    select: (node) => update({ func: node > 0 ? tree.func[node] : null }),
    menu: (node, x, y) => openMenu(tree.func[node], node, x, y),
    menuOf: (func, x, y) => openMenu(func, null, x, y),
    key: (node, event) => node > 0 && onKey(tree.func[node], node, event),
    keyOf: (func, event) => onKey(func, null, event),
  } : null;

  const next = (by: number) => {
    if (!matched || !sums) return;
    const hits = [...new Set(matched.nodes.map((node) => upright!.func[node]))].sort((a, b) => sums.total[b] - sums.total[a]);
    if (hits.length > 0) update({ func: hits[(hits.indexOf(state.func ?? -1) + by + hits.length) % hits.length] });
  };
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (isTyping(event) || help) return;
      if ((event.ctrlKey || event.metaKey) && event.key === "f" && search.current) {
        search.current.focus();
        search.current.select();
        return event.preventDefault();
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
      if (event.key === "?") setHelp(true);
      else if (event.key === "/") search.current?.focus();
      else if (event.key === "i" && isPaths) update({ invert: !state.invert, zoom: null }, true);
      else if (event.key === "Backspace") history.back();
      else if (digit && tabs[Number(digit) - 1]) update({ tab: tabs[Number(digit) - 1].id }, true);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  });

  const cut = isPaths ? profile?.document.main?.packed.note : null;
  return (
    <>
      <Head page={page} onHelp={() => setHelp(true)} onTheme={() => setDark(remembered(!dark))} />
      <nav>
        <div role="tablist" aria-label="Views" onKeyDown={(event) => walkTabs(event)}>
          {tabs.map((one) => (
            <button
              type="button"
              role="tab"
              key={one.id}
              id={`tab-${one.id}`}
              aria-selected={one === tab}
              aria-controls="panel"
              tabIndex={one === tab ? 0 : -1}
              onClick={() => update({ tab: one.id, sort: "" }, true)}
            >
              {one.title}
            </button>
          ))}
        </div>
      </nav>
      <div class="bar">
        {isPaths && profile && (
          <PathBar metrics={metrics} metric={metric} threads={profile.threads} state={state} changes={changes} functions={functions} update={update} setChanges={setChanges} />
        )}
        <Search
          field={search}
          search={state.search}
          share={matched?.share ?? null}
          onSearch={(text) => update({ search: text })}
          onNext={next}
          onLeave={() => {
            update({ search: "" });
            search.current?.blur();
          }}
        />
        <Downloads page={page} documents={downloads(model, tab?.documents ?? [], isPaths ? profile : undefined, tab?.form)} shown={isPaths ? shown : null} />
      </div>
      <main>
      <div id="panel" role="tabpanel" aria-labelledby={tab ? `tab-${tab.id}` : undefined} class={`panel ${tab?.form ?? ""}`}>
        {tab?.form === "sections" && <Sections key={tab.id} documents={tab.documents} search={state.search} range={state.range} sort={state.sort} onSort={(sort) => update({ sort })} />}
        {tab?.form === "timeline" && <Timeline documents={tab.documents} page={page} state={state} update={update} dark={dark} />}
        {tab?.form === "flame" && shown && <Flame shown={shown} />}
        {tab?.form === "tree" && shown && <Tree shown={shown} />}
        {tab?.form === "functions" && shown && (
          <FunctionTable shown={shown} document={functionsOf(model, profile)} rowFunctions={model.rowFunctions.get(functionsOf(model, profile)!)} onOpen={lookAt} />
        )}
        {tab?.form === "neighbours" && shown && <CallersAndCallees shown={shown} onOpen={lookAt} />}
        {isPaths && upsideDown?.wholeLevels != null && <p class="note warning">Callers further up than {upsideDown.wholeLevels} levels are left out: focus on a function to see them.</p>}
        {cut && isPaths && tab?.form !== "functions" && <p class="note">{cut}</p>}
      </div>
      </main>
      {menu && <Menu menu={menu} onClose={() => setMenu(null)} />}
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

/** The tool's table of functions by the same metric as the tree. */
function functionsOf(model: Model, profile: Profile | undefined): Document | undefined {
  const metric = profile?.document.packed.options[1];
  return model.page.of("functions").find((document) => document.packed.options[1] === metric);
}

/** The documents behind a tab, as they can be downloaded. */
function downloads(model: Model, documents: Document[], profile: Profile | undefined, form: string | undefined): Document[] {
  if (!profile) return documents;
  const functions = functionsOf(model, profile);
  return form === "functions" && functions ? [functions] : [profile.document];
}

function Downloads({ page, documents, shown }: { page: Page; documents: Document[]; shown: Shown | null }) {
  const name = (document: Document) => `${document.view}${document.packed.options.includes("--each") ? "-each" : ""}`;
  const choose = (event: Event) => {
    const select = event.currentTarget as HTMLSelectElement;
    const [kind, at] = select.value.split(" ");
    select.value = "";
    const document = documents[Number(at)];
    if (kind === "json") save(`${name(document)}.json`, "application/json", toJson(page, document));
    if (kind === "csv") save(`${name(document)}.csv`, "text/csv", toCsv(document));
    if (kind === "shown" && shown) save("stacks.txt", "text/plain", collapsed(shown.upright, shown.functions));
  };
  return (
    <label class="download">
      <span class="unseen">Download</span>
      <select onChange={choose} value="">
        <option value="">download…</option>
        {documents.map((document, at) => [
          <option key={`json${at}`} value={`json ${at}`}>{name(document)} as JSON</option>,
          <option key={`csv${at}`} value={`csv ${at}`}>{name(document)} as CSV</option>,
        ])}
        {shown && <option value="shown 0">stacks as shown, collapsed</option>}
      </select>
    </label>
  );
}

function walkTabs(event: KeyboardEvent): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (by === 0) return;
  const tabs = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLButtonElement>("[role=tab]")];
  const at = tabs.indexOf(document.activeElement as HTMLButtonElement);
  const next = tabs[(at + by + tabs.length) % tabs.length];
  next.focus();
  next.click();
  event.preventDefault();
  event.stopPropagation();
}

/** Pages from disk may not be allowed to remember anything. */
function isDark(): boolean {
  try {
    const known = localStorage.getItem("clrscope-theme");
    if (known) return known === "dark";
  } catch {}
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function remembered(dark: boolean): boolean {
  try {
    localStorage.setItem("clrscope-theme", dark ? "dark" : "light");
  } catch {}
  return dark;
}

