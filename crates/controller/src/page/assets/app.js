// The page: what is in the address, what is asked of the server, and what is done about an answer.
import { $, Tree, choices, counts, head, key, list, object, order, past, place } from "./view.js";
import { VERDICTS, now, plain, serverTime, tick } from "./words.js";

/** What the address says. */
const at = { q: "", policy: "", namespace: "", verdict: "", parent: "", as: "", object: "" };
const rows = new Map();
let numbers = {}, next = null, one = null, asked = 0, token = sessionStorage.getItem("token") ?? "";
const tree = new Tree($("tree"), (node) => go({ object: place(node) }));

// —— the address

function read() {
  const query = new URLSearchParams(location.search);
  for (const field of Object.keys(at)) at[field] = query.get(field) ?? "";
}

function address(change = {}) {
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries({ ...at, ...change })) if (value) query.set(field, value);
  const text = query.toString();
  return text ? `?${text}` : "./";
}

function go(change, replace = false) {
  if (Object.entries(change).every(([field, value]) => at[field] === value)) return;
  const url = address(change);
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  moved();
}

/** The address changed: ask for what is not there yet. */
function moved() {
  const before = { ...at };
  read();
  for (const id of ["q", "policy", "namespace"]) if ($(id).value !== at[id]) $(id).value = at[id];
  const filters = ["q", "policy", "namespace", "verdict"];
  if (filters.some((field) => before[field] !== at[field])) load();
  else draw();
  if (before.parent !== at.parent || before.as !== at.as) {
    one = null;
    tree.folded.clear();
    tree.at = -1;
    open();
  }
  if (before.object !== at.object || before.parent !== at.parent) look();
}

// —— the server

class Refused extends Error {
  constructor(status, body) {
    super(body.error ?? `the server answers ${status}`);
    this.status = status;
    this.hint = body.hint ?? "";
  }
}

async function call(path, options = {}) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  if (response.ok) return response;
  const refused = new Refused(response.status, await response.json().catch(() => ({})));
  if (response.status === 401 || response.status === 403) gate(refused);
  throw refused;
}

/** A question whose answer may come too late to be wanted. */
async function get(path, wanted = () => true) {
  const body = await (await call(path)).json();
  if (!wanted()) return null;
  if (body.now) serverTime(body.now);
  return body;
}

const matches = (row) => {
  const needle = at.q.toLowerCase();
  const text = [row.name, row.namespace, row.label, row.policy, row.reason];
  return (!at.policy || row.policy === at.policy) && (!at.namespace || row.namespace === at.namespace)
    && (!needle || text.some((part) => part.toLowerCase().includes(needle)));
};
const stands = (row) => !at.verdict || at.verdict.split(",").includes(row.verdict);

async function load(more = false) {
  const turn = ++asked;
  const query = new URLSearchParams();
  for (const field of ["q", "policy", "namespace", "verdict"]) if (at[field]) query.set(field, at[field]);
  if (more && next) query.set("continue", next);
  else if (rows.size > 100) query.set("limit", Math.min(rows.size, 500));
  try {
    const found = await get(`api/v1/parents?${query}`, () => turn === asked);
    if (!found) return;
    if (!more) rows.clear();
    for (const row of found.parents) rows.set(key(row), row);
    numbers = found.counts;
    next = found.continue;
    choices($("policy"), found.policies, at.policy);
    choices($("namespace"), found.namespaces, at.namespace);
    note(found.partial ? "There are more namespaces than are asked about at once: choose one to be sure of it." : "");
    gate(null);
    draw();
  } catch (error) {
    if (error.status === 401 || error.status === 403) return;
    note(error.message);
    // The list is not there to say so.
    if (!$("gate").hidden) $("hint").textContent = plain(`${error.message}. ${error.hint ?? ""}`);
  }
}

function note(text) {
  $("note").hidden = !text;
  $("note").textContent = plain(text);
}

async function open() {
  $("one").hidden = !at.parent;
  document.body.classList.toggle("open", Boolean(at.parent));
  if (!at.parent) return draw();
  const [uid, as] = [at.parent, at.as];
  const wanted = () => at.parent === uid && at.as === as;
  try {
    const found = await get(`api/v1/parents/${encodeURIComponent(uid)}?policy=${encodeURIComponent(as)}`, wanted);
    if (!found) return;
    if (one && one.uid === found.uid && one.verdict !== found.verdict) say(`${found.name}: ${found.verdict}, ${found.reason}`);
    one = found;
    head(one, (policy) => address({ as: policy, object: "" }));
    past(one.transitions ?? []);
    const cut = [one.hidden && "Some objects are in places that you may not list.", one.nodes.some((n) => n.more) && "The best of many are left out."];
    $("cut").hidden = !cut.some(Boolean);
    $("cut").textContent = cut.filter(Boolean).join(" ");
    tree.show(one.nodes);
    draw();
    look();
  } catch (error) {
    if (!wanted()) return;
    one = null;
    tree.show([]);
    $("past").hidden = true;
    $("head").replaceChildren(document.createTextNode(error.status === 404
      ? "This parent is gone, or you may not see it." : plain(error.message)));
  }
}

