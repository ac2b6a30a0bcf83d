// `/system`: how the engine is, what the doctor finds, and copies of everything.

import { download, get, post } from "../api.js";
import { useEvents } from "../events.js";
import { count, moment, size } from "../format.js";
import { html, useState } from "../html.js";
import { forget, hasKey, locked } from "../key.js";
import { useLoad } from "../load.js";
import { navigate, useTitle } from "../router.js";
import { text } from "../strings.js";
import { confirm } from "../parts/dialog.js";
import { Prose } from "../parts/labels.js";
import { Failure, Loaded } from "../parts/states.js";
import { complain, say } from "../parts/toast.js";

export function SystemView() {
  useTitle(text.system);
  return html`<h1>${text.system}</h1>
    <div class="cards"><${Status} /><${Doctor} /><${Copies} /><${Index} />${hasKey() && html`<${Key} />`}</div>`;
}

function Status() {
  const load = useLoad((signal) => get("/status", {}, { signal }), []);
  useEvents((kind, { action }) => (kind === "reset" || action !== "progress") && load.reload());
  return html`<section class="card status">
    <h2>${text.status}</h2>
    <${Loaded} load=${load}>
      ${(status) => html`
        <p class=${status.health.status === "healthy" ? "good" : "error-text"}><strong>${text.health[status.health.status]}</strong></p>
        ${status.health.issues.map((issue) => html`<p class="error-text" dir="auto">${issue}</p>`)}
        <dl class="facts-list">
          ${facts(status).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
        </dl>
      `}
    <//>
  </section>`;
}

const facts = (status) => [
  [text.version, status.version],
  [text.documents, count(status.documents.total)],
  [text.passages, count(status.chunks)],
  [text.waiting, text.queue(status.queue.queued, status.queue.running, status.queue.failed)],
  [text.lastChange, status.last_updated ? moment(status.last_updated) : text.never],
  [text.model, status.model.name],
  [text.runsOn, [status.device, status.kernels].filter(Boolean).join(", ")],
  [text.storage, size(status.storage.bytes)],
  [text.folder, html`<code>${status.storage.path}</code>`],
  [text.sandbox, status.sandbox],
  [text.largestFile, `${status.limits.max_file_mb} MB`],
];

function Doctor() {
  const [state, setState] = useState({});
  const look = async (ask) => {
    setState({ busy: true });
    try {
      setState({ diagnosis: await ask() });
    } catch (error) {
      setState({ error });
    }
  };
  const mend = async () => {
    if (await confirm({ title: text.mend, message: text.mendHint, action: text.mend, danger: false })) look(() => post("/doctor"));
  };
  const { diagnosis, error, busy } = state;
  return html`<section class="card">
    <h2>${text.doctor}</h2>
    <p class="muted">${text.doctorHint}</p>
    <div class="row">
      <button disabled=${busy} onClick=${() => look(() => get("/doctor"))}>${busy ? text.looking : text.look}</button>
      ${diagnosis && !diagnosis.healthy && html`<button class="primary" disabled=${busy} onClick=${mend}>${text.mend}</button>`}
    </div>
    ${error && html`<${Failure} error=${error} />`}
    ${diagnosis &&
    html`<p role="status" class=${diagnosis.healthy ? "good" : "error-text"}><strong>${diagnosis.healthy ? text.allWell : text.notWell}</strong></p>
      <ul class="checks">
        ${diagnosis.checks.map((check) => html`<li class=${check.ok ? "good" : "bad"}><strong>${check.name}</strong> <span dir="auto">${check.message}</span></li>`)}
      </ul>`}
  </section>`;
}

function Copies() {
  const take = (path) => download(path).catch(complain);
  return html`<section class="card">
    <h2>${text.copies}</h2>
    <p class="muted"><${Prose} text=${text.copiesHint} /></p>
    <div class="row">
      <button onClick=${() => take("/backup")}>${text.backup}</button>
      <button onClick=${() => take("/export")}>${text.export}</button>
    </div>
  </section>`;
}

function Index() {
  const reindex = async () => {
    if (!(await confirm({ title: text.reindex, message: text.reindexHint, action: text.reindex, danger: false }))) return;
    try {
      await post("/reindex");
      say(text.reindexing);
      navigate("/jobs");
    } catch (error) {
      complain(error);
    }
  };
  return html`<section class="card">
    <h2>${text.index}</h2>
    <p class="muted">${text.reindexHint}</p>
    <button onClick=${reindex}>${text.reindex}</button>
  </section>`;
}

function Key() {
  const leave = () => {
    forget();
    locked.value = true;
  };
  return html`<section class="card">
    <h2>${text.keyLabel}</h2>
    <p class="muted">${text.keyKept}</p>
    <button onClick=${leave}>${text.keyForget}</button>
  </section>`;
}
