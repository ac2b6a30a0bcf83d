// The filters that are typed: a path (a folder ends with a slash) and the days between which a document was added.

import { html } from "../html.js";
import { text } from "../strings.js";

export const TYPED = ["path", "after", "before"];

/** What the address says of them, as the API takes it. */
export const typedFilters = (query) => ({
  ...(query.get("path") && { source_path: query.get("path") }),
  ...(query.get("after") && { created_after: query.get("after") }),
  ...(query.get("before") && { created_before: query.get("before") }),
});

/** `set(name, value)` changes the address; an empty value takes the filter away. */
export function PathAndDates({ query, set }) {
  const field = (name, type) => html`<label class="group">
    <span class="muted">${text.typed[name]}</span>
    <input type=${type} value=${query.get(name) ?? ""} onChange=${(change) => set(name, change.target.value)} />
  </label>`;
  return html`<details class="typed" open=${TYPED.some((name) => query.has(name))}>
    <summary>${text.moreFilters}</summary>
    ${field("path", "text")} ${field("after", "date")} ${field("before", "date")}
  </details>`;
}
