// Markdown as nodes. Nothing in it is parsed as HTML, nothing is loaded, and only links of safe protocols are links.

import { html } from "./html.js";

const DEEPEST = 8; // lists in quotes in lists, emphasis in emphasis
const AHEAD = 1000; // characters within which a mark must be closed again
const TRIED = 40; // marks that may close another
const SAFE = /^(?:https?:|mailto:)/i;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const UNDERLINE = /^ {0,3}(?:=+|-+)[ \t]*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^ *(?:[-*+]|\d{1,9}[.)])(?: +|$)/;
const TABLE_LINE = /^ *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$/;
const INLINE =
  /\\([!-/:-@[-`{-~])|(`+)|(!?\[)|<([a-z]+:[^\s<>]{1,2000}|[^\s<>@]{1,200}@[^\s<>]{1,200})>|(\*{1,3}|_{1,3}|~~)|(?: {2,9}|\\)\n|\bhttps?:\/\/[^\s<>]{1,2000}/gi;
const TARGET = /\(\s{0,10}(?:<([^<>\n]{0,2000})>|([^\s()]{0,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500}){0,3}))(?:\s{1,10}(?:"[^"]{0,500}"|'[^']{0,500}'))?\s{0,10}\)/y;
const WORD = /[\p{L}\p{N}]/u;

/** The text as headings, lists, tables and so on. `level` is the level of the heading above it. */
export function Markdown({ text, level = 1 }) {
  return html`<div class="markdown" dir="auto">${blocks(text.split(/\r\n|\n|\r/), { level, top: level }, 0)}</div>`;
}

const blank = (line) => line.trim() === "";
const indentOf = (line) => line.length - line.trimStart().length;
const begins = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);

/** Blocks of these lines. `state` holds the level of the last heading: none is skipped. */
function blocks(lines, state, depth) {
  if (depth > DEEPEST) return [html`<p>${lines.join("\n")}</p>`];
  const found = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const readers = [fence, heading, rule, quote, table, list, indented, paragraph];
    if (blank(line)) at++;
    else {
      for (const read of readers) {
        const end = read(lines, at, (node) => found.push(node), state, depth);
        if (end > at) {
          at = end;
          break;
        }
      }
    }
  }
  return found;
}

// Each reader returns the line behind its block, or nothing when there is no such block here.

function fence(lines, at, add) {
  const [, marks] = FENCE.exec(lines[at]) ?? [];
  if (!marks) return;
  let end = at + 1;
  while (end < lines.length && !(lines[end].trim().startsWith(marks) && !lines[end].trim().replaceAll(marks[0], ""))) end++;
  add(html`<pre dir="ltr"><code>${lines.slice(at + 1, end).join("\n")}</code></pre>`);
  return end + 1;
}

function heading(lines, at, add, state) {
  const [marks, hashes] = HEADING.exec(lines[at]) ?? [];
  if (!marks) return;
  let text = lines[at].slice(marks.length).trim();
  while (text.endsWith("#")) text = text.slice(0, -1);
  add(titled(text.trim(), hashes.length, state));
  return at + 1;
}

function titled(text, rank, state) {
  state.level = Math.min(6, state.top + rank, state.level + 1);
  return html`<${`h${state.level}`} class="rank-${rank}" dir="auto">${inline(text, 0)}<//>`;
}

function rule(lines, at, add) {
  if (!RULE.test(lines[at])) return;
  add(html`<hr />`);
  return at + 1;
}

function quote(lines, at, add, state, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end++;
  if (end > at) add(html`<blockquote dir="auto">${blocks(lines.slice(at, end).map((line) => line.replace(QUOTE, "")), state, depth + 1)}</blockquote>`);
  return end;
}

function table(lines, at, add) {
  const line = lines[at + 1];
  if (!lines[at].includes("|") || !line?.includes("-") || line.length > 1000 || !TABLE_LINE.test(line)) return;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end++;
  const head = cells(lines[at]);
  add(html`<div class="scroll" tabindex="0" role="group" aria-label=${head.join(", ").slice(0, 200)}><table>
    <thead><tr>${head.map((cell) => html`<th dir="auto">${inline(cell, 0)}</th>`)}</tr></thead>
    <tbody>${lines.slice(at + 2, end).map((row) => html`<tr>${cells(row).map((cell) => html`<td dir="auto">${inline(cell, 0)}</td>`)}</tr>`)}</tbody>
  </table></div>`);
  return end;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function list(lines, at, add, state, depth) {
  const [first] = ITEM.exec(lines[at]) ?? [];
  if (!first) return;
  const ordered = /\d/.test(first);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const line = lines[end];
    const [marker] = ITEM.exec(line) ?? [];
    if (marker && indentOf(line) < first.length && /\d/.test(marker) === ordered && !RULE.test(line)) {
      items.push({ inside: Math.max(marker.length, 2), lines: [line.slice(marker.length)] });
    } else {
      const item = items.at(-1);
      const belongs = blank(line) || indentOf(line) >= item.inside || (!blank(lines[end - 1]) && !begins(line));
      if (!belongs) break;
      item.lines.push(line.slice(Math.min(indentOf(line), item.inside)));
    }
    end++;
  }
  const start = ordered ? Number.parseInt(first, 10) : undefined;
  add(html`<${ordered ? "ol" : "ul"} start=${start} dir="auto">${items.map((item) => html`<li dir="auto">${content(item.lines, state, depth)}</li>`)}<//>`);
  return end;
}

/** An item: its first lines without a paragraph around them; with a box when it is a task. */
function content(lines, state, depth) {
  const [, box] = /^\[([ xX])\] /.exec(lines[0]) ?? [];
  const given = box ? [lines[0].slice(4), ...lines.slice(1)] : lines;
  const sign = box && (box === " " ? "☐ " : "☑ ");
  let end = 0;
  while (end < given.length && !blank(given[end]) && !begins(given[end])) end++;
  return html`${sign}${inline(given.slice(0, end).join("\n"), 0)}${blocks(given.slice(end), state, depth + 1)}`;
}

function indented(lines, at, add) {
  let end = at;
  while (end < lines.length && (lines[end].startsWith("    ") || (end > at && blank(lines[end])))) end++;
  if (end > at) add(html`<pre dir="ltr"><code>${lines.slice(at, end).map((line) => line.slice(4)).join("\n").trimEnd()}</code></pre>`);
  return end;
}

function paragraph(lines, at, add, state) {
  let end = at + 1;
  while (end < lines.length && !blank(lines[end]) && !UNDERLINE.test(lines[end]) && !begins(lines[end])) end++;
  const text = lines.slice(at, end).join("\n").trim();
  if (end < lines.length && UNDERLINE.test(lines[end])) {
    add(titled(text, lines[end].includes("=") ? 1 : 2, state));
    return end + 1;
  }
  add(html`<p dir="auto">${inline(text, 0)}</p>`);
  return end;
}

/** Emphasis, code, links and line breaks within a block. */
function inline(text, depth) {
  if (depth > DEEPEST) return [text];
  const found = [];
  let at = 0;
  const pattern = new RegExp(INLINE);
  for (let match; (match = pattern.exec(text)); ) {
    const [all, escaped, ticks, bracket, address, marks] = match;
    const node =
      (escaped && { end: pattern.lastIndex, node: escaped }) ||
      (ticks && code(text, match.index, ticks)) ||
      (bracket && link(text, match.index, bracket, depth)) ||
      (address && { end: pattern.lastIndex, node: anchor(address.includes(":") ? address : `mailto:${address}`, address) ?? all }) ||
      (marks && emphasis(text, match.index, marks, depth)) ||
      (all.endsWith("\n") && { end: pattern.lastIndex, node: html`<br />` }) ||
      (/^https?:/i.test(all) && bare(match.index, all));
    if (!node) continue;
    found.push(text.slice(at, match.index), node.node);
    at = node.end;
    pattern.lastIndex = at;
  }
  found.push(text.slice(at));
  return found;
}

function code(text, at, ticks) {
  const from = at + ticks.length;
  const near = text.slice(from, from + AHEAD);
  for (const { 0: run, index } of near.matchAll(/`+/g))
    if (run === ticks) return { end: from + index + run.length, node: html`<code dir="auto">${near.slice(0, index).trim()}</code>` };
}

/** `[words](address)`. A picture is not loaded: it is a link to it. */
function link(text, at, bracket, depth) {
  let open = 1;
  const from = at + bracket.length;
  let end = from;
  for (; end < text.length && end < from + AHEAD && open && open < DEEPEST; end++) {
    if (text[end] === "\\") end++;
    else if (text[end] === "[") open++;
    else if (text[end] === "]") open--;
  }
  if (open) return;
  TARGET.lastIndex = end;
  const target = TARGET.exec(text);
  const node = target && anchor(target[1] ?? target[2], inline(text.slice(from, end - 1) || target[0], depth + 1));
  return node && { end: TARGET.lastIndex, node };
}

/** A link, or nothing where its protocol is not a safe one. */
function anchor(address, words) {
  if (!SAFE.test(address)) return null;
  let own = false;
  try {
    own = new URL(address).origin === location.origin;
  } catch {
    return null;
  }
  return html`<a href=${address} rel="noopener noreferrer" target=${own ? undefined : "_blank"}>${words}</a>`;
}

function bare(at, address) {
  const tidy = address.replace(/[.,;:!?'")\]*_~]{1,20}$/, "");
  const node = anchor(tidy, tidy);
  return node && { end: at + tidy.length, node };
}

function emphasis(text, at, marks, depth) {
  const sign = marks[0];
  const from = at + marks.length;
  if (!text[from] || /\s/.test(text[from]) || text[from] === sign) return;
  if (sign === "_" && at && WORD.test(text[at - 1])) return;
  let tried = 0;
  for (let end = text.indexOf(sign, from); end >= 0 && end < from + AHEAD && tried++ < TRIED; ) {
    let run = end;
    while (text[run] === sign) run++;
    const closes = run - end === marks.length && !/[\s\\]/.test(text[end - 1]) && !(sign === "_" && run < text.length && WORD.test(text[run]));
    if (closes) return { end: run, node: emphasised(marks, inline(text.slice(from, end), depth + 1)) };
    end = text.indexOf(sign, run);
  }
}

function emphasised(marks, words) {
  if (marks === "~~") return html`<s>${words}</s>`;
  if (marks.length === 1) return html`<em>${words}</em>`;
  return marks.length === 2 ? html`<strong>${words}</strong>` : html`<strong><em>${words}</em></strong>`;
}
