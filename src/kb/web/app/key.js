// The engine's key: asked once, kept for this tab (or on this machine, if the person says so), sent as a Bearer header.

import { signal } from "./html.js";

const NAME = "kb-key";
const CONTROL = /[\0-\x1f\x7f]/g; // what no header can carry
const FRAGMENT = /^#key=([^&]+)/;

/** True while the engine refuses the key, or wants one: the page then asks for it. */
export const locked = signal(false);

let key = sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? "";

/**
 * Take the key that `kb open` put behind the `#`, and remove it from the address at once. Any web site can link here
 * with a key that is wrong: it counts in this tab only, and a remembered one stays.
 */
export function takeFromAddress() {
  const found = FRAGMENT.exec(location.hash);
  if (!found) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  try {
    key = decodeURIComponent(found[1]).replace(CONTROL, "");
  } catch {
    return; // cut off in the middle of a character
  }
  sessionStorage.setItem(NAME, key);
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

/** As bytes: a header carries no other characters, and a browser refuses to send it. */
const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

export const keyHeaders = () => (key ? { Authorization: `Bearer ${bytes(key)}` } : {});
