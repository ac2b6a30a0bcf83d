// One upload, with the bytes that were sent so far: fetch does not tell them, XMLHttpRequest does.

import { ApiError, PREFIX, online } from "./api.js";
import { keyHeaders, locked } from "./key.js";
import { text } from "./strings.js";

/**
 * POST to /jobs. Returns {answer, abort}: `answer` resolves to what the engine accepted, or rejects with an ApiError;
 * `onSent(bytes)` is called on the way, with Infinity when everything is sent.
 */
export function send(body, onSent) {
  const request = new XMLHttpRequest();
  const answer = new Promise((resolve, reject) => {
    request.open("POST", `${PREFIX}/jobs`);
    for (const [name, value] of Object.entries(keyHeaders())) request.setRequestHeader(name, value);
    if (typeof body === "string") request.setRequestHeader("Content-Type", "application/json");
    request.responseType = "json";
    request.upload.onprogress = (progress) => onSent(progress.loaded);
    request.upload.onload = () => onSent(Infinity);
    request.onerror = () => reject(new ApiError(0, { code: "unavailable", message: text.unreachable, retryable: true }));
    request.onabort = () => reject(new DOMException("", "AbortError"));
    request.onload = () => {
      online.value = true;
      if (request.status < 400 && request.response) return resolve(request.response);
      if (request.status === 401) locked.value = true;
      const strange = { code: "internal", message: text.strangeAnswer(request.status) };
      reject(new ApiError(request.status, request.response?.error ?? strange));
    };
    request.send(body);
  });
  return { answer, abort: () => request.abort() };
}
