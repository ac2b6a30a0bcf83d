// The original of a PDF or a picture, page by page, with the cited passage boxed.

import { get } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { useKeys } from "../keys.js";
import { useLoad } from "../load.js";
import { text } from "../strings.js";
import { PagePicture } from "./page_picture.js";
import { Reread } from "./reread.js";

/** `page` is shown; `at` stands on page `cited`; `go(page)` shows another one. */
export function Original({ document, page, cited, at, go }) {
  const total = useLoad((signal) => pageCount(document, signal), [document]).data;
  const may = (next) => next >= 1 && (!total || next <= total);
  const step = (by) => may(page + by) && go(page + by);
  useKeys({ "[": () => step(-1), "]": () => step(1) }, [page, total]);
  return html`<section class="original">
    ${(document.doc_type === "pdf" || total > 1) && html`<${PageField} page=${page} total=${total} step=${step} go=${(next) => may(next) && go(next)} />`}
    ${at && page !== cited && html`<p><button class="quiet" onClick=${() => go(cited)}>${text.doc.toPassage(cited)}</button></p>`}
    <${PagePicture}
      id=${document.id}
      page=${page}
      at=${page === cited ? at : undefined}
      revision=${document}
      reveal
      whenInexact=${html`<${Reread} document=${document} page=${page} label=${text.doc.readAgain} />`}
    />
  </section>`;
}

function PageField({ page, total, step, go }) {
  const [typed, setTyped] = useState(page);
  useEffect(() => setTyped(page), [page]);
  const submit = (event) => {
    event.preventDefault();
    go(Math.trunc(Number(typed)) || 1);
  };
  return html`<form class="row page-field" onSubmit=${submit}>
    <button type="button" aria-label=${text.doc.previousPage} disabled=${page <= 1} onClick=${() => step(-1)}>‹ <kbd>[</kbd></button>
    <label>
      <span class="unseen">${text.doc.page}</span>
      <input type="number" min="1" max=${total} value=${typed} onInput=${(input) => setTyped(input.target.value)} onChange=${submit} />
    </label>
    ${total && html`<span>${text.doc.ofPages(total)}</span>`}
    <button type="button" aria-label=${text.doc.nextPage} disabled=${total && page >= total} onClick=${() => step(1)}><kbd>]</kbd> ›</button>
  </form>`;
}

/** The number of pages: the last part of the ledger names the last page. */
async function pageCount(document, signal) {
  if (document.doc_type === "image" && document.media_type !== "image/tiff") return 1;
  const parts = Object.values(document.ledger_counts).reduce((sum, number) => sum + number, 0);
  if (!parts) return undefined;
  const { ledger } = await get(`/documents/${document.id}/ledger`, { limit: 1, offset: parts - 1 }, { signal });
  return pageOf(ledger[0]?.part) ?? undefined;
}

/** The number of the page that a part of the ledger names, or null. */
export const pageOf = (part = "") => Number(/^page (\d+)/.exec(part)?.[1]) || null;
