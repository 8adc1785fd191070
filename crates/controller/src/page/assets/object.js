// Details of one object of a parent's tree: deciding branch, finalizer holders, owned objects, Events.
import { kubectl } from "./copy.js";
import { $, badge, el, fill, name, place, plain, since, term } from "./words.js";

const copies = el("p", "copy");

/** Renders a node with its branch and its context, as far as these are loaded. */
export function object(node, found, around, close, href) {
  const box = $("object");
  box.hidden = !node;
  if (!node) return;
  const shut = el("button", "", "×");
  shut.type = "button";
  shut.setAttribute("aria-label", "Close");
  shut.addEventListener("click", close);
  const held = copies.contains(document.activeElement) && document.activeElement;
  box.replaceChildren(
    el("div", "line", el("h3", "", badge(node.verdict), " ", el("span", "kind", node.kind), " ", name(node.name)), shut),
    el("p", "say", node.verdict === "Ready" && node.detail === "ready" ? "" : node.detail || node.reason, " ", since(node.since, "for ", node.sinceFrom)),
    kubectl(copies, node),
    el("div", "parts", ...parts(node, found, around, href)),
  );
  if (held && copies.contains(held)) held.focus({ preventScroll: true });
}

function parts(node, found, around, href) {
  if (node.uid) {
    const open = el("a", "", node.uncounted ? "its own children, and not counted here; open this parent" : node.depth ? "its own children; open this parent" : "its children, above");
    open.href = href({ parent: place(node), as: node.policy, object: "" });
    return [part("Why", term("decided by", open))];
  }
  if (node.uncounted) return [part("Why", term("rule", "Rollcall's for its kind"), term("counts", "no policy counts it here: it decides nothing"))];
  if (!found) return [el("p", "note", "reading …")];
  if (found.error) return [el("p", "note", plain(found.error))];
  return [
    part("Why",
      term("field", el("code", "", found.branch)),
      term("rule", found.rule),
      found.detail !== node.detail && term("by itself", `${found.verdict}: ${found.detail}`),
      found.deleted && !found.holders?.length && term("deleted", since(Date.parse(found.deleted), ""), " ago")),
    held(found.holders ?? []),
    ...beside(around),
    part("Conditions", ...found.conditions.map(condition)),
  ].filter(Boolean);
}

function part(title, ...terms) {
  const there = terms.filter(Boolean);
  return there.length ? el("section", "", el("h4", "", title), fill(el("dl", "facts"), ...there)) : null;
}

/** Finalizer holders of an object being deleted. The command is only shown: the page runs nothing. */
function held(holders) {
  const said = part("Held by", ...holders.flatMap((holder) => [
    term("finalizer", el("code", "tag", holder.finalizer), " ", since(Date.parse(holder.since), "for ")),
    term("likely owner", holder.likely ?? (holder.manager ? `field manager ${holder.manager}` : "unknown")),
    holder.likely && holder.manager && term("set by", `field manager ${holder.manager}`),
    holder.waitsFor && term("waits for", holder.waitsFor),
    term("to release", el("code", "", holder.release), el("span", "dim", holder.warning)),
  ]));
  said?.classList.add("wide");
  return said;
}

/** Owned objects and Events; empty while they are loading. */
function beside(around) {
  if (!around) return [];
  return [
    part("In detail", ...(around.owns ?? []).map((owned) => term(owned.object, owned.says))),
    part("Events", ...(around.events ?? []).map((event) =>
      term(since(Date.parse(event.at), ""), el("span", event.type === "Warning" ? "strong warning" : "strong", event.reason),
        event.count ? ` ×${event.count}` : "", ` ${event.about}: ${event.message}`, event.from && el("span", "dim", ` ${event.from}`)))),
    part("Not read", ...(around.notRead ?? []).map((what) => term(...what.split(/: (.*)/s))), around.error && term("all", around.error)),
  ];
}

function condition(said) {
  const why = [said.reason, said.message].filter(Boolean).join(": ");
  return term(said.type ?? "?", `${said.status ?? "?"} ${why} `,
    said.lastTransitionTime ? since(Date.parse(said.lastTransitionTime), "for ") : "");
}
