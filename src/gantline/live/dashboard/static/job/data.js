// What is known of one job: its record, why it is where it is, and, when the service has computed it, when it is expected to start.

import { Loader } from "../parts/loader.js";

const PAUSE = 700; // milliseconds between questions for a forecast that is being made
const OFTEN = 2000, SELDOM = 6000; // milliseconds between two looks: after a change of the job, and without one

export class JobData {
  constructor(app, id, onChange) {
    Object.assign(this, { app, id, onChange, dirty: false });
    this.record = new Loader(onChange);
    this.explained = new Loader(onChange);
    this.forget = app.live.listen(({ jobs, board }) => {
      if (board || [...jobs].some((job) => job.id === id)) this.dirty = true;
    });
    this.look();
    this.ticking = setInterval(() => {
      const age = Date.now() - this.looked;
      if (age >= SELDOM || (this.dirty && age >= OFTEN)) this.look();
    }, 500);
  }

  stop() {
    clearInterval(this.ticking);
    this.forget();
    this.record.stop();
    this.explained.stop();
  }

  get ended() {
    return this.record.value?.ended != null;
  }

  look() {
    if (this.ended && !this.dirty) return;
    this.looked = Date.now();
    this.dirty = false;
    const path = `/v1/jobs/${encodeURIComponent(this.id)}`;
    this.record.load((signal) => this.app.api.get(path, {}, signal));
    if (!this.waitsForForecast) this.explain(path);
  }

  /** Why at once; the forecast is asked for again until it is there. */
  async explain(path) {
    let since;
    this.waitsForForecast = true;
    do {
      await this.explained.load((signal) => this.app.api.get(`${path}/explain`, { since }, signal));
      const found = this.explained.value;
      if (this.explained.error || found?.forecast?.status !== "pending") break;
      since = found.since;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    } while (this.explained.going);
    this.waitsForForecast = false;
    if (this.explained.value?.forecast?.status === "ready") this.forecast = this.explained.value.forecast;
  }
}
