// One passage that was found: where it stands, its text with the matched words, and why it is here.

import { WORKBOOKS, place } from "../format.js";
import { html } from "../html.js";
import { Marked } from "../marks.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { Bar, TagLinks, Time, TypeBadge } from "./labels.js";
import { copy } from "./toast.js";

const HEADING = /^#+ /gm;
const LINES_MATTER = new Set(["code", "text", "note", "notebook", ...WORKBOOKS]); // elsewhere a line ends where the author's window did

export function Result({ hit, id, question, chosen, choose }) {
  const where = place(hit.anchor, hit.title);
  const lines = LINES_MATTER.has(hit.doc_type);
  return html`<li id=${id} class="result ${chosen ? "chosen" : ""}" aria-current=${chosen ? "true" : undefined} onClick=${choose}>
    <h2><a href=${documentUrl(hit.document_id, hit.anchor, question)} dir="auto" onFocus=${choose}>${hit.title}</a></h2>
    <p class="facts">
      <${TypeBadge} type=${hit.doc_type} />
      ${where && html`<span dir="auto">${where}</span>`}
      <${Time} at=${hit.updated_at ?? hit.created_at} />
      <${TagLinks} tags=${hit.tags} />
    </p>
    ${hit.hidden && html`<p class="warn">${text.hidden}</p>`}
    <p class="passage ${lines ? "lines" : ""}" dir="auto"><${Marked} text=${lines ? hit.text : hit.text.replace(HEADING, "")} terms=${hit.explain?.matched_terms} brief /></p>
    <${AlsoIn} hit=${hit} question=${question} />
    <div class="actions">
      <${Why} hit=${hit} />
      <button class="quiet" onClick=${() => copy(citation(hit))}>${text.cite}</button>
    </div>
  </li>`;
}

/** The passage as a Markdown quotation with a link to the very place. */
export function citation(hit) {
  const where = place(hit.anchor, hit.title);
  const url = new URL(documentUrl(hit.document_id, hit.anchor), location.origin);
  const name = (hit.title + (where ? `, ${where}` : "")).replace(/[[\]\\]/g, "\\$&").replace(/\s+/g, " ");
  return `${hit.text.trim().replace(/^/gm, "> ")}\n>\n> [${name}](${url})\n`;
}

/** Each leg's share of the score, as bars. */
function Why({ hit }) {
  const { fts, vector, matched_terms: terms } = hit.explain ?? {};
  const leg = (name, kind, view) =>
    view &&
    html`<div class="leg">
      <span>${name}</span><${Bar} share=${view.share} kind=${kind} />
      <small>${view.rank ? `${view.share.toFixed(2)} · ${text.rank(view.rank)}` : text.rank(0)}</small>
    </div>`;
  return html`<details class="why">
    <summary><${Bar} share=${hit.score} /> <span>${text.score(hit.score)}</span></summary>
    <div class="legs" aria-label=${text.why}>
      ${leg(text.words, "fts", fts)} ${leg(text.meaning, "vector", vector)}
      <p class="muted" dir="auto">${terms?.length ? text.matched(terms) : text.noneMatched}</p>
    </div>
  </details>`;
}

function AlsoIn({ hit, question }) {
  if (!hit.also_in?.length) return null;
  return html`<p class="muted also">
    ${text.alsoIn}${" "}
    ${hit.also_in.map(
      (other, at) => html`${at > 0 && ", "}<a href=${documentUrl(other.document_id, other.anchor, question)} dir="auto">${other.title}</a>`,
    )}
    ${hit.also_in_more && ` ${text.andMore(hit.also_in_more)}`}
  </p>`;
}
