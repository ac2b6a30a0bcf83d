// What happens in the engine, as it happens: one stream of events, read with fetch because it needs the key.

import { PREFIX, online } from "./api.js";
import { useEffect } from "./html.js";
import { keyHeaders, locked } from "./key.js";

const listeners = new Set();
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;

/** Call `listener(kind, {id, action})` for each event; kind "reset" means that some may have been missed. */
export function onEvents(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The same while a component is shown. */
export const useEvents = (listener, deps = []) => useEffect(() => onEvents(listener), deps);

const tell = (kind, data) => listeners.forEach((listener) => listener(kind, data));

/** Read the stream for ever; after a break, say "reset" once it is there again. Without a stream, say it now and then. */
export async function follow() {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    try {
      const answer = await fetch(`${PREFIX}/events`, { headers: keyHeaders() });
      if (answer.status === 401) locked.value = true;
      if (answer.ok) {
        online.value = true;
        pause = FIRST_PAUSE;
        tell("reset", {});
        await read(answer.body.pipeThrough(new TextDecoderStream()));
      } else if (answer.status !== 401) {
        tell("reset", {}); // too many streams are open: the views ask every few seconds instead
      }
    } catch {
      online.value = false;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
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
      if (kind) tell(kind[1], data ? JSON.parse(data[1]) : {});
    }
  }
}
