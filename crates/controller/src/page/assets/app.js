// The page: requests to the server, and the handling of their responses.
import { FILTERS, address, at, follow, go, onMove, read, rename } from "./address.js";
import { Below } from "./below.js";
import { kubectl } from "./copy.js";
import { bindGate, gate, isShut } from "./gate.js";
import { Hour } from "./hour.js";
import { keptTheme, keys, theme } from "./keys.js";
import { choices, counts, key, list, order } from "./list.js";
import { object } from "./object.js";
import { head, past } from "./parent.js";
import { Parents, matches, stands } from "./parents.js";
import { Rollout } from "./rollout.js";
import { get, onRefused } from "./server.js";
import { doubt, stay, wake } from "./stream.js";
import { Tree } from "./tree.js";
import { wall, wallClock } from "./wall.js";
import { $, VERDICTS, el, fill, place, plain, serverTime, tick } from "./words.js";

const PARTIAL = "Not all namespaces could be checked at once: select one, or name it in the address as ?namespace=NAME, "
  + "to see all of its parents.";
const NOTHING = "No policy has found a parent yet. A ReadinessPolicy selects a kind of parent; "
  + "kubectl get readinesspolicies shows how many parents each one applies to.";
/** A parent that could not be read is read again after this time, and this spread. */
const REOPEN = 2_000, REOPEN_SPREAD = 3_000;
/** After a change of very many, pages read the open parent again within this time. */
const RELOAD_SPREAD = 2_000;

let one = null, opened = 0, shownTurn = 0;
const parents = new Parents({ loaded, changed: draw, failed });
const tree = new Tree($("tree"), (node) => go({ object: place(node) }));
const below = new Below((of, signal) => ask("below", of, signal), () => { if (one) { tree.show(below.merge(one.nodes)); look(); } });
const rollout = new Rollout((of) => ask("rollout", of));
const hour = new Hour((t) => address({ parent: place(t), as: t.policy, object: "" }), enter);

/** Handles a changed address: requests what is not loaded yet. */
function moved(before) {
  for (const id of ["q", "policy", "namespace"]) if ($(id).value !== at[id]) $(id).value = at[id];
  if (FILTERS.some((field) => before[field] !== at[field])) load();
  else draw();
  if (before.namespace !== at.namespace || hour.owed) hour.load();
  else hour.draw();
  if (before.parent !== at.parent || before.as !== at.as) {
    one = null;
    tree.folded.clear();
    tree.at = -1;
    unfold();
    open();
  }
  if (before.object !== at.object || before.parent !== at.parent) look();
}

// —— requests

/** Asks for the list. What goes wrong is shown. */
const load = (more) => parents.load(more).catch(() => {});

function loaded(found) {
  choices($("policy"), found.policies, at.policy);
  // With a namespace chosen, the server may review and return only that one: keep those offered before.
  const offered = at.namespace ? [...$("namespace").options].map((option) => option.value) : [];
  choices($("namespace"), [...found.namespaces, ...offered], at.namespace);
  gate(null);
  draw();
}

/** Shows that the list could not be read. Returns true if it is to be asked for again. */
function failed(error) {
  if (error.shut) return false;
  draw();
  // The list is hidden, so the error is shown here, and whoever has a token tries again.
  if (isShut()) $("hint").textContent = plain(`${error.message}. ${error.hint ?? ""}`);
  return !isShut();
}

/** Path of a parent by its uid, and of what the address names: by name, or, in old links, by uid. */
const pathOf = (uid) => `api/v1/parents/${encodeURIComponent(uid)}`;
function addressed() {
  const [label, namespace, ...name] = at.parent.split("/");
  return name.length ? `api/v1/parents/by-name?${new URLSearchParams({ label, namespace, name: name.join("/"), policy: at.as })}`
    : `${pathOf(at.parent)}?policy=${encodeURIComponent(at.as)}`;
}

/** What else is asked of one parent, by its uid and the policy of the address. */
function ask(what, of, signal) {
  const [uid, as] = of.split("|");
  return get(`${pathOf(uid)}/${what}?policy=${encodeURIComponent(as)}`, () => true, signal);
}

/** Reads the open parent. A response that comes after that of a later request is dropped; where each comes later than the next
 * request, each is shown. */
