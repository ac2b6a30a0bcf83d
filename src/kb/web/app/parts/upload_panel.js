// At the edge of every view: each file on its way, from its first byte to its document.

import { html, useState } from "../html.js";
import { clear, items, totals, turn, unkept } from "../items.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { parseTags } from "../tags.js";
import { cancel, each, earlier, goOn, held, mayCancel, mayClear, mayRetry, retry, tagAll, takeEarlier } from "../uploads.js";
import { Bar } from "./labels.js";

const ORDER = ["failed", "sending", "reading", "waiting", "cancelled", "done"];
const STEP = 50; // rows that are shown at first, and more at each click

export function UploadPanel() {
  const [open, setOpen] = useState(() => !matchMedia("(max-width: 60rem)").matches); // it would hide a small screen
  turn.value; // what is shown changes with it
  if (!items.size && !earlier.value.length) return null;
  const sums = totals();
  return html`<section class="adding ${open ? "" : "folded"}" aria-label=${text.adding}>
    <header>
      <h2>${sums.open ? text.addingNow(sums.done, sums.all) : text.added(sums.done, sums.failed, sums.cancelled)}</h2>
      <button class="quiet" aria-expanded=${open} aria-controls="adding-list" onClick=${() => setOpen(!open)}>${open ? text.hide : text.show}</button>
    </header>
    ${sums.open > 0 && html`<${Sum} sums=${sums} />`}
    <p class="unseen" role="status">${sums.all > 0 && !sums.open && text.added(sums.done, sums.failed, sums.cancelled)}</p>
    <div id="adding-list" hidden=${!open}>
      <${Notices} sums=${sums} />
      ${sums.all > 0 && html`<${Actions} sums=${sums} /><${Rows} />`}
    </div>
  </section>`;
}

function Sum({ sums }) {
  const ended = sums.all - sums.open;
  return html`<div class="sum">
    <${Bar} share=${(ended + (sums.bytes ? sums.sent / sums.bytes : 0)) / (sums.all + 1)} />
    <small>${text.sentOf(sums.sent, sums.bytes, sums.failed)}</small>
  </div>`;
}

function Notices({ sums }) {
  return html`
    ${earlier.value.length > 0 &&
    html`<div class="notice">
      <p>${text.earlier(earlier.value.length)}</p>
      <div class="row">
        <button class="primary" onClick=${() => takeEarlier(true)}>${text.goOn}</button>
        <button onClick=${() => takeEarlier(false)}>${text.discard}</button>
      </div>
    </div>`}
    ${held.value &&
    sums.waiting > 0 &&
    html`<div class="notice" role="status">
      <p dir="auto">${held.value.reason} ${!held.value.paused && text.goesOn}</p>
      ${held.value.paused && html`<button onClick=${goOn}>${text.goOn}</button>`}
    </div>`}
    ${unkept.value && sums.waiting + sums.sending > 0 && html`<p class="notice" role="status">${text.unkept}</p>`}
  `;
}

function Actions({ sums }) {
  const tag = (submit) => {
    submit.preventDefault();
    const field = submit.target.elements.tags;
    tagAll(parseTags(field.value));
    field.value = "";
  };
  return html`<div class="row">
      ${sums.open > 0 && html`<button onClick=${() => each(mayCancel, cancel)}>${text.cancelAll}</button>`}
      ${sums.failed > 1 && html`<button onClick=${() => each((item) => item.state === "failed", retry)}>${text.retryAll}</button>`}
      ${sums.done + sums.cancelled > 0 && html`<button onClick=${() => clear(mayClear)}>${text.clearDone}</button>`}
    </div>
    <form class="row tag-all" onSubmit=${tag}>
      <input name="tags" required aria-label=${text.tagAllLabel} placeholder=${text.tagAllLabel} dir="auto" autocomplete="off" />
      <button>${text.tagAll}</button>
    </form>`;
}

/** The rows that matter most come first; of thousands, a few are shown. */
function Rows() {
  const [most, setMost] = useState(STEP);
  const shown = [];
  for (const state of ORDER) {
    if (shown.length >= most) break;
    for (const item of items.values()) {
      if (item.state === state) shown.push(item);
      if (shown.length >= most) break;
    }
  }
  const more = items.size - shown.length;
  return html`<ul class="uploads">${shown.map((item) => html`<${Row} key=${item.key} item=${item} turn=${turn.value} />`)}</ul>
    ${more > 0 && html`<button class="quiet" onClick=${() => setMost(most + 4 * STEP)}>${text.showMore(more)}</button>`}`;
}

function Row({ item }) {
  const sending = item.state === "sending" && !item.allSent;
  const share = sending ? (item.size ? item.sent / item.size : 0) : item.running ? item.progress : 0;
  const shows = sending || (item.state === "reading" && item.running);
  const url = item.kind === "note" ? `/n/${item.document}` : documentUrl(item.document);
  const button = (action, act, sign = action) =>
    html`<button class="quiet" aria-label=${text.ofItem(action, item.path)} onClick=${() => act(item)}>${sign}</button>`;
  return html`<li class=${item.state}>
    <div class="what">
      ${item.document ? html`<a href=${url} dir="auto">${item.path}</a>` : html`<span dir="auto">${item.path}</span>`}
      <p class="facts">${shows && html`<${Bar} share=${share} />`}<span>${describe(item)}</span></p>
    </div>
    ${mayCancel(item) && button(text.cancel, cancel)} ${mayRetry(item) && button(text.retry, retry)}
    ${item.state === "failed" && button(text.remove, (one) => clear((other) => other === one), "×")}
    ${item.error && html`<p class="error-text"><code>${item.error.code}</code> <span dir="auto">${item.error.message}</span></p>`}
  </li>`;
}

function describe(item) {
  if (item.state === "waiting") return text.inLine;
  if (item.state === "sending") return item.allSent ? text.sentItem : text.sendingItem(item.sent, item.size);
  if (item.state === "reading") return item.running ? text.reading(item.step) : text.inQueue;
  if (item.state === "done") return text.doneAs[item.outcome] ?? text.doneAs.added;
  return item.state === "cancelled" ? text.cancelled : text.statuses.failed;
}
