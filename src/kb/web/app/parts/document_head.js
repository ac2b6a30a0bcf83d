// The head of a document: title, where it comes from, tags, what can be done with it.

import { download, remove, request } from "../api.js";
import { plural, size } from "../format.js";
import { html } from "../html.js";
import { documentUrl, navigate } from "../router.js";
import { text } from "../strings.js";
import { confirm } from "./dialog.js";
import { Time, TypeBadge } from "./labels.js";
import { Links } from "./links.js";
import { citation } from "./result.js";
import { restore } from "./restore.js";
import { TagEditor } from "./tag_editor.js";
import { complain, copy, say } from "./toast.js";

export function DocumentHead({ document, anchor = {}, actions, onChange }) {
  return html`<header class="head">
    <h1 dir="auto">${document.title}</h1>
    ${document.source_path && html`<p class="path muted" dir="auto">${document.source_path}</p>`}
    ${document.parent && html`<p class="path muted"><a href=${documentUrl(document.parent)}>${text.doc.foundIn(document.parent)}</a> <span dir="auto">${document.member}</span></p>`}
    <p class="facts">
      <${TypeBadge} type=${document.doc_type} />
      <span>${text.doc.added} <${Time} at=${document.created_at} /></span>
      ${document.updated_at && html`<span>${text.doc.changed} <${Time} at=${document.updated_at} /></span>`}
      <span>${size(document.size_bytes)}</span>
      <span>${plural(document.chunk_count, "passage")}</span>
      <span>${text.doc.version(document.version)}</span>
      ${document.doc_type !== "note" && html`<span>${text.doc.methods[document.processing_method]}</span>`}
    </p>
    <${TagEditor} document=${document} onChange=${onChange} />
    <${Metadata} metadata=${document.metadata ?? {}} />
    <${Links} document=${document} />
    <div class="row toolbar">
      ${actions}
      <button onClick=${() => downloadOriginal(document)}>${text.doc.download}</button>
      <button onClick=${() => copy(new URL(documentUrl(document.id, anchor), location.origin).href)}>${text.doc.copyLink}</button>
      <button onClick=${() => copyCitation(document, anchor)}>${text.doc.copyCitation}</button>
      <button class="danger" onClick=${() => deleteDocument(document)}>${text.doc.delete}</button>
    </div>
  </header>`;
}

/** Originals are always sent as attachments: none opens as a page of this origin. */
export const downloadOriginal = (document) => download(`/documents/${document.id}/original`).catch(complain);

async function copyCitation(document, anchor) {
  const cited = { title: document.title, document_id: document.id, anchor, text: document.title };
  try {
    if (anchor.end) cited.text = await passage(document.id, anchor);
    await copy(citation(cited));
  } catch (error) {
    complain(error);
  }
}

const passage = async (id, { start, end }) => (await request("GET", `/documents/${id}/text`, { query: { start, end } })).text();

async function deleteDocument(document) {
  const agreed = await confirm({
    title: text.doc.deleteTitle(document.title),
    message: text.doc.deleteHint,
    action: text.doc.delete,
  });
  if (!agreed) return;
  try {
    const { expires_at } = await remove(`/documents/${document.id}`);
    const undo = async () => (await restore(document)) && navigate(documentUrl(document.id));
    say(text.doc.deleted(document.title), "done", expires_at && { label: text.undo, act: undo });
    navigate("/");
  } catch (error) {
    complain(error);
  }
}

function Metadata({ metadata }) {
  const entries = Object.entries(metadata);
  if (!entries.length) return null;
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));
  return html`<details class="metadata">
    <summary>${text.doc.metadata(entries.length)}</summary>
    <dl>${entries.map(([name, value]) => html`<div><dt dir="auto">${name}</dt><dd dir="auto">${shown(value)}</dd></div>`)}</dl>
  </details>`;
}
