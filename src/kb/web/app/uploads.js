// The queue of what is added: a few are sent at a time. It goes on after a reload; the next visit offers what a closed tab left.

import { aborted, get, online, post, request } from "./api.js";
import { onEvents } from "./events.js";
import { finish, follow, hear, look, sync, tagDone } from "./following.js";
import { effect, signal } from "./html.js";
import { accepted, admit, change, items, restore, save, show, touch, unkept } from "./items.js";
import * as kept from "./kept.js";
import { locked } from "./key.js";
import { send } from "./sending.js";
import { text } from "./strings.js";
import { claimTab, openTabs } from "./tab.js";

const AT_ONCE = 3;
const TRIES = 3; // of a connection that breaks while the engine is there
const PAUSES = [1, 2, 5]; // seconds before the engine is asked again

/** Why nothing is sent at the moment: {reason, paused}; "paused" needs a person. */
export const held = signal(null);
/** Records that an earlier visit left behind. */
export const earlier = signal([]);

const line = []; // those that wait, in order
const sending = new Map(); // item → its upload
let pauses = 0; // since something was accepted
let limit; // bytes of the largest file that the engine takes
let tab;
let ready;

/** Add files: [{file, path}]. They are sent at once, and kept in the browser meanwhile. */
export const addFiles = (found, tags = []) =>
  queue(found.map(({ file, path }) => admit({ kind: "file", name: path.split("/").pop(), path, size: file.size, file, tags })));

/** Add a text as a note. */
export function addText(content, tags = []) {
  const name = content.trim().split("\n")[0].slice(0, 80);
  queue([admit({ kind: "note", name, path: name, size: new Blob([content]).size, text: content, tags })]);
}

async function queue(added) {
  line.push(...added);
  show();
  await ready;
  pump();
  save(added, tab);
}

function pump() {
  if (!tab || locked.value || held.value) return;
  const most = pauses ? 1 : AT_ONCE; // after a pause, one goes ahead
  while (sending.size < most && line.length) {
    const item = line.shift();
    if (item.state === "waiting" && items.has(item.key)) transmit(item);
  }
}

async function transmit(item) {
  sending.set(item, null);
  change(item, { state: "sending", sent: 0, allSent: false, error: undefined });
  try {
    const body = await bodyOf(item);
    if (item.state !== "sending") return; // cancelled meanwhile
    const upload = send(body, (bytes) => change(item, { sent: Math.min(bytes, item.size), allSent: bytes === Infinity }));
    sending.set(item, upload);
    accept(item, await upload.answer);
  } catch (error) {
    await refuse(item, error);
  } finally {
    sending.delete(item);
    pump();
  }
}

async function bodyOf(item) {
  if (item.kind === "note") return JSON.stringify({ text: item.text, tags: item.tags });
  const file = item.file ?? (await kept.fileOf(item.key).catch(() => undefined));
  if (!file) throw { code: "lost", message: text.fileLost };
  limit ??= (await get("/status")).limits.max_file_mb;
  if (file.size > limit * 2 ** 20) throw { code: "file_too_large", message: text.tooLarge(limit) };
  const form = new FormData();
  form.append("tags", JSON.stringify(item.tags));
  if (item.path !== item.name) form.append("metadata", JSON.stringify({ path: item.path }));
  form.append("file", file, item.name);
  return form;
}

function accept(item, { job_id: job, status, document_id: document, outcome }) {
  const unwanted = item.state === "cancelled"; // after its last byte was sent
  pauses = 0;
  accepted(item);
  change(item, { state: "reading", job, running: false, step: undefined, progress: 0 });
  if (status === "completed") return finish(item, document, outcome);
  follow(item);
  if (unwanted) cancel(item);
}

/** What becomes of an item that could not be sent. */
async function refuse(item, error) {
  if (item.state !== "sending" || aborted(error)) return;
  if (error.status === 0) error = await broken(item, error);
  if ([0, 401, 503].includes(error.status)) {
    item.state = "waiting";
    line.unshift(item);
    if (error.status !== 401) pause(error.message);
    return show();
  }
  change(item, { state: "failed", error: { code: error.code, message: error.message } });
  // Every other file would meet the same full disk: a person says when there is room.
  if (error.status === 507) held.value = { reason: error.message, paused: true };
}

