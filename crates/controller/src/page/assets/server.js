// Questions to the server, with the token that this tab keeps.
import { serverTime } from "./words.js";

let token = sessionStorage.getItem("token") ?? "";
let refused = () => {};

export const hasToken = () => Boolean(token);

/** Is used from now on; kept for this tab only once it has opened the gate. */
export function useToken(given) {
  token = given;
}

export function keepToken() {
  sessionStorage.setItem("token", token);
}

export function forgetToken() {
  sessionStorage.removeItem("token");
}

/** Is told where the server wants another token. */
export function onRefused(tell) {
  refused = tell;
}

export class Refused extends Error {
  constructor(status, body) {
    super(body.error ?? `the server answers ${status}`);
    this.status = status;
    this.hint = body.hint ?? "";
  }

  /** It is about who asks. */
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

/** A question whose answer may come too late to be wanted. */
export async function get(path, wanted = () => true) {
  const body = await (await call(path)).json();
  if (!wanted()) return null;
  if (body.now) serverTime(body.now);
  return body;
}

/** Server-sent events, which must carry a token and so do not come by EventSource. */
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
