// Beside the results: the original page with the passage boxed, or the text around the passage.

import { request } from "../api.js";
import { place } from "../format.js";
import { html } from "../html.js";
import { useLoad } from "../load.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { PagePicture, hasPages } from "./page_picture.js";
import { Loaded } from "./states.js";

const AROUND = 1500; // characters before and after the passage

export function Preview({ hit, question }) {
  const boxed = hasPages(hit.doc_type) && hit.anchor.start !== undefined;
  return html`<aside class="preview" aria-label=${text.preview}>
    <header>
      <h2 dir="auto">${hit.title}</h2>
      <p class="muted" dir="auto">${place(hit.anchor, hit.title) || hit.source_path || ""}</p>
    </header>
    ${boxed
      ? html`<${PagePicture} id=${hit.document_id} page=${hit.anchor.page ?? 1} at=${hit.anchor} width=${900} />`
      : html`<${Surroundings} hit=${hit} />`}
    <p><a class="button" href=${documentUrl(hit.document_id, hit.anchor, question)}>${text.open}</a></p>
  </aside>`;
}

/** The passage within the document's text; a passage of metadata has no place in it. */
function Surroundings({ hit }) {
  const { start, end } = hit.anchor;
  const first = Math.max(0, (start ?? 0) - AROUND);
  const load = useLoad(
    async (signal) =>
      start === undefined
        ? null
        : (await request("GET", `/documents/${hit.document_id}/text`, { query: { start: first, end: end + AROUND }, signal })).text(),
    [hit.chunk_id],
  );
  return html`<${Loaded} load=${load}>
    ${(around) => {
      if (around === null) return html`<p class="text" dir="auto">${hit.text}</p>`;
      const letters = Array.from(around); // the engine counts characters, not UTF-16 units
      const slice = (from, to) => letters.slice(Math.max(0, from), to).join("");
      return html`<div class="text" dir="auto">
        ${slice(0, start - first)}<mark class="cited">${slice(start - first, end - first)}</mark>${slice(end - first)}
      </div>`;
    }}
  <//>`;
}
