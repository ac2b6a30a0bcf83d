// `/duplicates`: notes that say nearly the same, side by side, to be merged into one.

import { get, post } from "../api.js";
import { html, useState } from "../html.js";
import { useLoad } from "../load.js";
import { useTitle } from "../router.js";
import { text } from "../strings.js";
import { Compare } from "../parts/compare.js";
import { TagLinks, Time } from "../parts/labels.js";
import { Empty, Loaded } from "../parts/states.js";
import { complain, say } from "../parts/toast.js";

export function DuplicatesView() {
  const load = useLoad((signal) => get("/duplicates", { limit: 100 }, { signal }), []);
  const [open, setOpen] = useState(0);
  useTitle(text.duplicates);
  return html`<h1>${text.duplicates}</h1>
    <p class="muted">${text.duplicatesHint}</p>
    <${Loaded} load=${load}>
      ${({ duplicates }) =>
        duplicates.length
          ? html`<ol class="pairs">
              ${duplicates.map(
                (pair, at) => html`<li key="${pair.a.id}-${pair.b.id}" class="card">
                  <button class="quiet pair" aria-expanded=${at === open} onClick=${() => setOpen(at === open ? -1 : at)}>
                    <span class="badge">${Math.round(pair.similarity * 100)}%</span> <span dir="auto">${pair.a.title}</span>
                    <span aria-hidden="true">↔</span> <span dir="auto">${pair.b.title}</span>
                  </button>
                  ${at === open && html`<${Pair} pair=${pair} done=${load.reload} />`}
                </li>`,
              )}
            </ol>`
          : html`<${Empty} title=${text.noDuplicates} />`}
    <//>`;
}

/** Both notes, where they differ, and the text that the merged note shall have. */
function Pair({ pair, done }) {
  const load = useLoad(
    (signal) => Promise.all([pair.a, pair.b].map((note) => get(`/documents/${note.id}`, { max_chunks: 0 }, { signal }))),
    [pair.a.id, pair.b.id],
  );
  return html`<${Loaded} load=${load}>${([a, b]) => html`<${Merge} a=${a} b=${b} done=${done} />`}<//>`;
}

function Merge({ a, b, done }) {
  const [merged, setMerged] = useState(a.text);
  const [busy, setBusy] = useState(false);
  const merge = async (keep, other) => {
    setBusy(true);
    try {
      const versions = { expected_version: keep.version, other_version: other.version };
      await post(`/notes/${keep.id}/merge`, { other: other.id, text: merged, ...versions });
      say(text.merged(keep.title));
      done();
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  };
  const about = (note) => html`<section>
    <h2><a href="/n/${note.id}" dir="auto">${note.title}</a></h2>
    <p class="facts"><span>${text.versionOf(note.version)}</span> <${Time} at=${note.updated_at ?? note.created_at} /> <${TagLinks} tags=${note.tags} /></p>
    <button onClick=${() => setMerged(note.text)}>${text.useText}</button>
  </section>`;
  return html`<div class="sides">${about(a)} ${about(b)}</div>
    <${Compare} before=${a.text} after=${b.text} names=${[a.title, b.title]} />
    <div class="field">
      <label for="merged-${a.id}-${b.id}">${text.mergedText}</label>
      <textarea id="merged-${a.id}-${b.id}" rows="6" dir="auto" value=${merged} onInput=${(input) => setMerged(input.target.value)}></textarea>
    </div>
    <div class="row">
      <button class="primary" disabled=${busy || !merged.trim()} onClick=${() => merge(a, b)}>${text.mergeInto(a.title)}</button>
      <span class="muted">${text.mergeHint(b.title)}</span>
    </div>`;
}
