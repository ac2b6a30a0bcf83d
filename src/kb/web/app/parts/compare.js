// Two texts side by side, with what differs marked; one above the other where there is little room.

import { ADDED, REMOVED, rows, words } from "../diff.js";
import { html, useMemo, useState } from "../html.js";
import { text } from "../strings.js";

const CONTEXT = 3; // unchanged lines that are shown around a change
const SHOWN = 500; // rows at a time

/** `names` are the headings of both sides. */
export function Compare({ before, after, names }) {
  const folded = useMemo(() => fold(rows(before, after)), [before, after]);
  const [shown, setShown] = useState(SHOWN);
  if (before === after) return html`<p class="muted">${text.note.noDifference}</p>`;
  return html`<div class="compare">
    <table class="diff">
      <thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${folded.slice(0, shown).map((row) => html`<${Row} row=${row} />`)}</tbody>
    </table>
    ${folded.length > shown && html`<button onClick=${() => setShown(shown + SHOWN)}>${text.note.moreLines(folded.length - shown)}</button>`}
  </div>`;
}

/** Long runs of unchanged lines become one row that counts them. */
function fold(all) {
  const found = [];
  for (let at = 0; at < all.length; ) {
    let end = at;
    while (end < all.length && all[end].kind === "same") end++;
    const before = at === 0 ? 0 : CONTEXT;
    const after = end === all.length ? 0 : CONTEXT;
    if (end - at > before + after + 1) {
      found.push(...all.slice(at, at + before), { kind: "folded", lines: end - at - before - after }, ...all.slice(end - after, end));
    } else found.push(...all.slice(at, end));
    if (end < all.length) found.push(all[end++]);
    at = end;
  }
  return found;
}

function Row({ row: { kind, left, right, lines } }) {
  if (kind === "folded") return html`<tr class="folded"><td colspan="2">${text.note.sameLines(lines)}</td></tr>`;
  const parts = kind === "changed" ? words(left, right) : [];
  const side = (own, line) => {
    if (line === undefined) return html`<td class="none"></td>`;
    if (kind === "same") return html`<td dir="auto">${line}</td>`;
    const Tag = own === REMOVED ? "del" : "ins";
    const content =
      kind === "changed"
        ? parts.filter(([what]) => what === own || what === "same").map(([what, piece]) => (what === own ? html`<${Tag}>${piece}<//>` : piece))
        : html`<${Tag}>${line}<//>`;
    return html`<td class=${own} dir="auto">${content}</td>`;
  };
  return html`<tr class=${kind}>${side(REMOVED, left)}${side(ADDED, right)}</tr>`;
}
