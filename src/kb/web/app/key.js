// The engine's key: asked once, kept for this tab (or on this machine, if the person says so), sent as a Bearer header.

import { signal } from "./html.js";

const NAME = "kb-key";
const FRAGMENT = /^#key=([^&]+)/;

/** True while the engine refuses the key, or wants one: the page then asks for it. */
export const locked = signal(false);

let key = sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? "";

/** Take the key that `kb open` put behind the `#`, and remove it from the address at once. */
export function takeFromAddress() {
  const found = FRAGMENT.exec(location.hash);
  if (!found) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  keep(decodeURIComponent(found[1]), false);
}

export function keep(given, remember) {
  key = given;
  sessionStorage.setItem(NAME, given);
  if (remember) localStorage.setItem(NAME, given);
  else localStorage.removeItem(NAME);
}

export function forget() {
  key = "";
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}

export const hasKey = () => key !== "";

export const keyHeaders = () => (key ? { Authorization: `Bearer ${key}` } : {});
