// Which words of a text the engine matched: it names stems ("servic"), the text has words ("services").

import { html } from "./html.js";

const WORD = /[\p{L}\p{N}]+/gu;
const UNSPACED = /[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/;
const LONGEST_ENDING = 4;
const LATE = 300; // characters that a reader need not skip to reach the first mark
const BEFORE = 120;

/** Spans [start, end) of the words that belong to one of these stems, in order. */
export function spans(text, terms) {
  const stems = terms.map(plain);
  const found = [];
  for (const word of text.matchAll(WORD)) {
    if (UNSPACED.test(word[0])) found.push(...within(word, stems));
    else if (stems.some((stem) => belongs(plain(word[0]), stem))) found.push([word.index, word.index + word[0].length]);
  }
  return found;
}

const plain = (word) => word.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");

function belongs(word, stem) {
  if (word.length - stem.length > LONGEST_ENDING) return false;
  return word.startsWith(stem) || (stem.endsWith("i") && word === `${stem.slice(0, -1)}y`);
}

/** Scripts without spaces: every occurrence of a term inside the run of characters. */
function* within(word, stems) {
  for (let at = 0; at < word[0].length; at++) {
    const stem = stems.find((one) => word[0].startsWith(one, at));
    if (!stem) continue;
    yield [word.index + at, word.index + at + stem.length];
    at += stem.length - 1;
  }
}

/** The text with matched words in <mark>. `brief` begins shortly before the first of them. */
export function Marked({ text, terms = [], brief = false }) {
  const marked = spans(text, terms);
  const parts = [];
  let at = brief ? beginning(text, marked[0]?.[0] ?? 0) : 0;
  if (at) parts.push("… ");
  for (const [start, end] of marked) {
    parts.push(text.slice(at, start), html`<mark>${text.slice(start, end)}</mark>`);
    at = end;
  }
  return html`${parts}${text.slice(at)}`;
}

/** Where a brief text begins: at its start, or at a word shortly before `first`. */
function beginning(text, first) {
  if (first < LATE) return 0;
  const space = text.indexOf(" ", first - BEFORE);
  return space < 0 || space > first ? first : space + 1;
}
