// The chosen one of a list of results or rows: keys move it, and the way back finds it again.

import { useEffect, useState } from "./html.js";
import { kept } from "./router.js";

/** {chosen, choose(at), step(by)} of `size` items with the ids `name-0`, `name-1`, …; `list` names the list. */
export function useChosen(name, size, list) {
  const [chosen, setChosen] = useState(0);
  useEffect(() => setChosen(kept().chosen ?? 0), [list]);
  const choose = (at) => {
    kept().chosen = at;
    setChosen(at);
  };
  const step = (by) => {
    const next = Math.max(0, Math.min(chosen + by, size - 1));
    const item = document.getElementById(`${name}-${next}`);
    choose(next);
    item?.scrollIntoView({ block: "nearest" });
    if (!document.activeElement.matches("[type=search]")) item?.querySelector("a").focus({ preventScroll: true });
  };
  return { chosen, choose, step };
}
