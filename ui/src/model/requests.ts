// Requests that were chosen: those of a direction, perhaps of one route, by when they began and how
// long they took.

import type { Section } from "../data/document";
import { between } from "../data/format";

/** Requests that are looked at together. */
export interface Group {
  direction: "served" | "made";
  /** Method with route or host; null for those of all. */
  route: string | null;
}

export interface Chosen extends Group {
  /** Shortest and longest duration, nanoseconds. */
  took: [number, number];
  /** First and last begin, nanoseconds since the start of the run. */
  began: [number, number];
}

/** A group in an address: `served`, `made GET bank.example`. */
export const writtenGroup = ({ direction, route }: Group): string => (route === null ? direction : `${direction} ${route}`);

/** The group of an address; null where it makes no sense. */
export function readGroup(text: string): Group | null {
  const [, direction, route] = /^(served|made)(?: (.+))?$/s.exec(text) ?? [];
  return direction ? { direction: direction as Group["direction"], route: route ?? null } : null;
}

/** Chosen requests in an address. */
export const writtenChosen = (chosen: Chosen): string => [...chosen.took, ...chosen.began, writtenGroup(chosen)].join();

/** The chosen requests of an address; null where it makes no sense. */
export function readChosen(text: string): Chosen | null {
  const [, numbers, rest] = /^((?:\d{1,15},){4})(.*)$/s.exec(text) ?? [];
  const group = rest && readGroup(rest);
  if (!group) return null;
  const [shortest, longest, first, last] = numbers.split(",").map(Number);
  return shortest <= longest && first <= last ? { ...group, took: [shortest, longest], began: [first, last] } : null;
}

/** What the tool is asked for the work of chosen requests: it knows work for those that the program served. */
export function parametersOf({ direction, route, took, began }: Chosen): string[] {
  if (direction !== "served") return [];
  const all = [`faster=${took[1]}`, `began=${began.join(".")}`];
  if (took[0] > 0) all.unshift(`slower=${took[0] - 1}`);
  if (route !== null) all.unshift(`request=${encodeURIComponent(route)}`);
  return all;
}

/** Which of the requests they are, in words: `requests GET /orders/{id}`. */
const nameOf = ({ direction, route }: Group): string => `${direction === "made" ? "made " : route === null ? "served " : ""}requests${route === null ? "" : ` ${route}`}`;

/** `requests GET /orders/{id}, 10.2 to 10.4 s, 200 to 500 ms`. */
export const wordsOf = (chosen: Chosen): string => [nameOf(chosen), between(chosen.began[0], chosen.began[1] + 1), between(chosen.took[0], chosen.took[1] + 1)].join(", ");

/** The same as a sentence. */
export const sentenceOf = (chosen: Chosen): string =>
  `${nameOf(chosen)} that began ${between(chosen.began[0], chosen.began[1] + 1)} after the start and took ${between(chosen.took[0], chosen.took[1] + 1)}`;

/** What is known of the requests in the rows of a section; null for rows that are no single requests. */
export interface Requests {
  rows: number;
  began(row: number): number;
  /** Of one that had not ended, so far; null for one that began before the recording. */
  took(row: number): number | null;
  direction(row: number): string;
  route(row: number): string;
  failed(row: number): boolean;
  aborted(row: number): boolean;
  isUnderWay(row: number): boolean;
}

export function requestsOf(section: Section | undefined): Requests | null {
  const [time, duration, direction, route, failed, aborted, end] = ["time_ns", "duration_ns", "direction", "route", "failed", "aborted", "end"].map((key) => section?.column(key));
  if (!section || !time || !duration || !direction || !route) return null;
  return {
    rows: section.rows,
    began: (row) => time.number(row),
    took: (row) => {
      const ns = duration.value(row);
      return typeof ns === "number" ? ns : null;
    },
    direction: (row) => String(direction.value(row)),
    route: (row) => String(route.value(row)),
    failed: (row) => failed?.value(row) === true,
    aborted: (row) => aborted?.value(row) === true,
    isUnderWay: (row) => end?.value(row) === "under way",
  };
}

/** Whether a request is of a group. */
export const isOf = (requests: Requests, row: number, { direction, route }: Group): boolean =>
  requests.direction(row) === direction && (route === null || requests.route(row) === route);

/** Whether a request is one of those that were chosen. */
export function isChosen(requests: Requests, row: number, chosen: Chosen): boolean {
  const [began, took] = [requests.began(row), requests.took(row)];
  const isWithin = (number: number, [least, most]: [number, number]) => number >= least && number <= most;
  return isOf(requests, row, chosen) && isWithin(began, chosen.began) && took !== null && isWithin(took, chosen.took);
}

/** The groups that there are with their sizes: all that were served, the routes of these, the routes of those that were made. */
export function groupsOf(requests: Requests): { group: Group; count: number }[] {
  const counts = { served: new Map<string, number>(), made: new Map<string, number>() };
  for (let row = 0; row < requests.rows; row++) {
    const of = counts[requests.direction(row) as Group["direction"]];
    of?.set(requests.route(row), (of.get(requests.route(row)) ?? 0) + 1);
  }
  const routes = (direction: Group["direction"]) =>
    [...counts[direction]].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([route, count]) => ({ group: { direction, route } as Group, count }));
  const served = routes("served");
  const all = served.reduce((sum, { count }) => sum + count, 0);
  return [...(all > 0 ? [{ group: { direction: "served", route: null } as Group, count: all }] : []), ...served, ...routes("made")];
}
