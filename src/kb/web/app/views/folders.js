// `/folders`: folders that the engine keeps in step with the disk, and which of their files are not indexed.

import { get, post, remove } from "../api.js";
import { useCalmReload } from "../events.js";
import { count } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { useLoad } from "../load.js";
import { useTitle } from "../router.js";
import { text } from "../strings.js";
import { parseTags } from "../tags.js";
import { confirm } from "../parts/dialog.js";
import { TagLinks } from "../parts/labels.js";
import { Empty, Loaded } from "../parts/states.js";
import { complain, say } from "../parts/toast.js";

const LOOK_MS = 3000; // the disk changes without an event of the engine
const words = text.folders;

export function FoldersView() {
  const load = useLoad((signal) => get("/folders", {}, { signal }), []);
  useTitle(words.name);
  useCalmReload(load.reload);
  useEffect(() => {
    const timer = setTimeout(load.reload, LOOK_MS);
    return () => clearTimeout(timer);
  }, [load.data, load.error]);
  const act = async (change, told) => {
    try {
      await change();
      say(told);
    } catch (error) {
      complain(error);
    }
    load.reload();
  };
  return html`<h1>${words.name}</h1>
    <p class="muted">${words.hint}</p>
    <${Watch} act=${act} />
    <${Loaded} load=${load}>
      ${({ folders }) =>
        folders.length
          ? html`<ul class="pairs">${folders.map((one) => html`<${Folder} key=${one.id} folder=${one} act=${act} />`)}</ul>`
          : html`<${Empty} title=${words.empty} />`}
    <//>`;
}

function Watch({ act }) {
  const submit = (event) => {
    event.preventDefault();
    const form = event.target;
    const path = form.path.value.trim();
    const lines = (field) => field.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const options = { tags: parseTags(form.tags.value), include: lines(form.include), exclude: lines(form.exclude) };
    act(() => post("/folders", { path, ...options }).then(() => form.reset()), words.watching(path));
  };
  const field = (name, label, input) => html`<div class="field"><label for="folder-${name}">${label}</label>${input}</div>`;
  return html`<form class="card" onSubmit=${submit}>
    ${field("path", words.path, html`<input id="folder-path" name="path" required maxlength="4096" placeholder="/home/you/Documents" dir="auto" />`)}
    <details>
      <summary>${words.options}</summary>
      ${field("tags", words.tags, html`<input id="folder-tags" name="tags" dir="auto" />`)}
      ${field("include", words.include, html`<textarea id="folder-include" name="include" rows="2" dir="auto"></textarea>`)}
      ${field("exclude", words.exclude, html`<textarea id="folder-exclude" name="exclude" rows="2" dir="auto"></textarea>`)}
    </details>
    <footer class="row"><button class="primary">${words.watch}</button></footer>
  </form>`;
}

function Folder({ folder, act }) {
  const { id, path, state, message, coverage, tags } = folder;
  const [shown, setShown] = useState(false);
  const scan = (body, told) => act(() => post(`/folders/${id}/scan`, body), told);
  const release = async () => {
    const question = { title: words.confirmTitle, message, action: words.confirm };
    if (await confirm(question)) scan({ confirm: true }, words.confirmed);
  };
  const unwatch = async (documents) => {
    const question = { title: words.unwatchTitle(path), message: words.unwatchHint[documents], action: words.unwatch[documents], danger: documents === "remove" };
    if (await confirm(question)) act(() => remove(`/folders/${id}`, { documents }), words.unwatched(path));
  };
  return html`<li class="card">
    <h2 dir="auto">${path}</h2>
    <p class="facts">
      <span class="badge">${words.states[state]}</span>
      <span>${words.covered(count(coverage.indexed), count(coverage.total - coverage.ignored))}</span>
      ${["waiting", "failed", "ignored"].map((name) => coverage[name] > 0 && html`<span>${words.counted[name](count(coverage[name]))}</span>`)}
      <${TagLinks} tags=${tags} />
    </p>
    ${message && html`<p class="notice" dir="auto">${message}</p>`}
    <div class="row">
      ${state === "paused" && html`<button class="danger" onClick=${release}>${words.confirm}</button>`}
      <button aria-label=${text.ofItem(words.scan, path)} onClick=${() => scan({}, words.scanning)}>${words.scan}</button>
      <button aria-expanded=${shown} aria-label=${text.ofItem(words.why, path)} onClick=${() => setShown(!shown)}>${words.why}</button>
      <button aria-label=${text.ofItem(words.unwatch.keep, path)} onClick=${() => unwatch("keep")}>${words.unwatch.keep}</button>
      <button class="danger" aria-label=${text.ofItem(words.unwatch.remove, path)} onClick=${() => unwatch("remove")}>${words.unwatch.remove}</button>
    </div>
    ${shown && html`<${NotIndexed} id=${id} coverage=${coverage} />`}
  </li>`;
}

/** The files that are not indexed, with the reason of each. */
function NotIndexed({ id, coverage }) {
  const load = useLoad((signal) => get(`/folders/${id}`, {}, { signal }), [id, coverage.total, coverage.indexed]);
  return html`<${Loaded} load=${load}>
    ${({ files }) =>
      files.length
        ? html`<ul class="list">
            ${files.map(
              (one) => html`<li key=${one.path}>
                <span dir="auto">${one.path}</span>
                <span class="facts"><span>${words.fileStates[one.state]}</span>${one.reason && html`<span dir="auto">${one.reason.replaceAll("_", " ")}</span>`}</span>
              </li>`,
            )}
          </ul>`
        : html`<p class="muted">${words.allIndexed}</p>`}
  <//>`;
}
