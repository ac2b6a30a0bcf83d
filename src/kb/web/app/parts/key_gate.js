// Asks for the engine's key when it wants one.

import { request } from "../api.js";
import { html, useState } from "../html.js";
import { forget, hasKey, keep, locked } from "../key.js";
import { text } from "../strings.js";

export function KeyGate() {
  const [wrong, setWrong] = useState(hasKey());
  const open = async (submit) => {
    submit.preventDefault();
    const form = new FormData(submit.target);
    keep(form.get("key").trim(), form.has("remember"));
    try {
      await request("GET", "/status");
      locked.value = false;
    } catch (error) {
      forget();
      setWrong(error.status === 401 ? text.keyWrong : error.message);
    }
  };
  return html`<main class="gate">
    <form class="card" onSubmit=${open}>
      <h1>${text.keyTitle}</h1>
      <label for="key">${text.keyLabel}</label>
      <input id="key" name="key" type="password" required autocomplete="current-password" autofocus aria-describedby="key-hint" />
      <p id="key-hint" class="muted">${text.keyHint}</p>
      <label class="check"><input type="checkbox" name="remember" /> ${text.keyRemember}</label>
      ${wrong && html`<p class="error-text" role="alert">${wrong === true ? text.keyWrong : wrong}</p>`}
      <button class="primary">${text.keyOpen}</button>
    </form>
  </main>`;
}
