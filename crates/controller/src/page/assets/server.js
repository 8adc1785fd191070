// Requests to the server, with the token stored for this tab.
import { serverTime } from "./words.js";

let token = sessionStorage.getItem("token") ?? "";
let refused = () => {};

export const hasToken = () => Boolean(token);

/** Uses this token from now on; it is stored for this tab only once the server has accepted it. */
export function useToken(given) {
  token = given;
}

export function keepToken() {
  sessionStorage.setItem("token", token);
}

export function forgetToken() {
  sessionStorage.removeItem("token");
}

/** Called when the server requires another token. */
export function onRefused(tell) {
  refused = tell;
}

export class Refused extends Error {
  constructor(status, body) {
    super(body.error ?? `the server responded with status ${status}`);
    this.status = status;
    this.hint = body.hint ?? "";
  }

  /** The error concerns authentication or authorization. */
  get shut() {
    return this.status === 401 || this.status === 403;
  }
}

async function call(path, options = {}) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  if (response.ok) return response;
  const error = new Refused(response.status, await response.json().catch(() => ({})));
  if (error.shut) refused(error);
  throw error;
}

/** A request whose response is dropped if a newer one was sent. */
export async function get(path, wanted = () => true, signal) {
  const late = (error) => { throw error.name === "TimeoutError" ? new Error("the server did not answer in time") : error; };
  const body = await call(path, { signal }).then((response) => response.json()).catch(late);
  if (!wanted()) return null;
  if (body.now) serverTime(body.now);
  return body;
}

/** Server-sent events by fetch: EventSource cannot send a token. */
export async function events(signal) {
  const { body } = await call("api/v1/stream", { signal });
  return each(body);
}

async function* each(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const event = { name: "message", data: "" };
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("event:")) event.name = line.slice(6).trim();
        if (line.startsWith("data:")) event.data += line.slice(5).trim();
      }
      yield event;
    }
  }
}
