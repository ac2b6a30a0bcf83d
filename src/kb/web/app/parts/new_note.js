// Writing a new note.

import { post } from "../api.js";
import { html, useState } from "../html.js";
import { navigate, useTitle } from "../router.js";
import { text } from "../strings.js";
import { jobEnd } from "../wait.js";
import { DraftOffer } from "./draft_offer.js";
import { Editor, useDraft } from "./editor.js";
import { Failure } from "./states.js";
import { say } from "./toast.js";

const WAIT = 20; // seconds that one request waits
const EMPTY = { title: "", tags: "", text: "" };

/** Add a note and wait until it can be found. Returns {id, outcome}. */
export async function addNote({ title = "", tags = "", text: written }) {
  const listed = tags.split(",").map((tag) => tag.trim()).filter(Boolean);
  const body = { text: written, ...(title.trim() && { title: title.trim() }), ...(listed.length && { tags: listed }) };
  const accepted = await post("/jobs", body, { query: { wait: WAIT } });
  const job = accepted.status === "completed" ? accepted : await jobEnd(accepted.job_id);
  return { id: job.document_id, outcome: job.outcome };
}

export function NewNote() {
  useTitle(text.note.newTitle);
  const [draft, setDraft] = useState(EMPTY);
  const [saving, setSaving] = useState(false);
  const [error, setError] = useState();
  const dirty = draft.text.trim() !== "" || draft.title.trim() !== "";
  const { kept, forget, adopt } = useDraft("new", draft, dirty);
  const change = (changes) => setDraft((before) => ({ ...before, ...changes }));
  const save = async () => {
    if (saving) return;
    if (!draft.text.trim()) return setError(new Error(text.note.empty));
    setSaving(true);
    setError(undefined);
    try {
      const { id, outcome } = await addNote(draft);
      forget();
      say(outcome === "unchanged" ? text.note.alreadyThere : text.note.saved);
      navigate(`/n/${id}`, { replace: true });
    } catch (failure) {
      setError(failure);
      setSaving(false);
    }
  };
  const use = ({ key, title = "", tags = "", text }) => {
    adopt(key);
    setDraft({ title, tags, text });
  };
  const field = (name, label, hint) => html`<div class="field">
    <label for="note-${name}">${label}</label>
    <input id="note-${name}" dir="auto" maxlength=${name === "title" ? 500 : 2000} aria-describedby="note-${name}-hint" value=${draft[name]} onInput=${(input) => change({ [name]: input.target.value })} />
    <small id="note-${name}-hint" class="muted">${hint}</small>
  </div>`;
  return html`<article class="note">
    <h1>${text.note.newTitle}</h1>
    ${!dirty && html`<${DraftOffer} note=${{ id: "new" }} use=${use} />`}
    <${Editor}
      draft=${draft}
      change=${change}
      dirty=${dirty}
      kept=${kept}
      saving=${saving}
      save=${save}
      onCancel=${() => navigate("/")}
      fields=${html`<div class="fields">${field("title", text.note.title, text.note.titleHint)}${field("tags", text.note.tags, text.note.tagsHint)}</div>`}
    >
      ${error && html`<${Failure} error=${error} />`}
    <//>
  </article>`;
}
