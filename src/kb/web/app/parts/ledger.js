// What became of each part of a document: counts, then the parts, filtered by state.

import { get } from "../api.js";
import { count } from "../format.js";
import { html } from "../html.js";
import { useLoad } from "../load.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { pageOf } from "./original.js";
import { hasPages } from "./page_picture.js";
import { Pager } from "./pager.js";
import { Reread } from "./reread.js";
import { Loaded } from "./states.js";

const SHOWN = 100;
const UNREAD = ["failed", "empty"];

/** Parts in `state`, or all, from `first` on; `to(state, first)` is the address of others. */
export function Ledger({ document, state, first, to }) {
  const load = useLoad(
    (signal) => get(`/documents/${document.id}/ledger`, { state, limit: SHOWN, offset: first }, { signal }),
    [document, state, first],
  );
  const counts = Object.entries(document.ledger_counts);
  const total = counts.reduce((sum, [, number]) => sum + number, 0);
  const chip = (value, name, number) => html`<a
    class="chip ${value === state ? "on" : ""}"
    aria-current=${value === state ? "true" : undefined}
    href=${to(value, 0)}
  >${name} <small>${count(number)}</small></a>`;
  return html`<section>
    <div class="row chips" role="group" aria-label=${text.doc.state}>
      ${chip("", text.doc.any, total)} ${counts.map(([value, number]) => chip(value, text.doc.states[value], number))}
    </div>
    <${Loaded} load=${load}>
      ${({ ledger, total: matching }) =>
        ledger.length
          ? html`<ul class="list">${ledger.map((entry) => html`<${Part} key=${entry.part} document=${document} entry=${entry} />`)}</ul>
              <${Pager} total=${matching} offset=${first} limit=${SHOWN} to=${(next) => to(state, next)} />`
          : html`<p class="muted">${text.doc.noParts}</p>`}
    <//>
  </section>`;
}

function Part({ document, entry }) {
  const page = pageOf(entry.part) ?? (document.doc_type === "image" ? 1 : null);
  const pictured = hasPages(document.doc_type) && page;
  return html`<li>
    ${pictured ? html`<a href=${documentUrl(document.id, { page })}>${entry.part}</a>` : html`<span dir="auto">${entry.part}</span>`}
    <span class="facts">
      <span class="badge ${entry.state}">${text.doc.states[entry.state]}</span>
      ${entry.reason && html`<span dir="auto">${entry.reason}</span>`}
      ${pictured && UNREAD.includes(entry.state) && html`<${Reread} document=${document} page=${page} label=${text.doc.readPage} ocr />`}
    </span>
  </li>`;
}
