// A note was changed while it was edited: both texts, and what shall become of them.

import { html, useEffect, useId, useRef } from "../html.js";
import { text } from "../strings.js";
import { Compare } from "./compare.js";

/** `theirs` is the note as it is now; `base` the version that `mine` began with. */
export function Conflict({ mine, theirs, base, saving, keepMine, takeTheirs, merge }) {
  const heading = useRef();
  const name = useId();
  useEffect(() => heading.current.focus(), []);
  const choice = (name, hint, act) => html`<li>
    <button type="button" disabled=${saving} onClick=${act}>${name}</button> <span class="muted">${hint}</span>
  </li>`;
  return html`<section class="conflict" aria-labelledby=${name}>
    <h2 ref=${heading} id=${name} tabindex="-1">${text.note.conflictTitle}</h2>
    <p role="alert">${text.note.conflict(theirs.version, base)}</p>
    <ul class="choices">
      ${choice(text.note.keepMine, text.note.keepMineHint, keepMine)}
      ${choice(text.note.takeTheirs, text.note.takeTheirsHint, takeTheirs)}
      ${choice(text.note.merge, text.note.mergeHint, merge)}
    </ul>
    <${Compare} before=${theirs.text} after=${mine} names=${[text.note.theirs(theirs.version), text.note.mine]} />
  </section>`;
}
