// Looks at the live page in a real Chromium: node check.mjs SCENARIO ARGUMENT…
//   story BINARY    the demo's story, watched through the page from its first scene to its last, and beyond its end
//   hands BINARY    keys, filters, deep links, light and dark, a phone
//   states BINARY   nothing there yet, no answer, many parents, long names
//   order BINARY    lists and changes that overtake each other, that fail, and that are not whole
//   hostile BINARY  names and messages that would like to be more than text
//   large URL API   a parent with 20,000 children, of which one turns; where its cluster is served
//   token URL GOOD BAD NAMESPACE  who gets in, and what they see: a parent that failed, and one that is ready
//   below URL TOKEN  a ready Certificate with its ConfigMap, and a CertificateRequest and an Order that failed, which no policy counts
//   filters URL TOKEN HERE THERE  parents of two namespaces: the same two, and one that is not ready
// and those of views.mjs.
// Prints a line for what held and what did not; the exit code is 1 if anything did not. Screenshots go to ./shots.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { chromium } from "playwright-core";
import { views } from "./views.mjs";

const AXE = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
/** What a page must come with, whatever else. */
const POLICY = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
  "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const DESKTOP = { viewport: { width: 1200, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
/** Far longer than anything takes; what takes so long has not happened. */
const TEST_TIMEOUT = 180_000;

let held = 0, broken = 0;
function check(what, good, seen = "") {
  if (good) held += 1;
  else {
    broken += 1;
    console.log(`not so: ${what} ${typeof seen === "string" ? seen : JSON.stringify(seen)}`);
  }
}

// —— the stage

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
const children = [];

/** A page that tells what it should not do. */
async function look(url, options = DESKTOP, before = async () => {}) {
  const context = await browser.newContext({ ...options, permissions: [] });
  const page = await context.newPage();
  page.setDefaultTimeout(TEST_TIMEOUT);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => {
    // A server that is gone or wants a token is no fault of the page.
    if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text())) page.faults.push(message.text());
  });
  page.on("request", (request) => { if (new URL(request.url()).origin !== new URL(url).origin) page.faults.push(request.url()); });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
  });
  await before(page);
  const policy = (await page.goto(url)).headers()["content-security-policy"] ?? "none";
  const directives = policy.split(/;\s*/);
  for (const directive of POLICY) check(`the page comes with ${directive}`, directives.includes(directive), policy);
  check("it lets in nothing that is written into it", !/unsafe|\*|data:|blob:|http/.test(policy), policy);
  return page;
}

async function well(page, where) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  check(`axe finds nothing in ${where}`, found.violations.length === 0,
    found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3)}`));
  check(`no fault in ${where}`, page.faults.length === 0, page.faults);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(`nothing sticks out of ${where}`, wide <= 0, String(wide));
}

async function shot(page, name) {
  mkdirSync("shots", { recursive: true });
  await page.screenshot({ path: `shots/${name}.png` });
}

const free = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

/** `rollcall demo` with what it has said so far; it is up when it has said where. */
async function demo(binary, port, ...args) {
  const child = spawn(binary, ["demo", "--listen", `127.0.0.1:${port}`, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  children.push(child);
  // Enter for a story that has just ended by itself: nobody reads it any more, and that is no fault.
  child.stdin.on("error", () => {});
  const running = { child, said: "", url: `http://127.0.0.1:${port}/` };
  running.over = new Promise((done) => child.on("exit", done));
  await new Promise((done) => {
    child.stderr.on("data", (data) => { if (String(data).includes("page: ")) done(); });
    child.stdout.on("data", (data) => { running.said += data; });
  });
  return running;
}

async function until(what, truth) {
  const end = Date.now() + TEST_TIMEOUT;
  while (!(await truth())) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** One parent of a scripted list, whose uid is its name. */
const parentOf = (name, verdict, reason = verdict === "Ready" ? "AllChildrenReady" : `Children${verdict}`) => ({
  uid: name, kind: "Database", label: "Database.example.com", namespace: "team", name, policy: "databases", verdict,
  status: verdict === "Ready" ? "True" : "False", reason, message: "", since: Date.now(), ready: 0, total: 1, stalled: false, reconciling: false,
});

/** A list of these parents, as a view of this number shows them. */
const listOf = (number, parents, more = {}) => {
  const counts = {};
  for (const { verdict } of parents) counts[verdict] = (counts[verdict] ?? 0) + 1;
  return { now: Date.now(), view: { server: "s", number }, parents, matching: parents.length, counts, policies: [`view-${number}`],
    namespaces: ["team"], continue: null, partial: false, ...more };
};

/** The page of `url` before a server that answers as told: `list`, `one` and `hour` return a body, or a status that is an error. */
async function scripted(url) {
  const told = { streams: [], lists: 0, list: () => 503, one: () => 404, hour: () => 404 };
  const answer = async (response, body) => {
    const found = await body;
    const failed = typeof found === "number";
    response.writeHead(failed ? found : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(failed ? { error: "no answer now", hint: "" } : found));
  };
  const http = createHttpServer(async (request, response) => {
    const { pathname: path, search } = new URL(request.url, url);
    if (path === "/api/v1/stream") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("event: beat\ndata: 1\n\n");
      told.streams.push(response);
      return;
    }
    if (path === "/api/v1/parents") return answer(response, told.list(++told.lists));
    if (path === "/api/v1/transitions") return answer(response, told.hour(search));
    if (path.startsWith("/api/")) return answer(response, /\/(below|branch|around)$/.test(path) ? 404 : told.one(path + search));
    const asset = await fetch(new URL(request.url, url));
    const kept = ["content-type", "content-security-policy"].map((name) => [name, asset.headers.get(name)]);
    response.writeHead(asset.status, Object.fromEntries(kept));
    response.end(await asset.text());
  });
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  told.url = `http://127.0.0.1:${http.address().port}/`;
  told.send = (name, data) => told.streams.at(-1).write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  told.change = (number, ...changed) => told.send("changed", { now: Date.now(), view: { server: "s", number }, changed, gone: [] });
  /** A response that waits, and what lets it go. */
  told.held = (body) => {
    let release;
    const promise = new Promise((done) => { release = () => done(body); });
    return { promise, release };
  };
  return told;
}

