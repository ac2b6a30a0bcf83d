// `/d/{id}`: a document, its original at the cited place, its text, passages and ledger.

import { get } from "../api.js";
import { useEvents } from "../events.js";
import { html } from "../html.js";
import { useKeys } from "../keys.js";
import { useLoad } from "../load.js";
import { navigate, resultsUrl, route, useTitle } from "../router.js";
import { text } from "../strings.js";
import { Cells } from "../parts/cells.js";
import { DocumentHead, downloadOriginal } from "../parts/document_head.js";
import { History } from "../parts/history.js";
import { Ledger } from "../parts/ledger.js";
import { CONTAINERS, Members } from "../parts/members.js";
import { Original } from "../parts/original.js";
import { hasPages } from "../parts/page_picture.js";
import { passageAt, Passages } from "../parts/passages.js";
import { Loaded } from "../parts/states.js";
import { TextWindow } from "../parts/text_window.js";
import { WORKBOOKS } from "../format.js";

export function DocumentView({ id }) {
  const load = useLoad((signal) => get(`/documents/${id}`, { view: "summary" }, { signal }), [id]);
  const { id: number, title = text.doc.untitled } = load.data ?? {};
  useEvents((kind, event) => {
    if (number && (kind === "reset" || (kind === "document" && event.id === number))) load.reload();
  }, [number]);
  useTitle(title);
  if (load.error?.status === 404) return html`<${Missing} />`;
  return html`
    ${!load.data && html`<h1 class="unseen">${title}</h1>`}
    <${Loaded} load=${load}>${(found) => html`<${Sections} document=${found} onChange=${load.reload} />`}<//>
  `;
}

function Missing() {
  return html`<div class="empty" role="alert">
    <h1>${text.doc.missing}</h1>
    <p>${text.doc.missingHint} <a href="/trash">${text.trash.name}</a>, <a href="/">${text.search}</a></p>
  </div>`;
}

const sectionsOf = (type) => [
  ...(hasPages(type) ? ["original"] : WORKBOOKS.has(type) ? ["cells"] : []),
  ...(CONTAINERS.has(type) ? ["members"] : []),
  ...["text", "passages", "ledger"],
  ...(type === "note" ? ["versions"] : []),
];

/** `at=START-END` of the address, in characters of the text. */
function stretch(query) {
  const [, start, end] = /^(\d{1,15})-(\d{1,15})$/.exec(query.get("at") ?? "") ?? [];
  return start !== undefined && Number(start) < Number(end) ? { start: Number(start), end: Number(end) } : undefined;
}

function Sections({ document, onChange }) {
  const { query } = route.value;
  const at = stretch(query);
  const given = Math.min(Number.parseInt(query.get("page"), 10), 1e9) || undefined;
  const type = document.doc_type;
  // Links name the page too; one that does not is completed by asking for the passage.
  const wanted = at && ((type === "pdf" && !given) || WORKBOOKS.has(type));
  const passage = useLoad(async (signal) => (wanted ? passageAt(document, at.start, signal) : null), [document.id, wanted, at?.start]);
  const page = given ?? passage.data?.anchor.page ?? 1;
  const cited = Number.parseInt(query.get("cited"), 10) || page;
  const first = Math.max(0, Number.parseInt(query.get("from"), 10) || 0);
  const sections = sectionsOf(type);
  // A citation of a mail stands in its text.
  const usual = at && CONTAINERS.has(type) ? "text" : sections[0];
  const section = sections.includes(query.get("show")) ? query.get("show") : usual;
  const anchor = { ...at, page: type === "pdf" && (given || at) ? page : undefined, sheet: query.get("sheet") ?? undefined };
  const address = (changes) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    return `/d/${document.id}?${next}`;
  };
  useKeys({
    o: () => downloadOriginal(document),
    e: () => (type === "note" ? navigate(`/n/${document.id}?edit=1`) : false),
  }, [document.id]);
  const actions = html`
    ${query.get("q") && html`<a class="button" rel="prev" href=${resultsUrl(query.get("q"))}>${text.doc.backToSearch}</a>`}
    ${type === "note" && html`<a class="button primary" href="/n/${document.id}?edit=1">${text.doc.editNote}</a>`}
  `;
  const views = {
    original: () =>
      wanted && passage.data === undefined
        ? html`<${Loaded} load=${passage}>${() => null}<//>`
        : html`<${Original} document=${document} page=${page} cited=${cited} at=${at} go=${(next) => navigate(address({ page: next, ...(at && { cited }) }), { replace: true })} />`,
    cells: () => html`<${Loaded} load=${passage}>${(found) => html`<${Cells} document=${document} passage=${found} sheet=${anchor.sheet} />`}<//>`,
    members: () => html`<${Members} document=${document} first=${first} to=${(from) => address({ show: "members", from })} />`,
    text: () => html`<${TextWindow} document=${document} at=${at} />`,
    passages: () => html`<${Passages} document=${document} question=${query.get("q") ?? ""} first=${first} to=${(from) => address({ from })} />`,
    ledger: () => html`<${Ledger} document=${document} state=${query.get("state") ?? ""} first=${first} to=${(state, from) => address({ state, from })} />`,
    versions: () => html`<${History} note=${document} onRestored=${onChange} />`,
  };
  return html`<article class="document">
    <${DocumentHead} document=${document} anchor=${anchor} actions=${actions} onChange=${onChange} />
    <nav class="sections" aria-label=${text.doc.sections}>
      ${sections.map((name) => html`<a href=${address({ show: name, from: 0, state: "" })} aria-current=${name === section ? "page" : undefined}>${text.doc.views[name]}</a>`)}
    </nav>
    <h2 class="unseen">${text.doc.views[section]}</h2>
    ${views[section]()}
  </article>`;
}
