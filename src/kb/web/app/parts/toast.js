// Short messages at the edge of the page. Errors stay until they are closed.

import { aborted } from "../api.js";
import { html, signal } from "../html.js";
import { text } from "../strings.js";

const SHOWN_FOR = 5000;
const OFFERED_FOR = 20000; // when there is something to choose
const shown = signal([]);

/** `offer`: {label, act}, a button beside the message. */
export function say(message, kind = "done", offer) {
  const own = { message, kind, offer };
  shown.value = [...shown.value, own].slice(-4);
  if (kind !== "error") setTimeout(() => hide(own), offer ? OFFERED_FOR : SHOWN_FOR);
}

/** Show a failure that has no better place. */
export function complain(error) {
  if (!aborted(error)) say(error.message, "error");
}

/** Copy to the clipboard, and say whether it worked. */
export async function copy(content) {
  try {
    await navigator.clipboard.writeText(content);
    say(text.copied);
  } catch {
    say(text.notCopied, "error");
  }
}

const hide = (own) => (shown.value = shown.value.filter((toast) => toast !== own));

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.value.map(
      (toast) => html`<div class="toast ${toast.kind}">
        <span dir="auto">${toast.message}</span>
        ${toast.offer && html`<button class="quiet" onClick=${() => (hide(toast), toast.offer.act())}>${toast.offer.label}</button>`}
        <button class="quiet" aria-label=${text.close} onClick=${() => hide(toast)}>×</button>
      </div>`,
    )}
  </div>`;
}
