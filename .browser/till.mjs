// A Till of its own for a journey: the program as a user runs it, on ports and
// in a directory that nobody else has, and a browser that counts what must not be.
import { spawn } from "node:child_process";
import { mkdtemp, rm, readFile } from "node:fs/promises";
import { createHmac } from "node:crypto";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { setTimeout as wait } from "node:timers/promises";
import { chromium } from "playwright-core";

const root = path.resolve(import.meta.dirname, "..");
const binary = process.env.TILL_BIN || path.join(root, "bin", "till");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const freePort = () => new Promise((resolve, reject) => {
  const s = net.createServer().on("error", reject);
  s.listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => resolve(port)); });
});

// end stops a program and removes what it kept.
async function end(child, dir) {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await gone;
  await rm(dir, { recursive: true, force: true });
}

// start runs `till dev` and waits until it has printed where to go. more are
// variables of its environment.
export async function start(more = {}) {
  const dir = await mkdtemp(path.join(os.tmpdir(), "till-browser-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(binary, ["dev", "--http-addr", `127.0.0.1:${port}`, "--data-dir", path.join(dir, "data")], { cwd: dir, env: { ...process.env, ...more } });
  let out = "", errors = "";
  child.stderr.on("data", (d) => { errors += d; });
  const ready = new Promise((resolve, reject) => {
    child.stdout.on("data", (d) => { out += d; if (/^ {2}http\S*\/phone$|on a phone of that network/m.test(out)) resolve(); });
    child.on("exit", (code) => reject(new Error(`till ended with ${code}: ${errors}`)));
  });
  await ready;
  child.removeAllListeners("exit");
  const env = Object.fromEntries((await readFile(path.join(dir, ".env.till"), "utf8")).trim().split("\n").map((l) => l.split(/=(.*)/s).slice(0, 2)));
  const key = env.TILL_SECRET_KEY;
  return {
    url, key, dir, publicKey: env.TILL_PUBLIC_KEY,
    // api asks the API and answers with its data.
    async api(method, where, body) {
      let answer;
      for (let tries = 0; tries < 10; tries++) {
        answer = await fetch(url + where, {
          method, headers: { Authorization: `Bearer ${key}`, ...(body && { "Content-Type": "application/json" }) }, body: body && JSON.stringify(body),
        });
        if (answer.status !== 429) break;
        await wait(1000 * Number(answer.headers.get("Retry-After") || 1)); // as it is told to
      }
      const json = await answer.json();
      if (!json.status) throw new Error(`${method} ${where}: ${JSON.stringify(json.error)}`);
      return json.data;
    },
    // till runs a command beside the server.
    till: (...args) => new Promise((resolve) => {
      const one = spawn(binary, args, { cwd: dir, env: { ...process.env, TILL_DATA_DIR: path.join(dir, "data"), TILL_HTTP_ADDR: `127.0.0.1:${port}` } });
      let text = "";
      one.stdout.on("data", (d) => { text += d; });
      one.stderr.on("data", (d) => { text += d; });
      one.on("exit", (code) => resolve({ code, text }));
    }),
    stop: () => end(child, dir),
  };
}

// network runs a WhatsApp network of its own, where no number is linked yet.
export async function network() {
  const dir = await mkdtemp(path.join(os.tmpdir(), "till-network-"));
  const addr = `127.0.0.1:${await freePort()}`;
  const child = spawn(binary, ["network", "--addr", addr, "--file", path.join(dir, "network.db")], { cwd: dir });
  const root = await new Promise((resolve, reject) => {
    let out = "";
    child.stdout.on("data", (d) => { out += d; const key = out.match(/\b[0-9a-f]{64}\b/); if (key) resolve(key[0]); });
    child.on("exit", (code) => reject(new Error(`the network ended with ${code}`)));
  });
  child.removeAllListeners("exit");
  return {
    variables: { TILL_WHATSAPP_DIAL: addr, TILL_WHATSAPP_ROOT_KEY: root },
    // scan has a phone of the network scan the text of a QR code.
    scan: (phone, text) => fetch(`http://${addr}/network/pairings`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ phone, text }) }),
    stop: () => end(child, dir),
  };
}

// receiver takes webhooks on this machine; it answers what it is told to.
export async function receiver() {
  const heard = [];
  let status = 200;
  const server = http.createServer((request, answer) => {
    let body = "";
    request.on("data", (d) => { body += d; });
    request.on("end", () => { heard.push({ headers: request.headers, body, status }); answer.writeHead(status).end(); });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return { url: `http://127.0.0.1:${server.address().port}/hook`, heard, answers: (s) => { status = s; }, stop: () => { server.close(); server.closeAllConnections(); } };
}

// signed says whether a webhook carries the signature that its endpoint's secret
// makes (standardwebhooks.com).
export function signed(secret, { headers, body }) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const want = createHmac("sha256", key).update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`).digest("base64");
  return headers["webhook-signature"].split(" ").includes(`v1,${want}`);
}

// until asks again until something is so, for at most twenty seconds.
export async function until(what, look) {
  const end = Date.now() + 20_000;
  while (!(await look())) {
    if (Date.now() > end) throw new Error(`it never came to be that ${what}`);
    await wait(50);
  }
}

// open starts the browser. Every page of it is watched: a console error, an
// exception, anything but a page that is refused, or a request to another host is
// a fault.
export async function open(till) {
  const { existsSync } = await import("node:fs");
  const browser = await chromium.launch({ executablePath: browserPath.find((p) => existsSync(p)), args: ["--no-sandbox"] });
  const faults = [];
  return {
    browser, faults,
    async page(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      const page = await context.newPage();
      const asked = (m) => /status of 4\d\d/.test(m.text()) && m.location().url === page.url(); // a page that a test asks for and may not have
      page.on("console", (m) => { if (m.type() === "error" && !asked(m)) faults.push(`${page.url()}: console: ${m.text()} ${m.location().url}`); });
      page.on("pageerror", (e) => faults.push(`${page.url()}: ${e}`));
      page.on("request", (r) => { if (!r.url().startsWith(till.url) && !/^(data|blob|about):/.test(r.url())) faults.push(`${page.url()} asked ${r.url()}`); });
      return page;
    },
    close: () => browser.close(),
  };
}

// enter logs in to the pretend world as a role.
export async function enter(page, till, role, where = "/") {
  await page.goto(`${till.url}/login?next=${encodeURIComponent(where)}`);
  await page.getByRole("button", { name: `Enter as ${role}` }).click();
  await page.waitForURL((u) => !u.pathname.startsWith("/login"));
}

// axe judges a page by WCAG A and AA and returns what is serious or critical.
const axeSource = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export async function axe(page) {
  await page.evaluate(axeSource); // by the debugger's way in: the page's own policy lets no script in
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
  return violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary.split("\n")[1] ?? ""}`).slice(0, 3).join(" | ")}`);
}