/** What the page says of a parent, and when it says that. */
const saysOf = (page, name, verdict) => page.locator("#rows li", { hasText: name }).locator(`.verdict.${verdict}`).waitFor({ timeout: 15_000 });
const isLive = (page) => page.locator("#link[data-state=live]").waitFor({ timeout: 15_000 });
/** The page has taken the list of this view, whose only policy bears its number. */
const hasTaken = (page, number) => page.locator(`#policy option[value=view-${number}]`).waitFor({ state: "attached", timeout: 15_000 });

const orders = {
  async "what changed before the stream was open is read after it"(told, open) {
    told.list = () => told.streams.length ? listOf(2, [parentOf("db", "Failed")]) : listOf(1, [parentOf("db", "Ready")]);
    const page = await open();
    await isLive(page);
    await saysOf(page, "db", "Failed");
  },

  async "a list is no older than what was heard while it was under way"(told, open) {
    told.list = () => listOf(1, [parentOf("db", "Ready")]);
    const page = await open();
    await isLive(page);
    const late = told.held(listOf(2, [parentOf("db", "Ready")]));
    told.list = () => late.promise;
    const before = told.lists;
    await page.locator("#q").fill("db");
    await until("the search", () => told.lists > before);
    told.change(3, parentOf("db", "Failed"));
    await saysOf(page, "db", "Failed");
    late.release();
    await hasTaken(page, 2);
    await saysOf(page, "db", "Failed");
    check("it is counted as it is shown", (await page.locator("#sum").innerText()) === "1 of 1 not ready", await page.locator("#sum").innerText());
  },

  async "what a list shows already is not counted twice"(told, open) {
    told.list = () => listOf(5, [parentOf("db", "Ready"), parentOf("web", "Ready")]);
    const page = await open();
    await isLive(page);
    // Published before the list was made, and heard after it.
    told.change(4, parentOf("db", "Failed"), parentOf("gone", "Failed"));
    told.change(6, parentOf("web", "Stuck"));
    await saysOf(page, "web", "Stuck");
    const said = await page.locator("#sum").innerText();
    check("only what is new has changed it", said === "1 of 2 not ready" && (await page.locator("#rows li").count()) === 2, said);
  },

  async "a list that is not whole says so, whatever is heard"(told, open) {
    told.list = () => listOf(1, [parentOf("db", "Ready")], { partial: true });
    const page = await open();
    await isLive(page);
    const note = page.locator("#note", { hasText: "Not all namespaces could be checked at once" });
    await note.waitFor({ timeout: 15_000 });
    told.change(2, parentOf("db", "Failed"));
    await saysOf(page, "db", "Failed");
    check("the note stays", await note.isVisible());
    told.change(3, parentOf("db", "Ready"));
    await saysOf(page, "db", "Ready");
    const said = await page.locator("#sum").innerText();
    check("it does not say that all are ready", !/^(All|The only)/.test(said) && said.includes("not checked"), said);
    told.list = () => listOf(4, [], { partial: true });
    told.send("reload", 1);
    await hasTaken(page, 4);
    check("nor that there are none", (await note.isVisible()) && !(await page.locator("#note").innerText()).includes("No policy"));
    await shot(page, "partial");
    await well(page, "a list that is not whole");
  },

  async "a reload that fails is owed until it succeeds"(told, open) {
    told.list = () => listOf(1, [parentOf("db", "Ready"), parentOf("web", "Ready")]);
    const page = await open();
    await isLive(page);
    const before = told.lists;
    told.list = () => 503;
    told.send("reload", 1);
    await page.locator("#note", { hasText: "no answer now" }).waitFor({ timeout: 15_000 });
    told.change(3, parentOf("web", "Failed"));
    await saysOf(page, "web", "Failed");
    check("what went wrong stays said", await page.locator("#note", { hasText: "no answer now" }).isVisible());
    check("and that what is shown is old", await page.evaluate(() => document.body.classList.contains("stale")));
    await until("another attempt", () => told.lists >= before + 2);
    told.list = () => listOf(4, [parentOf("db", "Stuck"), parentOf("web", "Failed")]);
    await saysOf(page, "db", "Stuck");
    check("then nothing is owed", !(await page.evaluate(() => document.body.classList.contains("stale"))) && (await page.locator("#note").isHidden()));
  },

  async "a page that could not read again is not live"(told, open) {
    told.list = () => listOf(1, [parentOf("db", "Ready")]);
    const page = await open();
    await isLive(page);
    told.list = () => 503;
    const [streams, lists] = [told.streams.length, told.lists];
    await page.evaluate(() => {
      globalThis.states = [];
      const link = document.querySelector("#link");
      new MutationObserver(() => globalThis.states.push(link.dataset.state)).observe(link, { attributes: true });
    });
    told.streams.at(-1).end();
    await until("two attempts", () => told.streams.length >= streams + 2 && told.lists >= lists + 2);
    const states = await page.evaluate(() => globalThis.states);
    check("it has not said that it is", states.length > 0 && !states.includes("live"), states);
    told.list = () => listOf(2, [parentOf("db", "Failed")]);
    await isLive(page);
    await saysOf(page, "db", "Failed");
  },

  async "a row that leaves the search goes, and is not counted"(told, open) {
    told.list = () => listOf(1, [parentOf("db", "Failed"), parentOf("web", "Failed")]);
    const page = await open("?q=ChildrenFailed");
    await isLive(page);
    told.change(2, parentOf("db", "Ready"));
    await until("one row", async () => (await page.locator("#rows li").count()) === 1);
    const said = await page.locator("#sum").innerText();
    check("one is left", said === "1 of 1 not ready" && (await row(page, "web").isVisible()), said);
  },

  async "a parent is no older than what was read of it later"(told, open) {
    const of = (verdict) => ({ ...parentOf("db", verdict), decided: verdict, hidden: false, policies: [], groups: [], nodes: [], transitions: [] });
    told.list = () => listOf(1, [parentOf("db", "Ready")]);
    const page = await open();
    await isLive(page);
    const late = told.held(of("Ready"));
    let asked = 0;
    told.one = () => (++asked === 1 ? late.promise : of("Failed"));
    await page.locator("#rows a").click();
    await until("the parent", () => asked === 1);
    told.change(2, parentOf("db", "Failed"));
    await page.locator("#head .big", { hasText: "ChildrenFailed" }).waitFor({ timeout: 15_000 });
    const came = page.waitForEvent("requestfinished", { predicate: (request) => request.url().includes("name=db"), timeout: 15_000 });
    late.release();
    await came;
    await page.evaluate(() => new Promise((done) => setTimeout(done, 200)));
    check("what came late is not shown", (await page.locator("#head .big").innerText()).includes("ChildrenFailed"));
  },
};

