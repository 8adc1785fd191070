// The form that asks for a token, and what it says of the one that was used.
import { at } from "./address.js";
import { forgetToken, hasToken, keepToken, useToken } from "./server.js";
import { link } from "./stream.js";
import { $, plain } from "./words.js";

export const isShut = () => !$("gate").hidden;

/** Requests a token, with the reason; or shows the page, without one. */
export function gate(refused) {
  const shut = Boolean(refused);
  $("gate").hidden = !shut;
  $("list").hidden = shut;
  $("leave").hidden = !hasToken();
  $("one").hidden = shut || !at.parent;
  if (!shut) return;
  const stranger = refused.status === 403;
  $("why").textContent = stranger ? "This token is not permitted to list any parent"
    : hasToken() ? "This token was not accepted" : "A Kubernetes token is required";
  $("hint").textContent = plain(stranger ? `${refused.message}. ${refused.hint}.` : hasToken() ? `${refused.message}.` : "");
  link("wait", "waiting for a token");
  $("token").focus();
}

/** Binds the form: `load` asks for the list with the token that was given, `enter` goes on if it was accepted. */
export function bindGate({ load, enter }) {
  $("leave").addEventListener("click", () => { forgetToken(); location.reload(); });
  $("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    useToken($("token").value.trim());
    $("token").value = "";
    await load();
    if (isShut()) return;
    keepToken();
    $("leave").hidden = false;
    enter();
  });
}
