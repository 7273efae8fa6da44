// What the map's colours mean: the user, the queue or the job on a device, its type, or its health.

import { COLOURS, REST, Palette } from "./palette.js";

export const WAYS = { user: "user", queue: "queue", job: "job", type: "device type", health: "health" };
const HEALTH = ["busy", "free", "reserved", "cordoned"];
const HEALTH_COLOURS = [0, 2, 1, 5];

export class Colouring {
  constructor() {
    this.palettes = { user: new Palette(), queue: new Palette(), type: new Palette() };
  }

  /** Colours for what a new board holds: the largest first. */
  offer(board) {
    for (const way of ["user", "queue"]) this.palettes[way].offer(ranked(held(board, way)).map(([name]) => name));
    this.palettes.type.offer(board.nodes.map((node) => node.type));
  }

  /** The category of a device, -1 where it is free and the way of colouring is about jobs. */
  category(board, way, device) {
    if (way === "type") return this.palettes.type.of(board.nodes[board.nodeOf[device]].type);
    if (way === "health") return HEALTH_COLOURS[health(board, device)];
    const job = board.jobs.get(board.deviceJobs[device][0]);
    if (!job) return -1;
    return way === "job" ? job.key % COLOURS : this.palettes[way].of(job[way]);
  }

  /** Entries of the legend: {name, colour, devices}. */
  legend(board, way) {
    if (way === "job") return [];
    if (way === "health") {
      const many = new Array(HEALTH.length).fill(0);
      for (let at = 0; at < board.deviceState.length; at++) many[health(board, at)]++;
      return HEALTH.map((name, at) => ({ name, colour: HEALTH_COLOURS[at], devices: many[at] })).filter((entry) => entry.devices);
    }
    const sizes = way === "type" ? types(board) : held(board, way);
    const named = [];
    let rest = 0, others = 0;
    for (const [name, devices] of ranked(sizes)) {
      const colour = this.palettes[way].of(name);
      if (colour === REST) {
        rest += devices;
        others++;
      } else named.push({ name, colour, devices });
    }
    return rest ? [...named, { name: `${others} more`, colour: REST, devices: rest, folded: true }] : named;
  }
}

function health(board, device) {
  if (board.deviceState[device] === "c") return 3;
  if (board.deviceJobs[device].length) return 0;
  return board.deviceState[device] === "r" ? 2 : 1;
}

function held(board, way) {
  const sizes = new Map();
  for (const job of board.jobs.values()) if (job.held) sizes.set(job[way], (sizes.get(job[way]) ?? 0) + job.held);
  return sizes;
}

function types(board) {
  const sizes = new Map();
  for (const node of board.nodes) sizes.set(node.type, (sizes.get(node.type) ?? 0) + node.count);
  return sizes;
}

const ranked = (sizes) => [...sizes].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
