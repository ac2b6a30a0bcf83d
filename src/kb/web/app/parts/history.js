// The versions of a note: compare one with the current text, and restore it.

import { get, post } from "../api.js";
import { html, useState } from "../html.js";
import { useLoad } from "../load.js";
import { text } from "../strings.js";
import { Compare } from "./compare.js";
import { Time } from "./labels.js";
import { Loaded } from "./states.js";
import { complain, say } from "./toast.js";

/** `onRestored` gets the note as it is after a version was restored. */
export function History({ note, onRestored }) {
  const load = useLoad((signal) => get(`/notes/${note.id}/versions`, {}, { signal }), [note.id, note.version]);
  const [chosen, setChosen] = useState();
  const restore = async (version) => {
    try {
      const restored = await post(`/notes/${note.id}/restore`, { version });
      setChosen(undefined);
      say(text.note.restored(version));
      onRestored(restored);
    } catch (error) {
      complain(error);
    }
  };
  return html`<section>
    <${Loaded} load=${load}>
      ${({ versions: [current, ...older] }) => html`<ol class="list versions">
        <li><strong>${text.note.thisVersion(current.version)}</strong> <span class="facts"><span class="badge ok">${text.note.isCurrent}</span><${Facts} one=${current} /></span></li>
        ${older.map((one) => html`<li key=${one.version}>
          <strong>${text.note.thisVersion(one.version)}</strong>
          <span class="facts"><${Facts} one=${one} />
            <button
              aria-expanded=${chosen === one.version}
              aria-label=${text.note.compare(one.version)}
              onClick=${() => setChosen(chosen === one.version ? undefined : one.version)}
            >${text.note.compareShort}</button>
            <button aria-label=${text.note.restore(one.version)} onClick=${() => restore(one.version)}>${text.note.restoreShort}</button>
          </span>
          ${chosen === one.version && html`<${Compare} before=${one.text} after=${current.text} names=${[text.note.thisVersion(one.version), text.note.current]} />`}
        </li>`)}
      </ol>`}
    <//>
  </section>`;
}

const Facts = ({ one }) => html`<${Time} at=${one.created_at} /><span>${text.note.characters(one.text.length)}</span>`;
