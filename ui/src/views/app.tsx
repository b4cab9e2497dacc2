// The page: tabs, what is shared between them, keys that hold everywhere.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Document, Measure, Page, Section } from "../data/document";
import { save, toCsv, toJson } from "../data/download";
import { STATES_OF_TIME } from "../colours";
import { amount, oneLine, time } from "../data/format";
import { matchedIn, matching as matchingOf } from "../model/search";
import { cutOf, type Exact, isCut, withSmaller } from "../model/cut";
import { besideOf, invertedWithStates } from "../model/invert";
import { inStates, ofOwnCode, timesByState } from "../model/states";
import { Functions } from "../model/functions";
import { folded, foldedPath, hasNameless, pathsWithin } from "../model/nameless";
import { type Detail, Profile, threadLabel } from "../model/profile";
import type { Source, Standing } from "../data/source";
import { sentenceOf, wordsOf } from "../model/requests";
import { KINDS, changed, isExact, parsed, type Transform, written as writtenChanges } from "../model/transforms";
import { arranged, type CallTree, type Func, hidesPaths, type Neighbours, pathTo, type Sums, sumsOf } from "../model/tree";
import { read, type State, written } from "../state";
import { absentTab, MOMENTS, type Tab, tabsOf } from "../tabs";
import { collapsed } from "../data/collapsed";
import { type Choice, PathBar, Search } from "./bar";
import { Changes } from "./changes";
import { Coverage } from "./coverage";
import { Dominators } from "./dominators";
import { Flame } from "./flame";
import { CallersAndCallees, FunctionTable } from "./functions";
import { Collections } from "./gc";
import { Head } from "./head";
import { Help } from "./help";
import { useAnswer, useDetails, useLoaded } from "./loaded";
import { Menu, type MenuAt } from "./menu";
import { AS_PICTURES, Overview } from "./overview";
import { RequestsTab } from "./requests";
import { StepsOverTime } from "./steps";
import { Sections } from "./section";
import { FunctionSource } from "./source";
import type { Shown } from "./shown";
import { Timeline } from "./timeline";
import { Tree } from "./tree";

/** What is read of the documents once. */
export class Model {
  readonly functions = new Functions();
  private readonly profiles = new WeakMap<Document, Profile>();
  private readonly rowFunctions = new WeakMap<Document, Int32Array>();

  constructor(readonly source: Source) {}

  /** The trees of a document of paths; null where it has none. */
  profile(document: Document | undefined): Profile | null {
    if (!document?.main) return null;
    let profile = this.profiles.get(document);
    if (!profile) this.profiles.set(document, (profile = new Profile(document, this.functions)));
    return profile;
  }

  /** The functions that the rows of a table are about. */
  rowsOf(document: Document | null | undefined): Int32Array | undefined {
    if (!document?.main) return undefined;
    let rows = this.rowFunctions.get(document);
    if (!rows) this.rowFunctions.set(document, (rows = this.functions.of(document.main)));
    return rows;
  }

  /** The documents of paths that have something to show. */
  paths(page: Page): Document[] {
    return page.of("tree").filter((document) => document.hasRows);
  }

  /** The metrics of all documents of paths. */
  metrics(page: Page): Choice[] {
    return this.paths(page).flatMap((document, at) =>
      document.packed.measures
        .filter((measure) => this.source.served || this.profile(document)?.has(measure))
        .map((measure) => ({ value: `${at}.${measure.name}`, label: measure.title })),
    );
  }
}

/** Nodes that are looked at more closely for one frame of folded code. */
const MOST_LOOKS = 6;

/** The tab that is shown first. */
function first(page: Page, tabs: Tab[]): string {
  const { open } = page;
  return tabs.find((tab) => tab.id === open)?.id ?? tabs.find((tab) => tab.documents.some((document) => document.view === open))?.id ?? tabs[0]?.id ?? "";
}

const isTyping = (event: KeyboardEvent): boolean => {
  const target = event.target as HTMLElement | null;
  return !!target && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
};

