// Changing many documents at once: those that are selected, or all that match the filter.

import { get, post } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { navigate } from "../router.js";
import { text } from "../strings.js";
import { jobEnd } from "../wait.js";
import { confirm } from "./dialog.js";
import { complain, say } from "./toast.js";

const STEP = 1000; // ids in one answer

/** `selected`: a Map by id. `narrowed`: what the list is narrowed to. `done` is called after a change. */
export function Bulk({ selected, total, narrowed, clear, done }) {
  const [all, setAll] = useState(false);
  const [tag, setTag] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => setAll(false), [selected]);
  if (!selected.size) return null;
  const number = all ? total : selected.size;
  const change = async (what, told, offer) => {
    setBusy(true);
    try {
      const which = all ? await everyOne(narrowed) : { ids: [...selected.keys()] };
      const { job_id } = await post("/documents/bulk", { ...which, expected_count: number, ...what });
      await jobEnd(job_id);
      say(told, "done", offer);
      setTag("");
      done();
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  };
  const remove = async () => {
    const asked = { title: text.deleteMany(number), message: text.deleteManyHint, action: text.deleteMany(number) };
    if (await confirm(asked)) change({ delete: true }, text.deleted(number), { label: text.trash.show, act: () => navigate("/trash") });
  };
  return html`<div class="bulk card" role="group" aria-label=${text.selection}>
    <strong role="status">${text.selectedOf(number)}</strong>
    ${!all && total > selected.size && html`<button class="quiet" onClick=${() => setAll(true)}>${text.selectAll(total)}</button>`}
    <button class="quiet" onClick=${clear}>${text.selectNone}</button>
    <span class="grow"></span>
    <input aria-label=${text.tagName} placeholder=${text.tagName} value=${tag} onInput=${(input) => setTag(input.target.value)} />
    <button disabled=${busy || !tag.trim()} onClick=${() => change({ add_tags: [tag.trim()] }, text.tagged(number))}>${text.addTag}</button>
    <button disabled=${busy || !tag.trim()} onClick=${() => change({ remove_tags: [tag.trim()] }, text.untagged(number))}>${text.removeTag}</button>
    <button class="danger" disabled=${busy} onClick=${remove}>${text.delete}</button>
  </div>`;
}

/** All that match: by the filter where the engine can repeat it, else by their ids. */
async function everyOne({ q, state, tag, doc_type, ...typed }) {
  if (!q && !state) return { filter: { ...(tag.length && { tag }), ...(doc_type && { doc_type }), ...typed } };
  const ids = [];
  for (;;) {
    const { documents, total } = await get("/documents", { view: "summary", q, state, tag, doc_type, ...typed, limit: STEP, offset: ids.length });
    ids.push(...documents.map((document) => document.id));
    if (ids.length >= total || !documents.length) return { ids };
  }
}
