// The list of parents, its counts and its filters.
import { $, VERDICTS, badge, el, name, sign, since } from "./words.js";

/** Label of the kind of groups. */
const GROUP = "ReadinessGroup.rollcall.dev";

/** Sort key of a row, as on the server: what is not ready before what is, groups before others, severity, then name. */
export function order(a, b) {
  const by = (r) => [r.verdict === "Ready", r.label !== GROUP, VERDICTS.indexOf(r.verdict), r.namespace, r.name, r.label, r.policy, r.uid];
  const [left, right] = [by(a), by(b)];
  for (let i = 0; i < left.length; i++) {
    if (left[i] < right[i]) return -1;
    if (left[i] > right[i]) return 1;
  }
  return 0;
}

export const key = (row) => `${row.uid}|${row.policy}`;

/** Renders the parents. Unchanged rows keep their elements, and with them focus and scroll position. */
export function list(rows, selected, href) {
  const box = $("rows");
  const old = new Map([...box.children].map((item) => [item.dataset.key, item]));
  let at = box.firstElementChild;
  for (const row of rows) {
    const item = old.get(key(row)) ?? el("li");
    old.delete(key(row));
    fill(item, row);
    const link = item.firstElementChild;
    link.href = href(row);
    if (selected === key(row)) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    if (item === at) at = at.nextElementSibling;
    else box.insertBefore(item, at);
  }
  for (const item of old.values()) item.remove();
}

function fill(item, row) {
  const text = JSON.stringify(row);
  if (item.dataset.text === text) return;
  item.dataset.text = text;
  item.dataset.key = key(row);
  item.className = row.label === GROUP ? "group" : "";
  if (!item.firstElementChild) item.append(el("a"));
  const verdict = VERDICTS.includes(row.verdict) ? row.verdict : "Unknown";
  item.firstElementChild.className = `parent edge ${verdict}`;
  item.firstElementChild.replaceChildren(
    el("span", "line", badge(row.verdict), since(row.since)),
    el("span", "name", name(row.name, "strong"), " ", el("span", "kind", row.kind)),
    el("span", "dim", row.namespace ? name(row.namespace) : "cluster-scoped", " · ", name(row.policy),
      row.total > 0 && ` · ${row.ready} of ${row.total} ready`),
    el("span", "why", row.verdict === "Ready" ? "" : row.message || row.reason),
  );
}

/** Summary: the number of parents that are not ready, and the verdicts of all; of those that were checked, if not all were. */
export function counts(numbers, partial, chosen, choose) {
  const text = JSON.stringify([numbers, partial, [...chosen]]);
  if ($("verdicts").dataset.text === text) return;
  $("verdicts").dataset.text = text;
  const all = VERDICTS.reduce((sum, verdict) => sum + (numbers[verdict] ?? 0), 0);
  const unwell = all - (numbers.Ready ?? 0);
  $("sum").hidden = !all;
  // Colored by the worst verdict. What was not checked may be worse than ready.
  const worst = VERDICTS.find((verdict) => numbers[verdict]);
  $("sum").className = `sum ${partial && !unwell ? "" : worst ?? ""}`;
  $("sum").textContent = unwell ? `${unwell} of ${all} ${partial ? "checked are " : ""}not ready`
    : partial ? `${all} checked and ready, others not checked` : all === 1 ? "The only parent is ready" : `All ${all} are ready`;
  const shown = VERDICTS.filter((verdict) => numbers[verdict]);
  $("share").replaceChildren(...shown.map((verdict) => share(verdict, numbers[verdict])));
  buttons(VERDICTS.filter((verdict) => numbers[verdict] || chosen.has(verdict)), numbers, chosen, choose);
}

/** Segment of a bar, with a minimum width. */
export function share(verdict, size) {
  const piece = el("span", `piece ${verdict}`);
  piece.style.flexGrow = String(size);
  return piece;
}

function buttons(shown, numbers, chosen, choose) {
  const focused = document.activeElement?.dataset?.verdict;
  $("verdicts").replaceChildren(...shown.map((verdict) => {
    const button = el("button", `verdict ${verdict}`, sign(verdict), el("span", "", verdict), el("b", "", numbers[verdict] ?? 0));
    button.type = "button";
    button.dataset.verdict = verdict;
    button.setAttribute("aria-pressed", String(chosen.has(verdict)));
    button.addEventListener("click", () => choose(verdict));
    return button;
  }));
  $("verdicts").querySelector(`[data-verdict="${focused}"]`)?.focus();
}

/** Options of a filter. The selected one stays, even if it has no match now. */
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
