// What the rollout of a parent waited for, one thing after the other.
import { $, el, fill, lasted, name, plain, term } from "./words.js";

/** Time after which it is asked for again, while it is looked at; the server's answer is as old. */
const AGAIN = 10_000;

/** The critical path of one parent's rollout. `ask` requests it, only while it is unfolded. */
export class Rollout {
  constructor(ask) {
    Object.assign(this, { ask, of: "", at: 0, asked: null });
    $("rollout").addEventListener("toggle", () => this.seek(this.of));
    setInterval(() => { if (document.visibilityState === "visible") this.seek(this.of); }, AGAIN);
  }

  /** Shows the rollout of this parent, if that is wanted and was not just done. */
  async seek(of) {
    if (of !== this.of) {
      Object.assign(this, { of, at: 0, asked: null });
      fill($("path"), of && el("p", "note", "reading …"));
    }
    $("rollout").hidden = !of;
    if (!of || !$("rollout").open || this.asked || Date.now() - this.at < AGAIN) return;
    const asked = this.asked = {};
    const found = await this.ask(of).catch((error) => ({ error: `${error.message}${error.hint ? `: ${error.hint}` : ""}` }));
    if (this.asked !== asked) return;
    Object.assign(this, { asked: null, at: Date.now() });
    show(found);
  }
}

function show(found) {
  if (found.error) return fill($("path"), el("p", "note", plain(found.error)));
  const { from, to, parts, notRead } = found;
  if (from === null) return fill($("path"), el("p", "note", "The object does not say when it was written."));
  const whole = Math.max(1, to - from);
  const of = found.isGroup ? "its newest member" : found.generation === null ? "it" : `generation ${found.generation}`;
  const longest = Math.max(...parts.map((part) => part.to - part.from));
  return fill($("path"),
    el("p", "", found.isOver ? "ready " : "not ready, ", el("span", "strong", lasted(to - from)), ` after ${of} was written`),
    el("ol", "path", ...parts.map((part) => line(part, from, whole, longest))),
    found.toldLater && el("p", "note", `It was told ready at ${new Date(found.toldLater).toLocaleString()}, which its rollout does not explain: it turned since, or its policy waits for longer.`),
    notRead.length > 0 && el("dl", "facts", ...notRead.map((what) => term("not read", what))));
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
