// What is around every view: name, search field, navigation, banner, keys.

import { online } from "../api.js";
import { count } from "../format.js";
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { totals, turn } from "../items.js";
import { lettersOn, setLetters, useKeys } from "../keys.js";
import { engineQueue } from "../queue.js";
import { navigate, route } from "../router.js";
import { text } from "../strings.js";
import { Adding, showAdding } from "./adding.js";
import { Dialog } from "./dialog.js";
import { Toasts } from "./toast.js";

const VIEWS = [
  ["/", text.search],
  ["/documents", text.documents],
  ["/tags", text.tags],
  ["/duplicates", text.duplicates],
  ["/folders", text.folders.name],
  ["/trash", text.trash.name],
  ["/jobs", text.jobs],
  ["/n/new", text.newNote],
  ["/system", text.system],
  ["/connect", text.connect],
];
const THEMES = ["auto", "light", "dark"];
const helpShown = signal(false);
const theme = signal(localStorage.getItem("kb-theme") ?? "auto");

function showTheme() {
  document.documentElement.style.colorScheme = theme.value === "auto" ? "light dark" : theme.value;
}

function nextTheme() {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
  localStorage.setItem("kb-theme", theme.value);
  showTheme();
}

export function Shell({ children }) {
  const field = useRef();
  const [menuOpen, setMenuOpen] = useState(false);
  const { path, query } = route.value;
  useEffect(showTheme, []);
  useEffect(() => setMenuOpen(false), [path]);
  useKeys({
    "/": () => field.current.focus(),
    n: () => navigate("/n/new"),
    "?": () => (helpShown.value = true),
    Escape: () => (document.activeElement === field.current ? field.current.blur() : path !== "/" && history.back()),
  }, [path], true);
  return html`
    <a class="skip" href="#content">${text.skip}</a>
    <header class="top">
      <a class="name" href="/" aria-label="kb: ${text.search}">kb</a>
      <${SearchField} field=${field} query=${path === "/" ? (query.get("q") ?? "") : ""} />
      <button class="menu" aria-expanded=${menuOpen} aria-controls="views" onClick=${() => setMenuOpen(!menuOpen)}>${text.menu}</button>
    </header>
    <nav id="views" class=${menuOpen ? "open" : ""} aria-label=${text.menu}>
      ${VIEWS.map(([to, name]) => html`<a href=${to} aria-current=${to === path ? "page" : undefined}>${name}${to === "/jobs" && html`<${Busy} />`}</a>
        ${to === "/n/new" && html`<button class="quiet add" onClick=${showAdding}>${text.add}</button>`}`)}
      <span class="grow"></span>
      <button class="quiet" onClick=${() => (helpShown.value = true)}>${text.help}</button>
      <button class="quiet" onClick=${nextTheme}>${text.theme[theme.value]}</button>
    </nav>
    ${online.value || html`<div class="banner" role="alert">${text.offline}</div>`}
    <main id="content" tabindex="-1">${children}</main>
    <${Adding} />
    <${Toasts} />
    ${helpShown.value && html`<${Keys} />`}
  `;
}

/** How many jobs run or wait, here and in the engine. */
function Busy() {
  turn.value; // what waits to be sent changes with it
  const { waiting, sending } = totals();
  const { running, queued } = engineQueue.value;
  const all = waiting + sending + running.length + queued;
  return all > 0 && html`${" "}<span class="count" aria-label=${text.jobsBusy(all)}>${count(all)}</span>`;
}

/** The search field of every view. Typing in it shows results at `/`, without an entry in the history per letter. */
function SearchField({ field, query }) {
  const [typed, setTyped] = useState(query);
  useEffect(() => {
    if (document.activeElement !== field.current) setTyped(query);
  }, [query]);
  const show = (value) => {
    setTyped(value);
    const { path, query: now } = route.value;
    const next = new URLSearchParams(path === "/" ? now : undefined);
    if (value) next.set("q", value);
    else next.delete("q");
    navigate(next.size ? `/?${next}` : "/", { replace: path === "/" });
  };
  return html`<form role="search" onSubmit=${(submit) => (submit.preventDefault(), document.querySelector(".chosen a")?.focus())}>
    <input
      ref=${field}
      type="search"
      role="searchbox"
      aria-label=${text.searchLabel}
      placeholder=${text.searchLabel}
      autocomplete="off"
      spellcheck=${false}
      maxlength="2000"
      dir="auto"
      value=${typed}
      onInput=${(input) => show(input.target.value)}
      autofocus=${route.value.path === "/"}
    />
    <kbd aria-hidden="true">/</kbd>
  </form>`;
}

function Keys() {
  return html`<${Dialog} title=${text.help} onClose=${() => (helpShown.value = false)}>
    <dl class="keys">${text.keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <label class="check">
      <input type="checkbox" checked=${lettersOn.value} onChange=${(change) => setLetters(change.target.checked)} /> ${text.letters}
    </label>
  <//>`;
}
