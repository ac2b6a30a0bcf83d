// What happens in the engine, as it happens: one stream of events for all tabs, read with fetch because it needs the key.

import { PREFIX, online } from "./api.js";
import { useEffect, useRef } from "./html.js";
import { keyHeaders, locked } from "./key.js";

const listeners = new Set();
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;
const CALM = 1000; // ms between two reloads while documents come in

/** Call `listener(kind, {id, action})` for each event; kind "reset" means that some may have been missed. */
export function onEvents(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The same while a component is shown. */
export const useEvents = (listener, deps = []) => useEffect(() => onEvents(listener), deps);

/** Reload when documents change, but not more often than a person can follow. */
export function useCalmReload(reload) {
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEvents((kind) => {
    if (kind === "job" || timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = 0;
      reload();
    }, CALM);
  });
}

const tell = (kind, data) => listeners.forEach((listener) => listener(kind, data));

// A browser opens six connections to an engine, for all tabs together. So one tab reads and tells the others.
const others = new BroadcastChannel("kb-events");
const READER = "kb-events";

function tellAll(kind, data) {
  others.postMessage([kind, data]);
  tell(kind, data);
}

/** Hear of events for ever; "reset" comes after every break, and now and then while there is no stream. */
export async function follow() {
  others.onmessage = ({ data: [kind, data] }) => {
    online.value = true;
    tell(kind, data);
  };
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    if (await inTurn(connect)) pause = FIRST_PAUSE;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Call `act(signal)` when no other tab does. Where tabs cannot agree, each does it, but only while it is shown. */
async function inTurn(act) {
  if (navigator.locks) return navigator.locks.request(READER, () => act());
  const hiding = new AbortController();
  const look = () => document.hidden && hiding.abort();
  if (document.hidden) return false;
  document.addEventListener("visibilitychange", look);
  return act(hiding.signal).finally(() => document.removeEventListener("visibilitychange", look));
}

/** Read the stream until it breaks; false if there was none. A tab without the key lets another one try. */
async function connect(signal) {
  let open = false;
  try {
    const answer = await fetch(`${PREFIX}/events`, { headers: keyHeaders(), signal });
    open = answer.ok;
    if (open) {
      online.value = true;
      tellAll("reset", {});
      await read(answer.body.pipeThrough(new TextDecoderStream()));
    } else if (answer.status === 401) {
      locked.value = true;
    } else {
      tell("reset", {}); // too many streams are open: the views ask every few seconds instead
    }
  } catch {
    if (!signal?.aborted) online.value = false;
  }
  return open;
}

async function read(stream) {
  let rest = "";
  for (const reader = stream.getReader(); ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const kind = /^event: (.*)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      if (kind) tellAll(kind[1], data ? JSON.parse(data[1]) : {});
    }
  }
}
