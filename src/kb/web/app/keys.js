// Keys: single letters that work anywhere but in a field, and can be turned off.

import { signal, useLayoutEffect } from "./html.js";

const STORED = "kb-keys";
const FIELDS = "input, textarea, select, [contenteditable]";
const bound = []; // the newest binding of a key counts

export const lettersOn = signal(localStorage.getItem(STORED) !== "off");

export function setLetters(on) {
  lettersOn.value = on;
  localStorage.setItem(STORED, on ? "on" : "off");
}

/** Bind keys while a component is shown: {"j": function, "Escape": function}. `below`: any other binding counts more. */
export function useKeys(bindings, deps = [], below = false) {
  useLayoutEffect(() => {
    bound[below ? "unshift" : "push"](bindings);
    return () => bound.splice(bound.indexOf(bindings), 1);
  }, deps);
}

export function start() {
  document.addEventListener("keydown", (press) => {
    if (press.defaultPrevented || press.ctrlKey || press.metaKey || press.altKey) return;
    const typing = press.target.closest?.(FIELDS);
    const letter = press.key.length === 1;
    if (letter && (typing || !lettersOn.value)) return;
    if (document.querySelector("dialog[open]")) return; // it has its own
    if (press.key === "Enter" && press.target.closest?.("a, button, summary, " + FIELDS)) return;
    const own = bound.findLast((bindings) => press.key in bindings);
    if (own && own[press.key](press) !== false && press.key !== "Escape") press.preventDefault();
  });
}
