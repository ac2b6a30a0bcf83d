// The passages of a document, each a link to its place.

import { get } from "../api.js";
import { place } from "../format.js";
import { html } from "../html.js";
import { useLoad } from "../load.js";
import { Marked } from "../marks.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { Pager } from "./pager.js";
import { Loaded } from "./states.js";

const SHOWN = 20;

/** From passage `first` on; `to(first)` is the address of others. */
export function Passages({ document, question, first, to }) {
  const load = useLoad(
    (signal) => get(`/documents/${document.id}`, { first_chunk: first, max_chunks: SHOWN }, { signal }),
    [document, first],
  );
  const terms = question.split(/\s+/).filter((word) => word.length > 2);
  return html`<section>
    <${Loaded} load=${load}>
      ${({ chunks, chunk_count: total, title }) => html`
        <ol class="passages">${chunks.map(
          (chunk) => html`<li key=${chunk.id}>
            <p class="facts">
              <a href=${documentUrl(document.id, chunk.anchor, question)}>${text.doc.passageAt(chunk.index + 1)}</a>
              <span dir="auto">${place(chunk.anchor, title)}</span>
              ${chunk.hidden && html`<span class="warn">${text.doc.hiddenPassage}</span>`}
            </p>
            <p class="text" dir="auto"><${Marked} text=${chunk.text} terms=${terms} /></p>
          </li>`,
        )}</ol>
        <${Pager} total=${total} offset=${first} limit=${SHOWN} to=${to} />
      `}
    <//>
  </section>`;
}

/** The passage that holds character `offset` of the text, found by halving; undefined where there is none. */
export async function passageAt(document, offset, signal) {
  let low = 0;
  let high = document.chunk_count - 1;
  let found;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const { chunks } = await get(`/documents/${document.id}`, { first_chunk: middle, max_chunks: 1 }, { signal });
    const start = chunks[0]?.anchor.start ?? (middle === 0 ? -1 : Infinity); // metadata has no place in the text
    if (start <= offset) {
      if (start >= 0) found = chunks[0];
      low = middle + 1;
    } else high = middle - 1;
  }
  return found;
}