export function App({ model }: { model: Model }) {
  const { source } = model;
  const [whole, setPage] = useState(source.page);
  const [standing, setStanding] = useState<Standing>("still");
  useEffect(() => {
    source.follow((now) => {
      setStanding(now);
      setPage(source.page);
    });
  }, [source]);
  const [state, setState] = useState<State>(() => read(location.hash));
  const page = useMemo(() => whole.withPaths(state.physical), [whole, state.physical]);
  const tabs = useMemo(() => tabsOf(page), [page]);
  /** The state that the last change made, which may not be shown yet: keys can be faster than pictures. */
  const latest = useRef(state);
  const [menu, setMenu] = useState<MenuAt | null>(null);
  const [help, setHelp] = useState(false);
  const [dark, setDark] = useState(isDark);
  const search = useRef<HTMLInputElement>(null);

  const update = useCallback((change: Partial<State>, push = false) => {
    setState((before) => {
      const next = { ...before, ...change };
      latest.current = next;
      const address = `#${written(next)}`;
      if (address !== location.hash) {
        if (push) history.pushState(null, "", address);
        else history.replaceState(null, "", address);
      }
      return next;
    });
  }, []);
  useEffect(() => {
    const follow = () => setState((latest.current = read(location.hash)));
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

  const tab = tabs.find((one) => one.id === state.tab) ?? tabs.find((one) => one.id === first(page, tabs));
  const isPaths = tab !== undefined && ["flame", "tree", "functions", "neighbours"].includes(tab.form);
  const functions = model.functions.list;
  const metrics = useMemo(() => model.metrics(page), [model, page]);
  const metric = metrics.some((one) => one.value === state.metric) ? state.metric : (metrics[0]?.value ?? "");
  const [number, name] = metric.split(".");
  const ofPaths = model.paths(page)[Number(number)];
  const table = functionsOf(page, ofPaths);

  // What the tab shows, under the filters that it takes: a timeline is there to choose a part of the time.
  const wanted = useMemo(() => {
    if (!tab) return [];
    if (isPaths) return [...(ofPaths ? [ofPaths] : []), ...(tab.form === "functions" && table ? [table] : [])];
    return tab.form === "timeline" ? [...tab.documents, ...page.documents.filter((one) => MOMENTS.includes(one.view))] : tab.documents;
  }, [tab, isPaths, ofPaths, table, page]);
  const isTimeline = tab?.form === "timeline";
  const states = isPaths && source.served ? state.states : [];
  const allStates = useMemo(() => ({ range: isTimeline ? null : state.range, threads: isTimeline ? [] : state.threads, requests: state.requests }), [isTimeline, state.range?.join(), state.threads.join(), JSON.stringify(state.requests)]);
  const filters = useMemo(() => ({ ...allStates, states }), [allStates, states.join()]);
  // The server makes changes of the whole tree, and answers as much as can be seen.
  const picture = (invert: boolean) => [`measure=${name}`, `changes=${state.changes}`, `invert=${invert ? 1 : 0}`, `nameless=${state.nameless ? 1 : 0}`].join("&");
  const isAsked = source.served && isPaths && ofPaths !== undefined;
  const changedPicture = isAsked && state.changes !== "" ? picture(false) : "";
  const upFilters = useMemo(() => ({ ...filters, picture: changedPicture }), [filters, changedPicture]);
  const loaded = useLoaded(source, wanted, upFilters);
  const { documents } = loaded;
  const shownPaths = isPaths ? documents[0] : undefined;
  const invertedPicture = isAsked && state.invert ? picture(true) : "";
  const downFilters = useMemo(() => ({ ...filters, picture: invertedPicture }), [filters, invertedPicture]);
  const downWanted = useMemo(() => (invertedPicture !== "" && ofPaths ? [ofPaths] : []), [invertedPicture !== "", ofPaths]);
  const down = useLoaded(source, downWanted, downFilters);
  // The legend has the times of all states, whatever is shown.
  const wholeFilters = useMemo(() => ({ ...allStates, picture: changedPicture }), [allStates, changedPicture]);
  const wholeWanted = useMemo(() => (states.length > 0 && ofPaths ? [ofPaths] : []), [states.length > 0, ofPaths]);
  const wholeLoaded = useLoaded(source, wholeWanted, wholeFilters);
  // The heat map has all requests, whichever are chosen there.
  const mapFilters = useMemo(() => ({ ...filters, requests: null }), [filters]);
  const mapWanted = useMemo(() => (tab?.form === "requests" ? tab.documents.filter((one) => one.packed.options.includes("--each")) : []), [tab]);
  const ofMap = useLoaded(source, mapWanted, mapFilters);
  const isWaiting = loaded.isWaiting || down.isWaiting || ofMap.isWaiting;
  const problem = loaded.problem ?? down.problem ?? ofMap.problem;
  const profile = useMemo(() => (isPaths ? model.profile(shownPaths) : null), [isPaths, shownPaths]);
  const downProfile = useMemo(() => (down.documents[0]?.packed.sections ? model.profile(down.documents[0]) : null), [down.documents[0]]);
  const measure = ofPaths?.packed.measures.find((one) => one.name === name);
  const base = downProfile ?? profile;
  const [details, look] = useDetails(source, ofPaths, base, downProfile ? downFilters : upFilters, model.functions);
  const ofFunctions = useAnswer(source, ofPaths, filters, isAsked && (tab?.form === "functions" || tab?.form === "neighbours") ? `${picture(false)}&as=functions` : null);
  // All that is there has its functions in the list before anything is made of the list: an answer that comes last is followed by
  // no other change that would show what was missed.
  const rowFunctions = tab?.form === "functions" ? model.rowsOf(documents[1]) : undefined;
  model.rowsOf(table);
  const summedFunctions = model.rowsOf(ofFunctions);
  const known = functions.length;
  const folds = useMemo(() => !state.nameless && hasNameless(functions), [state.nameless, known]);
  const changes = useMemo(() => {
    const asked = parsed(state.changes, model.functions);
    return folds ? asked.map((change) => ({ ...change, path: foldedPath(change.path, functions) })) : asked;
  }, [state.changes, known, folds]);
  const setChanges = (all: Transform[]) => update({ changes: writtenChanges(all, model.functions), zoom: null }, true);

  // Trees are only made where a tab shows them. What a server answers has been filtered by it.
  const threads = source.served ? "" : state.threads.join();
  const range = source.served ? null : state.range;
  const mergedOf = (one: Profile | null, details: Detail[]) => {
    // A picture has totals of every measure.
    const of = measure && (one?.measures.length === 1 && one.measures[0].name === measure.name ? one.measures[0] : measure);
    return one && of ? one.merged(of, new Set(threads === "" ? [] : threads.split(",")), range, details) : null;
  };
  const merged = useMemo(() => mergedOf(profile, downProfile ? [] : details), [profile, measure, threads, range?.join(), details, downProfile]);
  const downMerged = useMemo(() => mergedOf(downProfile, details), [downProfile, measure, details]);
  // What the tool knows of functions holds for the whole recording.
  const isFiltered = source.served || threads !== "" || range !== null;
  const exact = useMemo(
    () => (measure && table?.main && !isFiltered ? exactOf(table.main, model.rowsOf(table)!, measure, functions, folds) : null),
    [measure, table, isFiltered, folds, known],
  );
  // A served page can be asked for what is missing.
  const isPicture = Boolean(shownPaths?.sections.some((section) => section.packed.key === "changed"));
  const allNodes = useMemo(() => {
    if (source.served) return merged && (folds && !isPicture ? folded(merged, functions) : merged);
    const whole = merged && withSmaller(merged, functions, model.functions.smaller);
    const first = whole && folds ? folded(whole, functions) : whole;
    return first && changes.reduce((nodes, change, at) => changed(nodes, change, functions, at === 0 ? exact : null), first);
  }, [merged, changes, folds, exact, isPicture]);
  // What would change nothing is not offered. A server's pictures are folded already.
  const canFold = useMemo(() => state.nameless || (folds && (isPicture || !merged || merged.func.some((func) => functions[func]?.library !== undefined))), [state.nameless, folds, isPicture, merged]);
  const canWait = name === "wall" || (name === "samples" && (ofPaths?.packed.measures.some((one) => one.name === "wall") ?? false));
  const upright = useMemo(() => {
    const nodes = allNodes && inStates(allNodes, state.states);
    return nodes && arranged(nodes, ofOwnCode(nodes, functions));
  }, [allNodes, state.states.join()]);
  const times = useMemo(() => {
    const whole = wholeLoaded.documents[0];
    return wholeWanted.length === 0 ? timesByState(allNodes) : whole?.packed.sections ? timesByState(mergedOf(model.profile(whole), [])) : null;
  }, [allNodes, wholeWanted, wholeLoaded.documents[0]]);
  const cutAmount = useMemo(() => (upright ? cutOf(upright, functions) : 0), [upright]);
  const isSure = cutAmount === 0 || changes.every((change, at) => isExact(change, at === 0 ? exact : null));
  const upsideDown = useMemo(() => {
    if (!upright || !state.invert || source.served) return null;
    const isWhole = changes.length === 0 && state.states.length === 0;
    return invertedWithStates(upright, functions.length, exact && cutAmount > 0 && isWhole ? besideOf(upright, exact.own, model.functions.smaller) : null);
  }, [upright, state.invert, exact]);
  const tree = useMemo(() => {
    const nodes = downMerged ?? upsideDown?.nodes;
    return nodes ? arranged(nodes, ofOwnCode(nodes, functions)) : upright;
  }, [upright, upsideDown, downMerged]);
  // Until an inverted tree has come, the other one is there.
  const isInverted = source.served ? downMerged !== null : state.invert;
  const sums = useMemo(() => {
    if (!upright) return null;
    return ofFunctions && summedFunctions ? sumsOfRows(ofFunctions.main!, summedFunctions, ofFunctions.packed.measures[0], known) : sumsOf(upright, functions);
  }, [upright, known, ofFunctions]);
  const isWords = state.search.trim() !== "" && !state.search.trim().startsWith("/");
  const ofSearch = useAnswer(source, ofPaths, filters, isAsked && isWords ? `${picture(false)}&search=${encodeURIComponent(state.search.trim())}` : null);
  const matching = useMemo(() => matchingOf(functions, state.search), [known, state.search]);
  const matched = useMemo(() => (matching && upright && isPaths ? matchedIn(upright, matching, functions) : null), [matching, upright, isPaths]);
  const chosen = state.func === null ? null : (model.functions.number(state.func) ?? null);
  const func = chosen === null || !folds ? chosen : foldedPath([chosen], functions)[0];
  const idOf = (func: number | null) => (func === null || func < 0 ? null : model.functions.id(func));
  const allThreads = useMemo(() => {
    const several = new Set(page.threads.map((one) => one.pid)).size > 1;
    return page.threads.map((one) => ({ key: `${one.pid}.${one.id}`, label: `${several ? `${one.pid}: ` : ""}${threadLabel({ ...one })}` }));
  }, [page]);

  // A closer look at the node that fills the picture: what is below it may have been too small to be asked for.
  const lookAtNode = (node: number, isWanted = false) => {
    if (!source.served || !tree || node <= 0) return;
    const path = pathTo(tree, node);
    const part = tree.total[node] / (tree.total[0] || 1);
    const isFolded = folds && merged && !isPicture && !isInverted;
    for (const one of isFolded ? pathsWithin(merged, functions, path, MOST_LOOKS) : [path]) look(one, part, isWanted);
  };
  useEffect(() => {
    if (!tree || !source.served || !isPaths) return;
    const zoom = state.zoom ?? [0, 1];
    lookAtNode(filling(tree, zoom));
  }, [tree, state.zoom?.join(), isPaths]);

  const askNeighbours = (func: number) => useAnswer(source, ofPaths, filters, isAsked && func >= 0 ? `${picture(false)}&of=${idOf(func)}` : null);
  const add = (change: Transform) => setChanges([...changes, change]);
  const lookAt = (func: number) => update({ tab: "callers", func: idOf(func) }, true);
  const linesTab = tabs.find((one) => one.documents.some((document) => document.view === "lines" && document.hasRows));
  /** Own code alone has lines as a rule. */
  const hasSource = (func: number) => linesTab !== undefined && functions[func]?.code === "own";
  const toSource = (func: number): boolean => {
    if (!hasSource(func)) return false;
    update({ tab: linesTab!.id, func: idOf(func), sort: "" }, true);
    return true;
  };
  const ofSections = useMemo(() => (section: Section) => model.functions.of(section), [model, page]);
  const sectionFunctions = useMemo(
    () => (model.paths(page).length > 0 ? { of: ofSections, open: (func: number) => lookAt(func) } : undefined),
    [model, page],
  );
  const menuItems = (func: number, node: number | null) => {
    if (isCut(functions, func)) return [];
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
      ...(hasSource(func) ? [{ label: "Source lines", act: () => void toSource(func) }] : []),
      { label: "Search for the name", act: () => update({ search: label }) },
      { label: "Copy name", act: () => void navigator.clipboard?.writeText(functions[func].signature).catch(() => {}) },
    ];
  };
  const openMenu = (func: number, node: number | null, x: number, y: number) => {
    const items = menuItems(func, node);
    if (items.length > 0) setMenu({ x, y, title: functions[func].label, items });
  };
  const onKey = (func: number, node: number | null, event: KeyboardEvent): boolean => {
    if (isCut(functions, func)) return false;
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
    times,
    question: JSON.stringify([metric, state.threads, state.states, state.range, state.requests, state.changes, state.invert, state.nameless, state.physical]),
    measure, functions, tree, upright, sums, matching, state: isInverted === state.invert ? state : { ...state, invert: isInverted }, func, dark, update,
    neighboursOf: (answer) => neighboursOfRows(answer, model.functions),
    choose: (func) => update({ func: idOf(func) }),
    select: (node) => update({ func: node > 0 ? idOf(tree.func[node]) : null }),
    toSource,
    canAsk: source.served,
    closer: (node) => lookAtNode(node, hidesPaths(tree, node)),
    menu: (node, x, y) => openMenu(tree.func[node], node, x, y),
    menuOf: (func, x, y) => openMenu(func, null, x, y),
    key: (node, event) => node > 0 && onKey(tree.func[node], node, event),
    keyOf: (func, event) => onKey(func, null, event),
  } : null;

  const next = (by: number) => {
    if (!matched || !sums) return;
    const hits = [...new Set(matched.nodes.map((node) => upright!.func[node]))].sort((a, b) => sums.total[b] - sums.total[a]);
    if (hits.length > 0) update({ func: idOf(hits[(hits.indexOf(func ?? -1) + by + hits.length) % hits.length]) });
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
      else if (event.key === "i" && isPaths) update({ invert: !latest.current.invert, zoom: null }, true);
      else if (event.key === "Backspace") history.back();
      else if (digit && tabs[Number(digit) - 1]) update({ tab: tabs[Number(digit) - 1].id }, true);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  });

  const cut = isPaths ? profile?.document.main?.packed.note : null;
  const follows = (document: Document) => source.served ? !document.packed.whole_run : document.view === "tree" ? Boolean(document.packed.times) : documentHasTimes(document);
  const isWhole = state.range !== null && !isTimeline && (isPaths ? !(shownPaths && follows(shownPaths)) : !documents.some(follows));
  // Only a program can be asked for the work of requests: in a file they are rows of their tab
  // alone.
  const showsWork = source.served && state.requests?.direction === "served";
  const isChosen = state.requests !== null && (showsWork || tab?.form === "requests");
  const ofAll = showsWork ? documents.filter((one) => one.packed.all_requests).length : 0;
  // An address may lead to a tab that another recording has.
  const absent = state.tab !== "" && tab?.id !== state.tab ? absentTab(page, state.tab) : null;
  const flameTab = tabs.find((one) => one.form === "flame");
  return (
    <>
      <Head page={page} standing={standing} isWaiting={isWaiting} onHelp={() => setHelp(true)} onTheme={() => setDark(remembered(!dark))} />
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
        {isPaths && ofPaths && (
          <PathBar metrics={metrics} metric={metric} threads={source.served ? allThreads : (profile?.threads ?? [])} state={state} changes={changes} functions={functions} canFold={canFold} canWait={canWait} update={update} setChanges={setChanges} />
        )}
        {tab?.documents.some((one) => page.twins.has(one.logicalKey)) && (
          <label class="check" title="stacks as they were on the threads: the caller of code after an await is the scheduler, or what completed the await">
            <input type="checkbox" checked={state.physical} onChange={() => update({ physical: !state.physical, zoom: null, func: null }, true)} /> physical paths
          </label>
        )}
        {isPaths && times && state.states.length > 0 && (
          <button type="button" class="chip" title="The states whose time is shown" aria-label="Undo: states" onClick={() => update({ states: [], zoom: null }, true)}>
            <span>only {state.states.map((name) => STATES_OF_TIME[name].label).join("; ")}</span> ×
          </button>
        )}
        {state.range && !isTimeline && (
          <button type="button" class="chip" title="The chosen part of the time" aria-label="Undo: part of the time" onClick={() => update({ range: null }, true)}>
            <span>{time(state.range[0])} to {time(state.range[1])}</span> ×
          </button>
        )}
        {isChosen && (
          <button type="button" class="chip wide" title={oneLine(sentenceOf(state.requests!))} aria-label={`Undo: ${oneLine(wordsOf(state.requests!))}`} onClick={() => update({ requests: null, zoom: null }, true)}>
            <span>{oneLine(wordsOf(state.requests!))}</span> ×
          </button>
        )}
        <Search
          field={search}
          search={state.search}
          share={matched && ofSearch?.packed.all ? (ofSearch.packed.matched ?? 0) / ofSearch.packed.all : (matched?.share ?? null)}
          isLeast={matched !== null && (source.served ? !ofSearch && hidesPaths(upright!, 0, true) : matched.isLeast)}
          onSearch={(text) => update({ search: text })}
          onNext={next}
          onLeave={() => {
            update({ search: "" });
            search.current?.blur();
          }}
        />
        <Downloads page={page} documents={isPaths ? documents.slice(-1) : tab?.form === "timeline" ? documents.slice(0, tab.documents.length) : documents} shown={isPaths ? shown : null} />
      </div>
      <main>
      <div id="panel" role="tabpanel" aria-labelledby={tab ? `tab-${tab.id}` : undefined} class={`panel ${tab?.form ?? ""}`}>
        {isWhole && documents.length > 0 && <p class="note warning">This tab shows totals of the whole run: the chosen part of the time does not change them.</p>}
        {ofAll > 0 && <p class="note warning">{ofAll === documents.length ? "What is shown here is" : "A part of what is shown here is"} of all requests, and of what was done for none: the chosen requests do not change it.</p>}
        {absent && <p class="note warning absent">{absent.title} was not recorded: record it with {absent.instruments.map((one) => `-i ${one}`).join(" or ")}.</p>}
        {problem && <p class="note warning">{oneLine(problem)}</p>}
        {tab !== undefined && tab === linesTab && func !== null && (
          <FunctionSource documents={documents} func={func} label={functions[func].label} of={ofSections} onClose={() => update({ func: null })} />
        )}
        {tab?.form === "sections" && <Sections key={tab.id} documents={documents} search={state.search} range={state.range} sort={state.sort} onSort={(sort) => update({ sort })} functions={sectionFunctions} />}
        {tab?.form === "overview" && (
          <div class="collections">
            {documents[0] && <Overview document={documents[0]} page={page} tabs={tabs} metrics={metrics} functions={model.functions} dark={dark} state={state} update={update} />}
            <Sections key={tab.id} documents={documents} search={state.search} range={state.range} sort={state.sort} onSort={(sort) => update({ sort })} functions={sectionFunctions} without={AS_PICTURES} />
          </div>
        )}
        {tab?.form === "request" && (
          <div class="collections">
            {documents.map((document, at) => <StepsOverTime key={at} document={document} />)}
            <Sections documents={documents} search={state.search} range={state.range} sort={state.sort} onSort={(sort) => update({ sort })} functions={sectionFunctions} />
          </div>
        )}
        {tab?.form === "gc" && <Collections documents={documents} whole={page.recorded} state={state} update={update} dark={dark} />}
        {tab?.form === "requests" && (
          <RequestsTab documents={documents} all={ofMap.documents} whole={page.recorded} state={state} workTab={source.served ? (flameTab?.id ?? null) : null} update={update} />
        )}
        {tab?.form === "dominators" && documents[0]?.main && <Dominators document={documents[0]} search={state.search} dark={dark} />}
        {tab?.form === "coverage" && documents[0]?.main && <Coverage document={documents[0]} state={state} update={update} />}
        {tab?.form === "changes" && documents[0]?.main && <Changes document={documents[0]} functions={model.functions} state={state} dark={dark} update={update} />}
        {isTimeline && documents.some((one) => one.main) && <Timeline documents={documents} page={page} state={state} update={update} dark={dark} />}
        {tab?.form === "flame" && shown && <Flame shown={shown} />}
        {tab?.form === "tree" && shown && <Tree shown={shown} />}
        {tab?.form === "functions" && shown && (
          <FunctionTable shown={shown} served={source.served} document={documents[1]} rowFunctions={rowFunctions} onOpen={lookAt} />
        )}
        {tab?.form === "neighbours" && shown && <CallersAndCallees shown={shown} onOpen={lookAt} ask={askNeighbours} />}
        {isPaths && upsideDown?.wholeLevels != null && <p class="note warning">Callers further up than {upsideDown.wholeLevels} levels are left out: focus on a function to see them.</p>}
        {cutAmount > 0 && measure && isPaths && (
          <p class="note">
            {amount(cutAmount, measure.unit)} lie on paths that are too small for this page.{isSure ? "" : " What the changes above would leave of that is unknown: at most this much."}
          </p>
        )}
        {cut && cutAmount === 0 && isPaths && tab?.form !== "functions" && <p class="note">{cut}</p>}
      </div>
      </main>
      {menu && <Menu menu={menu} onClose={() => setMenu(null)} />}
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

/** The tool's table of functions by the same metric as the tree. */
function functionsOf(page: Page, paths: Document | undefined): Document | undefined {
  const metric = paths?.packed.options[1];
  return page.of("functions").find((document) => document.packed.options[1] === metric);
}

/** What the tool says of the functions of a table by a measure, as frames of the trees: nameless code folded where that is. */
function exactOf(section: Section, rows: Int32Array, measure: Measure, functions: Func[], folds: boolean): Exact | null {
  const [own, total] = [section.column(measure.own), measure.total === null ? undefined : section.column(measure.total)];
  if (!own) return null;
  const exact: Exact = { own: new Float64Array(functions.length), total: new Float64Array(functions.length).fill(-1) };
  for (let row = 0; row < section.rows; row++) {
    const library = folds ? functions[rows[row]]?.library : undefined;
    const func = library ?? rows[row];
    if (func < 0) continue;
    exact.own[func] += own.number(row);
    // Totals of functions that call one another don't add up; several rows of a function are of several processes.
    if (total && library === undefined) exact.total[func] = Math.max(0, exact.total[func]) + total.number(row);
  }
  return exact;
}

/** Whether rows of a document are moments, of which a part of the time can be chosen. */
const documentHasTimes = (document: Document): boolean => document.main?.column("time_ns") !== undefined || document.main?.column("start_ns") !== undefined;

/** The innermost node that fills a part of the picture. */
function filling(tree: CallTree, [from, to]: [number, number]): number {
  const whole = tree.total[0] || 1;
  const slack = (to - from) * whole * 0.001;
  let node = 0;
  for (;;) {
    let child = node + 1;
    while (child < tree.end[node] && tree.start[child] + tree.total[child] < to * whole - slack) child = tree.end[child];
    if (child >= tree.end[node] || tree.start[child] > from * whole + slack) return node;
    node = child;
  }
}

/** Callers and callees that the tool has found. */
function neighboursOfRows(document: Document, functions: Functions): Neighbours {
  const side = (key: string) => {
    const section = document.sections.find((one) => one.packed.key === key);
    if (!section) return new Map<number, number>();
    const total = section.column("picture_total")!;
    return new Map([...functions.of(section)].map((func, row) => [func, total.number(row)]));
  };
  const [callers, callees] = [side("callers"), side("callees")];
  if (document.packed.threads) callers.set(-1, document.packed.threads);
  return { callers, callees };
}

/** Amounts by function that the tool has summed up; `numbers` are the functions of the rows, out of `known`. */
function sumsOfRows(section: Section, numbers: Int32Array, { own, total }: Measure, known: number): Sums {
  const sums = { own: new Float64Array(known), total: new Float64Array(known) };
  for (let row = 0; row < section.rows; row++) {
    sums.own[numbers[row]] = section.column(own)!.number(row);
    sums.total[numbers[row]] = section.column(total!)!.number(row);
  }
  return sums;
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

