// What the reader has chosen: one job or node that is lit, any number of jobs that are ticked. It is kept by identity through every update,
// and found again by id after a restart of the service, when all keys are new.

import { OTHERS } from "./board.js";

export class Selection {
  constructor(live) {
    this.live = live;
    this.job = null; // the job itself, as the board has it
    this.node = "";
    this.ticked = new Set(); // keys
    this.ids = new Map(); // their ids, to find them again
    this.listeners = new Set();
    live.listen((what) => this.follow(what));
  }

  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  follow({ board, jobs }) {
    const now = this.live.board;
    if (board) {
      if (this.job) this.job = now.byId.get(this.job.id) ?? null;
      this.ticked = new Set([...this.ids.values()].map((id) => now.byId.get(id)?.key).filter((key) => key !== undefined));
      this.ids = new Map([...this.ticked].map((key) => [key, now.jobs.get(key).id]));
      if (!now.nodes.some((node) => node.name === this.node)) this.node = "";
    } else for (const job of jobs) if (job.gone && this.ticked.delete(job.key)) this.ids.delete(job.key);
  }

  pickJob(job) {
    this.job = job;
    this.node = "";
    this.changed();
  }

  pickNode(name) {
    this.node = name;
    this.job = null;
    this.changed();
  }

  tick(job, on = !this.ticked.has(job.key)) {
    if (job.id === OTHERS) return;
    if (on) {
      this.ticked.add(job.key);
      this.ids.set(job.key, job.id);
    } else {
      this.ticked.delete(job.key);
      this.ids.delete(job.key);
    }
    this.changed();
  }

  untick() {
    this.ticked.clear();
    this.ids.clear();
    this.changed();
  }

  tickedJobs() {
    return [...this.ticked].map((key) => this.live.board.jobs.get(key)).filter(Boolean);
  }
}
