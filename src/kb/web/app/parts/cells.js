// Cells of a workbook around a citation, as a table.

import { get } from "../api.js";
import { html, useState } from "../html.js";
import { useLoad } from "../load.js";
import { text } from "../strings.js";
import { Loaded } from "./states.js";

const STEP = 50; // rows
const RANGE = /^([A-Z]{1,3})([1-9]\d{0,6})(?::([A-Z]{1,3})([1-9]\d{0,6}))?$/;

/** The cells that a passage cites: its heading names the sheet, then the range. */
function citedRange({ sheet, heading = "" } = {}) {
  const rest = heading.startsWith(`${sheet} > `) ? heading.slice(sheet.length + 3) : "";
  const [range, left, top, right = left, bottom = top] = RANGE.exec(rest.split(" > ")[0]) ?? [];
  return range && { range, rows: [Number(top), Number(bottom)], columns: [columnNumber(left), columnNumber(right)] };
}

const columnNumber = (name) => Array.from(name).reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);

/** `passage` is the one that is cited, if there is one; else `sheet` may be named. */
export function Cells({ document, passage, sheet: named }) {
  const { anchor } = passage ?? {};
  const cited = citedRange(anchor);
  const [moved, setMoved] = useState(null); // {sheet, row} that the person went to
  const sheets = useLoad((signal) => sheetNames(document, signal), [document]).data ?? [];
  const sheet = moved?.sheet ?? anchor?.sheet ?? named ?? sheets[0];
  const range = moved ? `A${moved.row}:A${moved.row + STEP - 1}` : (cited?.range ?? `A1:A${STEP}`);
  const load = useLoad(
    async (signal) => (sheet === undefined ? null : get(`/documents/${document.id}/table`, { sheet, range }, { signal })),
    [document, sheet, range],
  );
  const names = sheets.includes(sheet) || sheet === undefined ? sheets : [sheet, ...sheets];
  return html`<section class="cells">
    <div class="row">
      ${names.length > 0 &&
      html`<label class="row">
        <span>${text.doc.sheet}</span>
        <select value=${sheet} onChange=${(change) => setMoved({ sheet: change.target.value, row: 1 })}>
          ${names.map((name) => html`<option value=${name}>${name}</option>`)}
        </select>
      </label>`}
      <${Steps} table=${load.data} go=${(row) => setMoved({ sheet, row: Math.max(1, row) })} />
    </div>
    <${Loaded} load=${load}>${(table) => table && html`<${Table} table=${table} cited=${sheet === anchor?.sheet ? cited : undefined} passage=${passage?.text} />`}<//>
  </section>`;
}

function Steps({ table, go }) {
  if (!table) return null;
  const last = table.first_row + table.rows.length;
  return html`
    <button disabled=${table.first_row <= 1} onClick=${() => go(table.first_row - STEP)}>${text.doc.rowsAbove}</button>
    <button disabled=${!table.rows.length} onClick=${() => go(last)}>${text.doc.rowsBelow}</button>
  `;
}

function Table({ table, cited, passage }) {
  if (!table.rows.length) return html`<p class="muted">${text.doc.noCells}</p>`;
  const between = (number, [first, last]) => number >= first && number <= last;
  // The range is that of all rows under one header; the passage is a few of them.
  const lines = passage?.split("\n") ?? [];
  const quoted = table.rows.map((cells) => lines.some((line) => cells.some(Boolean) && cells.every((cell) => line.includes(cell))));
  const within = (at, column) =>
    cited && between(table.first_row + at, cited.rows) && between(columnNumber(column), cited.columns) && (quoted[at] || !quoted.includes(true));
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${text.doc.cellsOf(table.sheet)}>
    <table class="grid">
      <thead><tr><th scope="col"><span class="unseen">${text.doc.rows}</span></th>${table.columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
      <tbody>${table.rows.map((cells, at) => {
        return html`<tr><th scope="row">${table.first_row + at}</th>${cells.map(
          (cell, column) => html`<td dir="auto">${within(at, table.columns[column]) && cell ? html`<mark class="cited">${cell}</mark>` : cell}</td>`,
        )}</tr>`;
      })}</tbody>
    </table>
  </div>`;
}

async function sheetNames(document, signal) {
  const { ledger } = await get(`/documents/${document.id}/ledger`, {}, { signal });
  const found = ledger.map(({ part }) => /^sheet (.*?)(?:, hidden text|, picture \d+|, pictures)?$/.exec(part)?.[1]).filter(Boolean);
  return [...new Set(found)];
}
