// Addresses of the page: which view is shown follows from the path, and links change it without loading the page anew.

import { signal } from "./html.js";

const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search) });

/** {path, query} of the address. */
export const route = signal(here());

/** Functions that may keep the person here, such as a note that is not saved: each returns or resolves to false to stay. */
const guards = new Set();

/** Ask `mayLeave` before the view changes. Returns a function that takes the question back. */
export function guardLeaving(mayLeave) {
  guards.add(mayLeave);
  return () => guards.delete(mayLeave);
}

/** Go to an address of this page. `replace` leaves no entry in the history, for what changes while typing. */
export function navigate(url, { replace = false } = {}) {
  const target = new URL(url, location.origin);
  if (target.href === location.href) return;
  const leaves = target.pathname !== location.pathname;
  const go = () => {
    history[replace ? "replaceState" : "pushState"](null, "", target);
    show();
    if (leaves) window.scrollTo(0, 0);
  };
  if (leaves && guards.size) mayGo().then((may) => may && go());
  else go();
}

let shown = location.href;

function show() {
  shown = location.href;
  route.value = here();
}

/** Ask every guard, one question at a time. */
let asking = false;
async function mayGo() {
  if (asking) return false;
  asking = true;
  try {
    for (const mayLeave of guards) if (!(await mayLeave())) return false;
    return true;
  } finally {
    asking = false;
  }
}

/** The person went back or forward: where a guard is, its view stays until the answer is there. */
async function followHistory() {
  const wanted = location.href;
  if (location.pathname === new URL(shown).pathname || !guards.size) return show();
  history.pushState(null, "", shown);
  if (!(await mayGo())) return;
  history.replaceState(null, "", wanted);
  show();
}

/** Follow the history, and every ordinary click on a link of this page. */
export function start() {
  addEventListener("popstate", followHistory);
  document.addEventListener("click", (click) => {
    const link = click.target.closest?.("a[href]");
    const plain = click.button === 0 && !(click.metaKey || click.ctrlKey || click.shiftKey || click.altKey);
    if (!link || !plain || click.defaultPrevented || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || /^\/(api|static|docs|openapi|health|metrics)\b/.test(url.pathname)) return;
    if (url.hash && url.pathname === location.pathname) return;
    click.preventDefault();
    navigate(url);
  });
}

/** The address of a document, at one of its passages if an anchor is given. */
export function documentUrl(id, anchor = {}, query = "") {
  const search = new URLSearchParams();
  if (anchor.page) search.set("page", anchor.page);
  if (anchor.sheet) search.set("sheet", anchor.sheet);
  if (anchor.start !== undefined && anchor.end !== undefined) search.set("at", `${anchor.start}-${anchor.end}`);
  if (query) search.set("q", query);
  return `/d/${id}${search.size ? `?${search}` : ""}`;
}
