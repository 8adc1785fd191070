// What has changed in the last hour, over all parents: a mark for each transition.
import { at } from "./address.js";
import { matches, stands } from "./parents.js";
import { get } from "./server.js";
import { $, VERDICTS, badge, el, fill, name, now, place, plain, since } from "./words.js";

/** The time that is shown, and that of one of its cells. */
const HOUR = 3_600_000, CELL = 120_000;
/** Marks of one cell; its label tells how many there are. */
const MARKS = 24;
/** Transitions that are listed of one cell. */
const LISTED = 50;
/** After changes it is asked for what is new, not by all pages at once; and the marks move on. */
const PAUSE = 2_000, SPREAD = 3_000, MOVE = 30_000;

const key = (t) => `${t.uid}|${t.policy}|${t.at}`;
const clock = (millis) => new Date(millis).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
const tally = (found) => VERDICTS.map((verdict) => [verdict, found.filter((t) => t.verdict === verdict).length]).filter(([, n]) => n);
const changes = (n) => `${n} ${n === 1 ? "change" : "changes"}`;

/** The strip of the last hour. `href` returns the address of a parent, `pick` follows one. */
export class Hour {
  constructor(href, pick) {
    Object.assign(this, { href, pick, known: new Map(), of: null, asked: 0, timer: 0, owed: false, open: 0, cut: false, reaches: 0 });
    $("marks").addEventListener("keydown", (event) => this.move(event));
    setInterval(() => { if (this.owed) this.load(); else this.draw(); }, MOVE);
  }

  /** Asks for what is new. Of another namespace everything is. */
  async load() {
    if (document.visibilityState !== "visible" || at.wall) { this.owed = true; return; }
    if (this.of !== at.namespace) { this.known.clear(); [this.of, this.open] = [at.namespace, 0]; }
    const turn = ++this.asked;
    this.owed = false;
    const newest = Math.max(0, ...[...this.known.values()].map((t) => t.at));
    const query = new URLSearchParams({ ...(newest && { since: newest }), ...(this.of && { namespace: this.of }) });
    try {
      const found = await get(`api/v1/transitions?${query}`, () => turn === this.asked);
      if (!found) return;
      for (const t of found.transitions ?? []) this.known.set(key(t), t);
      [this.cut, this.reaches] = [found.cut || (this.cut && newest > 0), Math.max(found.reaches ?? 0, newest ? this.reaches : 0)];
      $("hour").hidden = false;
      this.draw();
    } catch {
      // The strip is beside the list, which says what is wrong. The next change asks again.
      if (turn === this.asked) this.owed = true;
    }
  }

  /** Something has changed. */
  hear() {
    this.timer ||= setTimeout(() => { this.timer = 0; this.load(); }, PAUSE + Math.random() * SPREAD);
  }

  /** Draws what is known and searched for, newest at the end. */
  draw() {
    const last = Math.floor(now() / CELL), first = last - HOUR / CELL + 1;
    for (const [of, t] of this.known) if (t.at < first * CELL) this.known.delete(of);
    const found = [...this.known.values()].filter((t) => matches(t) && stands(t)).sort((a, b) => b.at - a.at);
    const cells = Array.from({ length: HOUR / CELL }, (_, i) => ({ begin: (first + i) * CELL, of: [] }));
    for (const t of found) cells[Math.min(Math.floor(t.at / CELL), last) - first].of.push(t);
    const held = document.activeElement?.dataset?.begin;
    fill($("marks"), ...cells.map((cell) => this.cell(cell)));
    const stops = [...$("marks").querySelectorAll("button")];
    const stop = stops.find((button) => button.dataset.begin === held) ?? stops.at(-1);
    if (stop) stop.tabIndex = 0;
    if (held && $("marks").contains(stop)) stop.focus({ preventScroll: true });
    const whole = this.cut ? "the newest of " : "";
    const from = this.reaches > first * CELL ? `since ${clock(this.reaches)}` : "in the last hour";
    fill($("hour-sum"), el("span", "", found.length ? `${whole}${changes(found.length)} ${from}` : `Nothing has changed ${from}`),
      ...tally(found).map(([verdict, n]) => el("span", `verdict ${verdict}`, `${n} ${verdict}`)));
    fill($("hour-axis"), el("span", "", clock(first * CELL)), el("span", "", clock((first + last) / 2 * CELL)), el("span", "", "now"));
    this.list(cells.find((cell) => cell.begin === this.open && cell.of.length));
  }

  cell({ begin, of }) {
    if (of.length === 0) return el("span", "cell");
    const marks = of.slice(0, MARKS).reverse().map((t) => el("span", `mark ${VERDICTS.includes(t.verdict) ? t.verdict : "Unknown"}`));
    const button = el("button", "cell", ...marks);
    const said = `${clock(begin)}: ${changes(of.length)}: ${tally(of).map(([verdict, n]) => `${n} ${verdict}`).join(", ")}`;
    Object.assign(button, { type: "button", title: said, tabIndex: -1 });
    button.setAttribute("aria-label", said);
    button.setAttribute("aria-expanded", String(begin === this.open));
    button.dataset.begin = begin;
    button.addEventListener("click", () => {
      if (of.length === 1) return this.pick(this.href(of[0]));
      this.open = this.open === begin ? 0 : begin;
      this.draw();
    });
    return button;
  }

  /** Lists what has changed within one cell. */
  list(cell) {
    $("hour-list").hidden = !cell;
    const line = (t) => {
      const link = el("a", `edge ${VERDICTS.includes(t.verdict) ? t.verdict : "Unknown"}`, badge(t.verdict), el("span", "name", name(t.name, "strong"), " ", el("span", "kind", t.kind),
        el("span", "dim", t.namespace ? " in " : "", name(t.namespace))), el("span", "dim", t.from ? `was ${t.from}` : ""), since(t.at, ""));
      link.href = this.href(t);
      link.title = plain(`${place(t)}: ${t.reason}`);
      return el("li", "", link);
    };
    const left = (cell?.of.length ?? 0) - LISTED;
    fill($("hour-list"), ...(cell?.of ?? []).slice(0, LISTED).map(line), left > 0 && el("li", "note", `and ${left} more`));
  }

  /** Closes the list. Returns true if it was open. */
  close() {
    if (!this.open) return false;
    const button = $("marks").querySelector(`[data-begin="${this.open}"]`);
    button?.click();
    if (!button) this.open = 0;
    $("marks").querySelector(`[data-begin="${button?.dataset.begin}"]`)?.focus();
    return true;
  }

  /** Arrows lead from cell to cell. */
  move(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const stops = [...$("marks").querySelectorAll("button")];
    const to = stops[stops.indexOf(document.activeElement) + by];
    if (!by || !to) return;
    for (const stop of stops) stop.tabIndex = stop === to ? 0 : -1;
    to.focus();
    event.preventDefault();
  }
}
