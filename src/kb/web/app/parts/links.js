// What a document links to, and what links to it.

import { get } from "../api.js";
import { count } from "../format.js";
import { html } from "../html.js";
import { useLoad } from "../load.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";

/** Shown only where there are any; a failure to load them hides nothing else. */
export function Links({ document }) {
  const { data } = useLoad((signal) => get(`/documents/${document.id}/links`, {}, { signal }), [document.id, document.version]);
  if (!data) return null;
  return html`
    <${Some} name=${text.links.to} found=${data.links} />
    <${Some} name=${text.links.from} found=${data.backlinks} more=${data.backlinks_more} />
  `;
}

function Some({ name, found, more }) {
  if (!found.length) return null;
  return html`<details class="metadata">
    <summary>${name} (${count(found.length + (more ?? 0))})</summary>
    <ul>${found.map((one) => html`<li><${One} link=${one} /></li>`)}${more && html`<li>${text.andMore(more)}</li>`}</ul>
  </details>`;
}

const One = ({ link }) =>
  link.document_id
    ? html`<a href=${documentUrl(link.document_id)} dir="auto">${link.title}</a> <span class="muted" dir="auto">${link.target}</span>`
    : html`<span dir="auto">${link.target}</span> <span class="muted">${text.links.missing}</span>`;
