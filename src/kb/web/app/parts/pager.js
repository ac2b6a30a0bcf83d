// Pages of a long list.

import { count } from "../format.js";
import { html } from "../html.js";
import { text } from "../strings.js";

/** Links to the pages before and after; `to(offset)` gives an address. */
export function Pager({ total, offset, limit, to }) {
  if (total <= limit && offset === 0) return null;
  const last = Math.min(offset + limit, total);
  return html`<nav class="pager row" aria-label=${text.pages}>
    ${offset > 0 && html`<a class="button" href=${to(Math.max(0, offset - limit))}>${text.before}</a>`}
    <span class="muted">${text.range(count(offset + 1), count(last), count(total))}</span>
    ${last < total && html`<a class="button" href=${to(offset + limit)}>${text.after}</a>`}
  </nav>`;
}
