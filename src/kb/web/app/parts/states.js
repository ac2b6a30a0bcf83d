// What a view shows while it has nothing to show: loading, failed, empty.

import { online } from "../api.js";
import { html } from "../html.js";
import { text } from "../strings.js";

/**
 * The children once `load` (of useLoad) has data; before that, its state. An error stands above old data, unless the banner
 * says it already.
 */
export function Loaded({ load, children }) {
  const { data, error, loading, reload } = load;
  if (data === undefined && loading && !error) return html`<p class="muted" role="status">${text.loading}</p>`;
  return html`${error && (online.value || data === undefined) && html`<${Failure} error=${error} retry=${reload} />`}${data !== undefined && children(data)}`;
}

/** A failure with its reason and a way on. */
export function Failure({ error, retry }) {
  return html`<div class="notice error" role="alert">
    <p><strong>${text.wentWrong}.</strong> <span dir="auto">${error.message}</span></p>
    ${retry && html`<button onClick=${retry}>${text.retry}</button>`}
  </div>`;
}

/** An empty place that says what belongs here; `whole`: it is all that the view shows. */
export function Empty({ title, whole = false, children }) {
  return html`<div class="empty">${whole ? html`<h1>${title}</h1>` : html`<h2>${title}</h2>`}${children}</div>`;
}
