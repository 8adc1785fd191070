// Takes the picture of the page with which the README opens: node shot.mjs BINARY FILE. The page shows the demo's crowd, and
// one parent of it that failed, down to the cause.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { chromium } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"];
/** Two columns and the whole tree, and about the width at which a README shows it. */
const SIZE = { width: 1180, height: 700 };
const SCALE = 0.85;
/** The crowd is there in seconds; a busy machine gets a minute. */
const TIMEOUT = 60_000;
const [binary, file] = process.argv.slice(2);

const free = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

const address = `127.0.0.1:${await free()}`;
const demo = spawn(binary, ["demo", "--crowd", "--listen", address], { stdio: ["ignore", "ignore", "pipe"] });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
try {
  await new Promise((done) => demo.stderr.once("data", done));
  const page = await browser.newPage({ viewport: SIZE, deviceScaleFactor: SCALE, colorScheme: "light" });
  page.setDefaultTimeout(TIMEOUT);
  await page.goto(`http://${address}/`);
  // Each verdict is there, and most parents are ready by then.
  for (const verdict of ["Stuck", "Unknown", "Terminating"]) await page.locator("#verdicts", { hasText: verdict }).waitFor();
  await page.waitForFunction(() => /^1?\d of 50 not ready/.test(document.querySelector("#sum").textContent.trim()));
  const lamps = page.locator("#rows li", { hasText: "lamps" }).filter({ hasText: "Shop" }).filter({ hasText: "Failed" });
  await lamps.waitFor();
  await lamps.locator("a").first().click();
  await page.locator("[role=treeitem]", { hasText: "CrashLoopBackOff" }).waitFor();
  await page.locator("#causes .cause").first().waitFor();
  await page.mouse.move(0, 0);
  await page.screenshot({ path: file });
} finally {
  await browser.close();
  demo.kill();
}
