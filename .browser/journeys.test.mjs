// What people come for, from the first page to the end: each as they would do it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { enter, network, open, receiver, signed, start, until } from "./till.mjs";

const checkout = "/v1/whatsapp/checkout/sessions";
const pictures = process.env.TILL_PICTURES; // a directory: pictures of the README are made anew
let till, web;

before(async () => { till = await start(); web = await open(till); });
after(async () => { await web?.close(); await till?.stop(); });

async function ask(key, method, where, body) {
  const answer = await fetch(till.url + where, { method, headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  const json = await answer.json();
  assert.ok(json.status, JSON.stringify(json));
  return json.data;
}
// shown is a secret that a page shows this once.
const shown = (page, looks) => page.locator("main code").filter({ hasText: looks }).first().innerText();
const picture = async (page, name) => { if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, animations: "disabled" }); };
const faultless = () => assert.deepEqual(web.faults.splice(0), []);

test("a newcomer signs up, asks for money, is paid and hears of it", async (t) => {
  const page = await web.page();
  const hook = await receiver();
  t.after(hook.stop);
  await page.goto(till.url + "/");
  await page.getByRole("link", { name: "Sign up" }).click();
  await page.getByLabel("E-mail address").fill("bola@example.com");
  await page.getByLabel("Name of your business").fill("Bola Stores");
  await page.getByLabel("Password").fill("a long enough password");
  await page.getByRole("button", { name: "Sign up" }).click();
  const key = await shown(page, /^sk_test_/);

  await page.goto(till.url + "/developers/webhooks");
  await page.getByLabel("URL").first().fill(hook.url);
  await page.getByRole("button", { name: "Add the endpoint" }).click();
  const secret = await shown(page, /^whsec_/);

  const session = await ask(key, "POST", checkout, { amount: 500000, customerEmail: "ada@example.com", customerName: "Ada Obi" });
  const { accountNumber } = await ask(key, "POST", `${checkout}/${session.id}/pay/bank-transfer`);
  await ask(key, "POST", "/v1/test/bank/transfers", { accountNumber });
  await until("the webhook came", () => hook.heard.length > 0);
  assert.equal(JSON.parse(hook.heard[0].body).event, "charge.success");
  assert.ok(signed(secret, hook.heard[0]));
  assert.ok(!signed(secret, { ...hook.heard[0], body: hook.heard[0].body + " " }));

  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("link", { name: "Ada Obi" }).click();
  assert.match(await page.getByRole("main").innerText(), /it is paid; ₦5,000 of ₦5,000 is paid/);
  assert.equal((await page.reload()).status(), 200);
  await page.goto(till.url + "/developers");
  assert.ok(!(await page.content()).includes(key), "the secret is shown a second time");
  faultless();
});

test("a newcomer reads the reference, and opens a session there", async () => {
  const page = await web.page();
  await page.goto(till.url + "/docs");
  const call = page.locator("#operations-Sessions-openSession");
  await call.waitFor();
  assert.match(await page.locator(".info .title").innerText(), /Till/);
  assert.notEqual(await call.locator(".opblock-summary-description").innerText(), "");
  assert.equal(await page.locator(".errors-wrapper").count(), 0, "the reference finds fault with the document");
  const drawn = await page.locator(".version").first().evaluate((e) => [getComputedStyle(e).padding, getComputedStyle(e).backgroundColor]);
  assert.deepEqual(drawn, ["0px", "rgba(0, 0, 0, 0)"], "our styles reach into the reference");
  await page.getByRole("button", { name: "Authorize" }).first().click();
  await page.locator(".auth-container input").first().fill(till.key);
  await page.getByRole("button", { name: "Apply credentials" }).first().click();
  await page.getByRole("button", { name: "Close" }).first().click();
  await call.locator("button.opblock-summary-control").click();
  await call.locator(".responses-inner").getByText("wsp_sess_").first().waitFor(); // the example, before anything was asked
  await call.getByRole("button", { name: "Try it out" }).click();
  await call.getByRole("button", { name: "Execute" }).click();
  await call.locator(".live-responses-table").getByText("wsp_sess_").first().waitFor();
  faultless();
});