let looking = "";

async function look() {
  const node = at.object && one?.nodes.find((n) => place(n) === at.object);
  if (!node) {
    looking = "";
    return object(null);
  }
  const there = tree.rows.indexOf(node);
  const shut = () => { go({ object: "" }); $("tree").focus(); };
  const what = JSON.stringify([at.parent, at.object, node]);
  if (what === looking) return;
  const fresh = !looking.includes(JSON.stringify(at.object));
  looking = what;
  if (fresh || node.uid) object(node, null, shut, address);
  if (fresh && there >= 0) tree.go(there);
  // A parent is decided by what belongs to it, which is known already.
  if (node.uid) return;
  const query = new URLSearchParams({ policy: at.as, label: node.label, namespace: node.namespace ?? "", name: node.name });
  const found = await get(`api/v1/parents/${encodeURIComponent(at.parent)}/branch?${query}`)
    .catch((error) => ({ error: error.status === 404 ? "it cannot be read (any more), or you may not get it" : error.message }));
  if (what !== looking) return;
  object(node, found, shut, address);
  if (fresh && there >= 0) tree.go(there);
}

// —— what is seen

function draw() {
  const shown = [...rows.values()].filter((row) => matches(row) && stands(row)).sort(order);
  list(shown, at.parent && one ? key(one) : "", (row) => address({ parent: row.uid, as: row.policy, object: "" }));
  const chosen = new Set(at.verdict.split(",").filter(Boolean));
  counts(numbers, chosen, (verdict) => {
    if (!chosen.delete(verdict)) chosen.add(verdict);
    go({ verdict: VERDICTS.filter((v) => chosen.has(v)).join(",") });
  });
  $("more").hidden = !next;
  const total = VERDICTS.reduce((sum, v) => sum + (numbers[v] ?? 0), 0);
  const unwell = total - (numbers.Ready ?? 0);
  document.title = unwell ? `${unwell} not ready · Rollcall` : "Rollcall";
  if (shown.length === 0 && $("gate").hidden) {
    note(total || at.q || at.policy || at.namespace || at.verdict ? "No parent is like that." : "No policy has found a parent yet.");
  } else if (shown.length) note("");
}

function say(text) {
  $("said").textContent = plain(text);
}

/** Asks for a token, and says why. */
function gate(refused) {
  const shut = Boolean(refused);
  $("gate").hidden = !shut;
  $("list").hidden = shut;
  $("leave").hidden = !token;
  if (!shut) { $("one").hidden = !at.parent; return; }
  $("one").hidden = true;
  $("why").textContent = plain(refused.status === 403 ? "This token may see nothing here"
    : token ? "This token is not known" : "A Kubernetes token, please");
  $("hint").textContent = plain(refused.status === 403 ? `${refused.message}. ${refused.hint}.` : token ? `${refused.message}.` : "");
  link("wait", "waiting for a token");
  $("token").focus();
}

// —— what moves

let lost = 0, stopped = null, recount = 0, reopen = 0;

function link(state, text) {
  $("link").dataset.state = state;
  $("link").textContent = text;
}

/** Waits; a new token ends the wait. */
const pause = (millis) => new Promise((done) => { stopped = done; setTimeout(done, millis); });

async function follow() {
  for (let failures = 0; ; failures++) {
    if (!$("gate").hidden) { await pause(3600_000); failures = 0; continue; }
    const silence = new AbortController();
    let clock;
    const alive = () => { clearTimeout(clock); clock = setTimeout(() => silence.abort(), 30_000); };
    try {
      alive();
      const response = await call("api/v1/stream", { signal: silence.signal });
      if (lost || failures) { await load(); await open(); }
      [lost, failures] = [0, 0];
      link("live", "live");
      for await (const event of events(response.body)) {
        alive();
        hear(event);
        if (event.name === "end") break;
      }
    } catch { /* said below */ }
    clearTimeout(clock);
    silence.abort();
    if ($("gate").hidden) {
      lost ||= Date.now();
      link("lost", `connection lost since ${new Date(lost).toLocaleTimeString()}, trying again`);
      await pause(Math.min(15_000, 500 * 2 ** failures) * (0.75 + Math.random() / 2));
    }
  }
}

