// Loading data for a view: the newest request wins, an older answer never replaces a newer one.

import { aborted, online } from "./api.js";
import { useEffect, useRef, useState } from "./html.js";

/**
 * Call `ask(signal)` whenever `deps` change. Returns {data, error, loading, reload}; data stays while it is loaded again.
 */
export function useLoad(ask, deps) {
  const [state, setState] = useState({ data: undefined, error: undefined, loading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(0);
  useEffect(() => {
    const controller = new AbortController();
    const own = ++latest.current;
    const settle = (next) => own === latest.current && setState((before) => ({ ...before, loading: false, ...next }));
    setState((before) => ({ ...before, loading: true }));
    Promise.resolve(ask(controller.signal)).then(
      (data) => settle({ data, error: undefined }),
      (error) => aborted(error) || settle({ error }),
    );
    return () => controller.abort();
  }, [...deps, turn]);
  const reached = online.value;
  useEffect(() => {
    if (reached && state.error?.status === 0) setTurn((before) => before + 1);
  }, [reached]);
  return { ...state, reload: () => setTurn((before) => before + 1) };
}