test("whose login ended asks for a file, and comes to the login and back to the page", async () => {
  const page = await web.page();
  await till.api("POST", checkout, { amount: 500000, customerEmail: "ada@example.com" });
  await enter(page, till, "owner", "/sessions?status=PENDING");
  await page.context().clearCookies();
  await page.getByRole("link", { name: "All of them as a file" }).click();
  await page.getByRole("heading", { name: "Log in to Till" }).waitFor();
  await page.getByRole("button", { name: "Enter as owner" }).click();
  await page.waitForURL(till.url + "/sessions?status=PENDING");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "All of them as a file" }).click()]);
  assert.equal(file.suggestedFilename(), "sessions-test.csv");
  faultless();
});

test("a developer rotates a key, and both work", async () => {
  const page = await web.page();
  await enter(page, till, "developer", "/developers");
  const row = page.getByRole("listitem").filter({ hasText: till.key.slice(-4) });
  await row.locator("summary").click();
  await row.getByRole("button", { name: "Rotate" }).click();
  const fresh = await shown(page, /^sk_test_/);
  assert.notEqual(fresh, till.key);
  await ask(fresh, "GET", "/v1/balance");
  await ask(till.key, "GET", "/v1/balance");
  faultless();
});

test("a supporter has a webhook sent again, and says why", async (t) => {
  const hook = await receiver();
  t.after(hook.stop);
  hook.answers(500);
  const { id } = await till.api("POST", "/v1/webhook-endpoints", { url: hook.url });
  const session = await till.api("POST", checkout, { amount: 610000, customerEmail: "ada@example.com", customerName: "Chika Udo" });
  const { accountNumber } = await till.api("POST", `${checkout}/${session.id}/pay/bank-transfer`);
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber });
  await until("the first try failed", () => hook.heard.length > 0);
  hook.answers(200);
  const page = await web.page();
  await enter(page, till, "support", `/sessions/${session.id}`);
  const form = page.locator("form", { has: page.getByRole("heading", { name: "Send a webhook again" }) });
  await form.getByRole("button").click(); // without a reason the browser itself says no
  assert.equal(page.url(), `${till.url}/sessions/${session.id}`);
  await form.getByLabel("Why").fill("The shop's server was down");
  await form.getByRole("button").click();
  await until("it was delivered", () => hook.heard.some((h) => h.status === 200));
  await page.goto("about:blank"); // a live part that asks again without a login would be told so
  await page.context().clearCookies();
  await enter(page, till, "operator", "/ops/audit");
  assert.match(await page.getByRole("main").innerText(), /The shop's server was down/);
  await till.api("DELETE", `/v1/webhook-endpoints/${id}`);
  faultless();
});

// talk is how a payer's phone is used: a page, or a part of one.
function talk(phone) {
  const box = phone.getByLabel("Message", { exact: true });
  const send = phone.getByRole("button", { name: "Send the message" });
  const on = phone.getByRole("button", { name: "Switch on" });
  const say = async (words) => { await box.fill(words); await send.click(); };
  const hears = (words) => phone.getByLabel("Messages", { exact: true }).getByText(words).last().waitFor();
  return {
    say, hears,
    // choosesTransfer makes a new payer, who sends the link's words and chooses the bank
    // transfer. Where there is no payer yet the page asks for one by itself.
    async choosesTransfer() {
      await until("there is a payer, or one is asked for", async () => (await on.isVisible()) || (await phone.locator("#phones option").count()) > 0);
      if (!(await on.isVisible())) await phone.getByRole("button", { name: "New payer" }).click();
      await on.click();
      await until("the link's words are typed", async () => (await box.inputValue()).startsWith("Pay "));
      await send.click();
      await hears("1 Bank transfer");
      await say("1");
      await hears("I confirm here by myself");
    },
  };
}

