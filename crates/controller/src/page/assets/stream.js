// The stream of changes, and the display of its connection state.
import { events } from "./server.js";
import { $ } from "./words.js";

/** Time without data, not even a heartbeat, after which the connection counts as lost. */
const SILENCE = 30_000;
const LONGEST = 15_000;

let lost = 0, waits = null;
const doubts = new Set();

/** Shows that the view may be outdated, or that this is no reason for it any more. */
export function doubt(reason, is) {
  if (is) doubts.add(reason);
  else doubts.delete(reason);
  document.body.classList.toggle("stale", doubts.size > 0);
}

export function link(state, text) {
  $("link").dataset.state = state;
  $("link").textContent = text;
  doubt("link", state === "lost");
}

/** Waits until the timeout or [`wake`]. */
const pause = (millis) => new Promise((done) => { waits = done; setTimeout(done, millis); });

export function wake() {
  waits?.();
}

/**
 * Receives changes forever. `again` reloads everything: what changed before a stream was open is not on it. An attempt for
 * which that fails has failed. `shut` reports that a token is required.
 */
export async function stay({ hear, again, shut }) {
  for (let failures = 0; ; failures++) {
    if (shut()) { await pause(3600_000); failures = 0; continue; }
    const silence = new AbortController();
    let clock;
    const alive = () => { clearTimeout(clock); clock = setTimeout(() => silence.abort(), SILENCE); };
    try {
      alive();
      const heard = await events(silence.signal);
      await again();
      [lost, failures] = [0, 0];
      link("live", "live");
      for await (const event of heard) {
        alive();
        hear(event);
        if (event.name === "end") break;
      }
    } catch { /* said below */ }
    clearTimeout(clock);
    silence.abort();
    if (shut()) continue;
    lost ||= Date.now();
    link("lost", `connection lost since ${new Date(lost).toLocaleTimeString()}, reconnecting`);
    await pause(Math.min(LONGEST, 500 * 2 ** failures) * (0.75 + Math.random() / 2));
  }
}
