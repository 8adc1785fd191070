// Runs Azurite's blob service over a folder until it is killed, with one container that is there from the start.
//   node check.mjs PORT FOLDER CONTAINER
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";

const [port, folder, container] = process.argv.slice(2);
// The account that every emulator of Azure's storage has, and the key that its documentation prints.
const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

process.argv = [
  ...process.argv.slice(0, 2), "--blobHost", "127.0.0.1", "--blobPort", port, "--location", folder, "--silent",
  "--skipApiVersionCheck", "--disableTelemetry",
];
createRequire(import.meta.url)("azurite/dist/src/blob/main.js");

async function create() {
  const path = `/${account}/${container}`;
  const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02" };
  const named = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`).join("");
  const signed = `PUT${"\n".repeat(12)}${named}/${account}${path}\nrestype:container`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(signed, "utf8").digest("base64");
  headers.authorization = `SharedKey ${account}:${signature}`;
  const answer = await fetch(`http://127.0.0.1:${port}${path}?restype=container`, { method: "PUT", headers });
  // 409: it is there from before.
  if (!answer.ok && answer.status !== 409) throw new Error(`${answer.status} ${await answer.text()}`);
}

for (let left = 200; ; left--) {
  try {
    await create();
    break;
  } catch (error) {
    if (left === 0) throw error;
    await pause(100);
  }
}
console.log("ready");
