// `/n/new` and `/n/{id}`: a note, to read, write and edit, with its history.

import { get } from "../api.js";
import { useEvents } from "../events.js";
import { html, useEffect, useState } from "../html.js";
import { useKeys } from "../keys.js";
import { useLoad } from "../load.js";
import { Markdown } from "../markdown.js";
import { navigate, route, useTitle } from "../router.js";
import { text } from "../strings.js";
import { DocumentHead, downloadOriginal } from "../parts/document_head.js";
import { DraftOffer, unsaved } from "../parts/draft_offer.js";
import { History } from "../parts/history.js";
import { NewNote } from "../parts/new_note.js";
import { NoteEditor } from "../parts/note_editor.js";
import { Loaded } from "../parts/states.js";

const READ = 100_000; // characters that are shown as Markdown

export function NoteView({ id }) {
  return id === "new" ? html`<${NewNote} />` : html`<${Existing} id=${id} />`;
}

function Existing({ id }) {
  const load = useLoad((signal) => get(`/documents/${id}`, { max_chunks: 0 }, { signal }), [id]);
  const [note, setNote] = useState();
  const [from, setFrom] = useState(); // what is edited; undefined while reading
  useEffect(() => {
    if (!load.data) return;
    setNote(load.data);
  }, [load.data]);
  useTitle(note?.title);
  useEvents((kind, event) => {
    if (note && (kind === "reset" || (kind === "document" && event.id === note.id))) load.reload();
  }, [note?.id]);
  const edit = () => note?.doc_type === "note" && setFrom({ text: note.text, version: note.version });
  const wanted = route.value.query.get("edit");
  useEffect(() => {
    if (wanted && note && !from && !unsaved(note).length) edit(); // else the person chooses
  }, [wanted, note?.id]);
  useKeys({ e: () => (from ? false : edit()), o: () => note && downloadOriginal(note) }, [note, from]);
  const gone = load.error?.status === 404;
  if (note && note.doc_type !== "note") {
    return html`<div class="empty"><h1>${text.note.notANote}</h1><p><a href="/d/${note.id}">${text.note.openDocument}</a></p></div>`;
  }
  if (!note && gone) {
    return html`<div class="empty" role="alert"><h1>${text.doc.missing}</h1><p dir="auto">${load.error.message}</p></div>`;
  }
  if (!note) return html`<h1 class="unseen">${text.note.view}</h1><${Loaded} load=${load}>${() => null}<//>`;
  const stop = (changed) => {
    setFrom(undefined);
    if (changed) setNote(changed);
    if (wanted) navigate(`/n/${id}`, { replace: true });
  };
  const shown = from
    ? html`<h1 dir="auto">${note.title}</h1>
        <${NoteEditor} note=${note} from=${from} gone=${gone} onSaved=${stop} onCancel=${() => (stop(), load.reload())} />`
    : html`<${Reading} note=${note} edit=${edit} use=${setFrom} onChange=${(changed) => (setNote(changed), load.reload())} />`;
  return html`<article class="note">
    ${load.error && !gone && !from && html`<${Loaded} load=${load}>${() => null}<//>`}
    ${shown}
  </article>`;
}

function Reading({ note, edit, use, onChange }) {
  const history = route.value.query.get("show") === "history";
  const section = (address, name, current) => html`<a href=${address} aria-current=${current ? "page" : undefined}>${name}</a>`;
  const actions = html`<button class="primary" onClick=${edit}>${text.note.edit}</button>`;
  return html`
    <${DraftOffer} note=${note} use=${use} />
    <${DocumentHead} document=${note} actions=${actions} onChange=${onChange} />
    <nav class="sections" aria-label=${text.doc.sections}>
      ${section(`/n/${note.id}`, text.note.view, !history)} ${section(`/n/${note.id}?show=history`, text.note.history, history)}
      ${section(`/d/${note.id}?show=passages`, text.note.details, false)}
    </nav>
    ${history
      ? html`<h2 class="unseen">${text.note.history}</h2><${History} note=${note} onRestored=${onChange} />`
      : html`<div class="reading"><${Markdown} text=${withoutTitle(note).slice(0, READ)} /></div>
          ${note.text.length > READ && html`<p class="muted">${text.note.previewCut(READ)} <a href="/d/${note.id}?show=text">${text.doc.views.text}</a></p>`}`}
  `;
}

/** The text without a first line that only repeats the title above it. */
function withoutTitle(note) {
  const [line, title] = /^#{1,6} +(.*)\n/.exec(note.text) ?? [];
  return title?.trim() === note.title ? note.text.slice(line.length) : note.text;
}