/** Server-sent events, which must carry a token and so do not come by EventSource. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const event = { name: "message", data: "" };
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("event:")) event.name = line.slice(6).trim();
        if (line.startsWith("data:")) event.data += line.slice(5).trim();
      }
      yield event;
    }
  }
}

function hear(event) {
  if (event.name === "beat") return serverTime(Number(event.data));
  if (event.name === "reload") { load(); later(); return; }
  if (event.name !== "changed") return;
  const { now: then, changed, gone } = JSON.parse(event.data);
  serverTime(then);
  let unknown = false;
  for (const row of gone) {
    const held = rows.get(key(row));
    if (held) { numbers[held.verdict] -= 1; rows.delete(key(row)); } else unknown = true;
    if (row.uid === at.parent) later();
  }
  for (const row of changed) {
    if (row.uid === at.parent || one?.nodes.some((node) => node.uid === row.uid)) later();
    const held = rows.get(key(row));
    if (!matches(row)) continue;
    if (held) numbers[held.verdict] -= 1;
    else unknown = true;
    numbers[row.verdict] = (numbers[row.verdict] ?? 0) + 1;
    // Beyond the end of what is loaded, it will come with the next page.
    if (held || !next || [...rows.values()].some((r) => order(row, r) < 0)) rows.set(key(row), row);
  }
  draw();
  // What was not loaded was counted by the server: it is asked again, though not at every change.
  if (unknown) recount ||= setTimeout(() => { recount = 0; load(); }, 2000 + Math.random() * 3000);
}

/** Reads the open parent again, the less often the larger it is. */
function later() {
  const size = one?.nodes.length ?? 0;
  const wait = size > 10_000 ? 10_000 : size > 1_000 ? 3_000 : 150;
  reopen ||= setTimeout(() => { reopen = 0; open(); }, wait);
}

// —— hands

/** Down or up, wherever one is. */
function step(by) {
  if (at.parent && ($("tree").contains(document.activeElement) || document.activeElement === document.body || $("one").contains(document.activeElement))) {
    $("tree").focus({ preventScroll: true });
    return tree.go(tree.at + by);
  }
  const links = [...$("rows").querySelectorAll("a")];
  const held = links.indexOf(document.activeElement);
  const to = held < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(held + by, 0), links.length - 1);
  links[to]?.focus();
}

function back() {
  if (at.object) { go({ object: "" }); $("tree").focus({ preventScroll: true }); return; }
  if (at.parent) {
    const held = at.parent + "|" + (one?.policy ?? at.as);
    go({ parent: "", as: "", object: "" });
    document.querySelector(`#rows li[data-key="${CSS.escape(held)}"] a`)?.focus();
    return;
  }
  if (at.q) go({ q: "" }, true);
}

function theme(change) {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (change) {
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = event.target.matches?.("input, select, textarea");
  if (event.key === "Escape") { event.target.blur?.(); back(); event.preventDefault(); return; }
  if (typing) {
    if (event.target.id === "q" && (event.key === "ArrowDown" || event.key === "Enter")) { step(1); event.preventDefault(); }
    return;
  }
  const inTree = event.target === $("tree");
  const hands = {
    "/": () => { $("q").focus(); $("q").select(); },
    "?": () => $("help").showModal(),
    t: () => theme(true),
    j: () => step(1),
    k: () => step(-1),
    ...(inTree && {
      ArrowDown: () => step(1), ArrowUp: () => step(-1),
      ArrowLeft: () => tree.fold(true), ArrowRight: () => tree.fold(false),
      Home: () => tree.go(0), End: () => tree.go(tree.rows.length - 1),
      PageDown: () => tree.go(tree.at + 20), PageUp: () => tree.go(tree.at - 20),
      Enter: () => { const node = tree.rows[tree.at]; if (node) go({ object: place(node) }); },
    }),
  };
  if (hands[event.key]) { hands[event.key](); event.preventDefault(); }
});

$("rows").addEventListener("click", follows);
$("head").addEventListener("click", follows);
$("object").addEventListener("click", follows);
$("home").addEventListener("click", follows);

/** Our own links do not leave the page. */
function follows(event) {
  const link = event.target.closest?.("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  moved();
  if (at.parent) {
    if (getComputedStyle($("one")).overflowY !== "auto") scrollTo(0, 0);
    $("tree").focus({ preventScroll: true });
  }
}

let typed;
$("q").addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => go({ q: $("q").value }, true), 120); });
$("policy").addEventListener("change", () => go({ policy: $("policy").value }));
$("namespace").addEventListener("change", () => go({ namespace: $("namespace").value }));
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", () => load(true));
$("back").addEventListener("click", () => { go({ object: "" }, true); back(); });
$("keys").addEventListener("click", () => $("help").showModal());
$("theme").addEventListener("click", () => theme(true));
$("leave").addEventListener("click", () => { sessionStorage.removeItem("token"); location.reload(); });
$("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  await load();
  if ($("gate").hidden) {
    sessionStorage.setItem("token", token);
    $("leave").hidden = false;
    open();
    stopped?.();
  }
});
addEventListener("popstate", moved);
setInterval(tick, 1000);

const kept = localStorage.getItem("theme");
if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
read();
for (const id of ["q", "policy", "namespace"]) $(id).value = at[id];
load().then(() => { if (at.parent && $("gate").hidden) open(); follow(); });
