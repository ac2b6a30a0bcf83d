// A modal dialog, and a question that must be answered before something is changed.

import { html, render, useEffect, useId, useRef } from "../html.js";
import { text } from "../strings.js";

/** A modal dialog with a heading. `onClose` is called however it is closed. */
export function Dialog({ title, onClose, children, wide = false }) {
  const dialog = useRef();
  const heading = useId();
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} aria-labelledby=${heading} onClose=${onClose}>
    <header>
      <h2 id=${heading}>${title}</h2>
      <button class="quiet" aria-label=${text.close} onClick=${() => dialog.current.close()}>×</button>
    </header>
    ${children}
  </dialog>`;
}

/** Ask in a dialog. Resolves to true only when the person chose `action`. */
export function confirm({ title, message, action, danger = true }) {
  const place = document.body.appendChild(document.createElement("div"));
  return new Promise((resolve) => {
    const answer = (agreed) => {
      render(null, place);
      place.remove();
      resolve(agreed);
    };
    render(
      html`<${Dialog} title=${title} onClose=${() => answer(false)}>
        <p>${message}</p>
        <footer>
          <button autofocus onClick=${() => answer(false)}>${text.cancel}</button>
          <button class=${danger ? "danger" : "primary"} onClick=${() => answer(true)}>${action}</button>
        </footer>
      <//>`,
      place,
    );
  });
}
