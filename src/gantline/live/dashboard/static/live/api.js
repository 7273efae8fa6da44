// Requests to the service: the session's token goes with each of them, and a refusal becomes an error in words.

const KEPT = "gantline.session";

/** What the service said no with, or that it could not be reached (`status` 0). */
export class Refusal extends Error {
  constructor(status, { what, where = "", fix = "", kind = "" }) {
    super(what);
    Object.assign(this, { status, what, where, fix, kind });
  }
}

export const UNREACHABLE = { what: "the service does not answer", fix: "it is tried again by itself" };

export class Api {
  constructor(onExpired = () => {}) {
    this.onExpired = onExpired;
    this.token = sessionStorage.getItem(KEPT) ?? "";
  }

  /** Keep a token for this tab only; an empty one forgets it. */
  keep(token) {
    this.token = token;
    if (token) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
  }

  /** Trade the code of a log-in link for a token. */
  async login(code) {
    const { token } = await this.request("POST", "/v1/login", { body: { code }, open: true });
    this.keep(token);
  }

  get(path, query, signal) {
    return this.request("GET", path + queryOf(query), { signal });
  }

  post(path, body, headers) {
    return this.request("POST", path, { body, headers });
  }

  put(path, body) {
    return this.request("PUT", path, { body });
  }

  patch(path, body) {
    return this.request("PATCH", path, { body });
  }

  delete(path) {
    return this.request("DELETE", path, {});
  }

  /** The answer's JSON. */
  async request(method, path, options) {
    const answer = await this.open(method, path, options);
    try {
      return await answer.json();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal(answer.status, { what: `the answer cannot be read: ${error.message}`, where: path.split("?")[0] });
    }
  }

  /** The answer itself, once it is known to be a good one. */
  async open(method, path, { body, headers = {}, signal, open = false }) {
    const sent = { ...headers };
    if (body !== undefined) sent["Content-Type"] = "application/json";
    if (this.token && !open) sent.Authorization = `Bearer ${this.token}`;
    let answer;
    try {
      answer = await fetch(path, { method, headers: sent, body: body === undefined ? undefined : JSON.stringify(body), signal, credentials: "omit", cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal(0, UNREACHABLE);
    }
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => ({}));
    const refusal = new Refusal(answer.status, told.error ?? { what: `the service answered ${answer.status}` });
    if (answer.status === 401 && !open) this.onExpired(refusal);
    throw refusal;
  }
}

function queryOf(query = {}) {
  const pairs = Object.entries(query).flatMap(([key, value]) => (Array.isArray(value) ? value : [value]).map((one) => [key, one]));
  const given = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** Ask again until an answer is ready; what has to be computed is made by the service once for all who ask. */
export async function whenReady(ask, isReady, signal, pause = 700) {
  let found = await ask(undefined);
  while (!isReady(found)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (signal?.aborted) throw new DOMException("left", "AbortError");
    found = await ask(found.since);
  }
  return found;
}
