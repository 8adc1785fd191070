// What stands where: the list of parents, one parent, its tree, one object.
import { VERDICTS, badge, el, name, plain, sign, since } from "./words.js";

export const $ = (id) => document.getElementById(id);

/** Where a row stands, as the server sorts: by trouble, then by name. */
export function order(a, b) {
  const by = (r) => [VERDICTS.indexOf(r.verdict), r.namespace, r.name, r.label, r.policy, r.uid];
  const [left, right] = [by(a), by(b)];
  for (let i = 0; i < left.length; i++) {
    if (left[i] < right[i]) return -1;
    if (left[i] > right[i]) return 1;
  }
  return 0;
}

export const key = (row) => `${row.uid}|${row.policy}`;

/** The parents. Rows that are the same stay the same elements, so that focus and reading position do. */
export function list(rows, selected, href) {
  const box = $("rows");
  const old = new Map([...box.children].map((item) => [item.dataset.key, item]));
  let at = box.firstElementChild;
  for (const row of rows) {
    const text = JSON.stringify(row);
    let item = old.get(key(row));
    old.delete(key(row));
    if (!item) {
      item = el("li");
      item.dataset.key = key(row);
      item.append(el("a"));
    }
    const link = item.firstElementChild;
    if (item.dataset.text !== text) {
      item.dataset.text = text;
      link.replaceChildren(
        el("span", "line", badge(row.verdict), since(row.since)),
        el("span", "line name", name(row.name, "strong"), el("span", "kind", row.kind)),
        el("span", "line dim", row.namespace ? name(row.namespace) : "cluster-scoped", " · ", name(row.policy)),
        el("span", "why", row.verdict === "Ready" ? "" : row.message || row.reason),
      );
    }
    link.href = href(row);
    if (selected === key(row)) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    if (item === at) at = at.nextElementSibling;
    else box.insertBefore(item, at);
  }
  for (const item of old.values()) item.remove();
}

/** One button for each verdict that anybody stands at. */
export function counts(numbers, chosen, choose) {
  const box = $("verdicts");
  const shown = VERDICTS.filter((v) => numbers[v] || chosen.has(v));
  const text = JSON.stringify([shown, numbers, [...chosen]]);
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  const focused = document.activeElement?.dataset?.verdict;
  box.replaceChildren(...shown.map((verdict) => {
    const button = el("button", `verdict ${verdict}`, sign(verdict), el("span", "", verdict), el("b", "", numbers[verdict] ?? 0));
    button.type = "button";
    button.dataset.verdict = verdict;
    button.setAttribute("aria-pressed", String(chosen.has(verdict)));
    button.addEventListener("click", () => choose(verdict));
    return button;
  }));
  box.querySelector(`[data-verdict="${focused}"]`)?.focus();
}

/** Choices of a filter; the chosen one stays, even if there is none of it now. */
export function choices(select, values, chosen) {
  const all = [...new Set([...values, ...(chosen ? [chosen] : [])])].filter(Boolean).sort();
  const text = JSON.stringify(all);
  if (select.dataset.text !== text) {
    select.dataset.text = text;
    select.replaceChildren(select.options[0], ...all.map((value) => {
      const option = el("option", "", value);
      option.value = value;
      return option;
    }));
  }
  select.value = chosen;
}

