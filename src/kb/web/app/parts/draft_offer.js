// Text that was not saved, found in this browser: continue writing it, or discard it.

import { draftsOf, dropDraft } from "../drafts.js";
import { ago } from "../format.js";
import { html, useState } from "../html.js";
import { text } from "../strings.js";
import { Compare } from "./compare.js";
import { confirm } from "./dialog.js";

/** The drafts of a note that say something else than the note does. */
export const unsaved = ({ id, text }) => draftsOf(id).filter((draft) => draft.text !== text && draft.text.trim());

/** Offers the drafts of a note, or of `{id: "new"}`; `use(draft)` continues one. */
export function DraftOffer({ note, use }) {
  const { text: saved } = note;
  const [, setDiscarded] = useState();
  const [compared, setCompared] = useState();
  const discard = async (draft) => {
    const sure = { title: text.note.draftDiscardTitle, message: beginning(draft.text), action: text.note.draftDiscard };
    if (!(await confirm(sure))) return;
    dropDraft(draft.key);
    setDiscarded(draft.key);
  };
  return unsaved(note).map((draft) => html`<div class="notice" role="status" key=${draft.key}>
    <p>${text.note.draftFound(ago(draft.at))}</p>
    <p class="muted" dir="auto">${beginning(draft.text)}</p>
    <div class="row">
      <button class="primary" onClick=${() => use(draft)}>${text.note.draftUse}</button>
      ${saved && html`<button aria-expanded=${compared === draft.key} onClick=${() => setCompared(compared === draft.key ? undefined : draft.key)}>${text.note.draftCompare}</button>`}
      <button onClick=${() => discard(draft)}>${text.note.draftDiscard}</button>
    </div>
    ${compared === draft.key && html`<${Compare} before=${saved} after=${draft.text} names=${[text.note.current, text.note.mine]} />`}
  </div>`);
}

const beginning = (written) => (written.length > 120 ? `${written.slice(0, 120)}…` : written);