async function open() {
  const turn = ++opened;
  $("one").hidden = !at.parent;
  document.body.classList.toggle("open", Boolean(at.parent));
  if (!at.parent) { seek(""); return draw(); }
  const [parent, as] = [at.parent, at.as];
  const wanted = () => at.parent === parent && at.as === as && turn > shownTurn;
  try {
    const found = await get(addressed(), wanted);
    if (!found) return;
    shownTurn = turn;
    // A uid dies with its parent, a name stays when it is created again.
    if (place(found) !== parent) rename({ parent: place(found) });
    if (one && one.uid === found.uid && one.verdict !== found.verdict) say(`${found.name}: ${found.verdict}, ${found.reason}`);
    one = found;
    head(one, address);
    kubectl($("copy"), one);
    past(one.transitions ?? []);
    const cut = [one.hidden && "Some objects are hidden because you are not permitted to list them.", one.nodes.some((n) => n.more) && "Some ready objects are omitted because there are too many."];
    $("cut").hidden = !cut.some(Boolean);
    $("cut").textContent = cut.filter(Boolean).join(" ");
    seek(`${one.uid}|${as}`);
    tree.show(below.merge(one.nodes));
    draw();
    look();
  } catch (error) {
    if (turn !== opened) return;
    lost(error);
    if (error.status !== 404 && !error.shut) later(REOPEN + Math.random() * REOPEN_SPREAD);
  }
}

/** What is below a parent, and its rollout, come beside the tree. */
function seek(of) {
  below.seek(of);
  rollout.seek(of);
}

/** Shows that the parent in the address cannot be displayed. */
function lost(error) {
  const before = one;
  one = null;
  tree.show([]);
  seek("");
  kubectl($("copy"), null);
  for (const id of ["past", "how", "causes"]) $(id).hidden = true;
  const [label, namespace, ...name] = at.parent.split("/");
  const who = name.length ? `${label.split(".")[0]} ${name.join("/")}${namespace && ` in ${namespace}`}` : "This parent";
  const again = name.length ? " It is shown here once it is there." : "";
  const why = error.status === 404 ? `${who} does not exist, or you are not permitted to see it.${again}` : error.message;
  fill($("head"), el("h2", "", who), el("p", "message", why));
  if (before) say(why);
}

let looking = "";

async function look() {
  const node = at.object && one && tree.nodes.find((n) => place(n) === at.object);
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
  const show = (found, around) => {
    if (what !== looking) return;
    object(node, found, around, shut, address);
    if (fresh && there >= 0) tree.go(there);
  };
  if (fresh || node.uid) show(null, null);
  // A parent's verdict follows from its children, which are already loaded; what no policy counts was read as it was found.
  if (node.uid || node.uncounted) return;
  const query = new URLSearchParams({ policy: at.as, label: node.label, namespace: node.namespace ?? "", name: node.name });
  const ask = (path) => get(`${pathOf(one.uid)}/${path}?${query}`)
    .catch((error) => ({ error: error.status === 404 ? "the object does not exist, or you are not permitted to get it" : error.message }));
  // The context of the object takes more requests, and is loaded in the background.
  const [decided, around] = [ask("branch"), node.verdict === "Ready" ? null : ask("around")];
  const found = await decided;
  show(found, null);
  if (around && !found.error) show(found, await around);
}

// —— rendering

function draw() {
  const { rows, numbers, next, partial, error } = parents;
  const shown = [...rows.values()].filter((row) => matches(row) && stands(row)).sort(order);
  list(shown, at.parent && one ? key(one) : "", (row) => address({ parent: place(row), as: row.policy, object: "" }));
  wall(shown, parents);
  const chosen = new Set(at.verdict.split(",").filter(Boolean));
  counts(numbers, partial, chosen, (verdict) => {
    if (!chosen.delete(verdict)) chosen.add(verdict);
    go({ verdict: VERDICTS.filter((v) => chosen.has(v)).join(",") });
  });
  $("more").hidden = !next;
  const total = VERDICTS.reduce((sum, v) => sum + (numbers[v] ?? 0), 0);
  const unwell = total - (numbers.Ready ?? 0);
  document.title = unwell ? `${unwell} not ready · Rollcall` : "Rollcall";
  doubt("list", parents.outdated);
  if (isShut()) return;
  if (error) return note(error.message);
  if (partial) return note(PARTIAL);
  if (shown.length) return note("");
  const filtered = total || FILTERS.some((field) => at[field]);
  note(filtered ? "No parent matches the filters." : NOTHING, true);
}

function note(text, blank = false) {
  $("note").hidden = !text;
  $("note").classList.toggle("blank", blank);
  $("note").textContent = plain(text);
}