/** What is said of one parent. */
export function head(one, href) {
  const row = (term, ...inside) => el("div", "", el("dt", "", term), el("dd", "", ...inside));
  const groups = one.groups.map((group) => {
    const total = Object.values(group.at).reduce((a, b) => a + b, 0);
    const parts = VERDICTS.filter((v) => group.at[v]).map((v) => `${group.at[v]} ${v}`);
    const wanted = total < group.min ? `, at least ${group.min} expected` : "";
    return el("li", "", name(group.kind), `: ${parts.join(", ") || "none"}${wanted}${group.optional ? " (optional)" : ""}`);
  });
  const others = one.policies.length > 1
    ? [row("policies", ...one.policies.map((policy) => {
        const link = el("a", "policy", badge(policy.verdict), " ", name(policy.name));
        link.href = href(policy.name);
        if (policy.name === one.policy) link.setAttribute("aria-current", "true");
        return link;
      }))]
    : [];
  const flags = [one.stalled && "Stalled", one.reconciling && "Reconciling"].filter(Boolean);
  $("head").replaceChildren(
    el("h2", "", name(one.name), " ", el("span", "kind", one.kind)),
    el("p", "where", one.namespace ? "in " : "cluster-scoped", one.namespace && name(one.namespace), " under policy ", name(one.policy)),
    el("p", "big", badge(one.verdict), " ", el("span", "reason", one.reason), " ", since(one.since, "for ")),
    el("p", "message", one.message),
    el("dl", "facts",
      row("condition", `Ready=${one.status}`, flags.length ? `, ${flags.join(", ")}` : ""),
      row("decided by", one.decided),
      row("children", el("ul", "groups", ...groups)),
      ...others),
  );
}

/** Its last transitions, newest first. */
export function past(transitions) {
  if ($("past").hidden) $("past").open = matchMedia("(min-width: 761px)").matches;
  $("past").hidden = transitions.length === 0;
  $("times").replaceChildren(...transitions.map((t) =>
    el("li", "", el("span", "line", badge(t.verdict), el("span", "reason", t.reason), since(t.at, "")),
      el("span", "why", t.message))));
}

/** Which field of one object decided, and what it says. */
export function object(node, found, close, href) {
  const box = $("object");
  box.hidden = !node;
  if (!node) return;
  const row = (term, ...inside) => el("div", "", el("dt", "", term), el("dd", "", ...inside));
  const shut = el("button", "", "×");
  shut.type = "button";
  shut.setAttribute("aria-label", "Close");
  shut.addEventListener("click", close);
  const facts = el("dl", "facts", row("why", node.detail));
  if (node.uid) {
    const open = el("a", "", node.depth ? "what belongs to it, and how it was decided" : "what belongs to it, above");
    open.href = href({ parent: node.uid, as: node.policy, object: "" });
    facts.append(row("decided by", open));
  } else if (found?.error) facts.append(row("branch", found.error));
  else if (found) {
    facts.append(row("branch", el("code", "", found.branch)), row("rule", found.rule));
    if (found.detail !== node.detail) facts.append(row("by itself", `${found.verdict}: ${found.detail}`));
    if (found.deleted) facts.append(row("deleted", since(Date.parse(found.deleted), ""), " ago"));
    if (found.finalizers?.length) facts.append(row("held by", ...found.finalizers.map((f) => el("code", "tag", f))));
    for (const condition of found.conditions) {
      const why = [condition.reason, condition.message].filter(Boolean).join(": ");
      facts.append(row(plain(condition.type ?? "?"), `${condition.status ?? "?"} ${why} `,
        condition.lastTransitionTime ? since(Date.parse(condition.lastTransitionTime), "for ") : ""));
    }
  } else facts.append(row("branch", "reading …"));
  box.replaceChildren(
    el("div", "line", el("h3", "", name(node.name), " ", el("span", "kind", node.kind)), shut),
    el("p", "", badge(node.verdict), " ", el("span", "reason", node.reason), " ", since(node.since, "for ")),
    facts,
  );
}

/** What identifies a node within one tree. */
export const place = (node) => `${node.label}/${node.namespace ?? ""}/${node.name}`;

/** A tree of any size, of which only the rows in sight exist. */
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

  /** Leaves out what is folded, and stays at the same object. */
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
      // Already folded: up to the one that it belongs to.
      for (let i = this.at - 1; i >= 0; i--) if (this.rows[i].depth < node.depth) { this.go(i); break; }
      return;
    }
    if (how === false && !folded) return;
    if (folded) this.folded.delete(place(node));
    else if (this.parents.has(node)) this.folded.add(place(node));
    this.lay(place(node));
  }

  /** To a row, and into sight. */
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
    item.replaceChildren(who, badge(node.verdict), el("span", "why", why), since(node.since));
    item.title = plain(`${node.kind} ${node.namespace ? `${node.namespace}/` : ""}${node.name}: ${why || node.reason}`);
  }
}
