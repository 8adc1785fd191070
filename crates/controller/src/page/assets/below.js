// What no policy counts below the objects of a parent: found by owner references of every kind, beside the tree.
import { $, el, fill, place, plain, term } from "./words.js";

/** Time after which what is below is searched again, while it is looked at. */
const AGAIN = 30_000;
/** The same after a change of what is counted; the server's findings are as old. */
const AFTER_CHANGE = 10_000;
/** That time is at least so many times that of the search, and then at most this. */
const SHARE = 10, LONGEST = 60_000;

/** What was found below one parent. `ask` requests it, `changed` draws it. */
export class Below {
  constructor(ask, changed) {
    Object.assign(this, { ask, changed, of: "", at: 0, took: 0, found: null, error: "", asked: null });
    setInterval(() => { if (document.visibilityState === "visible") this.seek(this.of, AGAIN); }, AGAIN / 10);
  }

  /** Searches below this parent, unless that was done a short time ago. A search for another one is given up. */
  async seek(of, interval = AFTER_CHANGE) {
    if (of !== this.of) {
      this.asked?.abort();
      Object.assign(this, { of, at: 0, took: 0, found: null, error: "", asked: null });
    }
    const [began, rest] = [Date.now(), Math.max(interval, Math.min(LONGEST, SHARE * this.took))];
    if (!of || this.asked || began - this.at < rest) return this.tell();
    const asked = this.asked = new AbortController();
    this.tell();
    let [found, error] = [this.found, ""];
    try {
      found = await this.ask(of, asked.signal) ?? found;
    } catch (failed) {
      error = `${failed.message}${failed.hint ? `: ${failed.hint}` : ""}`;
    }
    if (this.asked !== asked) return;
    const at = Date.now();
    Object.assign(this, { asked: null, at, took: at - began, found, error });
    this.tell();
    this.changed();
  }

  /** The tree with what was found: after all that its owner has there already. */
  merge(nodes) {
    const open = new Map((this.found?.below ?? []).map((group) => [place(group), group.nodes]));
    if (open.size === 0) return nodes;
    const [merged, path] = [[], []];
    const close = (depth) => {
      while (path.length > depth) {
        const owner = path.pop();
        const below = open.get(place(owner)) ?? [];
        open.delete(place(owner));
        merged.push(...below.map((node) => ({ ...node, depth: owner.depth + node.depth })));
      }
    };
    for (const node of nodes) {
      close(node.depth);
      path.push(node);
      merged.push(node);
    }
    close(0);
    return merged;
  }

  /** Says what is not there: what is still searched, and what could not be read. */
  tell() {
    const { found, error, asked } = this;
    const unread = found?.notRead ?? [];
    const said = [error && `Below these objects was not searched: ${error}.`, !found && asked && "searching below these objects …",
      found?.hidden && "Some objects below are hidden because you are not permitted to list them.",
      found?.leftOut && `${found.leftOut} more objects below were found and not read.`].filter(Boolean).join(" ");
    $("sought").hidden = !said;
    $("sought").textContent = plain(said);
    $("unread").hidden = unread.length === 0;
    const kinds = unread.reduce((sum, of) => sum + of.kinds.length, 0);
    $("unread").querySelector("summary").textContent = `Not read below: ${kinds} ${kinds === 1 ? "kind" : "kinds"}`;
    fill($("unread").querySelector("dl"), ...unread.map((of) => term(of.why, el("span", "", of.kinds.join(", ")))));
  }
}