/** The connection broke: the error says whether by the file, the engine, or by chance. */
async function broken(item, error) {
  try {
    await (item.file ?? (await kept.fileOf(item.key)))?.slice(0, 1).arrayBuffer();
  } catch {
    return { code: "unreadable", message: text.unreadable };
  }
  try {
    await request("GET", "/status");
  } catch (away) {
    return away;
  }
  item.broken = (item.broken ?? 0) + 1;
  return item.broken < TRIES ? error : { code: error.code, message: text.brokeOff };
}

function pause(reason) {
  if (held.value) return;
  held.value = { reason, paused: false };
  setTimeout(goOn, PAUSES[Math.min(pauses++, PAUSES.length - 1)] * 1000);
}

/** Send again, after a pause. */
export function goOn() {
  held.value = null;
  pump();
}

export const mayCancel = (item) => ["waiting", "sending", "reading"].includes(item.state);
export const mayRetry = (item) => item.state === "failed" || item.state === "cancelled";
export const mayClear = (item) => item.state === "done" || item.state === "cancelled";

export async function cancel(item) {
  if (item.state === "reading") {
    await post(`/jobs/${item.job}/cancel`).catch(() => {}); // one that has just ended shows its end
    return look(item.job);
  }
  if (!mayCancel(item)) return;
  change(item, { state: "cancelled" });
  if (!item.allSent) sending.get(item)?.abort(); // else the engine may have it: accept() cancels it there
}

export async function retry(item) {
  if (!mayRetry(item)) return;
  if (!item.job) {
    item.broken = 0;
    change(item, { state: "waiting", error: undefined });
    line.push(item);
    return pump();
  }
  try {
    await post(`/jobs/${item.job}/retry`);
    change(item, { state: "reading", error: undefined, running: false, step: undefined, progress: 0 });
    follow(item);
    look(item.job);
  } catch (error) {
    change(item, { error: { code: error.code, message: error.message } });
  }
}

/** Do something with each item that `may`, a few at a time. */
export async function each(may, act) {
  const chosen = [...items.values()].filter(may);
  for (let at = 0; at < chosen.length; at += AT_ONCE) await Promise.all(chosen.slice(at, at + AT_ONCE).map(act));
}

/** Give tags to everything on the list: with what is still to be sent, and to the documents of the rest. */
export function tagAll(tags) {
  const joined = (before = []) => [...new Set([...before, ...tags])];
  for (const item of items.values()) {
    if (item.state === "waiting" || (mayRetry(item) && !item.job)) change(item, { tags: joined(item.tags) });
    else change(item, { late: joined(item.late) });
    if (item.state === "done") tagDone(item);
  }
}

/** Send what an earlier visit left, or let it go. */
export function takeEarlier(wanted) {
  const records = earlier.value;
  earlier.value = [];
  if (!wanted) return void kept.remove(records.map((one) => one.key)).catch(() => {});
  for (const one of records) {
    const item = restore({ ...one, tab });
    touch(item);
    line.push(item);
  }
  show();
  pump();
}

/** Go on with what this tab had, and offer what tabs left that are gone. */
async function resume() {
  const name = await claimTab();
  const records = await kept.all().catch(() => ((unkept.value = true), []));
  const isOpen = await openTabs();
  for (const one of records.filter((one) => one.tab === name)) {
    const item = restore(one);
    if (item.state === "waiting") line.push(item);
    if (item.state === "reading") follow(item);
  }
  const left = records.filter((one) => one.tab !== name && !isOpen(one.tab));
  earlier.value = left.filter((one) => one.state === "waiting");
  kept.remove(left.filter((one) => one.state !== "waiting").map((one) => one.key)).catch(() => {});
  tab = name;
  show();
  sync();
}

export function start() {
  ready = resume().then(pump);
  onEvents((kind, data) => {
    if (kind === "reset") limit = undefined; // it may be another engine
    hear(kind, data);
  });
  effect(() => {
    if (online.value && !locked.value) pump();
  });
  addEventListener("beforeunload", (leaving) => {
    const unsent = (item) => item.state === "waiting" || item.state === "sending";
    if ([...items.values()].some((item) => unsent(item) && !item.saved)) leaving.preventDefault();
  });
}
