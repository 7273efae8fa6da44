// Where the reader is: the fragment of the address, as #/page/what?key=value.

export function routeOf(fragment) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/");
  return { page: page || "now", what: rest.map(decode).join("/"), query: Object.fromEntries(new URLSearchParams(query)) };
}

export function addressOf(page, what = "", query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#/${page}${what ? `/${encodeURIComponent(what)}` : ""}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export function go(page, what, query) {
  location.hash = addressOf(page, what, query);
}

/** The code of a log-in link; it is taken out of the address at once, so that it stays in no history. */
export function takeLoginCode() {
  const found = /^#login=([^&]+)$/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", "#/now");
  return decode(found[1]);
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray % in an address that a person typed
  }
}
