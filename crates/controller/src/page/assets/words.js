// Text and icons. All cluster data is inserted as text, with control and bidi characters made visible.

export const $ = (id) => document.getElementById(id);

/** Worst first. */
export const VERDICTS = ["Failed", "Stuck", "Missing", "Unknown", "Progressing", "Terminating", "Suspended", "Ready"];

/** Paths on a square of 16. */
const SIGNS = {
  Failed: "M4 4l8 8M12 4l-8 8",
  Stuck: "M8 3v6M8 12.5v.5M2 14.5h12L8 1.5z",
  Missing: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M3.5 12.5l9-9",
  Unknown: "M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.7 8 9.2 8 10M8 12.6v.5",
  Progressing: "M8 2.5a5.5 5.5 0 1 1-5.5 5.5M8 5v3l2 1.5",
  Terminating: "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.7 9h5.6l.7-9",
  Suspended: "M5.5 3.5v9M10.5 3.5v9",
  Ready: "M3 8.5l3.5 3.5L13 4.5",
};

/** Icon of a verdict; always shown next to its word. */
export function sign(verdict) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", SIGNS[verdict] ?? SIGNS.Unknown);
  svg.append(path);
  return svg;
}

// Control, bidi, joining and invisible characters.
const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e01ef}]|[\ud800-\udfff]/gu;

/** Text with such characters made visible. */
export function plain(text) {
  return String(text ?? "").replace(HIDDEN, (c) =>
    `⟨${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Replaces the content of an element; empty parts are skipped. */
export function fill(element, ...inside) {
  element.replaceChildren(...inside.filter((part) => part instanceof Node));
  return element;
}

/** Creates an element with a class and content. Text is never interpreted as markup. */
export function el(tag, name, ...inside) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  for (const part of inside) {
    if (part instanceof Node) element.append(part);
    else if (part !== undefined && part !== null && part !== false) element.append(plain(part));
  }
  return element;
}

/** A name, isolated so that it cannot change the direction of surrounding text. */
export const name = (text, style) => el("bdi", style, text);

/** Icon and word. */
export function badge(verdict) {
  const known = VERDICTS.includes(verdict) ? verdict : "Unknown";
  return el("span", `verdict ${known}`, sign(known), el("span", "", verdict));
}

let offset = 0;

/** Offset to the server's clock. */
export function serverTime(now) {
  offset = now - Date.now();
}

export const now = () => Date.now() + offset;

/** Formats an age in its largest unit. */
export function age(millis) {
  const s = Math.max(0, Math.floor(millis / 1000));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 172800) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

/** Formats how long something took. */
export function lasted(millis) {
  const s = Math.max(0, Math.round(millis / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  return `${Math.floor(s / 3600)}h ${Math.floor(s / 60) % 60}m`;
}

/** Origin of a timestamp, for the tooltip. */
const FROM = {
  seen: "time at which Rollcall observed it become not ready",
  firstSeen: "time at which Rollcall first observed it; it may have been not ready for longer",
};

/** Age since a timestamp; the timestamp and its origin are in the tooltip. */
export function since(millis, before = "", from = "") {
  // Invalid timestamps are not shown.
  if (millis === undefined || millis === null || !(Math.abs(millis) <= 8.64e15)) return el("span", "since");
  const at = new Date(millis);
  const time = el("time", "since");
  time.dateTime = at.toISOString();
  time.title = `since ${at.toLocaleString()}${from ? `: ${plain(FROM[from] ?? from)}` : ""}`;
  [time.dataset.before, time.dataset.after] = [before, from === "firstSeen" ? "+" : ""];
  time.textContent = text(time);
  return time;
}

const text = (time) => time.dataset.before + age(now() - Date.parse(time.dateTime)) + time.dataset.after;

/** Updates the displayed ages. */
export function tick() {
  for (const time of document.querySelectorAll("time.since")) {
    const said = text(time);
    if (time.textContent !== said) time.textContent = said;
  }
}

/** A term and its description. */
export const term = (what, ...inside) => el("div", "", el("dt", "", what), el("dd", "", ...inside));

/** Kind, namespace and name: the key of a node within one tree, and the address of a parent. */
export const place = (node) => `${node.label}/${node.namespace ?? ""}/${node.name}`;