const row = (page, name) => page.locator("#rows li", { hasText: name }).first();

/** Scrolls through 20,001 rows while one pod turns, until that is seen. How smooth that was is told; it is no condition. */
async function turning(page, api) {
  await page.evaluate(() => {
    const one = document.querySelector("#one"), passed = { frames: 0, longest: 0, slow: 0, rows: 0, elements: 0, over: false };
    globalThis.passed = passed;
    let down = 1, before;
    const frame = (now) => {
      if (before) {
        passed.frames += 1;
        passed.longest = Math.max(passed.longest, now - before);
        if (now - before > 50) passed.slow += 1;
      }
      before = now;
      passed.rows = Math.max(passed.rows, document.querySelectorAll("[role=treeitem]").length);
      passed.elements = Math.max(passed.elements, document.querySelectorAll("*").length);
      if (one.scrollTop <= 0) down = 1;
      if (one.scrollTop >= one.scrollHeight - one.clientHeight - 1) down = -1;
      one.scrollTop += down * 600;
      if (!passed.over) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const answer = await fetch(`${api}/api/v1/namespaces/default/pods/pod-00001/status`, {
    method: "PATCH", headers: { "content-type": "application/merge-patch+json" },
    body: JSON.stringify({ status: { conditions: [{ type: "Ready", status: "False" }] } }),
  });
  check("the pod turns", answer.ok, String(answer.status));
  await page.locator("#rows li", { hasText: "19799 of 20000 ready" }).waitFor();
  // The tree, too, is read again while it moves.
  await page.locator("#facts", { hasText: "201 of 20000 not ready" }).waitFor();
  const passed = await page.evaluate(() => { globalThis.passed.over = true; return globalThis.passed; });
  console.log(`while one turns: ${passed.frames} frames, the longest after ${Math.round(passed.longest)} ms, ${passed.slow} after more than 50 ms;`
    + ` never more than ${passed.rows} rows and ${passed.elements} elements`);
  check("only what is in sight exists while one turns", passed.frames > 20 && passed.rows < 80 && passed.elements < 1_200, passed);
}

// —— the scenarios

const scenarios = {
  async story(binary) {
    const port = await free();
    // It stays at each moment until it has been looked at.
    const first = await demo(binary, port, "--step", "--speed", "2");
    const told = () => [...first.said.matchAll(/^rollcall +(Ready=\w+) (\w+)/gm)].map((m) => `${m[1]} ${m[2]}`);
    const over = () => /All \d+ expectations held/.test(first.said);
    let [moments, place] = [0, 0];
    /** It does not stay so by itself, and the page may be shown the next thing at once. */
    const passing = (word) => word.endsWith("ChildrenTerminating");
    /** Goes on to where the parent says this, and shows each moment on the way; without a word, to the end. */
    const goTo = async (reason) => {
      for (;;) {
        await until("the next moment", () => told().length > moments || over());
        if (told().length === moments) return;
        const word = told()[moments];
        // The first may have passed by itself before the page was opened.
        if (moments > 0 && !passing(word)) {
          const shown = () => page.evaluate(([word, from]) => globalThis.seen.indexOf(word, from), [word, place]);
          await until(`the page to show ${word}`, async () => (await shown()) >= 0);
          place = await shown();
        }
        if (reason && word.endsWith(reason)) return;
        moments += 1;
        first.child.stdin.write("\n");
      }
    };
    const page = await look(first.url);
    await row(page, "Shop").waitFor();
    await page.locator("#rows a", { hasText: "Shop" }).click();
    await page.evaluate(() => {
      globalThis.seen = [];
      globalThis.below = new Set();
      const note = () => {
        const reason = document.querySelector("#head .big .reason")?.textContent;
        const status = document.querySelector("#facts dd")?.textContent?.match(/Ready=\w+/)?.[0];
        const now = `${status} ${reason}`;
        if (reason && globalThis.seen.at(-1) !== now) globalThis.seen.push(now);
        for (const node of document.querySelectorAll("#tree [role=treeitem]")) globalThis.below.add(node.innerText.replace(/\s+/g, " "));
      };
      note();
      new MutationObserver(note).observe(document.querySelector("#one"), { subtree: true, childList: true, characterData: true });
    });
    const dark = await look(`${first.url}${new URL(page.url()).search}`, { ...DESKTOP, colorScheme: "dark" });
    const phone = await look(`${first.url}${new URL(page.url()).search}`, { ...PHONE, colorScheme: "light" });
    await goTo("ChildrenFailed");
    const failing = (at) => at.locator("#head .big", { hasText: "ChildrenFailed" }).waitFor();
    const closer = async () => {
      await failing(page);
      await page.locator("[role=treeitem]", { hasText: "CrashLoopBackOff" }).click();
      const seen = [page.locator("#causes .cause").innerText(), page.locator("#object time").first().getAttribute("title"),
        page.locator("#object code", { hasText: "is waiting (CrashLoopBackOff)" }).waitFor(),
        page.locator("#object section", { hasText: "container db waits: CrashLoopBackOff" }).waitFor()];
      const [cause, moment] = await Promise.all(seen);
      await shot(page, "failing");
      return [cause, moment];
    };
    const [[cause, moment]] = await Promise.all([closer(),
      failing(dark).then(() => shot(dark, "failing-dark")), failing(phone).then(() => shot(phone, "failing-phone"))]);
    check("the root cause is named first", cause.includes("books-db-0") && cause.includes("CrashLoopBackOff") && cause.includes("in Database books-db"), cause);
    check("which moment it is is said", /^since .*: (time at which Rollcall observed|conditions\[|metadata\.creation)/.test(moment), moment);
    await page.keyboard.press("Escape");
    await goTo("ChildrenStuck");
    await page.locator("#head .big", { hasText: "ChildrenStuck" }).waitFor();
    await page.locator("[role=treeitem]", { hasText: "media" }).click();
    await page.locator("#object .tag", { hasText: "example.org/backup" }).waitFor();
    const holder = await page.locator("#object section", { hasText: "example.org/backup" }).innerText();
    check("who holds it, and what would release it", /likely owner\s+field manager/.test(holder) && holder.includes("kubectl -n default patch"), holder);
    await shot(page, "stuck");
    await goTo();
    check("the page is live", (await page.locator("#link").innerText()) === "live");
    await page.keyboard.press("Escape");
    await page.locator("#head .big", { hasText: "AllChildrenReady" }).waitFor();

    // What the demo says that the parent said, in its order.
    const words = told().filter((word, at, all) => word !== all[at - 1]);
    const { seen, below } = await page.evaluate(() => ({ seen: globalThis.seen, below: [...globalThis.below] }));
    while (words.length && words[0] !== seen[0]) words.shift();
    let at = 0;
    for (const word of words.filter((word) => !passing(word) || seen.includes(word))) {
      const found = seen.indexOf(word, at);
      check(`the page has shown ${word} in its turn`, found >= 0, seen);
      at = Math.max(at, found);
    }
    check("the story has enough to see", words.length >= 10, words);
    for (const text of ["waiting: CrashLoopBackOff", "2 of 3 replicas ready", "finalizer"]) {
      check(`the tree has shown ${text}`, below.some((line) => line.includes(text)), below);
    }
    const past = await page.locator("#times li").allInnerTexts();
    check("the last transitions are told, the newest first",
      past.length >= 10 && past[0].includes("AllChildrenReady") && past.some((t) => t.includes("ChildrenStuck")), past);
    for (const [where, name] of [[page, "a parent"], [dark, "a parent in the dark"], [phone, "a parent on a phone"]]) await well(where, name);

    // The server goes, and another comes: what is said is true meanwhile, and afterwards.
    first.child.kill("SIGTERM");
    await first.over;
    await page.locator("#link", { hasText: /^connection lost since \d/ }).waitFor();
    const glance = await page.evaluate(() => getComputedStyle(document.querySelector("#sum"), "::after").content);
    check("what is not known any more is not said to be so", glance.includes("last known"), glance);
    await shot(page, "lost");
    await well(page, "a page without its server");
    // So slow that its beginning is still there when a page on a busy machine has found it.
    const second = await demo(binary, port, "--speed", "0.2");
    await page.locator("#link[data-state=live]").waitFor();
    // The second has parents of the same uids, at the beginning of their story.
    await page.locator("#head .big", { hasText: /Children(Pending|Missing|Progressing)/ }).waitFor();
    check("nothing is left of the one before", !(await page.locator("#head").innerText()).includes("AllChildrenReady"));
    second.child.kill("SIGTERM");
    await second.over;
  },

  async hands(binary) {
    const running = await demo(binary, await free(), "--speed", "0");
    const page = await look(running.url);
    await row(page, "books-db").waitFor();
    await until("the end of the story", () => /All \d+ expectations held/.test(running.said));
    await row(page, "Shop").waitFor();
    // Without the age, which goes on.
    const focused = () => page.evaluate(() => (document.activeElement.innerText ?? "").replace(/^\d+[smhd]$/gm, ""));
    const query = () => new URL(page.url()).searchParams;
    await shot(page, "list");
    await well(page, "the list");

    await page.keyboard.press("/");
    check("/ is for searching", await page.evaluate(() => document.activeElement.id === "q"));
    await page.keyboard.type("books-db");
    await until("the search in the address", () => query().get("q") === "books-db");
    await until("one row", async () => (await page.locator("#rows li").count()) === 1);
    await page.keyboard.press("Escape");
    await until("all rows", async () => (await page.locator("#rows li").count()) === 2);
    check("the address forgets the search", !query().has("q"));

    await page.locator("#policy").selectOption("databases");
    await until("one row", async () => (await page.locator("#rows li").count()) === 1);
    check("a policy is a filter with an address", query().get("policy") === "databases" && (await row(page, "books-db").isVisible()));
    await page.locator("#policy").selectOption("");
    await until("all rows", async () => (await page.locator("#rows li").count()) === 2);
    for (const other of ["namespace=elsewhere", "verdict=Failed"]) {
      const none = await look(`${running.url}?${other}`);
      await none.locator("#note", { hasText: "No parent matches the filters." }).waitFor();
      check(`nothing is of ${other}`, (await none.locator("#rows li").count()) === 0);
      await none.close();
    }
    await page.evaluate(() => document.activeElement.blur());

    await page.keyboard.press("j");
    const one = await focused();
    await page.keyboard.press("j");
    const two = await focused();
    await page.keyboard.press("k");
    check("j and k go down and up", one && two && one !== two && (await focused()) === one, [one, two]);
    await page.locator("#rows a", { hasText: "Shop" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("[role=treeitem]").first().waitFor();
    check("a parent has an address", Boolean(query().get("parent")));
    const deep = page.url();
    await until("the tree has the focus", () => page.evaluate(() => document.activeElement.id === "tree"));
    for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
    check("the second row is chosen", (await page.locator("[aria-selected=true]").getAttribute("aria-posinset")) === "2");
    const before = await page.locator("[role=treeitem]").count();
    await page.keyboard.press("ArrowLeft");
    const folded = await page.locator("[role=treeitem]").count();
    await page.keyboard.press("ArrowRight");
    check("arrows fold and unfold", folded < before && (await page.locator("[role=treeitem]").count()) === before, [before, folded]);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator("#object code").first().waitFor();
    check("an object has an address", Boolean(query().get("object")));
    await shot(page, "tree");
    await well(page, "an object");
    await page.keyboard.press("Escape");
    check("Escape closes the object", await page.locator("#object").isHidden());
    await page.keyboard.press("Escape");
    check("Escape leads back to the list", (await page.locator("#one").isHidden()) && (await focused()).includes("Shop"), await focused());
    await page.goBack();
    await page.goBack();
    await page.locator("#object code").first().waitFor();
    check("the browser's way back leads back", true);
    await page.keyboard.press("?");
    check("? tells the keys", await page.locator("#help").isVisible());
    await well(page, "the keys");
    await page.keyboard.press("Escape");

    const there = await look(deep, { ...DESKTOP, colorScheme: "dark" });
    await there.locator("[role=treeitem]").first().waitFor();
    check("a deep link leads there", (await there.locator("#head h2").innerText()).includes("books"));
    await shot(there, "tree-dark");
    await well(there, "a tree in the dark");
    const ground = () => there.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    await there.locator("#theme").click();
    check("light and dark can be changed", (await ground()) !== dark);

    const phone = await look(running.url, PHONE);
    await row(phone, "Shop").waitFor();
    await shot(phone, "phone");
    await well(phone, "the list on a phone");
    await phone.locator("#rows a", { hasText: "Shop" }).tap();
    await phone.locator("[role=treeitem]").nth(2).tap();
    await phone.locator("#object code").first().waitFor();
    await shot(phone, "phone-tree");
    await well(phone, "an object on a phone");
    await phone.locator("#object [aria-label=Close]").tap();
    await phone.locator("#back").tap();
    check("back on a phone", await phone.locator("#list").isVisible());
    running.child.kill("SIGTERM");
    await running.over;
  },

  async states(binary) {
    const running = await demo(binary, await free(), "--speed", "0");
    await until("the end of the story", () => /All \d+ expectations held/.test(running.said));
    const json = (body, status = 200) => (route) => route.fulfill({ status, contentType: "application/json", body: JSON.stringify(body) });
    const none = { now: Date.now(), parents: [], matching: 0, counts: {}, policies: [], namespaces: [], continue: null, partial: false };
    const list = /\/api\/v1\/parents\?/;
    const empty = await look(running.url, DESKTOP, (page) => page.route(list, json(none)));
    await empty.locator("#note", { hasText: "No policy has found a parent yet" }).waitFor();
    check("an empty cluster is not called ready", await empty.locator("#sum").isHidden());
    await shot(empty, "empty");
    await well(empty, "an empty cluster");

    const refused = await look(running.url, DESKTOP, (page) => page.route(list, json({ error: "no answer from the API server", hint: "try again" }, 503)));
    await refused.locator("#note", { hasText: "no answer from the API server" }).waitFor();
    await shot(refused, "no-answer");
    await well(refused, "a page without an answer");

    const words = ["Failed", "Stuck", "Missing", "Unknown", "Progressing", "Terminating", "Suspended", "Ready"];
    const long = "a-release-of-something-with-a-very-long-name-that-nobody-can-say-without-a-break-".repeat(3).slice(0, 250);
    const why = "3 of 12 not ready: Deployment " + long + " failed (ReplicaSet exceeded quota: small, requested: cpu=4, used: cpu=4, limited: cpu=4)";
    const parents = words.flatMap((verdict, v) => Array.from({ length: verdict === "Ready" ? 60 : 3 }, (_, i) => ({
      uid: `${v}-${i}`, kind: "Database", label: "Database.example.com", namespace: i ? `team-${i}` : long.slice(0, 63), name: i ? `db-${v}-${i}` : long,
      policy: "databases", verdict, status: "False", reason: "ChildrenFailed", message: verdict === "Ready" ? "12 of 12 ready" : why,
      since: i === 59 ? 1e300 : Date.now() - 10_000 * 3 ** Math.min(i, 10), ready: 9, total: 12, stalled: false, reconciling: true,
    })));
    const counts = Object.fromEntries(words.map((word) => [word, parents.filter((p) => p.verdict === word).length]));
    // The other way round: it is the page that has to put them in order.
    const many = { ...none, parents: parents.toReversed(), matching: parents.length, counts, policies: ["databases"], namespaces: ["team-1", "team-2"] };
    const nodes = [parents[0], ...words.map((verdict, i) => ({ depth: 1, kind: "Deployment", label: "Deployment.apps", namespace: "team-1",
      name: i ? `web-${i}` : long, verdict, reason: "ReplicaFailure", detail: why, since: Date.now() - 60_000 * i, sinceFrom: i % 2 ? "firstSeen" : "seen" }))]
      .map((node, i) => ({ ...node, depth: i ? 1 : 0 }));
    const one = { ...parents[0], now: Date.now(), decided: "the worst critical child decides: 3 of 12 Failed", hidden: false, policies: [{ name: "databases", verdict: "Failed" }],
      groups: [{ kind: "Deployment.apps", min: 1, max: null, optional: false, at: { Failed: 3, Ready: 9 } }], nodes,
      transitions: words.map((verdict, i) => ({ at: Date.now() - 3_600_000 * i, verdict, status: "False", reason: "ChildrenFailed", message: why, generation: 1 })) };
    for (const [options, name] of [[DESKTOP, "many"], [{ ...DESKTOP, colorScheme: "dark" }, "many-dark"], [PHONE, "many-phone"]]) {
      const page = await look(running.url, options, async (page) => {
        await page.route(list, json(many));
        await page.route(/\/api\/v1\/parents\/[^/]*\?/, json(one));
      });
      await page.locator("#sum", { hasText: "21 of 81 not ready" }).waitFor();
      const seen = await page.locator("#rows li").evaluateAll((rows) => rows.map((row) => Number.parseInt(row.dataset.key, 10)));
      check(`the worst are on top in ${name}, and so on`, seen.length === 81 && seen.every((verdict, i) => i === 0 || seen[i - 1] <= verdict), seen);
      await shot(page, name);
      await well(page, name);
      await page.locator("#rows a").first().click();
      await page.locator("#causes .cause").first().waitFor();
      const said = await page.locator("#causes").innerText();
      check("the worst causes, and how many more", said.includes("and 3 more, below") && !said.includes("Suspended"), said);
      await shot(page, `${name}-one`);
      await well(page, `${name}, one of them`);
    }
    running.child.kill("SIGTERM");
    await running.over;
  },

  async order(binary) {
    const running = await demo(binary, await free(), "--speed", "0");
    for (const [what, happens] of Object.entries(orders)) {
      const told = await scripted(running.url);
      const opened = [];
      const open = async (query = "") => { opened.push(await look(`${told.url}${query}`)); return opened[0]; };
      const error = await happens(told, open).then(() => null, (error) => error);
      check(what, !error, error?.message);
      for (const page of opened) {
        check(`no fault where ${what}`, page.faults.length === 0, page.faults);
        await page.context().close();
      }
    }
    running.child.kill("SIGTERM");
    await running.over;
  },

  async hostile(binary) {
    const running = await demo(binary, await free(), "--speed", "0");
    const nasty = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.exe\u200b\u001b[31mred\u0007&amp;\u2066";
    const parent = {
      uid: "u<b>\"'", kind: nasty, label: nasty, namespace: nasty, name: nasty, policy: nasty, verdict: "Failed<b>", status: "False",
      reason: nasty, message: nasty.repeat(8), since: 1, ready: 0, total: 1, stalled: true, reconciling: true,
    };
    const node = { depth: 0, kind: nasty, label: nasty, namespace: nasty, name: nasty, verdict: "Failed", reason: nasty, detail: nasty, since: 1, sinceFrom: nasty };
    const page = await look(running.url, DESKTOP, async (page) => {
      page.on("dialog", (dialog) => { page.faults.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
      const json = (body) => (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(body) });
      await page.route(/\/api\/v1\/parents\?/, json({
        now: Date.now(), parents: [parent], matching: 1, counts: { "Failed": 1 }, policies: [nasty], namespaces: [nasty], continue: null, partial: false,
      }));
      await page.route(/\/api\/v1\/parents\/[^/]*\?/, json({
        ...parent, now: Date.now(), decided: nasty, hidden: false, policies: [{ name: nasty, verdict: "Failed" }, { name: "b", verdict: "Ready" }],
        groups: [{ kind: nasty, min: 1, max: null, optional: true, at: { Failed: 1 } }], nodes: [node, { ...node, depth: 1, name: `${nasty}2` }],
        transitions: [{ at: 1, verdict: "Failed", status: "False", reason: nasty, message: nasty, generation: 1 }],
      }));
      await page.route(/\/branch\?/, json({
        verdict: "Failed", reason: nasty, detail: nasty, branch: nasty, rule: nasty, created: nasty, deleted: nasty, finalizers: [nasty],
        conditions: [{ type: nasty, status: nasty, reason: nasty, message: nasty, lastTransitionTime: nasty }],
        holders: [{ finalizer: nasty, since: nasty, likely: nasty, waitsFor: nasty, manager: nasty, release: nasty, warning: nasty }],
      }));
      await page.route(/\/below\?/, json({
        below: [{ label: nasty, namespace: nasty, name: nasty, nodes: [{ ...node, depth: 1, name: `${nasty}3`, uncounted: true }] }],
        notRead: [{ kinds: [nasty, nasty], why: nasty }], hidden: true, leftOut: 1,
      }));
      await page.route(/\/transitions\?/, json({ now: Date.now(), transitions: [1, 2].map((n) => ({ ...parent, uid: n, at: Date.now(), from: nasty })), cut: true, reaches: null }));
      await page.route(/\/rollout\?/, json({
        now: Date.now(), generation: nasty, isOver: false, from: 0, to: 1e300, notRead: [nasty],
        parts: [{ object: nasty, cause: nasty, detail: nasty, says: nasty, from: 0, to: 1e300 }],
        earlier: [{
          generation: nasty, from: 0, to: 1e300, notRead: [nasty], hidden: false,
          parts: [{ object: nasty, cause: nasty, detail: nasty, says: nasty, from: 0, to: 1e300 }],
        }],
      }));
      await page.route(/\/around\?/, json({
        owns: [{ object: nasty, says: nasty }], notRead: [`${nasty}: ${nasty}`],
        events: [{ at: nasty, type: "Warning", reason: nasty, about: nasty, from: nasty, message: nasty, count: 3 }],
      }));
    });
    // The stream may bring those of the story too.
    await page.locator("#rows a", { hasText: "Failed<b>" }).click();
    await page.locator("#tree").scrollIntoViewIfNeeded();
    await page.locator("[role=treeitem]").nth(1).click();
    for (const part of ["Why", "Held by", "In detail", "Events", "Not read", "Conditions"]) {
      await page.locator("#object section", { hasText: part }).first().waitFor();
    }
    await page.locator("[role=treeitem]", { hasText: "(not counted)" }).waitFor();
    await page.locator("#unread summary", { hasText: "2 kinds" }).click();
    await page.locator("#rollout summary").click();
    await page.locator("#path > .path li").waitFor();
    await page.locator(".past summary").click();
    await page.locator(".past .path li").waitFor();
    await page.locator("#marks button").last().click();
    await page.locator("#hour-list li").nth(1).waitFor();
    check("a name that hides something is no command", await page.locator("#copy").isHidden());
    const found = await page.evaluate(() => ({
      markup: document.querySelectorAll("main img, main script, main b:not(button b), [onerror]").length,
      text: document.querySelector("main").textContent,
      titles: [...document.querySelectorAll("[title]")].map((e) => e.title).join(""),
    }));
    check("markup is text", found.markup === 0 && found.text.includes("<img src=x onerror=alert(1)>"), String(found.markup));
    check("what would turn or hide text is shown", /⟨202E⟩gnp\.exe⟨200B⟩⟨001B⟩\[31mred⟨0007⟩&amp;⟨2066⟩/.test(found.text));
    const raw = /[\u202a-\u202e\u2066-\u2069\u200b\u001b\u0007]/;
    check("none of it is left", !raw.test(found.text) && !raw.test(found.titles));
    await shot(page, "hostile");
    await well(page, "a hostile page");
    // If ever something got in: it does not run, and nothing leaves.
    const tried = await page.evaluate(async () => {
      const said = [];
      addEventListener("securitypolicyviolation", (event) => said.push(event.effectiveDirective));
      try { document.body.innerHTML = "<p>"; } catch (error) { said.push(error.name); }
      new Image().src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
      await fetch("data:text/plain,out").catch(() => {});
      for (let look = 0; look < 500 && said.length < 4; look++) await new Promise((done) => setTimeout(done, 10));
      return said;
    });
    check("the browser keeps to its policy", ["TypeError", "img-src", "connect-src", "require-trusted-types-for"].every((word) => tried.includes(word)), tried);
    check("a violation is a fault here", page.faults.some((fault) => fault.startsWith("CSP: ")), page.faults);
    running.child.kill("SIGTERM");
    await running.over;
  },

  async large(url, api) {
    const page = await look(url);
    await page.locator("#rows a").first().click();
    await page.locator("[role=treeitem]").first().waitFor();
    const took = await page.evaluate(() => performance.getEntriesByType("resource")
      .filter((entry) => entry.name.includes("/api/v1/parents"))
      .map((entry) => `${new URL(entry.name).pathname.split("/").length > 4 ? "tree" : "list"} ${Math.round(entry.duration)} ms, ${entry.decodedBodySize} bytes`));
    console.log(took.join("; "));
    const size = () => page.evaluate(() => ({
      all: Number(document.querySelector("[role=treeitem]").getAttribute("aria-setsize")),
      rows: document.querySelectorAll("[role=treeitem]").length,
      elements: document.querySelectorAll("*").length,
      last: document.querySelector("#tree").lastElementChild.innerText,
    }));
    const first = await size();
    check("all are there", first.all === 20_001, first);
    let most = first;
    for (const share of [0.1, 0.5, 0.25, 0.9, 1]) {
      const passed = await page.evaluate(async (share) => {
        const one = document.querySelector("#one");
        let [most, blank] = [0, 0];
        const to = (one.scrollHeight - one.clientHeight) * share, from = one.scrollTop;
        for (let step = 1; step <= 20; step++) {
          one.scrollTop = from + (to - from) * step / 20;
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          most = Math.max(most, document.querySelectorAll("*").length);
          const middle = document.elementFromPoint(innerWidth * 0.7, innerHeight / 2);
          if (!middle?.closest("[role=treeitem]")) blank += 1;
        }
        return { most, blank };
      }, share);
      check("no frame is blank", passed.blank <= 1, passed);
      if (passed.most > most.elements) most = { elements: passed.most };
    }
    console.log(`20001 objects: ${first.rows} rows and ${first.elements} elements at first, never more than ${most.elements} while scrolling`);
    check("only what is in sight exists", first.rows < 80 && most.elements < 1_200, [first, most]);
    const seen = await size();
    check("the end is reached", seen.last.includes("19999"), seen);
    await turning(page, api);
    await page.locator("#tree").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("End");
    check("keys reach the end", (await page.locator("[aria-selected=true]").getAttribute("aria-posinset")) === "20001");
    await page.keyboard.press("Enter");
    await page.locator("#object code").first().waitFor();
    await shot(page, "large");
    await well(page, "a large tree");
  },

  async token(url, good, bad, namespace) {
    const page = await look(url);
    await page.locator("#gate").waitFor();
    check("nothing is shown before", (await page.locator("#rows li").count()) === 0);
    await shot(page, "gate");
    await well(page, "the gate");
    const give = async (token) => { await page.locator("#token").fill(token); await page.keyboard.press("Enter"); };
    await page.route(/\/api\/v1\/parents/, (route) => route.fulfill({ status: 503, contentType: "application/json",
      body: JSON.stringify({ error: "may not ask", hint: "grant it" }) }));
    await give("anybody's");
    await page.locator("#hint", { hasText: "may not ask. grant it" }).waitFor();
    await page.unroute(/\/api\/v1\/parents/);
    await give("nobody's");
    await page.locator("#why", { hasText: "not accepted" }).waitFor();
    await give(bad);
    await page.locator("#why", { hasText: "not permitted" }).waitFor();
    await give(good);
    await page.locator("#rows li").first().waitFor();
    const texts = await page.locator("#rows li").allInnerTexts();
    check("only what this somebody may list", texts.length === 2 && texts.every((text) => text.includes(namespace)), texts);
    check("what failed is on top, whatever its name", texts[0].includes("zoo") && texts[0].includes("Failed") && texts[1].includes("Ready"), texts);
    await page.locator("#link[data-state=live]").waitFor();
    await page.locator("#rows a").first().click();
    await page.locator("[role=treeitem]").first().waitFor();
    await page.reload();
    await page.locator("[role=treeitem]").first().waitFor();
    check("a tab remembers", true);
    await page.locator("#leave").click();
    await page.locator("#gate").waitFor();
    check("until it is told to forget", (await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))).includes("ey") === false);
  },

  async below(url, token) {
    const page = await look(url);
    await page.locator("#token").fill(token);
    await page.keyboard.press("Enter");
    await page.locator("#rows a", { hasText: "Certificate" }).click();
    const order = page.locator("[role=treeitem]", { hasText: "shop-1-42" });
    await order.waitFor();
    const lines = (await page.locator("[role=treeitem]").allInnerTexts()).map((line) => line.replace(/\s+/g, " "));
    check("the chain stands in its order", ["Certificate", "ConfigMap", "CertificateRequest", "Order"].every((kind, at) => lines[at]?.includes(kind)), lines);
    check("what no policy counts is marked, and only that", lines.slice(0, 2).every((line) => !line.includes("(not counted)"))
      && lines.slice(2).every((line) => line.includes("(not counted)")), lines);
    check("it has a verdict and says why", lines[3]?.includes("Failed") && lines[3].includes("Ready=False"), lines);
    const levels = await page.locator("[role=treeitem]").evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-level")));
    check("each stands below its owner", levels.join() === "1,2,2,3", levels);
    check("it decides nothing", (await page.locator("#head .big").innerText()).includes("Ready") && (await page.locator("#causes").isHidden()));
    await page.locator("#unread summary").click();
    const unread = await page.locator("#unread").innerText();
    check("a kind that may not be read is named with the reason", /Rollcall may not list them[^]*Challenge\./.test(unread), unread);
    await order.click();
    await page.locator("#object", { hasText: "no policy counts it here" }).waitFor();
    const deep = page.url();
    await shot(page, "below");
    await well(page, "what is below a parent");
    await page.goto(deep);
    await page.locator("#object", { hasText: "no policy counts it here" }).waitFor();
    check("it has an address", deep.includes("object="), deep);
  },

  async filters(url, token, here, there) {
    const page = await look(url);
    await page.locator("#gate").waitFor();
    await page.locator("#token").fill(token);
    await page.keyboard.press("Enter");
    const query = () => new URL(page.url()).searchParams;
    /** The names that are left, in their order. */
    const left = async (...names) => {
      let seen;
      await until(`${names} alone`, async () => {
        seen = await page.locator("#rows li .strong").allInnerTexts();
        return seen.join() === names.join();
      }).catch((error) => { throw new Error(`${error.message}: ${seen}`); });
      check(`${names} is what is left`, true);
    };
    await left("zoo", "secret", "one");
    await page.locator("#namespace").selectOption(there);
    await left("secret");
    check("a namespace is a filter with an address", query().get("namespace") === there, page.url());
    await page.locator("#namespace").selectOption(here);
    await left("zoo", "one");
    const verdict = (word) => page.locator("#verdicts button", { hasText: word });
    await verdict("Ready").click();
    await left("one");
    check("a verdict is a filter with an address, and pressed", query().get("verdict") === "Ready"
      && (await page.locator("#verdicts [aria-pressed=true]").innerText()).includes("Ready"), page.url());
    await verdict("Failed").click();
    await left("zoo", "one");
    await verdict("Ready").click();
    await left("zoo");
    await page.locator("#namespace").selectOption("");
    await left("zoo");
    await verdict("Failed").click();
    await left("zoo", "secret", "one");
    check("the address forgets them", !query().has("verdict") && !query().has("namespace"), page.url());
    check("no fault while filtering", page.faults.length === 0, page.faults);
  },
};

Object.assign(scenarios, views({ check, demo, free, hasTaken, isLive, listOf, look, parentOf, saysOf, scripted, shot, until, well, DESKTOP, PHONE }));

const [scenario, ...args] = process.argv.slice(2);
process.on("exit", () => { for (const child of children) if (child.exitCode === null) child.kill("SIGKILL"); });
setTimeout(() => { console.log(`${scenario} takes too long`); process.exit(2); }, 4 * TEST_TIMEOUT).unref();
try {
  await scenarios[scenario](...args);
} catch (error) {
  broken += 1;
  console.log(`stopped: ${error.stack}`);
}
await browser.close();
console.log(`${scenario}: ${held} held, ${broken} not`);
process.exit(broken || !held ? 1 : 0);
