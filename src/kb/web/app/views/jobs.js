// `/jobs`: the queue as it is, failures by their reason, and what was done. The address holds the status and the page.

import { post } from "../api.js";
import { count } from "../format.js";
import { html, useState } from "../html.js";
import { useJobs } from "../queue.js";
import { route, useTitle } from "../router.js";
import { text } from "../strings.js";
import { JobRow } from "../parts/job_row.js";
import { Pager } from "../parts/pager.js";
import { Empty, Loaded } from "../parts/states.js";
import { complain, say } from "../parts/toast.js";

const BRIEF = 10;
const PAGE = 50;
const MOST_FAILED = 1000;
const AT_ONCE = 4;
// Events that change the list of a status.
const CHANGES = {
  running: ["running", "progress", "cancelling", "completed", "failed", "cancelled", "queued"],
  queued: ["queued", "running", "cancelled"],
  failed: ["failed", "queued"],
  completed: ["completed"],
  cancelled: ["cancelled", "queued"],
};

export function JobsView() {
  const { query } = route.value;
  const status = query.get("status");
  const known = status in CHANGES ? status : null;
  useTitle(text.jobs);
  return html`<div class="jobs">
    <h1>${text.jobs}</h1>
    <div class="filters" role="group" aria-label=${text.filters}>
      ${["all", ...Object.keys(CHANGES)].map((name) => {
        const on = name === (known ?? "all");
        return html`<a class="chip ${on ? "on" : ""}" aria-current=${on ? "true" : undefined} href=${name === "all" ? "/jobs" : `/jobs?status=${name}`}>
          ${text.statuses[name]}
        </a>`;
      })}
    </div>
    ${known === "failed" ? html`<${Failures} />` : known ? html`<${Paged} key=${known} status=${known} query=${query} />` : html`<${Overview} />`}
  </div>`;
}

function Overview() {
  const running = useJobs({ status: "running", limit: 100 }, CHANGES.running);
  const queued = useJobs({ status: "queued", limit: BRIEF }, CHANGES.queued);
  const failed = useJobs({ status: "failed", limit: 2 * PAGE }, CHANGES.failed);
  const completed = useJobs({ status: "completed", limit: BRIEF }, CHANGES.completed);
  const loads = [running, queued, failed, completed];
  if (loads.every((load) => load.data?.total === 0)) {
    return html`<${Empty} title=${text.noJobs}><p>${text.noJobsYet}</p><//>`;
  }
  return html`
    <${Brief} status="running" load=${running} />
    <${Brief} status="queued" load=${queued} />
    <${Loaded} load=${failed}>${(data) => data.total > 0 && html`<${Groups} data=${data} reload=${failed.reload} />`}<//>
    <${Brief} status="completed" load=${completed} />
  `;
}

/** The newest jobs of a status, with a link to all of them. */
function Brief({ status, load }) {
  return html`<${Loaded} load=${load}>
    ${({ jobs, total }) =>
      total > 0 &&
      html`<section>
        <h2>${text.statuses[status]} <small class="muted">${count(total)}</small></h2>
        <ul class="list jobs-list">${jobs.map((job) => html`<${JobRow} key=${job.id} job=${job} done=${load.reload} />`)}</ul>
        ${total > jobs.length && html`<p><a href="/jobs?status=${status}">${text.allOf(total)}</a></p>`}
      </section>`}
  <//>`;
}

function Paged({ status, query }) {
  const offset = Math.max(0, Number.parseInt(query.get("offset"), 10) || 0);
  const load = useJobs({ status, limit: PAGE, offset }, CHANGES[status]);
  return html`<${Loaded} load=${load}>
    ${({ jobs, total }) =>
      total === 0
        ? html`<${Empty} title=${text.noJobs} />`
        : html`<section>
            <h2>${text.statuses[status]} <small class="muted">${count(total)}</small></h2>
            <ul class="list jobs-list">${jobs.map((job) => html`<${JobRow} key=${job.id} job=${job} done=${load.reload} />`)}</ul>
            <${Pager} total=${total} offset=${offset} limit=${PAGE} to=${(next) => `/jobs?status=${status}&offset=${next}`} />
          </section>`}
  <//>`;
}

function Failures() {
  const load = useJobs({ status: "failed", limit: MOST_FAILED }, CHANGES.failed);
  return html`<${Loaded} load=${load}>
    ${(data) => (data.total ? html`<${Groups} data=${data} reload=${load.reload} />` : html`<${Empty} title=${text.noJobs} />`)}
  <//>`;
}

/** Failed jobs by their code: what they have in common, and what helps. */
function Groups({ data, reload }) {
  const groups = Map.groupBy(data.jobs, (job) => job.error?.code ?? "internal");
  return html`<section>
    <h2>${text.statuses.failed} <small class="muted">${count(data.total)}</small></h2>
    ${data.total > data.jobs.length && html`<p class="notice"><a href="/jobs?status=failed">${text.newestOnly(data.jobs.length, data.total)}</a></p>`}
    ${[...groups].map(([code, jobs]) => html`<${Group} key=${code} code=${code} jobs=${jobs} reload=${reload} />`)}
  </section>`;
}

function Group({ code, jobs, reload }) {
  const [most, setMost] = useState(BRIEF);
  const [busy, setBusy] = useState(false);
  const [name, advice] = text.codes[code] ?? [code, text.otherCode];
  const retryAll = async () => {
    setBusy(true);
    let refused = 0;
    for (let at = 0; at < jobs.length; at += AT_ONCE) {
      const some = jobs.slice(at, at + AT_ONCE).map((job) => post(`/jobs/${job.id}/retry`).catch((error) => (error.status === 409 ? refused++ : complain(error))));
      await Promise.all(some);
    }
    say(text.retried(jobs.length - refused, refused));
    setBusy(false);
    reload();
  };
  return html`<div class="card group">
    <header>
      <h3>${name} <code>${code}</code></h3>
      ${jobs.length > 1 && html`<button disabled=${busy} onClick=${retryAll}>${text.retryGroup(jobs.length)}</button>`}
    </header>
    <p class="muted">${advice}</p>
    <ul class="list jobs-list">${jobs.slice(0, most).map((job) => html`<${JobRow} key=${job.id} job=${job} done=${reload} />`)}</ul>
    ${jobs.length > most && html`<button class="quiet" onClick=${() => setMost(most + PAGE)}>${text.showMore(jobs.length - most)}</button>`}
  </div>`;
}
