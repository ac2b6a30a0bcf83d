// Editing a note: it is saved onto the version that was read, and never over a change of someone else.

import { get, patch } from "../api.js";
import { united } from "../diff.js";
import { html, useState } from "../html.js";
import { navigate } from "../router.js";
import { text } from "../strings.js";
import { Compare } from "./compare.js";
import { Conflict } from "./conflict.js";
import { Editor, mayLeave, useDraft } from "./editor.js";
import { addNote } from "./new_note.js";
import { Failure } from "./states.js";
import { say } from "./toast.js";

/** `note` as it is now; `from` = {text, version, key} is what is edited. `onSaved(note)`, `onCancel()` end it. */
export function NoteEditor({ note, from, gone, onSaved, onCancel }) {
  const [draft, setDraft] = useState({ text: from.text, version: from.version });
  const [saved, setSaved] = useState(from.version === note.version ? note.text : undefined); // of draft.version
  const [theirs, setTheirs] = useState(); // the note that stands in the way
  const [merging, setMerging] = useState();
  const [error, setError] = useState();
  const [saving, setSaving] = useState(false);
  const dirty = draft.text !== saved;
  const { kept, keep, forget } = useDraft(note.id, draft, dirty, from.key);
  const send = async (version) => {
    if (saving) return;
    if (!draft.text.trim()) return setError(new Error(text.note.empty));
    setSaving(true);
    setError(undefined);
    try {
      const answer = await patch(`/notes/${note.id}`, { text: draft.text, expected_version: version });
      forget();
      say(text.note.saved);
      onSaved(answer);
    } catch (failure) {
      if (failure.status === 409) await meet();
      else setError(failure);
      setSaving(false);
    }
  };
  const meet = async () => {
    try {
      setTheirs(await get(`/documents/${note.id}`, { max_chunks: 0 }));
    } catch (failure) {
      setError(failure);
    }
  };
  const asNew = async () => {
    try {
      const { id } = await addNote({ text: draft.text });
      forget();
      navigate(`/n/${id}`);
    } catch (failure) {
      setError(failure);
    }
  };
  const takeTheirs = () => {
    keep(); // it stays in the browser and is offered
    onCancel();
  };
  const cancel = async () => {
    if (dirty && !(await mayLeave())) return;
    keep();
    onCancel();
  };
  const merge = () => {
    setDraft({ text: united(draft.text, theirs.text), version: theirs.version });
    setSaved(theirs.text);
    setMerging(theirs);
    setTheirs(undefined);
  };
  const newer = note.version > draft.version;
  return html`
    ${(gone || error?.status === 404) && html`<div class="notice" role="alert">
      <p>${text.note.deletedMeanwhile}</p>
      <button onClick=${asNew}>${text.note.saveAsNew}</button>
    </div>`}
    ${newer && !theirs && html`<div class="notice" role="alert">
      <p><strong>${text.note.changedMeanwhile(note.version)}</strong> ${text.note.changedHint}</p>
      <button onClick=${meet}>${text.note.draftCompare}</button>
    </div>`}
    ${theirs && html`<${Conflict}
      mine=${draft.text}
      theirs=${theirs}
      base=${draft.version}
      saving=${saving}
      keepMine=${() => send(theirs.version)}
      takeTheirs=${takeTheirs}
      merge=${merge}
    />`}
    <${Editor}
      draft=${draft}
      change=${(changes) => setDraft((before) => ({ ...before, ...changes }))}
      dirty=${dirty}
      kept=${kept}
      saving=${saving}
      save=${() => (dirty ? send(draft.version) : onCancel())}
      onCancel=${cancel}
    >
      ${error && error.status !== 404 && html`<${Failure} error=${error} />`}
      ${merging && html`<${Compare} before=${merging.text} after=${draft.text} names=${[text.note.theirs(merging.version), text.note.mine]} />`}
    <//>
  `;
}
