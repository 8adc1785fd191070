// The connection: what it hears, and what is said while there is none.
import { events } from "./server.js";
import { $ } from "./words.js";

/** Nothing for so long, not even a beat: the connection is dead. */
const SILENCE = 30_000;
const LONGEST = 15_000;

let lost = 0, waits = null;

export function link(state, text) {
  $("link").dataset.state = state;
  $("link").textContent = text;
  // What is seen may not be so any more.
  document.body.classList.toggle("stale", state === "lost");
}

/** Waits; [`wake`] ends the wait. */
const pause = (millis) => new Promise((done) => { waits = done; setTimeout(done, millis); });

export function wake() {
  waits?.();
}

/** Hears what moves, for ever. `again` reads everything after a gap; `shut` tells that a token is asked for. */
export async function stay({ hear, again, shut }) {
  for (let failures = 0; ; failures++) {
    if (shut()) { await pause(3600_000); failures = 0; continue; }
    const silence = new AbortController();
    let clock;
    const alive = () => { clearTimeout(clock); clock = setTimeout(() => silence.abort(), SILENCE); };
    try {
      alive();
      const heard = await events(silence.signal);
      if (lost || failures) await again();
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
    link("lost", `connection lost since ${new Date(lost).toLocaleTimeString()}, trying again`);
    await pause(Math.min(LONGEST, 500 * 2 ** failures) * (0.75 + Math.random() / 2));
  }
}
