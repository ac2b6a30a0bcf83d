// `/` without a question: what is being read, what is new, and how to begin.

import { get } from "../api.js";
import { useEvents } from "../events.js";
import { html, useEffect, useRef } from "../html.js";
import { useLoad } from "../load.js";
import { engineQueue, throttled } from "../queue.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { choose } from "./adding.js";
import { JobRow } from "./job_row.js";
import { TagLinks, Time, TypeBadge } from "./labels.js";
import { Loaded } from "./states.js";

const RECENT = 15;

export function Home() {
  const load = useLoad((signal) => get("/documents", { view: "summary", limit: RECENT }, { signal }), []);
  const again = useRef();
  again.current ??= throttled(load.reload);
  useEvents((kind) => (kind === "document" || kind === "reset") && again.current());
  useEffect(() => () => again.current.cancel(), []);
  return html`<div class="home">
    <h1 class="unseen">${text.home}</h1>
    <${BeingRead} />
    <${Loaded} load=${load}>
      ${({ documents }) =>
        documents.length
          ? html`<section>
                <h2>${text.recent}</h2>
                <ul class="list">${documents.map((document) => html`<${Row} key=${document.id} document=${document} />`)}</ul>
              </section>
              <${DropPlace} />`
          : engineQueue.value.running.length
            ? html`<${DropPlace} />`
            : html`<${FirstUse} />`}
    <//>
  </div>`;
}

function BeingRead() {
  const { running, queued } = engineQueue.value;
  if (!running.length && !queued) return null;
  return html`<section>
    <h2>${text.running}</h2>
    <ul class="list jobs-list">${running.map((job) => html`<${JobRow} key=${job.id} job=${job} />`)}</ul>
    ${queued > 0 && html`<p class="muted"><a href="/jobs">${text.moreJobs(queued)}</a></p>`}
  </section>`;
}

function FirstUse() {
  return html`<section class="first-use">
    <h2>${text.firstUse}</h2>
    <ol>${text.firstSteps.map(([step, how]) => html`<li><strong>${step}</strong><p>${how}</p></li>`)}</ol>
    <${DropPlace} />
  </section>`;
}

function DropPlace() {
  return html`<div class="drop-place">
    <p>${text.dropHere}</p>
    <div class="row">
      <button class="primary" onClick=${() => choose(false)}>${text.chooseFiles}</button>
      <button onClick=${() => choose(true)}>${text.chooseFolder}</button>
      <a class="button" href="/n/new">${text.newNote}</a>
    </div>
  </div>`;
}

function Row({ document }) {
  return html`<li>
    <a href=${document.doc_type === "note" ? `/n/${document.id}` : documentUrl(document.id)} dir="auto">${document.title}</a>
    <span class="facts">
      <${TypeBadge} type=${document.doc_type} />
      <${Time} at=${document.updated_at ?? document.created_at} />
      <${TagLinks} tags=${document.tags} />
    </span>
  </li>`;
}
