// State in the address: filters, and the open parent. A shared link shows the same view.

export const FILTERS = ["q", "policy", "namespace", "verdict"];

/** State in the address. `parent` is the place of a parent; in old links its uid, which dies with it. */
export const at = { q: "", policy: "", namespace: "", verdict: "", parent: "", as: "", object: "", wall: "" };

let moved = () => {};

/** Called with the previous state whenever the address changes. */
export function onMove(tell) {
  moved = tell;
  addEventListener("popstate", again);
}

export function read() {
  const query = new URLSearchParams(location.search);
  for (const field of Object.keys(at)) at[field] = query.get(field) ?? "";
  if (query.has("wall")) at.wall = "1";
}

function again() {
  const before = { ...at };
  read();
  moved(before);
}

/** The address with some parameters changed. */
export function address(change = {}) {
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries({ ...at, ...change })) if (value) query.set(field, value);
  // Slashes may stand in a query, and are easier to read.
  const text = query.toString().replaceAll("%2F", "/");
  return text ? `?${text}` : "./";
}

export function go(change, replace = false) {
  if (Object.entries(change).every(([field, value]) => at[field] === value)) return;
  const url = address(change);
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  again();
}

/** Writes the same view by another address. */
export function rename(change) {
  Object.assign(at, change);
  history.replaceState(null, "", address());
}

/** Follows a link of the page. */
export function follow(href) {
  history.pushState(null, "", href);
  again();
}
