// The head of the page: what ran, and what is missing.

import type { Page } from "../data/document";
import { count, oneLine } from "../data/format";
import type { Standing } from "../data/source";

/** What is said of a served page. */
const STANDINGS: Record<Standing, string | null> = {
  still: null,
  recording: "● recording",
  ended: "the program has ended",
  gone: "'clrscope view' has ended: the page keeps what it loaded before",
};

interface Props {
  page: Page;
  standing: Standing;
  isWaiting: boolean;
  onHelp(): void;
  onTheme(): void;
}

export function Head({ page, standing, isWaiting, onHelp, onTheme }: Props) {
  const { recording } = page;
  const [process] = recording.processes;
  const losses = recording.losses.reduce((sum, loss) => sum + loss.count, 0);
  const facts = [
    ...page.run,
    recording.processes.length === 1 ? `${process.runtime}, process ${process.pid}` : `${count(recording.processes.length)} processes`,
    `recorded ${recording.instruments.given}`,
  ];
  return (
    <header>
      <div class="title">
        <h1 title={oneLine(recording.command.join(" "))}>{oneLine(recording.command.join(" ")) || "(no command)"}</h1>
        <p>
          {facts.map(oneLine).join(" · ")}
          {STANDINGS[standing] && <> · <span class={`standing ${standing}`} role="status">{STANDINGS[standing]}</span></>}
          {isWaiting && <> · <span class="faint waiting">asking…</span></>}
          {losses > 0 && <> · <a class="warning" href="#tab=conditions">{count(losses)} losses</a></>}
        </p>
      </div>
      <div class="tools">
        <button type="button" onClick={onTheme} aria-label="Light or dark" title="Light or dark">◐</button>
        <button type="button" onClick={onHelp} aria-label="Keys and mouse" title="Keys and mouse (?)">?</button>
      </div>
    </header>
  );
}
