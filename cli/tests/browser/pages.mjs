// The console in a real browser. The test `browser.rs` starts it with its settings in the environment.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";
import assert from "node:assert/strict";

const { URL_OF: base, TOKEN: token, TOOLS: tools, CHROMIUM: chromium, PROJECT: project, SHOTS: shots } = process.env;
const require = createRequire(`${tools}/package.json`);
const playwright = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/// The time after which the test counts as hanging.
const DEADLINE = 300_000;
/// Sends a request until it is answered. A busy server refuses some with 503, which means: try again.
const answered = async (send) => {
  for (const since = Date.now(); ;) {
    const answer = await send();
    const status = typeof answer.status === "function" ? answer.status() : answer.status;
    if (status !== 503) return answer;
    assert.ok(Date.now() - since < DEADLINE, "the server is busy for too long");
    await new Promise((next) => setTimeout(next, 50));
  }
};
const api = async (method, path, body) => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": randomUUID() };
  const answer = await answered(() => fetch(`${base}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) }));
  const result = await answer.json();
  assert.ok(answer.ok, `${method} ${path}: ${JSON.stringify(result)}`);
  return result;
};
const start = (workflow, inputs = {}) => api("POST", `/workflows/${workflow}/runs`, { inputs });
/// Waits until a run fits.
const until = async (run, fits) => {
  for (const since = Date.now(); ;) {
    assert.ok(Date.now() - since < DEADLINE, `run ${run.id}: ${fits}`);
    const now = await api("GET", `/runs/${run.id}`);
    if (fits(now)) return now;
    await new Promise((next) => setTimeout(next, 50));
  }
};
const ended = (run) => until(run, (now) => ["succeeded", "failed", "cancelled"].includes(now.state));

const browser = await playwright.chromium.launch({
  executablePath: chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
/// What the browser logs when a busy server refuses to serve or to refresh a page, which is then tried again.
const BUSY = /503 \(Service Unavailable\)/;
/// The errors in the console of the browser, and those that the current scenario expects.
let complaints = [], expected = [];
const open = async (options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE);
  const own = complaints; // Messages arrive late, perhaps in the next scenario.
  page.on("console", (message) => { if (message.type() === "error") own.push(`${page.url()}: ${message.text()}`); });
  page.on("pageerror", (error) => own.push(`${page.url()}: ${error}`));
  page.on("dialog", (dialog) => dialog.accept());
  return page;
};
/// The private memory of the renderer.
const privateMemory = async () => {
  const devtools = await browser.newBrowserCDPSession();
  const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter((process) => process.type === "renderer").map(({ id }) => {
    const rollup = readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
    return [...rollup.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].reduce((sum, [, size]) => sum + size * 1024, 0);
  });
  return Math.max(...sizes);
};
const go = (page, path) => answered(() => page.goto(base + path, { waitUntil: "load" }));
/// Clicks on something that leads to another page, and waits for that page.
const follow = (page, link) => Promise.all([page.waitForEvent("load"), link.click()]);

const scenarios = {
  async "a hidden page closes its event stream, and a visible one has it again"() {
    const page = await open();
    await page.addInitScript(() => {
      const Real = window.EventSource;
      window.streams = [];
      window.EventSource = class extends Real { constructor(url) { super(url); window.streams.push(this); } };
    });
    const run = await start("nap");
    await go(page, `/runs/${run.id}`);
    const states = () => page.evaluate(() => window.streams.map((stream) => stream.readyState));
    const show = (hidden) => page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
    const OPEN = 1, CLOSED = 2;
    await page.waitForFunction((open) => window.streams[0]?.readyState === open, OPEN);
    await show(true);
    assert.deepEqual(await states(), [CLOSED], "nobody sees the page");
    await api("POST", `/runs/${run.id}/cancel`, {});
    await ended(run);
    await show(false);
    await page.locator("h1 .state.cancelled").waitFor();
    await page.waitForFunction((open) => window.streams[1]?.readyState === open, OPEN);
    assert.deepEqual(await states(), [CLOSED, OPEN], "one stream at a time");
  },
  async "a failed run is found, its log read, retried, and seen to succeed without a reload"() {
    const failed = await ended(await start("nightly"));
    assert.equal(failed.state, "failed");
    const page = await open();
    await go(page, "/");
    await follow(page, page.getByRole("link", { name: "nightly" }).first());
    assert.match(page.url(), /\/runs\//);
    const why = page.getByRole("region", { name: "Why" });
    assert.match(await why.innerText(), /load.*failed/s);
    await follow(page, page.getByRole("link", { name: "Log of load" }));
    await page.getByText("cannot reach the warehouse").first().waitFor();
    await page.goBack({ waitUntil: "load" });
    writeFileSync(`${project}/fixed`, "");
    await page.getByRole("button", { name: "Retry failed" }).first().click();
    await page.getByText("Failed tasks are re-run.").waitFor();
    await page.evaluate(() => { window.stayed = true; });
    await page.locator("h1 .state.succeeded").waitFor();
    assert.ok(await page.evaluate(() => window.stayed), "the page was not reloaded");
  },

  async "a change is on the page without a reload"() {
    const page = await open();
    const run = await start("ask");
    await until(run, (now) => now.counts.sleeping === 1);
    await go(page, `/runs/${run.id}`);
    await page.locator("#live", { hasText: "live" }).waitFor();
    await page.evaluate(() => { window.stayed = true; });
    await api("POST", `/runs/${run.id}/tasks/decide/approve`, { fields: { amount: 7 } });
    await page.locator(".graph .task.succeeded").first().waitFor();
    assert.ok(await page.evaluate(() => window.stayed), "the page was not reloaded");
  },

  async "a page of a run of 10,000 tasks stays small and takes clicks while they end"() {
    const page = await open();
    const run = await start("vast");
    await go(page, `/runs/${run.id}`);
    await page.evaluate(() => {
      window.taken = 0;
      document.addEventListener("pointerup", () => requestAnimationFrame(() => { window.taken += 1; }));
    });
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Performance.enable");
    let heap = 0, nodes = 0, clicks = 0;
    // What the page holds, not what it has not collected yet.
    const measure = async () => {
      await devtools.send("HeapProfiler.collectGarbage");
      const { metrics } = await devtools.send("Performance.getMetrics");
      const of = (name) => metrics.find((metric) => metric.name === name).value;
      [heap, nodes] = [Math.max(heap, of("JSHeapUsedSize")), Math.max(nodes, of("Nodes"))];
    };
    for (let ended = false; !ended; clicks++) {
      await page.mouse.click(5, 300);
      await measure();
      ended = (await api("GET", `/runs/${run.id}`)).finished_at !== null;
    }
    await page.locator("h1 .state.succeeded").waitFor();
    await page.getByText(/10.000 of 10.000 children ended/).waitFor();
    await measure();
    await page.waitForFunction((clicks) => window.taken === clicks, clicks);
    const memory = await privateMemory();
    console.log(`  ${clicks} clicks; heap ${(heap / 1e6).toFixed()} MB at most, ${nodes} nodes; the process has ${(memory / 1e6).toFixed()} MB of its own`);
    assert.ok(heap < 150e6 && memory < 150e6, `${heap} ${memory}`);
    assert.ok((await page.content()).length < 100_000);
  },

  async "a run is started with a form, and bad input is reported at its field"() {
    const page = await open();
    await go(page, "/workflows/form/trigger");
    await page.getByLabel("count").fill("1.5");
    await page.getByLabel("day").fill("2026-01-31");
    await page.getByRole("button", { name: "Start the run" }).click();
    const field = page.locator(".field.bad", { hasText: "count" });
    await field.waitFor();
    assert.match(await field.innerText(), /integer|whole/i);
    assert.equal(await page.getByLabel("day").inputValue(), "2026-01-31", "what was filled in is kept");
    expected.push(/status of 4/); // The browser logs the refusal.
    await page.getByLabel("count").fill("3");
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.waitForURL(/\/runs\//);
    await page.locator("h1 .state.succeeded").waitFor();
  },

  async "an approval is given on the page"() {
    const run = await start("ask");
    await until(run, (now) => now.counts.sleeping === 1);
    const page = await open();
    await go(page, "/");
    await follow(page, page.getByRole("link", { name: "Decide" }).first());
    await go(page, `/runs/${run.id}`);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("alert").filter({ hasText: "amount" }).waitFor();
    await page.getByLabel("amount").fill("50");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("decide was approved").waitFor();
    await page.locator("h1 .state.succeeded").waitFor();
  },

  async "a run is cancelled after a confirmation, and a sleep is ended early"() {
    const page = await open();
    const first = await start("nap");
    await until(first, (now) => now.counts.sleeping === 1);
    await go(page, `/runs/${first.id}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator("h1 .state.cancelled").waitFor();
    const second = await start("nap");
    await until(second, (now) => now.counts.sleeping === 1);
    await go(page, `/runs/${second.id}`);
    await page.getByRole("button", { name: "Wake now" }).click();
    await page.locator("h1 .state.succeeded").waitFor();
  },

  async "without a script everything can be read and buttons work"() {
    const run = await start("nap");
    await until(run, (now) => now.counts.sleeping === 1);
    const page = await open({ javaScriptEnabled: false });
    await go(page, "/runs?state=running&workflow=nap");
    await follow(page, page.getByRole("link", { name: "running" }).last());
    await go(page, `/runs/${run.id}`);
    assert.equal(await page.locator(".graph .task").count(), 2);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("The run is paused").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("The run is resumed").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("is being cancelled").waitFor();
    assert.equal((await ended(run)).state, "cancelled");
  },

  async "the keyboard is enough"() {
    const run = await ended(await start("broken"));
    const page = await open();
    await go(page, "/");
    await page.keyboard.press("/");
    await page.waitForFunction(() => document.activeElement?.matches("dialog[open] input"));
    await page.keyboard.type("failed runs");
    await page.getByRole("option", { name: /failed runs/i, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/state=failed/);
    const tabTo = async (fits) => {
      for (let step = 0; step < 80; step++) {
        await page.keyboard.press("Tab");
        if (await page.evaluate(fits, run.id)) return;
      }
      assert.fail("it cannot be reached with the Tab key");
    };
    await tabTo((id) => document.activeElement.getAttribute("href") === `/runs/${id}`);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/runs/${run.id}`);
    await tabTo(() => document.activeElement.textContent === "Retry failed");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, "none", "the focus is visible");
    await page.keyboard.press("Enter");
    await page.getByText("Failed tasks are re-run.").waitFor();
  },

  async "many runs are acted on after a preview of how many"() {
    const runs = [await start("nap"), await start("nap")];
    for (const run of runs) await until(run, (now) => now.counts.sleeping === 1);
    const page = await open();
    await go(page, "/runs?workflow=nap&state=running");
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("heading", { name: "cancel 2 runs?" }).waitFor();
    await page.getByRole("button", { name: "cancel 2 runs" }).click();
    await page.getByText("2 runs changed").waitFor();
    for (const run of runs) assert.equal((await ended(run)).state, "cancelled");
  },

  async "an expression is tried out on a run, and an error is shown at its position"() {
    const run = await ended(await start("form", { count: 3, day: "2026-01-31" }));
    const page = await open();
    await go(page, `/runs/${run.id}`);
    await follow(page, page.getByRole("link", { name: "Try an expression" }));
    await page.getByLabel("Expression").fill("inputs.count * 2 > 5");
    await page.getByRole("button", { name: "Evaluate", exact: true }).click();
    await page.getByText("as a condition it evaluates to true").waitFor();
    assert.match(page.url(), /expression=/, "the page can be shared");
    await page.getByLabel("Expression").fill("inputs.cuont * 2");
    await page.getByRole("button", { name: "Evaluate", exact: true }).click();
    await page.locator("mark", { hasText: "inputs.cuont" }).waitFor();
  },

  async "the audit log is searched and exported"() {
    const run = await start("nap");
    await until(run, (now) => now.counts.sleeping === 1);
    await api("POST", `/runs/${run.id}/cancel`, { reason: "enough" });
    const page = await open();
    await go(page, "/operations/audit");
    await page.getByLabel("Target").fill(`${run.id}/cancel`);
    await page.getByRole("button", { name: "Search" }).last().click();
    await page.waitForURL(/text=/);
    assert.equal(await page.locator("tbody tr").count(), 1);
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export" }).click()]);
    const lines = readFileSync(await file.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
    assert.ok(lines.some((entry) => entry.target.endsWith(`${run.id}/cancel`)), "the export is complete");
  },

  async "nothing that a user wrote becomes part of a page"() {
    const evil = "<img src=x onerror=alert(1)><script>alert(1)</script>\u001b[31mred 🎉";
    const run = await ended(await start("evil", { text: evil }));
    await api("POST", `/runs/${run.id}/retry`, { reason: evil });
    await ended(run);
    const page = await open();
    let alerted = false;
    page.on("dialog", () => { alerted = true; });
    const encoded = encodeURIComponent(evil);
    const paths = ["", "?tab=events", "?tab=data", "?tab=try&expression=inputs.text", `?tab=try&expression=${encoded}`, "/tasks/say", "/tasks/deliver", "/tasks/break"].map((rest) => `/runs/${run.id}${rest}`);
    for (const path of [...paths, "/", "/runs", "/workflows", "/workflows/evil", "/workflows/evil/source", "/workflows/evil/versions", `/workflows/evil/trigger?like=${run.id}`, `/workflows?q=${encoded}`, `/runs?workflow=${encoded}`, "/workflows/evil/backfill",
      "/operations", "/operations/workers", "/operations/health", "/operations/breakers", "/operations/audit", ...["audit?text", "audit?actor", "dead-letters?text", "timers?workflow", "schedules?workflow", "triggers?workflow", "backfills?workflow"].map((rest) => `/operations/${rest}=${encoded}`)]) {
      await go(page, path);
      assert.equal(await page.locator("img, main script").count(), 0, path);
      assert.ok(!(await page.content()).includes("<img src=x"), path);
    }
    await go(page, `/runs/${run.id}/tasks/say`);
    await page.locator(".log .text", { hasText: "<script>alert(1)</script>" }).first().waitFor();
    await page.locator(".log .text", { hasText: "🎉" }).first().waitFor();
    assert.ok(!alerted);
  },

  async "every page is accessible in both themes and fits on a phone"() {
    const run = await ended(await start("nightly"));
    const wide = await until(await start("wide"), (now) => now.state === "succeeded");
    const asked = await start("ask");
    await until(asked, (now) => now.counts.sleeping === 1);
    const broken = await ended(await start("broken"));
    const skipped = await ended(await start("choosy", { n: 1 }));
    const pages = {
      home: "/", runs: "/runs", "run-failed": `/runs/${broken.id}`, "run-fan-out": `/runs/${wide.id}`, "run-children": `/runs/${wide.id}?parent=each`,
      "run-asks": `/runs/${asked.id}`, "run-timeline": `/runs/${run.id}?tab=events`, "run-data": `/runs/${run.id}?tab=data`,
      "run-skipped": `/runs/${skipped.id}`, "run-try": `/runs/${run.id}?tab=try&expression=${encodeURIComponent("outputs.extract.rows > 2")}`, "run-try-error": `/runs/${run.id}?tab=try&expression=${encodeURIComponent("outputs.extract.lines > 2")}`,
      task: `/runs/${broken.id}/tasks/divide`, workflows: "/workflows", workflow: "/workflows/nightly", trigger: "/workflows/form/trigger",
      source: "/workflows/nightly/source", versions: "/workflows/nightly/versions", backfill: "/workflows/nightly/backfill",
      limits: "/operations", workers: "/operations/workers", timers: "/operations/timers", schedules: "/operations/schedules",
      triggers: "/operations/triggers", backfills: "/operations/backfills", letters: "/operations/dead-letters", breakers: "/operations/breakers", audit: "/operations/audit", health: "/operations/health",
      missing: "/runs/018f0000-0000-7000-8000-00000000ffff",
    };
    mkdirSync(shots, { recursive: true });
    const found = [];
    for (const theme of ["light", "dark"]) {
      const page = await open({ colorScheme: theme });
      for (const [name, path] of Object.entries(pages)) {
        await go(page, path);
        await page.screenshot({ path: `${shots}/${name}-${theme}.png`, fullPage: true });
        await page.evaluate(axe);
        const report = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        for (const { id, impact, nodes } of report.violations) {
          if (["serious", "critical"].includes(impact)) found.push(`${name} ${theme}: ${id} at ${nodes.slice(0, 3).map((node) => node.target).join(" | ")}`);
        }
      }
    }
    const phone = await open({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
    for (const [name, path] of Object.entries(pages)) {
      await go(phone, path);
      await phone.screenshot({ path: `${shots}/${name}-phone.png` });
      const beyond = await phone.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (beyond > 0) found.push(`${name}: ${beyond} px do not fit on a phone`);
    }
    expected.push(/ffff/); // The browser logs the missing run.
    assert.deepEqual(found, []);
  },

  async "the first page is small"() {
    const page = await open();
    const sizes = [];
    // A stream of events has no end.
    const ends = (answer) => !answer.headers()["content-type"]?.startsWith("text/event-stream");
    page.on("response", (answer) => { if (ends(answer)) sizes.push(answer.body().then((body) => body.length, () => 0)); });
    await go(page, "/");
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    assert.ok(bytes > 0 && bytes < 100_000, `${bytes} bytes`);
  },

  async "the theme can be chosen and is kept"() {
    const page = await open({ colorScheme: "light" });
    await go(page, "/runs");
    await page.getByRole("button", { name: "Switch the theme to dark" }).click();
    await page.getByRole("button", { name: "Switch the theme to light" }).waitFor();
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await ground(), "rgb(13, 19, 23)");
    await go(page, "/workflows");
    assert.equal(await ground(), "rgb(13, 19, 23)");
  },
};

let failures = 0;
const only = process.env.ONLY;
for (const [claim, scenario] of Object.entries(scenarios)) {
  if (only && !claim.includes(only)) continue;
  const began = Date.now();
  [complaints, expected] = [[], [BUSY]];
  try {
    await scenario();
    const unexpected = complaints.filter((complaint) => !expected.some((pattern) => pattern.test(complaint)));
    assert.deepEqual(unexpected, [], "the browser logs no errors");
    console.log(`ok ${claim} (${Date.now() - began} ms)`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED ${claim}: ${error.stack}`);
  }
  for (const context of browser.contexts()) await context.close();
}
await browser.close();
process.exit(failures ? 1 : 0);
