// The cluster as the page knows it: jobs, the queue, nodes and devices, at one version. Differences are folded into it.

export const ENDED = new Set(["succeeded", "failed", "cancelled", "timeout", "rejected"]);
export const RUNS = new Set(["starting", "running", "resizing", "preempting"]);
export const OTHERS = "-"; // the id of a job that this role may not see

/** Which part of a job's life its state belongs to. */
export const stageOf = (state) => (ENDED.has(state) ? "ended" : RUNS.has(state) ? "running" : state === "held" || state === "suspended" ? "held" : "waiting");

const RANK = { waiting: 1, running: 2, held: 3, ended: 4 }; // in which order a page shows them

export class Board {
  constructor(told) {
    this.version = told.version;
    this.columns = told.columns;
    this.jobs = new Map();
    this.byId = new Map();
    const columns = told.columns.map((name) => told.jobs[name]);
    for (let row = 0; row < told.jobs.key.length; row++) this.take(columns.map((column) => column[row]));
    this.nodes = told.nodes.name.map((name, at) => ({ name, type: told.nodes.type[at], first: told.nodes.first[at], count: told.nodes.count[at], at }));
    this.deviceState = [...told.devices.state];
    this.deviceJobs = told.devices.jobs;
    this.nodeOf = new Int32Array(this.deviceState.length);
    for (const node of this.nodes) this.nodeOf.fill(node.at, node.first, node.first + node.count);
    this.queue = this.known(told.queue); // jobs, not keys: every update numbers them all
    this.number();
    this.head = told.head;
    this.setTime(told.now);
  }

  /** The clock of the service, which may differ from the reader's. */
  setTime(now) {
    this.ahead = now - Date.now() / 1000;
  }

  now() {
    return Date.now() / 1000 + this.ahead;
  }

  /** A whole row of a job, new or known. */
  take(row) {
    const key = row[0];
    let job = this.jobs.get(key);
    if (!job) this.jobs.set(key, (job = { position: null, gone: false }));
    for (let at = 0; at < row.length; at++) job[this.columns[at]] = row[at];
    job.stage = stageOf(job.state);
    job.rank = RANK[job.stage];
    if (job.id !== OTHERS) this.byId.set(job.id, job);
    return job;
  }

  /** Fold differences in. Returns what they touched: jobs, devices, and whether the whole queue came anew. */
  apply(changes) {
    const touched = new Set();
    for (const row of changes.jobs ?? []) touched.add(this.take(row));
    for (const key of changes.gone ?? []) {
      const job = this.jobs.get(key);
      if (!job) continue;
      job.gone = true;
      this.jobs.delete(key);
      if (this.byId.get(job.id) === job) this.byId.delete(job.id);
      touched.add(job);
    }
    const reordered = this.requeue(changes.queue, touched);
    const devices = [];
    for (const [at, state, jobs] of changes.devices ?? []) {
      this.deviceState[at] = state;
      this.deviceJobs[at] = jobs;
      devices.push(at);
    }
    this.version = changes.version;
    this.head = changes.head;
    this.setTime(changes.now);
    return { jobs: touched, devices, reordered };
  }

  requeue(change, touched) {
    if (!change) return false;
    const leave = change.all ? this.queue : this.known(change.drop ?? []), left = new Set(leave);
    for (const job of leave) job.position = null;
    if (change.all) this.queue = this.known(change.all);
    else {
      if (left.size) this.queue = this.queue.filter((job) => !left.has(job) && !job.gone);
      for (const [place, key] of change.add ?? []) {
        const job = this.jobs.get(key);
        if (place >= this.queue.length) this.queue.push(job);
        else this.queue.splice(place, 0, job);
        touched.add(job);
      }
      for (const job of leave) touched.add(job);
    }
    this.number();
    return Boolean(change.all);
  }

  known(keys) {
    return keys.map((key) => this.jobs.get(key)).filter(Boolean);
  }

  number() {
    for (let place = 0; place < this.queue.length; place++) this.queue[place].position = place + 1;
  }

  deviceName(at) {
    const node = this.nodes[this.nodeOf[at]];
    return node.count === 1 ? node.name : `${node.name}:${at - node.first}`;
  }

  /** Jobs on a node, once each. */
  jobsOn(node) {
    const keys = new Set();
    for (let at = node.first; at < node.first + node.count; at++) for (const key of this.deviceJobs[at]) keys.add(key);
    return [...keys].map((key) => this.jobs.get(key)).filter(Boolean);
  }

  /** up, partly or cordoned, by the state of its devices. */
  nodeState(node) {
    let closed = 0;
    for (let at = node.first; at < node.first + node.count; at++) closed += this.deviceState[at] === "c";
    return closed === 0 ? "up" : closed === node.count ? "cordoned" : "partly cordoned";
  }
}
