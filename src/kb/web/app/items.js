// What is being added, item by item: shown a few times a second, and kept in the browser at the same pace.
//
// An item is waiting → sending → reading → done, failed or cancelled. Its file is kept until the engine has accepted it; from
// then on its job is enough.

import { signal } from "./html.js";
import * as kept from "./kept.js";

const SAVED_AT_ONCE = 100; // files in one transaction
const SHOWN_EVERY = 100; // ms between two changes of what is shown, however much happens
const STORED = "key kind name path size text tags late state job error document outcome".split(" ");
const PASSING = new Set(["sent", "allSent", "running", "progress", "step"]); // of no use after a reload

/** Grows whenever something changed that is shown: read it, then `items`. */
export const turn = signal(0);
/** True when the browser has no room to keep files: they are lost if the tab is closed. */
export const unkept = signal(false);

export const items = new Map();
const dirty = new Set();
const unneeded = new Set(); // keys of files that the engine has
const prefix = Date.now().toString(36) + Math.random().toString(36).slice(2, 6);
let next = 0;
let planned;

export function admit(fields) {
  const item = { key: prefix + String(next++).padStart(6, "0"), state: "waiting", sent: 0, ...fields };
  items.set(item.key, item);
  return item;
}

export function change(item, changes) {
  Object.assign(item, changes);
  if (Object.keys(changes).some((name) => !PASSING.has(name))) touch(item);
  show();
}

export const touch = (item) => item.saved && dirty.add(item);

/** The engine has it: its file need not be kept any longer. */
export function accepted(item) {
  unneeded.add(item.key);
  item.file = item.text = undefined;
}

export function show() {
  planned ??= setTimeout(() => {
    planned = undefined;
    turn.value++;
    const changed = [...dirty].filter((item) => items.has(item.key)).map(record);
    const sent = [...unneeded];
    dirty.clear();
    unneeded.clear();
    if (changed.length || sent.length) kept.update(changed, sent).catch(() => {});
  }, SHOWN_EVERY);
}

const record = (item) => ({
  ...Object.fromEntries(STORED.map((name) => [name, item[name]])),
  tab: item.tab,
  state: item.state === "sending" ? "waiting" : item.state,
});

/** Keep new items with their files, for a reload. */
export async function save(given, tab) {
  for (let at = 0; at < given.length; at += SAVED_AT_ONCE) {
    const some = given.slice(at, at + SAVED_AT_ONCE).filter((item) => items.has(item.key));
    for (const item of some) item.tab = tab;
    const entries = some.map((item) => ({ record: record(item), file: item.file }));
    try {
      await kept.keep(entries);
    } catch {
      // One file that cannot be read, or for which there is no room, must not take the others with it.
      for (const [index, entry] of entries.entries()) await kept.keep([entry]).catch(() => (some[index].unkept = true));
      unkept.value ||= some.some((item) => item.unkept);
    }
    for (const item of some) {
      item.saved = !item.unkept;
      if (item.state !== "waiting") touch(item); // it moved on meanwhile
      if (item.job) unneeded.add(item.key);
    }
    show();
  }
}

/** An item of an earlier visit, from its record. */
export function restore(one) {
  const item = { ...one, saved: true, sent: 0 };
  items.set(item.key, item);
  return item;
}

/** Take items off the list. */
export function clear(may) {
  const keys = [...items.values()].filter(may).map((item) => item.key);
  for (const key of keys) items.delete(key);
  if (!items.size) unkept.value = false;
  kept.remove(keys).catch(() => {});
  show();
}

/** How many are in which state, and how many bytes of them are sent. */
export function totals() {
  const found = { waiting: 0, sending: 0, reading: 0, done: 0, failed: 0, cancelled: 0, all: items.size, bytes: 0, sent: 0 };
  for (const { state, size, sent } of items.values()) {
    found[state]++;
    if (state === "cancelled" || state === "failed") continue;
    found.bytes += size;
    found.sent += state === "sending" ? sent : state === "waiting" ? 0 : size;
  }
  found.open = found.waiting + found.sending + found.reading;
  return found;
}
