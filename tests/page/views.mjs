// Scenarios of check.mjs: what the page shows of very many parents at a glance, and addresses and commands to hand on.
//   groups BINARY   groups stand before other parents
//   links BINARY    addresses that survive their parent
//   copy BINARY     commands of kubectl
//   hour BINARY     what has changed in the last hour
//   wall BINARY     the screen for walls
//   rollout BINARY  what a rollout waited for

const MINUTE = 60_000;

/** A group of a scripted list, as of `parentOf`. */
const asGroup = (parent) => ({ ...parent, uid: `group-${parent.name}`, kind: "ReadinessGroup", label: "ReadinessGroup.rollcall.dev" });

/** A parent of a scripted list, as it is when it is open. */
const opened = (parent, more = {}) => ({
  ...parent, now: Date.now(), decided: "a child decides", hidden: false, policies: [], groups: [], transitions: [],
  nodes: [{ ...parent, depth: 0, detail: "1 of 2 ready" },
    { depth: 1, kind: "Deployment", label: "Deployment.apps", namespace: parent.namespace, name: "web", verdict: "Failed", reason: "X", detail: "failed" }],
  ...more,
});

export const views = ({ check, demo, free, hasTaken, isLive, listOf, look, parentOf, saysOf, scripted, shot, until, well, DESKTOP, PHONE }) => {
  /** A scripted server, to which `tell` adds answers, and what it is called with. */
  async function stage(binary, act) {
    const running = await demo(binary, await free(), "--speed", "0");
    const told = await scripted(running.url);
    await act(told, running);
    running.child.kill("SIGTERM");
    await running.over;
  }
  const names = (page) => page.locator("#rows .name .strong").allInnerTexts();
  const held = (page, what) => check(`no fault in ${what}`, page.faults.length === 0, page.faults);

  return {
    async groups(binary) {
      await stage(binary, async (told) => {
        const group = (name, verdict) => asGroup(parentOf(name, verdict));
        const all = [parentOf("a", "Ready"), group("b", "Ready"), parentOf("c", "Failed"), group("d", "Progressing"), group("e", "Stuck"), parentOf("f", "Missing")];
        told.list = () => listOf(1, all);
        const page = await look(told.url);
        await isLive(page);
        await until("all rows", async () => (await names(page)).length === all.length);
        check("groups stand before others, what is not ready before what is", (await names(page)).join("") === "edcfba", await names(page));
        told.change(2, group("b", "Failed"));
        await until("the group to move", async () => (await names(page))[0] === "b");
        check("and when they turn", (await names(page)).join("") === "bedcfa", await names(page));
        await well(page, "groups");
      });
    },

    async links(binary) {
      await stage(binary, async (told) => {
        const asked = [];
        const one = (uid) => ({ ...parentOf("db", "Failed"), uid });
        const is = (uid) => { told.one = (path) => { asked.push(path); return uid && (path.includes("by-name") || path.includes(uid)) ? opened(one(uid)) : 404; }; };
        told.list = () => listOf(1, [one("first")]);
        is("first");
        const page = await look(told.url);
        await isLive(page);
        await page.locator("#rows a").click();
        await page.locator("#head h2", { hasText: "db" }).waitFor();
        const link = page.url();
        check("the address is a name", decodeURIComponent(link).includes("parent=Database.example.com/team/db"), link);
        check("and not a uid", !link.includes("first"), link);

        // Its parent goes, and comes back as another one.
        is("");
        told.list = () => listOf(2, []);
        told.send("changed", { now: Date.now(), view: { server: "s", number: 2 }, changed: [], gone: [{ uid: "first", policy: "databases" }] });
        const lost = page.locator("#head", { hasText: "Database db in team does not exist, or you are not permitted to see it. It is shown here once it is there." });
        await lost.waitFor();
        check("there is nothing to copy of it", await page.locator("#copy").isHidden());
        await well(page, "a parent that is gone");
        const late = await look(link);
        await late.locator("#head", { hasText: "does not exist" }).waitFor();
        await isLive(late);
        is("second");
        told.change(3, one("second"));
        await late.locator("#head h2", { hasText: "db" }).waitFor();
        check("a link to what was gone shows it when it is back", late.url() === link, late.url());

        // An old link has a uid.
        const old = await look(`${told.url}?parent=second&as=databases`);
        await old.locator("#head h2", { hasText: "db" }).waitFor();
        await until("the address by name", () => old.url() === link);
        check("a link with a uid leads to the name", asked.includes("/api/v1/parents/second?policy=databases"), asked);
        const dead = await look(`${told.url}?parent=first`);
        await dead.locator("#head", { hasText: "This parent does not exist" }).waitFor();
        for (const other of [page, late, old, dead]) held(other, "links");
      });
    },

    async copy(binary) {
      await stage(binary, async (_, running) => {
        await until("the end of the story", () => /All \d+ expectations held/.test(running.said));
        const page = await look(`${running.url}?parent=Shop.example.com/default/books`);
        await page.locator("[role=treeitem]", { hasText: "books-db-0" }).waitFor();
        const get = "kubectl -n default get shop.example.com books -o yaml";
        const button = page.locator("#copy button", { hasText: "get" });
        check("the command is told before", (await button.getAttribute("title")) === get, await button.getAttribute("title"));
        await button.click();
        await page.locator("#copy [role=status]", { hasText: "to copy" }).waitFor();
        const selected = await page.evaluate(() => getSelection().toString());
        check("without permission it is selected", selected === get, selected);
        await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
        const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
        await page.locator("#copy button", { hasText: "describe" }).click();
        await page.locator("#copy [role=status]", { hasText: "copied" }).waitFor();
        check("with it it is copied", (await clipboard()) === "kubectl -n default describe shop.example.com books", await clipboard());
        await page.locator("[role=treeitem]", { hasText: "books-db-0" }).click();
        await page.locator("#object .copy button").first().waitFor();
        await page.keyboard.press("c");
        await page.locator("#object .copy [role=status]", { hasText: "copied" }).waitFor();
        check("a key copies that of the open object", (await clipboard()) === "kubectl -n default get pod books-db-0 -o yaml", await clipboard());
        await shot(page, "copy");
        await well(page, "commands");
      });
    },

    async hour(binary) {
      await stage(binary, async (told, running) => {
        const begin = Date.now();
        const turned = (name, ago, verdict, from = "Ready") => ({ ...parentOf(name, verdict), at: begin - ago * MINUTE, from });
        const all = [turned("db", 5, "Failed"), turned("web", 20, "Ready", "Failed"), turned("db", 20, "Progressing"), turned("web", 40, "Failed"), turned("old", 70, "Failed")];
        told.list = () => listOf(1, [parentOf("db", "Failed"), parentOf("web", "Ready")]);
        const queries = [];
        told.hour = (query) => { queries.push(query); return { now: Date.now(), transitions: all, cut: false, partial: false, reaches: null }; };
        told.one = () => opened(parentOf("db", "Failed"));
        const page = await look(told.url);
        await isLive(page);
        const sum = page.locator("#hour-sum");
        await sum.filter({ hasText: "4 changes in the last hour" }).waitFor();
        const tally = (await sum.innerText()).replace(/\s+/g, " ");
        check("they are counted by what became of them", /2 Failed/.test(tally) && /1 Progressing/.test(tally) && /1 Ready/.test(tally), tally);
        check("a mark for each", (await page.locator("#marks .mark").count()) === 4);
        const colours = await page.locator("#marks .mark").evaluateAll((marks) => marks.map((mark) => getComputedStyle(mark).backgroundColor));
        check("coloured by it", new Set(colours).size === 3, colours);
        const places = await page.locator("#marks .cell").evaluateAll((cells) => cells.flatMap((cell, at) => cell.children.length ? [at] : []));
        check("each has its time", places.length === 3 && places.every((at, i) => i === 0 || at > places[i - 1]), places);
        await shot(page, "hour");
        await well(page, "the last hour");

        // By keys alone: the newest is where the tab key leads, arrows lead to the others.
        await page.locator("#marks button").last().focus();
        await page.keyboard.press("ArrowLeft");
        await page.keyboard.press("Enter");
        const lines = page.locator("#hour-list li");
        await until("two lines", async () => (await lines.count()) === 2);
        check("one moment of several is a list", (await lines.allInnerTexts()).some((text) => text.includes("was Failed")), await lines.allInnerTexts());
        await well(page, "one moment of the last hour");
        await page.keyboard.press("Escape");
        await until("the list is closed", () => page.locator("#hour-list").isHidden());
        check("the focus stays", await page.evaluate(() => document.activeElement.closest("#marks") !== null));

        // What is new comes with the stream, and only that is asked for.
        all.unshift({ ...turned("web", 0, "Stuck"), at: Date.now() });
        told.change(2, parentOf("web", "Stuck"));
        await sum.filter({ hasText: "5 changes in the last hour" }).waitFor();
        check("only what is new is asked for", queries[0] === "" && queries.at(-1).includes(`since=${begin - 5 * MINUTE}`), queries);
        await page.locator("#q").fill("db");
        await sum.filter({ hasText: "2 changes in the last hour" }).waitFor();
        check("it shows what is searched for", (await page.locator("#marks .mark").count()) === 2);
        await page.locator("#marks button").last().click();
        await page.locator("#head h2", { hasText: "db" }).waitFor();
        check("one transition leads to its parent", decodeURIComponent(page.url()).includes("parent=Database.example.com/team/db"), page.url());
        await well(page, "a parent beside the last hour");

        // Of the story all is told.
        await until("the end of the story", () => /All \d+ expectations held/.test(running.said));
        const story = await look(running.url, PHONE);
        await story.locator("#hour-sum", { hasText: /\d\d changes in the last hour/ }).waitFor();
        const words = await story.locator("#hour-sum").innerText();
        check("the story has turned often", ["Failed", "Stuck", "Progressing", "Ready"].every((word) => words.includes(word)), words);
        await well(story, "the last hour on a phone");
      });
    },

    async wall(binary) {
      await stage(binary, async (told) => {
        const many = Array.from({ length: 200 }, (_, i) => ({ ...parentOf(`db-${String(i).padStart(3, "0")}`, i < 40 ? "Failed" : "Ready"),
          message: i < 40 ? `3 of 12 not ready: Deployment web-${i} failed (exceeded quota: small, requested: cpu=4)` : "" }));
        told.list = () => listOf(1, many);
        const fits = async (page, what) => {
          const left = await page.evaluate(() => {
            const rows = document.querySelector("#wall-rows"), box = rows.getBoundingClientRect();
            return { out: [...rows.children].filter((row) => row.getBoundingClientRect().bottom > box.bottom + 1).length,
              scrolls: document.scrollingElement.scrollHeight - innerHeight, shown: rows.children.length,
              size: parseFloat(getComputedStyle(rows).fontSize), controls: [...document.querySelectorAll("button, input, select")].filter((b) => b.checkVisibility()).length };
          });
          check(`nothing scrolls and nothing is cut on ${what}`, left.out === 0 && left.scrolls <= 0 && left.shown > 0, left);
          check(`there is nothing to operate on ${what}`, left.controls === 0, left);
          return left;
        };
        const screen = { viewport: { width: 1920, height: 1080 } };
        const page = await look(`${told.url}?wall`, screen);
        await page.locator("#wall-sum", { hasText: "40 not ready" }).waitFor();
        await page.locator("#wall-sum", { hasText: "160 ready" }).waitFor();
        const full = await fits(page, "a full wall");
        check("in as many columns as fit", full.shown >= 12, full);
        check("the others are counted", (await page.locator("#wall-more").isVisible()) === full.shown < 40, full);
        await isLive(page);
        await shot(page, "wall");
        await well(page, "a full wall");
        for (const [options, name] of [[{ ...screen, colorScheme: "dark" }, "a dark wall"], [DESKTOP, "a small wall"], [PHONE, "a phone as a wall"]]) {
          const other = await look(`${told.url}?wall&namespace=team`, options);
          await other.locator("#wall-sum", { hasText: "40 not ready" }).waitFor();
          await fits(other, name);
          await well(other, name);
          await other.context().close();
        }

        // It follows the stream, and few are larger.
        told.list = () => listOf(2, [{ ...many[0], message: "waits for a quota" }, ...many.slice(40)]);
        told.send("reload", 1);
        await page.locator("#wall-sum", { hasText: "1 not ready" }).waitFor();
        const few = await fits(page, "a quiet wall");
        check("few are larger than many", few.size > full.size && few.shown === 1, [few, full]);
        told.change(3, { ...many[1], verdict: "Stuck", message: "it waits for a finalizer" });
        await page.locator("#wall-rows li", { hasText: "it waits for a finalizer" }).waitFor();
        told.change(4, { ...many[0], verdict: "Ready" }, { ...many[1], verdict: "Ready" });
        await until("all are ready", async () => (await page.locator("#wall-rows li").count()) === 0);
        check("then nothing but that is said", !(await page.locator("#wall-sum").innerText()).includes("not ready"));
        await shot(page, "wall-ready");
        const before = await page.locator("#wall-clock").innerText();
        await until("the clock to go on", async () => (await page.locator("#wall-clock").innerText()) !== before);

        // The server goes away.
        told.list = () => 503;
        told.streams.at(-1).end();
        await page.locator("#link", { hasText: /^connection lost since \d/ }).waitFor();
        check("that is said in large letters", await page.locator("#link").evaluate((link) => link.checkVisibility() && parseFloat(getComputedStyle(link).fontSize) >= 28));
        const glance = await page.locator("#wall-sum").evaluate((sum) => getComputedStyle(sum, "::after").content);
        check("and that the numbers are the last known", glance.includes("last known"), glance);
        await shot(page, "wall-lost");
        await well(page, "a wall without its server");
        await page.keyboard.press("Escape");
        await page.locator("#list").waitFor();
        check("Escape leads to the list", !page.url().includes("wall"), page.url());
        await page.keyboard.press("w");
        await page.locator("#wall").waitFor();
        check("and w back to the wall", page.url().includes("wall"), page.url());
        const blind = await look(`${told.url}?wall`, screen);
        await blind.locator("#wall-of", { hasText: "no answer now" }).waitFor();
        check("what was never read is not said to be nothing", (await blind.locator("#wall-sum").innerText()) === "last known" || !(await blind.locator("#wall-sum").innerText()), await blind.locator("#wall-sum").innerText());
      });
    },

    async rollout(binary) {
      await stage(binary, async (told, running) => {
        await until("the end of the story", () => /All \d+ expectations held/.test(running.said));
        const asked = [];
        const page = await look(`${running.url}?parent=Shop.example.com/default/books`, DESKTOP, async (page) => {
          page.on("request", (request) => { if (request.url().includes("/rollout?")) asked.push(request.url()); });
        });
        await page.locator("[role=treeitem]", { hasText: "books-db-0" }).waitFor();
        check("it is not asked for before it is wanted", asked.length === 0, asked);
        await page.locator("#rollout summary").click();
        await page.locator("#path p", { hasText: /^(ready|not ready,) .* after generation \d+ was written/ }).waitFor();
        const real = await page.evaluate((url) => fetch(url).then((answer) => answer.json()), asked[0]);
        const touch = real.parts.every((part, i) => part.from === (i ? real.parts[i - 1].to : real.from));
        check("the parts touch each other", touch && (real.parts.at(-1)?.to ?? real.to) === real.to, real);
        check("it is over", real.isOver && real.generation >= 1, real);
        await well(page, "the rollout of the story");

        // One of known parts.
        const at = Date.now() - 600_000;
        const part = (object, says, from, to) => ({ object, says, cause: "operator", detail: "", from: at + from * 1000, to: at + to * 1000 });
        told.list = () => listOf(1, [parentOf("db", "Progressing")]);
        const earlier = [
          { generation: 3, from: at - 4_000_000, to: at - 3_900_000, hidden: false, notRead: [], parts: [part("Job migrate", "ran", -4_000, -3_900)] },
          { generation: 2, from: at - 9_000_000, to: at - 8_700_000, hidden: true, notRead: [], parts: [] },
        ];
        told.one = (path) => path.includes("/rollout") ? { now: Date.now(), generation: 4, earlier, isOver: false, from: at, to: at + 400_000, notRead: ["Events: Rollcall may not read it"],
          parts: [part("Database db", "its operator", 0, 40), part("Pod db-0", "image pull r/db:2", 40, 343), part("Pod db-0", "started, until its probes succeeded", 343, 400)] }
          : opened(parentOf("db", "Progressing"));
        for (const [options, name] of [[DESKTOP, "a rollout"], [PHONE, "a rollout on a phone"]]) {
          const other = await look(`${told.url}?parent=Database.example.com/team/db`, options);
          await other.locator("#rollout summary").click();
          await other.locator("#path p", { hasText: "not ready, 6m 40s after generation 4 was written" }).waitFor();
          const lines = (await other.locator("#path > .path li").allInnerTexts()).map((line) => line.replace(/\s+/g, " ").trim());
          check("each part says what it waited for and how long", lines.join("; ") ===
            "40s 10 % Database db: its operator; 5m 3s 76 % Pod db-0: image pull r/db:2; 57s 14 % Pod db-0: started, until its probes succeeded", lines);
          check("the longest stands out", (await other.locator("#path > .path .strong").allInnerTexts()).join() === "Pod db-0: image pull r/db:2");
          const bars = await other.locator("#path > .path .bar-part").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect()).map((box) => [box.left, box.right]));
          check("the bars follow each other", bars.every(([left], i) => i === 0 || Math.abs(left - bars[i - 1][1]) < 2), bars);
          check("what was not read is named", (await other.locator("#path").innerText()).includes("Rollcall may not read it"));
          const past = other.locator(".past");
          const heads = (await past.locator("summary").allInnerTexts()).map((head) => head.split(",")[0]);
          check("earlier generations are told, newest first", heads.join("; ") ===
            "ready 1m 40s after generation 3 was written; ready 5m 0s after generation 2 was written", heads);
          check("they are folded", await past.locator(".path li").first().isHidden());
          for (const of of [0, 1]) await past.nth(of).locator("summary").click();
          check("what they waited for is told", (await past.nth(0).locator("li").innerText()).includes("Job migrate: ran"));
          check("and is not where it may not be seen", (await past.nth(1).innerText()).includes("You may not list all that it waited for"));
          await shot(other, name.replaceAll(" ", "-"));
          await well(other, name);
        }
      });
    },
  };
};
