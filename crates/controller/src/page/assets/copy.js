// Commands of kubectl that show an object, to be copied.
import { el, fill, place, plain } from "./words.js";

/** Words that a shell takes as they are. */
const PLAIN = /^[A-Za-z0-9._/:@=,-]+$/;
const quoted = (word) => PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** Command that shows an object; none where a name would hide something from whoever pastes it. */
export function command(verb, { label, namespace = "", name }) {
  if (!name || [label, namespace, name].some((word) => plain(word) !== word)) return "";
  const [kind, ...group] = label.split(".");
  const words = ["kubectl", ...(namespace ? ["-n", namespace] : []), verb, [kind.toLowerCase(), ...group].join("."), name];
  return [...words, ...(verb === "get" ? ["-o", "yaml"] : [])].map(quoted).join(" ");
}

/** Fills a box with buttons that copy the commands of an object. Those of the same object stay, and with them the focus. */
export function kubectl(box, node) {
  const of = node ? place(node) : "";
  if (box.dataset.of === of) return box;
  box.dataset.of = of;
  const commands = node ? ["get", "describe"].map((verb) => [verb, command(verb, node)]) : [];
  box.hidden = !commands.some(([, text]) => text);
  const said = el("span", "copied");
  said.setAttribute("role", "status");
  return fill(box, ...commands.map(([verb, text]) => {
    const button = el("button", "", `Copy kubectl ${verb}`);
    [button.type, button.title] = ["button", text];
    button.addEventListener("click", () => copy(text, said));
    return button;
  }), said);
}

/** Copies a text. Where the browser does not let a page write to the clipboard, it is selected, to be copied by hand. */
async function copy(text, said) {
  const shown = el("code", "", text);
  try {
    await navigator.clipboard.writeText(text);
    fill(said, el("span", "", "copied: "), shown);
  } catch {
    fill(said, el("span", "", "press Ctrl+C or ⌘C to copy: "), shown);
    getSelection().selectAllChildren(shown);
  }
}
