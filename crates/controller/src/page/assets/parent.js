// One parent: its answer, its root causes, its deciding branch, its last transitions.
import { share } from "./list.js";
import { $, VERDICTS, badge, el, fill, name, now, place, since, term } from "./words.js";

/** Maximum number of root causes shown; the tree has the rest. */
const CAUSES = 3;

/** Renders the answer. `href` returns the address with some parameters changed. */
export function head(one, href) {
  const found = causes(one.nodes);
  fill($("head"),
    el("h2", "", name(one.name), " ", el("span", "kind", one.kind)),
    el("p", "where", one.namespace ? "in " : "cluster-scoped", one.namespace && name(one.namespace), " under policy ", name(one.policy)),
    el("p", "big", badge(one.verdict), " ", el("span", "reason", one.reason), " ", since(one.since, "for ")),
    found.length === 0 && el("p", "message", one.message),
  );
  $("causes").hidden = found.length === 0;
  fill($("causes"),
    el("h3", "", found.length === 1 ? "Root cause" : "Root causes"),
    el("ol", "", ...found.slice(0, CAUSES).map((cause) => el("li", "", card(cause, href)))),
    found.length > CAUSES && el("p", "note", `and ${found.length - CAUSES} more, below`),
  );
  how(one, found.length > 0, href);
}

/** Root causes: the deepest objects that are not ready, worst first, and of equally bad ones the oldest first. */
export function causes(nodes) {
  const found = [];
  const path = [];
  nodes.forEach((node, i) => {
    path.length = node.depth;
    path.push(node);
    const holds = node.verdict !== "Ready" && node.verdict !== "Suspended" && !path.some((above) => above.optional);
    if (!holds || node.depth === 0) return;
    found.push({ node, at: i, above: path.slice(1, -1) });
  });
  // An object with such a child is not the cause, the child is.
  const above = new Set(found.flatMap((cause) => cause.above));
  return found.filter((cause) => !above.has(cause.node)).sort((a, b) =>
    VERDICTS.indexOf(a.node.verdict) - VERDICTS.indexOf(b.node.verdict)
      || (a.node.since ?? Infinity) - (b.node.since ?? Infinity) || a.at - b.at);
}

function card({ node, above }, href) {
  const link = el("a", `cause edge ${VERDICTS.includes(node.verdict) ? node.verdict : "Unknown"}`,
    el("span", "line", badge(node.verdict), el("span", "name", el("span", "kind", node.kind), " ", name(node.name, "strong")),
      since(node.since, "", node.sinceFrom)),
    el("span", "say", node.detail || node.reason),
    above.length > 0 && el("span", "dim", "in ", ...above.flatMap((n, i) => [i ? " › " : "", `${n.kind} `, name(n.name)])));
  link.href = href({ object: place(node) });
  return link;
}

/** Renders the condition, the deciding branch, and the numbers of children. */
function how(one, message, href) {
  const groups = one.groups.map((group) => {
    const total = Object.values(group.at).reduce((a, b) => a + b, 0);
    const parts = VERDICTS.filter((v) => group.at[v]).map((v) => `${group.at[v]} ${v}`);
    const wanted = total < group.min ? `, at least ${group.min} expected` : "";
    return el("li", "", name(group.kind), `: ${parts.join(", ") || "none"}${wanted}${group.optional ? " (optional)" : ""}`);
  });
  const policies = one.policies.map((policy) => {
    const link = el("a", "policy", badge(policy.verdict), " ", name(policy.name));
    link.href = href({ as: policy.name, object: "" });
    if (policy.name === one.policy) link.setAttribute("aria-current", "true");
    return link;
  });
  const flags = [one.stalled && "Stalled", one.reconciling && "Reconciling"].filter(Boolean);
  $("how").hidden = false;
  fill($("facts"),
    term("condition", `Ready=${one.status}`, flags.length ? `, ${flags.join(", ")}` : ""),
    message && term("message", one.message),
    term("decided by", one.decided),
    groups.length > 0 && term("children", el("ul", "groups", ...groups)),
    policies.length > 1 && term("policies", ...policies));
}

/** Renders the last transitions, newest first, and as a bar, oldest first. */
export function past(transitions) {
  $("past").hidden = transitions.length === 0;
  $("times").replaceChildren(...transitions.map((t) =>
    el("li", VERDICTS.includes(t.verdict) ? t.verdict : "Unknown", el("span", "line", badge(t.verdict), el("span", "reason", t.reason), since(t.at, "")),
      el("span", "why", t.message))));
  // Durations are compressed, or one quiet night would hide the rest.
  const lasted = (t, i) => Math.sqrt(Math.max(1, ((transitions[i - 1]?.at ?? now()) - t.at) / 1000));
  $("bar").replaceChildren(...transitions.map((t, i) => share(t.verdict, lasted(t, i))).reverse());
}
