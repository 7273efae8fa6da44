// Keeps a Board up to date: fetches it once, follows the stream of differences, and finds the way back after a loss.

import { Refusal } from "./api.js";
import { Board } from "./board.js";
import { CutOff, frames } from "./frames.js";

const SILENCE = 15_000; // milliseconds; the service sends a beat every five seconds
const PAUSES = [500, 1000, 2000, 4000]; // between attempts to connect again

/**
 * `status`: connecting, live, lost (tried again by itself) or ended (`why` says what happened to the session).
 * Listeners are called with {board, jobs, devices, reordered}: `board` is true where everything is new.
 */
export class Live {
  constructor(api) {
    this.api = api;
    this.board = null;
    this.stale = false;
    this.status = "connecting";
    this.why = null;
    this.listeners = new Set();
    this.stopped = new AbortController();
  }

  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  stop() {
    this.stopped.abort();
    this.stopped = new AbortController();
  }

  async run() {
    const { signal } = this.stopped;
    for (let failures = 0; !signal.aborted && this.status !== "ended"; failures += 1) {
      try {
        if (!this.board || this.stale) this.renew(new Board(await this.api.get("/v1/board", {}, signal)));
        for await (const frame of await this.follow(signal)) {
          failures = 0;
          if (!this.take(frame)) break;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Refusal || error instanceof CutOff)) throw error; // a defect of the page, not a lost connection
        if (error.status === 401 || error.status === 403) this.end(error);
      }
      if (signal.aborted || this.status === "ended" || (this.stale && failures === 0)) continue;
      this.set("lost");
      await pause(PAUSES[Math.min(failures, PAUSES.length - 1)]);
    }
  }

  /** Act on a frame; false: this stream has nothing more to say. */
  take({ event, data }) {
    if (event === "changes" && data.from === this.board.version) {
      this.set("live");
      this.tell({ board: false, ...this.board.apply(data) });
      return true;
    }
    if (event === "beat") {
      this.board.setTime(data.now);
      this.set("live");
      return true;
    }
    if (event === "end" && !data.again) this.end(data);
    this.stale = event === "reset" || event === "changes"; // differences from another version cannot be folded in
    return false;
  }

  async follow(signal) {
    const answer = await this.api.open("GET", `/v1/stream?after=${encodeURIComponent(this.board.version)}`, { signal });
    this.set("live");
    return frames(answer.body, SILENCE);
  }

  renew(board) {
    this.board = board;
    this.stale = false;
    this.tell({ board: true, jobs: new Set(), devices: [], reordered: true });
  }

  end(why) {
    this.why = why;
    this.set("ended");
  }

  set(status) {
    if (this.status === status) return;
    this.status = status;
    this.tell({ board: false, jobs: new Set(), devices: [], reordered: false, status: true });
  }

  tell(what) {
    for (const listener of this.listeners) listener(what);
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
