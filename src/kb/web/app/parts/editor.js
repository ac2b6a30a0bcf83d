// The field that a note is written in, with a preview; what is written is kept in the browser until it is saved.

import { dropDraft, keepDraft, newKey } from "../drafts.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../html.js";
import { useKeys } from "../keys.js";
import { Markdown } from "../markdown.js";
import { guardLeaving } from "../router.js";
import { text } from "../strings.js";
import { confirm } from "./dialog.js";

const KEEP_AFTER = 400; // milliseconds without a key
const PREVIEWED = 50_000; // characters
const WIDE = "(min-width: 75rem)";

/**
 * Keep `draft` in the browser while it is not saved, and ask before the view is left. Returns `kept`, whether there was
 * room for it; `keep()` at once; `forget()` after it was saved; `adopt(key)` replaces an older draft by this one.
 */
export function useDraft(id, draft, dirty, adopted) {
  const [kept, setKept] = useState(true);
  const state = useRef({ key: newKey(id), adopted });
  const latest = Object.assign(state.current, { draft, dirty });
  const keep = () => {
    if (!latest.dirty) return;
    const done = keepDraft(latest.key, latest.draft);
    if (done && latest.adopted) dropDraft(latest.adopted);
    setKept(done);
  };
  useEffect(() => {
    if (!dirty) return dropDraft(latest.key);
    const timer = setTimeout(keep, KEEP_AFTER);
    return () => clearTimeout(timer);
  }, [dirty, draft.text, draft.title, draft.tags, draft.version]);
  useEffect(() => {
    const stay = (event) => latest.dirty && (keep(), event.preventDefault());
    addEventListener("beforeunload", stay);
    addEventListener("pagehide", keep);
    const unguard = guardLeaving(() => !latest.dirty || (keep(), mayLeave()));
    return () => {
      keep();
      removeEventListener("beforeunload", stay);
      removeEventListener("pagehide", keep);
      unguard();
    };
  }, []);
  const forget = () => {
    latest.dirty = false;
    dropDraft(latest.key);
    if (latest.adopted) dropDraft(latest.adopted);
  };
  return { kept, keep, forget, adopt: (key) => (latest.adopted = key) };
}

export const mayLeave = () => confirm({ title: text.note.leaveTitle, message: text.note.leaveHint, action: text.note.leave });

/** `fields` stand above the text, `children` below it. */
export function Editor({ draft, change, dirty, kept, saving, save, onCancel, fields, children }) {
  const [previewed, setPreviewed] = useState(() => matchMedia(WIDE).matches);
  const [shown, setShown] = useState(draft.text);
  const area = useRef();
  const label = useId();
  const newest = useRef(); // a key that is pressed right after a letter meets what that letter changed
  newest.current = { save, onCancel };
  useKeys({ Escape: () => newest.current.onCancel() });
  useEffect(() => {
    area.current.setSelectionRange(0, 0);
    area.current.focus();
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => setShown(draft.text), 150);
    return () => clearTimeout(timer);
  }, [draft.text]);
  useLayoutEffect(() => {
    const press = (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
      event.preventDefault();
      newest.current.save();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const state = dirty ? (kept ? text.note.draftKept : text.note.draftNotKept) : "";
  return html`<form class="editor" onSubmit=${(submit) => (submit.preventDefault(), save())}>
    ${fields}
    <div class=${previewed ? "panes" : ""}>
      <div>
        <label for=${label}>${text.note.text}</label>
        <textarea
          id=${label}
          ref=${area}
          rows="18"
          dir="auto"
          aria-describedby="${label}-hint"
          readonly=${saving}
          value=${draft.text}
          onInput=${(input) => change({ text: input.target.value })}
        ></textarea>
        <p id="${label}-hint" class="muted">${text.note.textHint}</p>
      </div>
      ${previewed && html`<section class="preview-pane" aria-label=${text.note.preview}>
        <h2>${text.note.preview}</h2>
        <${Markdown} text=${shown.slice(0, PREVIEWED)} level=${2} />
        ${shown.length > PREVIEWED && html`<p class="muted">${text.note.previewCut(PREVIEWED)}</p>`}
      </section>`}
    </div>
    ${children}
    <div class="row toolbar">
      <button class="primary" disabled=${saving}>${saving ? text.note.saving : text.note.save}</button>
      <button type="button" onClick=${onCancel}>${text.cancel}</button>
      <button type="button" aria-pressed=${previewed} onClick=${() => setPreviewed(!previewed)}>${text.note.preview}</button>
      <span class=${kept ? "muted" : "warn"} role="status">${state}</span>
    </div>
  </form>`;
}