function say(text) {
  $("said").textContent = plain(text);
}

/** A wide screen shows everything, a phone only the essentials. */
function unfold() {
  const wide = matchMedia("(min-width: 761px)").matches;
  for (const id of ["past", "how"]) $(id).open = wide;
}

// —— changes

let reopen = 0;

function hear(event) {
  if (event.name === "beat") return serverTime(Number(event.data));
  if (event.name === "reload") { parents.reload(); hour.hear(); later(Math.random() * RELOAD_SPREAD); return; }
  if (event.name !== "changed") return;
  const batch = JSON.parse(event.data);
  serverTime(batch.now);
  const touched = new Set([...batch.gone, ...batch.changed].map((row) => row.uid));
  // One that is created again is another object by the same name.
  const isHere = touched.has(one?.uid ?? at.parent) || batch.changed.some((row) => place(row) === at.parent);
  if (isHere || one?.nodes.some((node) => touched.has(node.uid))) later();
  parents.hear(batch);
  hour.hear();
}

/** Reloads the open parent, less often the larger it is, and not before `least`. */
function later(least = 0) {
  const size = one?.nodes.length ?? 0;
  const wait = size > 10_000 ? 10_000 : size > 1_000 ? 3_000 : 150;
  reopen ||= setTimeout(() => { reopen = 0; open(); }, Math.max(wait, least));
}

// —— input

/** Moves the focus down or up. */
function step(by) {
  const here = document.activeElement;
  if (at.parent && (here === document.body || $("one").contains(here))) {
    $("tree").focus({ preventScroll: true });
    return tree.go(tree.at + by);
  }
  const links = [...$("rows").querySelectorAll("a")];
  const held = links.indexOf(here);
  const to = held < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(held + by, 0), links.length - 1);
  links[to]?.focus();
}

function back() {
  if (at.object) { go({ object: "" }); $("tree").focus({ preventScroll: true }); return; }
  if (at.parent) {
    const held = one ? key(one) : "";
    go({ parent: "", as: "", object: "" });
    document.querySelector(`#rows li[data-key="${CSS.escape(held)}"] a`)?.focus();
    return;
  }
  if (at.wall) return go({ wall: "" });
  if (hour.close()) return;
  if (at.q) go({ q: "" }, true);
}

const toWall = () => go({ wall: at.wall ? "" : "1", parent: "", as: "", object: "" });

keys({
  step, back, theme,
  wall: toWall,
  copy: () => document.querySelector(at.object ? "#object .copy button" : "#copy button")?.click(),
  fold: (how) => tree.fold(how),
  jump: (to) => tree.go(to),
  open: () => { const node = tree.rows[tree.at]; if (node) go({ object: place(node) }); },
});

/** Handles links of the page itself without loading it again. */
function follows(event) {
  const to = event.target.closest?.("a");
  if (!to || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  enter(to.getAttribute("href"));
}

/** Follows an address of the page. */
function enter(href) {
  const before = at.parent;
  follow(href);
  if (!at.parent) return;
  if (at.parent !== before && getComputedStyle($("one")).overflowY !== "auto") scrollTo(0, 0);
  $("tree").focus({ preventScroll: true });
}

for (const id of ["rows", "hour-list", "head", "causes", "how", "object", "home"]) $(id).addEventListener("click", follows);
let typed;
$("q").addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => go({ q: $("q").value }, true), 120); });
$("policy").addEventListener("change", () => go({ policy: $("policy").value }));
$("namespace").addEventListener("change", () => go({ namespace: $("namespace").value }));
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", () => load(true));
$("back").addEventListener("click", () => { go({ object: "" }, true); back(); });
$("keys").addEventListener("click", () => $("help").showModal());
$("theme").addEventListener("click", theme);
$("wide").addEventListener("click", toWall);
bindGate({ load, enter: () => { open(); hour.load(); wake(); } });

setInterval(() => { tick(); wallClock(); }, 1000);
addEventListener("resize", draw);
document.addEventListener("visibilitychange", () => { if (hour.owed) hour.load(); });
keptTheme();
onRefused((refused) => { gate(refused); draw(); });
onMove(moved);
read();
unfold();
for (const id of ["q", "policy", "namespace"]) $(id).value = at[id];
load().then(() => {
  if (!isShut()) { open(); hour.load(); }
  stay({ hear, again: async () => { await parents.load(); open(); hour.load(); }, shut: isShut });
});
