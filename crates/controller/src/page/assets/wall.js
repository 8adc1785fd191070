// A screen for walls: large, without controls, and all of it in sight.
import { FILTERS, at } from "./address.js";
import { key } from "./list.js";
import { $, VERDICTS, badge, el, fill, name, now, since } from "./words.js";

/** Parents that are tried at most, the worst. */
const MOST = 60;
/** Sizes of their text, in rem: the largest with which all of them fit, or the smallest. */
const SIZES = [3.4, 2.8, 2.3, 1.9, 1.6, 1.35];

let drawn = "";

/** Draws the numbers of all parents, and those that are not ready, the worst first, as many as fit. */
export function wall(rows, { numbers, partial, error }) {
  const on = Boolean(at.wall) && $("gate").hidden;
  document.body.classList.toggle("wall", on);
  $("wall").hidden = !on;
  if (!on) { drawn = ""; return; }
  const unwell = rows.filter((row) => row.verdict !== "Ready");
  const text = JSON.stringify([unwell.slice(0, MOST), numbers, partial, error?.message, innerWidth, innerHeight]);
  if (text === drawn) return;
  drawn = text;
  sum(numbers, partial, error);
  fit(unwell, VERDICTS.reduce((all, verdict) => all + (verdict === "Ready" ? 0 : numbers[verdict] ?? 0), 0));
}

function sum(numbers, partial, error) {
  const all = VERDICTS.reduce((sum, verdict) => sum + (numbers[verdict] ?? 0), 0);
  const ready = numbers.Ready ?? 0;
  const worst = VERDICTS.find((verdict) => numbers[verdict]);
  $("wall-sum").className = partial && all === ready ? "" : worst ?? "";
  fill($("wall-sum"),
    all > ready && el("span", "", el("span", "", all - ready), " not ready"),
    // Before a list was read nothing is known, not even that there is nothing.
    Object.keys(numbers).length > 0 && el("span", all > ready ? "Ready" : "", el("span", "", ready), all === 0 ? " parents" : " ready"));
  const filters = FILTERS.filter((field) => at[field]).map((field) => `${field === "q" ? "search" : field} ${at[field]}`);
  fill($("wall-of"), el("span", "", [...filters, partial && "not all namespaces were checked", error?.message].filter(Boolean).join(", ")));
}

/** Puts the parents on the screen, in the largest text with which they fit, and drops those for which there is no room. */
function fit(rows, all) {
  const box = $("wall-rows");
  const cards = rows.slice(0, MOST).map(card);
  box.replaceChildren(...cards);
  const fits = () => box.scrollHeight <= box.clientHeight + 1 && box.scrollWidth <= box.clientWidth + 1;
  for (const size of SIZES) {
    box.style.fontSize = `${size}rem`;
    if (fits()) break;
  }
  const more = () => {
    const left = all - box.children.length;
    $("wall-more").hidden = left <= 0;
    $("wall-more").textContent = `and ${left} more`;
  };
  more();
  while (box.children.length > 1 && !fits()) {
    box.lastElementChild.remove();
    more();
  }
}

function card(row) {
  const verdict = VERDICTS.includes(row.verdict) ? row.verdict : "Unknown";
  const item = el("li", `edge ${verdict}`,
    el("span", "line", badge(row.verdict), since(row.since)),
    el("span", "name", name(row.name, "strong"), " ", el("span", "kind", row.kind), row.namespace && el("span", "kind", " in ", name(row.namespace))),
    el("span", "why", row.message || row.reason));
  item.dataset.key = key(row);
  return item;
}

/** A screen on which nothing changes shows by its clock that it is not frozen. */
export function wallClock() {
  if (at.wall) $("wall-clock").textContent = new Date(now()).toLocaleTimeString();
}
