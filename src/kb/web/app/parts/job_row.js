// One job: what it is about, how far it is or how it ended, and what can be done about it.

import { post } from "../api.js";
import { html, useState } from "../html.js";
import { documentUrl } from "../router.js";
import { text } from "../strings.js";
import { Bar, Time } from "./labels.js";
import { complain } from "./toast.js";

const ACTIONS = { queued: "cancel", running: "cancel", failed: "retry", cancelled: "retry" };

export const jobName = (job) => job.filename ?? text.kinds[job.kind] ?? job.kind;

export function JobRow({ job, done }) {
  const [busy, setBusy] = useState(false);
  const action = ACTIONS[job.status];
  const label = action === "cancel" ? text.cancel : text.retry;
  const act = async () => {
    setBusy(true);
    await post(`/jobs/${job.id}/${action}`).catch(complain);
    setBusy(false);
    done?.();
  };
  const url = job.document_id && (job.kind === "note" ? `/n/${job.document_id}` : documentUrl(job.document_id));
  return html`<li class="job ${job.status}">
    <div class="what">
      ${url && job.status === "completed"
        ? html`<a href=${url} dir="auto">${jobName(job)}</a>`
        : html`<span class="title" dir="auto">${jobName(job)}</span>`}
      <p class="facts"><${State} job=${job} /></p>
      ${job.error && html`<p class="error-text" dir="auto">${job.error.message}</p>`}
    </div>
    ${action && html`<button class="quiet" disabled=${busy} aria-label=${text.ofItem(label, jobName(job))} onClick=${act}>${label}</button>`}
  </li>`;
}

function State({ job }) {
  if (job.status === "running") {
    return html`<${Bar} share=${job.progress} /><span dir="auto">${text.reading(job.current_step)}</span>
      ${job.estimated_remaining_seconds !== null && html`<span>${text.remaining(job.estimated_remaining_seconds)}</span>`}
      ${job.attempts > 1 && html`<span>${text.attempts(job.attempts)}</span>`}`;
  }
  if (job.status === "queued") return html`<span>${text.inLine}</span><${Time} at=${job.created_at} />`;
  return html`${job.status === "completed" && html`<span>${text.doneAs[job.outcome] ?? text.statuses.completed}</span>`}
    <${Time} at=${job.finished_at ?? job.created_at} />
    ${job.status === "completed" && job.elapsed_seconds > 0 && html`<span>${text.took(job.elapsed_seconds)}</span>`}`;
}
