// The engine's queue as it is now: which jobs run, how many wait. Loaded when something changed, at most once a second.

import { get } from "./api.js";
import { onEvents, useEvents } from "./events.js";
import { signal, useEffect, useRef } from "./html.js";
import { locked } from "./key.js";
import { useLoad } from "./load.js";

const EVERY = 1000; // ms
const MOST_RUNNING = 20;

/** {running: jobs, queued: how many}. */
export const engineQueue = signal({ running: [], queued: 0 });

/** A function that calls `act`, but not too often: calls in between become one. */
export function throttled(act, every = EVERY) {
  let last = 0;
  let planned;
  const run = () => {
    planned = undefined;
    last = Date.now();
    act();
  };
  const call = () => (planned ??= setTimeout(run, Math.max(0, last + every - Date.now())));
  call.cancel = () => clearTimeout(planned);
  return call;
}

async function load() {
  if (locked.value) return;
  try {
    const [running, queued] = await Promise.all([
      get("/jobs", { status: "running", limit: MOST_RUNNING }),
      get("/jobs", { status: "queued", limit: 1 }),
    ]);
    engineQueue.value = { running: running.jobs, queued: queued.total };
  } catch {
    // The engine is away: "reset" comes when it is back.
  }
}

export function start() {
  const again = throttled(load);
  onEvents((kind) => (kind === "job" || kind === "reset") && again());
  again();
}

/** Jobs of one status, loaded again when an event with one of these actions comes. */
export function useJobs(query, actions) {
  const wanted = useLoad((signal) => get("/jobs", query, { signal }), [JSON.stringify(query)]);
  const reload = useRef();
  reload.current = wanted.reload;
  const again = useRef();
  again.current ??= throttled(() => reload.current());
  useEvents((kind, { action }) => (kind === "reset" || (kind === "job" && actions.includes(action))) && again.current());
  useEffect(() => () => again.current.cancel(), []);
  return wanted;
}
