// Waiting for a job that a person started with a click.

import { ApiError, get } from "./api.js";

const PAUSE = 250;

/** The job once it has ended; a failed or cancelled one becomes an ApiError with its reason. */
export async function jobEnd(id) {
  for (;;) {
    const job = await get(`/jobs/${id}`);
    if (job.status === "completed") return job;
    if (job.finished_at) throw new ApiError(0, job.error ?? { code: job.status, message: job.current_step ?? job.status });
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}
