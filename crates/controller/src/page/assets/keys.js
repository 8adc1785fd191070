// Keyboard shortcuts.
import { $ } from "./words.js";

/** Binds the keys; `to` holds the actions: step, fold, jump, open, back, theme, wall, copy. */
export function keys(to) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    if (event.key === "Escape") { event.target.blur?.(); to.back(); event.preventDefault(); return; }
    if (event.target.matches?.("input, select, textarea")) {
      if (event.target.id === "q" && (event.key === "ArrowDown" || event.key === "Enter")) { to.step(1); event.preventDefault(); }
      return;
    }
    const hand = { ...everywhere(to), ...(event.target === $("tree") && within(to)) }[event.key];
    if (hand) { hand(); event.preventDefault(); }
  });
}

const everywhere = (to) => ({
  "/": () => { $("q").focus(); $("q").select(); },
  "?": () => $("help").showModal(),
  t: to.theme,
  w: to.wall,
  c: to.copy,
  j: () => to.step(1),
  k: () => to.step(-1),
});

const within = (to) => ({
  ArrowDown: () => to.step(1), ArrowUp: () => to.step(-1),
  ArrowLeft: () => to.fold(true), ArrowRight: () => to.fold(false),
  Home: () => to.jump(0), End: () => to.jump(Infinity),
  PageDown: () => to.step(20), PageUp: () => to.step(-20),
  Enter: to.open,
});

/** Light or dark theme: the system's, until the user chooses. */
export function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

export function keptTheme() {
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
}
