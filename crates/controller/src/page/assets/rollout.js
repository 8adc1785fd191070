// What the rollout of a parent waited for, one thing after the other.
import { $, el, fill, lasted, name, plain, term } from "./words.js";

/** Time after which it is asked for again, while it is looked at; the server's answer is as old. */
const AGAIN = 10_000;

/** Earlier rollouts that are unfolded. */
const unfolded = new Set();

/** The critical path of one parent's rollout. `ask` requests it, only while it is unfolded. */
export class Rollout {
  constructor(ask) {
    Object.assign(this, { ask, of: "", at: 0, asked: null, shown: "" });
    $("rollout").addEventListener("toggle", () => this.seek(this.of));
    setInterval(() => { if (document.visibilityState === "visible") this.seek(this.of); }, AGAIN);
  }

  /** Shows the rollout of this parent, if that is wanted and was not just done. */
  async seek(of) {
    if (of !== this.of) {
      Object.assign(this, { of, at: 0, asked: null, shown: "" });
      fill($("path"), of && el("p", "note", "reading …"));
    }
    $("rollout").hidden = !of;
    if (!of || !$("rollout").open || this.asked || Date.now() - this.at < AGAIN) return;
    const asked = this.asked = {};
    const found = await this.ask(of).catch((error) => ({ error: `${error.message}${error.hint ? `: ${error.hint}` : ""}` }));
    if (this.asked !== asked) return;
    Object.assign(this, { asked: null, at: Date.now() });
    // What is the same is not made again: whoever stands in it with the keyboard stays there.
    const text = JSON.stringify({ ...found, now: 0 });
    if (text === this.shown) return;
    this.shown = text;
    show(found);
  }
}

function show(found) {
  if (found.error) return fill($("path"), el("p", "note", plain(found.error)));
  const { from, to, notRead } = found;
  const earlier = (found.earlier ?? []).map((rollout) => past(rollout, found.isGroup));
  if (from === null) return fill($("path"), el("p", "note", "The object does not say when it was written."), ...earlier);
  return fill($("path"),
    el("p", "", found.isOver ? "ready " : "not ready, ", el("span", "strong", lasted(to - from)), ` after ${written(found, found.isGroup)} was written`),
    path(found),
    found.toldLater && el("p", "note", `It was told ready at ${new Date(found.toldLater).toLocaleString()}, which its rollout does not explain: it turned since, or its policy waits for longer.`),
    unread(notRead), ...earlier);
}

/** What was written when a rollout began. */
function written(rollout, isGroup) {
  return isGroup ? "its newest member" : rollout.generation === null ? "it" : `generation ${rollout.generation}`;
}

function path({ from, to, parts }) {
  const whole = Math.max(1, to - from);
  const longest = Math.max(...parts.map((part) => part.to - part.from));
  return el("ol", "path", ...parts.map((part) => line(part, from, whole, longest)));
}

function unread(notRead) {
  return notRead.length > 0 && el("dl", "facts", ...notRead.map((what) => term("not read", what)));
}

/** The rollout of an earlier generation, folded; those that were unfolded stay so. */
function past(rollout, isGroup) {
  const key = `${rollout.generation} ${rollout.from}`;
  const item = el("details", "past", el("summary", "", "ready ", el("span", "strong", lasted(rollout.to - rollout.from)),
    ` after ${plain(String(written(rollout, isGroup)))} was written, ${new Date(rollout.from).toLocaleString()}`));
  item.append(rollout.hidden ? el("p", "note", "You may not list all that it waited for.") : path(rollout));
  const left = unread(rollout.notRead);
  if (left) item.append(left);
  item.open = unfolded.has(key);
  item.addEventListener("toggle", () => item.open ? unfolded.add(key) : unfolded.delete(key));
  return item;
}

function line(part, from, whole, longest) {
  const took = part.to - part.from;
  const bar = el("span", "bar-part");
  [bar.style.marginInlineStart, bar.style.width] = [`${(part.from - from) / whole * 100}%`, `${Math.max(0.5, took / whole * 100)}%`];
  const track = el("span", "track", bar);
  track.setAttribute("aria-hidden", "true");
  const text = el("span", took === longest ? "strong" : "", name(part.object), `: ${part.says}`);
  const item = el("li", "", el("span", "took", `${lasted(took)} `), el("span", "took", `${Math.round(took / whole * 100)} % `), text, track);
  item.title = plain(`${new Date(part.from).toLocaleString()} – ${new Date(part.to).toLocaleString()}`);
  return item;
}
