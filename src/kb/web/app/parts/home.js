// `/` without a question: what is being read, what is new, and how to begin.

import { get } from "../api.js";
import { useEvents } from "../events.js";
import { html } from "../html.js";
import { useLoad } from "../load.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { Prose, TagLinks, Time, TypeBadge } from "./labels.js";
import { Empty, Loaded } from "./states.js";

const RECENT = 15;

export function Home() {
  const load = useLoad((signal) => get("/documents", { view: "summary", limit: RECENT }, { signal }), []);
  useEvents((kind) => (kind === "document" || kind === "reset") && load.reload());
  return html`<div class="home">
    <${Loaded} load=${load}>
      ${({ documents }) =>
        documents.length
          ? html`<section>
              <h1>${text.recent}</h1>
              <ul class="list">${documents.map((document) => html`<${Row} key=${document.id} document=${document} />`)}</ul>
            </section>`
          : html`<${Empty} title=${text.emptyTitle} whole><p><${Prose} text=${text.emptyHint} /></p><//>`}
    <//>
  </div>`;
}

function Row({ document }) {
  return html`<li>
    <a href=${document.doc_type === "note" ? `/n/${document.id}` : documentUrl(document.id)} dir="auto">${document.title}</a>
    <span class="facts">
      <${TypeBadge} type=${document.doc_type} />
      <${Time} at=${document.updated_at ?? document.created_at} />
      <${TagLinks} tags=${document.tags} />
    </span>
  </li>`;
}
