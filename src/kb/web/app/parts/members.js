// What was found in an archive, a mail or a mailbox: documents of their own.

import { get } from "../api.js";
import { html } from "../html.js";
import { useLoad } from "../load.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { TypeBadge } from "./labels.js";
import { Pager } from "./pager.js";
import { Loaded } from "./states.js";

const SHOWN = 100;
export const CONTAINERS = new Set(["archive", "mail", "mailbox"]);

/** Members from `first` on; `to(first)` is the address of others. */
export function Members({ document, first, to }) {
  const asked = { parent: document.id, view: "summary", sort: "created", order: "asc", limit: SHOWN, offset: first };
  const load = useLoad((signal) => get("/documents", asked, { signal }), [document, first]);
  return html`<${Loaded} load=${load}>
    ${({ documents, total }) =>
      total
        ? html`<ul class="list">${documents.map((one) => html`<li key=${one.id}>
              <a href=${documentUrl(one.id)} dir="auto">${one.member}</a> <span class="facts"><${TypeBadge} type=${one.doc_type} /></span>
            </li>`)}</ul>
            <${Pager} total=${total} offset=${first} limit=${SHOWN} to=${to} />`
        : html`<p class="muted">${text.doc.noMembers}</p>`}
  <//>`;
}