test("a payer follows the link of a session to the phone, and pays there", async (t) => {
  const hook = await receiver();
  t.after(hook.stop);
  const { id } = await till.api("POST", "/v1/webhook-endpoints", { url: hook.url, events: ["charge.success"] });
  const session = { customerEmail: "bola@example.com", mode: "chat" };
  const { checkoutUrl } = await till.api("POST", checkout, { ...session, amount: 500000, reference: "order-1182", description: "Order 1182" });
  const page = await web.page({ viewport: { width: 1180, height: 1080 } });
  await page.goto(checkoutUrl);
  const phone = talk(page);
  await phone.choosesTransfer();
  const pay = page.getByRole("button", { name: "Pay exact amount" });
  await pay.click();
  await phone.hears("Receipt: ₦5,000 to Ada Stores");
  await until("the webhook came", () => hook.heard.length > 0);
  assert.equal(JSON.parse(hook.heard[0].body).reference, "order-1182");
  await picture(page, "phone");
  const next = await till.api("POST", checkout, { ...session, amount: 250000 });
  await phone.say(new URL(next.checkoutUrl).searchParams.get("text"));
  await phone.hears("₦2,500");
  await pay.waitFor({ state: "hidden" }); // nothing is offered to be paid that is paid
  await till.api("DELETE", `/v1/webhook-endpoints/${id}`);
  faultless();
});

test("a payer pays on the page to try things out, and it is played again", async () => {
  const page = await web.page({ viewport: { width: 1300, height: 1000 } });
  await enter(page, till, "owner", "/try");
  await page.getByRole("button", { name: "Catch this project's webhooks" }).click();
  await page.getByRole("button", { name: "Open a session" }).click();
  const frame = page.frameLocator("iframe.phone");
  const phone = talk(frame);
  await phone.choosesTransfer();
  await page.getByRole("button", { name: "Pay exact" }).click();
  await phone.hears("Receipt: ₦5,000");
  await frame.locator(".tick.read").first().waitFor();
  await page.getByText("charge.success").first().waitFor();
  await page.getByText("signature verifies").first().waitFor();

  await page.locator("[data-live] a[href$='/replay']").click();
  await page.locator("#verdict").getByText(/^Replay matches log/).waitFor();
  await page.waitForLoadState(); // the verdict is there before all of the turns are
  const turns = page.locator(".turns > li");
  const shown = () => turns.filter({ visible: true }).count();
  const all = await turns.count();
  await until("the player shows the whole talk", async () => all >= 4 && (await shown()) === all);
  await page.locator("#speed").selectOption("16");
  const play = page.locator("[data-do=play]");
  await play.click();
  await until("it plays from the start", async () => (await shown()) < all);
  await until("it played to the end", async () => (await play.innerText()) === "Play" && (await shown()) === all);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await shown(), all - 1);
  faultless();
});

test("an operator links a number", async (t) => {
  const wa = await network();
  t.after(wa.stop);
  const own = await start(wa.variables);
  t.after(own.stop);
  const browser = await open(own);
  t.after(browser.close);
  const page = await browser.page();
  await enter(page, own, "operator", "/ops");
  await page.getByRole("heading", { name: "Link a phone" }).waitFor();
  const { pairing } = await own.api("GET", "/v1/test/whatsapp/pairing");
  assert.equal((await wa.scan("2349010000001", pairing)).ok, true);
  await page.getByRole("cell", { name: /\+2349010000001/ }).waitFor();
  await page.locator(".badge.s-live").first().waitFor();
  assert.deepEqual(browser.faults, []);
});

test("pictures of the console", async () => {
  const page = await web.page({ viewport: { width: 1280, height: 860 } });
  await enter(page, till, "support", "/sessions?q=6100");
  await page.getByRole("link", { name: "Chika Udo" }).click();
  await page.getByRole("heading", { name: "Money that came" }).waitFor();
  await picture(page, "session");
  await page.getByRole("link", { name: "Replay the conversation" }).click();
  assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1);
  faultless();
});
