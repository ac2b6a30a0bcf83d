// What becomes of items that the engine has accepted: their jobs, followed by events.

import { get, post } from "./api.js";
import { change } from "./items.js";
import { text } from "./strings.js";

const PAGE = 200; // jobs
const ENDS = ["completed", "failed", "cancelled"];
const MOST_OVER = 1000;

const byJob = new Map();
const asked = new Set(); // jobs to look at
const over = new Set(); // jobs that ended before their acceptance was heard of
let looking = false;

/** Follow an item by its job. */
export function follow(item) {
  byJob.set(item.job, item);
  if (over.delete(item.job)) look(item.job);
}

export function hear(kind, { id, action }) {
  if (kind === "reset") return sync();
  if (kind !== "job") return;
  if (byJob.has(id)) return action === "queued" || look(id);
  if (!ENDS.includes(action)) return;
  if (over.size >= MOST_OVER) over.clear();
  over.add(id);
}

/** Ask how jobs are; one at a time, and each once however many events there were. */
export async function look(...jobs) {
  for (const job of jobs) asked.add(job);
  if (looking) return;
  looking = true;
  for (const job of asked) {
    asked.delete(job);
    if (byJob.has(job)) take(byJob.get(job), await get(`/jobs/${job}`).catch((error) => ({ unknown: error.status === 404 })));
  }
  looking = false;
}

/** After a break, or a reload: how all of them are, in a few requests. */
export async function sync() {
  const open = new Set(byJob.keys());
  const most = open.size + PAGE;
  try {
    for (let offset = 0; open.size && offset < most; offset += PAGE) {
      for (const job of (await get("/jobs", { limit: PAGE, offset })).jobs) {
        if (open.delete(job.id) && byJob.has(job.id)) take(byJob.get(job.id), job);
      }
    }
    await look(...open);
  } catch {
    // The engine is away: "reset" comes when it is back.
  }
}

function take(item, job) {
  if (job.unknown) return fail(item, { code: "not_found", message: text.jobGone });
  if (job.status === "completed") return finish(item, job.document_id, job.outcome);
  if (job.status === "failed") return fail(item, job.error);
  if (job.status === "cancelled") return end(item, { state: "cancelled" });
  if (job.status) change(item, { running: job.status === "running", progress: job.progress, step: job.current_step });
}

const fail = (item, { code, message }) => end(item, { state: "failed", error: { code, message } });

export function finish(item, document, outcome) {
  end(item, { state: "done", document, outcome });
  if (item.late?.length) tagDone(item);
}

function end(item, changes) {
  byJob.delete(item.job);
  change(item, changes);
}

/** Give the document the tags that came after its file was sent. */
export async function tagDone(item) {
  const add = item.late;
  change(item, { late: undefined, error: undefined });
  try {
    await post(`/documents/${item.document}/tags`, { add });
  } catch (error) {
    change(item, { late: add, error: { code: error.code, message: text.notTagged(error.message) } });
  }
}
