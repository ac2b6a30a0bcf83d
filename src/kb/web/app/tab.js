// Which tab this is: the same after a reload, another one for every other tab.

const NAME = "kb-tab";
const PATIENCE = 2000; // a page that is reloaded lets go of its lock a moment later

const lockOf = (tab) => `kb-tab-${tab}`;

/** Hold the lock of a tab as long as this page lives; false if another page holds it. */
function hold(tab) {
  if (!navigator.locks) return Promise.resolve(true); // over plain HTTP from another machine there are none
  return new Promise((resolve) => {
    const held = () => {
      resolve(true);
      return new Promise(() => {});
    };
    navigator.locks.request(lockOf(tab), { signal: AbortSignal.timeout(PATIENCE) }, held).catch(() => resolve(false));
  });
}

/** The name of this tab. A duplicated tab finds its inherited name taken, and takes another one. */
export async function claimTab() {
  const before = sessionStorage.getItem(NAME);
  if (before && (await hold(before))) return before;
  const tab = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join("");
  await hold(tab);
  sessionStorage.setItem(NAME, tab);
  return tab;
}

/** A function that says whether a tab is still open. */
export async function openTabs() {
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  const names = new Set(held.map((lock) => lock.name));
  return (tab) => names.has(lockOf(tab));
}
