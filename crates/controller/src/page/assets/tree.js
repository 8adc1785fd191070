// The objects of a parent as a virtualized tree: only the visible rows exist.
import { $, badge, el, name, place, plain, since } from "./words.js";

/** Virtualized tree: only the visible rows exist. */
export class Tree {
  constructor(box, pick) {
    this.box = box;
    this.nodes = [];
    this.rows = [];
    this.folded = new Set();
    this.at = -1;
    this.alive = new Map();
    const again = () => { this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.draw(); }); };
    document.addEventListener("scroll", again, { capture: true, passive: true });
    addEventListener("resize", again);
    box.addEventListener("click", (event) => {
      const item = event.target.closest?.("[role=treeitem]");
      if (!item) return;
      this.at = Number(item.dataset.at);
      if (event.target.closest(".fold")) this.fold();
      else { this.draw(); pick(this.rows[this.at]); }
    });
  }

  show(nodes) {
    const held = this.rows[this.at];
    this.nodes = nodes;
    this.parents = new Set();
    nodes.forEach((node, i) => { if (nodes[i + 1]?.depth > node.depth) this.parents.add(node); });
    this.lay(held && place(held));
  }

  /** Removes folded rows, and keeps the same object focused. */
  lay(held) {
    let below = Infinity;
    this.rows = this.nodes.filter((node) => {
      if (node.depth > below) return false;
      below = this.folded.has(place(node)) ? node.depth : Infinity;
      return true;
    });
    if (held) this.at = this.rows.findIndex((node) => place(node) === held);
    this.draw();
  }

  fold(how) {
    const node = this.rows[this.at];
    if (!node) return;
    const folded = this.folded.has(place(node));
    if (how === true && (folded || !this.parents.has(node))) {
      // Already folded: go up to its owner.
      for (let i = this.at - 1; i >= 0; i--) if (this.rows[i].depth < node.depth) { this.go(i); break; }
      return;
    }
    if (how === false && !folded) return;
    if (folded) this.folded.delete(place(node));
    else if (this.parents.has(node)) this.folded.add(place(node));
    this.lay(place(node));
  }

  /** Focuses a row, and scrolls it into view. */
  go(at) {
    if (this.rows.length === 0) return;
    this.at = Math.min(Math.max(at, 0), this.rows.length - 1);
    this.draw();
    const height = this.height();
    const top = this.box.getBoundingClientRect().top + this.at * height;
    const aside = $("object").hidden ? 0 : $("object").offsetHeight;
    const scroller = this.scroller();
    const [from, to] = scroller === document.scrollingElement
      ? [0, innerHeight] : [scroller.getBoundingClientRect().top, scroller.getBoundingClientRect().bottom];
    if (top < from) scroller.scrollTop += top - from;
    else if (top + height > to - aside) scroller.scrollTop += top + height - (to - aside);
    this.draw();
  }

  scroller() {
    const one = $("one");
    return getComputedStyle(one).overflowY === "auto" ? one : document.scrollingElement;
  }

  height() {
    return parseFloat(getComputedStyle(this.box).getPropertyValue("--row")) || 32;
  }

  draw() {
    const height = this.height();
    this.box.style.height = `${this.rows.length * height}px`;
    const top = this.box.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(-top / height) - 8);
    const to = Math.min(this.rows.length, Math.ceil((innerHeight - top) / height) + 8);
    const keep = new Map();
    for (let at = from; at < to; at++) {
      const node = this.rows[at];
      const id = place(node) + node.depth;
      let item = this.alive.get(id);
      if (!item || keep.has(id)) item = el("div", "node");
      if (item.node !== node || item.bend !== this.folded.has(place(node))) this.fill(item, node);
      item.dataset.at = at;
      item.id = `node-${at}`;
      item.setAttribute("aria-selected", String(at === this.at));
      item.setAttribute("aria-posinset", at + 1);
      item.setAttribute("aria-setsize", this.rows.length);
      item.style.transform = `translateY(${at * height}px)`;
      keep.set(keep.has(id) ? `${id} ${at}` : id, item);
    }
    for (const [id, item] of this.alive) if (keep.get(id) !== item) item.remove();
    for (const item of keep.values()) if (item.parentNode !== this.box) this.box.append(item);
    this.alive = keep;
    if (this.at >= from && this.at < to) this.box.setAttribute("aria-activedescendant", `node-${this.at}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  fill(item, node) {
    item.node = node;
    item.bend = this.folded.has(place(node));
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", node.depth + 1);
    const parent = this.parents.has(node);
    if (parent) item.setAttribute("aria-expanded", String(!item.bend));
    else item.removeAttribute("aria-expanded");
    const fold = el("span", parent ? "fold" : "leaf", parent ? (item.bend ? "▸" : "▾") : "");
    fold.setAttribute("aria-hidden", "true");
    const extra = [node.optional && " (optional)", node.more && ` (${node.more} more not shown)`].filter(Boolean).join("");
    const why = node.verdict === "Ready" && node.detail === "ready" ? "" : node.policy ? `${node.reason} · ${node.detail}` : node.detail;
    const who = el("span", "who", fold, el("span", "kind", node.kind), name(node.name, "strong"), extra && el("span", "kind", extra));
    who.style.paddingInlineStart = `${Math.min(node.depth, 8) * 1.1}rem`;
    // Beside the reason: a name that is cut off for it would say less.
    const mark = node.uncounted && el("span", "kind", "(not counted) ");
    item.replaceChildren(who, badge(node.verdict), el("span", "why", mark, why), since(node.since, "", node.sinceFrom));
    item.title = plain(`${node.kind} ${node.namespace ? `${node.namespace}/` : ""}${node.name}: ${node.uncounted ? "(not counted) " : ""}${why || node.reason}`);
  }
}
