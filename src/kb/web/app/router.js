// Addresses of the page: the path names the view, and links change it without loading the page anew.

import { signal, useEffect } from "./html.js";

const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search) });

/** {path, query} of the address. */
export const route = signal(here());

/** Functions that may keep the person here: each returns or resolves to false to stay. */
const guards = new Set();

/** Ask `mayLeave` before the view changes. Returns a function that takes the question back. */
export function guardLeaving(mayLeave) {
  guards.add(mayLeave);
  return () => guards.delete(mayLeave);
}

const left = new Map(); // address → how it was left

/** What is kept of this address for the way back: {y, chosen}. */
export function kept() {
  if (!left.has(location.href)) left.set(location.href, {});
  return left.get(location.href);
}

/**
 * Go to an address of this page. `replace` leaves no entry in the history, for what changes while typing; `back` shows the
 * address as it was left.
 */
export function navigate(url, { replace = false, back = false } = {}) {
  const target = new URL(url, location.origin);
  if (target.href === location.href) return;
  const leaves = target.pathname !== location.pathname;
  const go = () => {
    history[replace ? "replaceState" : "pushState"](null, "", target);
    if (!back) left.delete(location.href);
    show();
    if (back) restore();
    else if (leaves) window.scrollTo(0, 0);
  };
  if (leaves && guards.size) mayGo().then((may) => may && go());
  else go();
}

let shown = location.href;
let results = location.search;

/** The results for `question`, with the filters that they were last shown with. */
export const resultsUrl = (question) =>
  new URLSearchParams(results).get("q")?.trim() === question ? `/${results}` : `/?q=${encodeURIComponent(question)}`;

function show() {
  const moved = location.pathname !== new URL(shown).pathname;
  shown = location.href;
  route.value = here();
  if (location.pathname === "/") results = location.search;
  if (moved && !document.activeElement.matches("[role=searchbox]")) document.getElementById("content")?.focus({ preventScroll: true });
}

const PATIENCE = 3000; // ms until what was shown must be there again
let until = 0;

/** Scroll to where this address was left, as soon as the view is long enough, unless the person moves first. */
function restore() {
  const { y = 0 } = kept();
  until = Date.now() + PATIENCE;
  const settle = () => {
    if (Date.now() > until) return (until = 0);
    window.scrollTo(0, y);
    if (Math.abs(scrollY - y) < 2) until = 0;
    else requestAnimationFrame(settle);
  };
  requestAnimationFrame(settle);
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
  if (location.pathname === new URL(shown).pathname || !guards.size) return show(), restore();
  history.pushState(null, "", shown);
  if (!(await mayGo())) return;
  history.replaceState(null, "", wanted);
  show();
  restore();
}

/** Follow the history, and every ordinary click on a link of this page. */
export function start() {
  history.scrollRestoration = "manual";
  addEventListener("popstate", followHistory);
  addEventListener("scroll", () => until || (kept().y = scrollY));
  for (const move of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(move, () => (until = 0));
  document.addEventListener("click", (click) => {
    const link = click.target.closest?.("a[href]");
    const plain = click.button === 0 && !(click.metaKey || click.ctrlKey || click.shiftKey || click.altKey);
    if (!link || !plain || click.defaultPrevented || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || /^\/(api|static|docs|openapi|health|metrics)\b/.test(url.pathname)) return;
    if (url.hash && url.pathname === location.pathname) return;
    click.preventDefault();
    navigate(url, { back: link.rel === "prev" });
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

/** Name the view in the browser's tab. */
export function useTitle(title) {
  useEffect(() => {
    document.title = title ? `${title} · kb` : "kb";
  }, [title]);
}
