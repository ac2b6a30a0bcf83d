// The extracted text around a place, with the cited stretch marked; more of it on request.

import { request } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { useLoad } from "../load.js";
import { text } from "../strings.js";
import { Loaded } from "./states.js";

const BEFORE = 3000; // characters
const AFTER = 6000;
const MORE = 20000;
const LONGEST = 1_000_000; // of a cited stretch

export function TextWindow({ document, at }) {
  const cited = at && { start: at.start, end: Math.min(at.end, at.start + LONGEST) };
  const around = () => ({ start: Math.max(0, (cited?.start ?? 0) - BEFORE), end: (cited?.end ?? 0) + AFTER });
  const [window, setWindow] = useState(around);
  useEffect(() => setWindow(around()), [at?.start, at?.end]);
  const load = useLoad(async (signal) => {
    const answer = await request("GET", `/documents/${document.id}/text`, { query: window, signal });
    return { ...window, letters: Array.from(await answer.text()) }; // the engine counts characters, not UTF-16 units
  }, [document, window]);
  const mark = useRef();
  const shown = load.data !== undefined;
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [shown, at?.start, at?.end]);
  return html`<section class="text-window">
    <${Loaded} load=${load}>
      ${({ start, end, letters }) => {
        const slice = (from, to) => letters.slice(Math.max(0, from - start), Math.max(0, to - start)).join("");
        const rest = cited && letters.length > cited.start - start ? cited : { start, end: start };
        const found = slice(rest.start, rest.end);
        return html`
          ${cited && !found && html`<p class="notice" role="status">${text.doc.noPassage}</p>`}
          ${start > 0 && html`<p><button onClick=${() => setWindow({ start: Math.max(0, start - MORE), end })}>${text.doc.above}</button></p>`}
          ${letters.length
            ? html`<div class="text" dir="auto">${slice(start, rest.start)}${found && html`<mark class="cited" ref=${mark}>${found}</mark>`}${slice(rest.end, Infinity)}</div>`
            : html`<p class="muted">${text.doc.noText}</p>`}
          ${letters.length >= end - start && html`<p><button onClick=${() => setWindow({ start, end: end + MORE })}>${text.doc.below}</button></p>`}
        `;
      }}
    <//>
  </section>`;
}
