// The parents that are loaded: lists from the server, and the changes that its stream brings.
import { FILTERS, at } from "./address.js";
import { key, order } from "./list.js";
import { get } from "./server.js";

/** Time after which a list that does not come has failed. */
const LIST_TIMEOUT = 30_000;
/** Pause before a list that has failed is asked for again, and the longest one. */
const FIRST_RETRY = 1_000, LONGEST_RETRY = 30_000;
/** Rows that are not loaded are counted by the server: not at every change, and not by all pages at once. */
const RECOUNT = 2_000, RECOUNT_SPREAD = 3_000;
/** After a change of very many, pages ask again within this time. */
const RELOAD_SPREAD = 2_000;
/** Number of batches that are kept while a list is asked for. */
const LONGEST_WAIT = 200;

const among = (row) => (!at.policy || row.policy === at.policy) && (!at.namespace || row.namespace === at.namespace);
const says = (...texts) => texts.some((text) => text.toLowerCase().includes(at.q.toLowerCase()));

/** The row is among those that are searched for. */
export const matches = (row) => among(row) && says(row.name, row.namespace, row.label, row.policy, row.reason);
/** Its verdict is among those that are chosen. */
export const stands = (row) => !at.verdict || at.verdict.split(",").includes(row.verdict);
/** A view shows what another one does. Of another server's views that is not known. */
const shows = (view, other) => view?.server === other?.server && view?.number >= other?.number;

/**
 * Loaded parents. `loaded` is called with each list, `changed` after each change, `failed` with an error, and returns true if
 * the list is to be asked for again.
 */
export class Parents {
  constructor({ loaded, changed, failed }) {
    Object.assign(this, { loaded, changed, failed, rows: new Map(), numbers: {}, next: null, partial: false, error: null });
    // Lists asked for, lists that had to be read, and how many of these were.
    Object.assign(this, { asked: 0, due: 0, done: 0, failures: 0, view: null, heard: null, timer: 0 });
  }

  /** What is shown is not what the server last said, and asking for it has failed. */
  get outdated() {
    return this.due > this.done && this.failures > 0;
  }

  /** Asks for the list, or for more of it. Throws what went wrong, after it was told. */
  async load(more = false) {
    // The rest of a list that is to be read again is of no use.
    if (more && this.due > this.done) return;
    const due = more ? this.due : ++this.due;
    const turn = ++this.asked;
    const heard = this.heard = [];
    try {
      const found = await get(`api/v1/parents?${this.query(more)}`, () => turn === this.asked, AbortSignal.timeout(LIST_TIMEOUT));
      if (found) this.take(found, heard, more, due);
    } catch (error) {
      // A newer request tells how it went.
      if (turn !== this.asked) return;
      this.heard = null;
      this.error = error;
      if (more) this.due += 1;
      this.failures += 1;
      if (this.failed(error)) this.again(Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** (this.failures - 1)) * (0.75 + Math.random() / 2));
      throw error;
    }
  }

  query(more) {
    const query = new URLSearchParams();
    for (const field of FILTERS) if (at[field]) query.set(field, at[field]);
    if (more && this.next) query.set("continue", this.next);
    else if (this.rows.size > 100) query.set("limit", Math.min(this.rows.size, 500));
    return query;
  }

  /** Takes a list, and then what was heard while it was under way and it does not show yet. */
  take(found, heard, more, due) {
    this.heard = null;
    if (!more) {
      clearTimeout(this.timer);
      this.timer = 0;
      this.rows.clear();
      [this.numbers, this.view, this.done] = [found.counts, found.view, due];
    }
    // One that is loaded already is kept up by the stream.
    for (const row of found.parents) if (!this.rows.has(key(row))) this.rows.set(key(row), row);
    [this.next, this.partial, this.error, this.failures] = [found.continue, found.partial, null, 0];
    // More of the list may be of a later view than the rest, and its rows counted as they were before.
    let unknown = more && !shows(this.view, found.view);
    for (const batch of heard) if (!shows(found.view, batch.view)) unknown = this.apply(batch) || unknown;
    if (unknown) this.recount();
    this.loaded(found);
    if (this.due > this.done) this.again(Math.random() * RELOAD_SPREAD);
  }

  /** Takes a batch of changes from the stream. */
  hear(batch) {
    if (this.heard?.length === LONGEST_WAIT) this.due += 1;
    else this.heard?.push(batch);
    if (shows(this.view, batch.view)) return;
    if (this.apply(batch)) this.recount();
    this.changed();
  }

  /** Applies changes to the rows and their numbers. Returns true if the numbers are not certain any more. */
  apply({ view, changed, gone }) {
    let unknown = view?.server !== this.view?.server;
    if (!unknown) this.view = view;
    for (const row of gone) unknown = !this.drop(row) || unknown;
    for (const row of changed) unknown = this.put(row) || unknown;
    return unknown;
  }

  drop(row) {
    const held = this.rows.get(key(row));
    if (!held) return false;
    this.numbers[held.verdict] -= 1;
    return this.rows.delete(key(row));
  }

  /** Stores a changed row. Returns true if it may have been counted before by another verdict. */
  put(row) {
    if (!matches(row)) {
      // Of all that is searched, only the reason changes. One that is not loaded may have been counted.
      return !this.drop(row) && among(row) && Boolean(at.q && (this.next || at.verdict));
    }
    const held = this.drop(row);
    this.numbers[row.verdict] = (this.numbers[row.verdict] ?? 0) + 1;
    // A row beyond the last loaded one comes with the next page.
    if (held || !this.next || [...this.rows.values()].some((other) => order(row, other) < 0)) this.rows.set(key(row), row);
    return !held;
  }

  /** So much has changed that the list has to be read again. */
  reload() {
    this.due += 1;
    this.again(Math.random() * RELOAD_SPREAD);
  }

  recount() {
    this.again(RECOUNT + Math.random() * RECOUNT_SPREAD);
  }

  /** Asks for the list after a while, at the latest. */
  again(wait) {
    const then = Date.now() + wait;
    if (this.timer && this.then <= then) return;
    clearTimeout(this.timer);
    this.then = then;
    // What goes wrong was told, and is tried again.
    this.timer = setTimeout(() => { this.timer = 0; this.load().catch(() => {}); }, wait);
  }
}
