// Calls of the REST API. Every failure is an ApiError whose message says what was wrong and what to do next.

import { signal } from "./html.js";
import { keyHeaders, locked } from "./key.js";
import { text } from "./strings.js";

export const PREFIX = "/api/v1";

/** False while the engine cannot be reached. */
export const online = signal(true);

export class ApiError extends Error {
  constructor(status, { code, message, retryable = false, details = {} }) {
    super(message);
    Object.assign(this, { status, code, retryable, details });
  }
}

export const aborted = (error) => error?.name === "AbortError";

/** Send a request below /api/v1 and return the Response; an answer of 400 and more becomes an ApiError. */
export async function request(method, path, { query, body, form, signal: abort } = {}) {
  const headers = keyHeaders();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent = { method, headers, body: form ?? (body === undefined ? undefined : JSON.stringify(body)), signal: abort };
  let answer;
  try {
    answer = await fetch(PREFIX + path + queryString(query), { ...sent, cache: "no-cache" });
  } catch (failure) {
    if (aborted(failure)) throw failure;
    online.value = false;
    throw new ApiError(0, { code: "unavailable", message: text.unreachable, retryable: true });
  }
  online.value = true;
  if (answer.ok) return answer;
  if (answer.status === 401) locked.value = true;
  throw new ApiError(answer.status, await errorOf(answer));
}

async function errorOf(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return { code: "internal", message: text.strangeAnswer(answer.status) };
  }
}

/** "?a=1&b=2" without what is undefined, null or empty; a list is repeated. */
export function queryString(query = {}) {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const search = new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== ""));
  return search.size ? `?${search}` : "";
}

const json = async (method, path, options) => (await request(method, path, options)).json();

export const get = (path, query, options) => json("GET", path, { query, ...options });
export const post = (path, body = {}, options) => json("POST", path, { body, ...options });
export const patch = (path, body) => json("PATCH", path, { body });
export const remove = (path, query) => json("DELETE", path, { query });

/** The address of a picture that was fetched with the key. Revoke it when it is no longer shown. */
export async function picture(path, query, options) {
  const answer = await request("GET", path, { query, ...options });
  return URL.createObjectURL(await answer.blob());
}

/** Download something large: a one-time ticket lets the browser fetch it without the key in the address. */
export async function download(path) {
  const { url } = await post("/tickets", { path: PREFIX + path });
  const link = document.createElement("a");
  link.href = url;
  link.download = "";
  link.click();
}
