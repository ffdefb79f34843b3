// What a merchant's people decide: about much money by two, about a project's
// settings by its owner; and what they take away as files. Once without JavaScript.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { enter, open, start, until } from "./till.mjs";

const checkout = "/v1/whatsapp/checkout/sessions";
let till, web;

before(async () => {
  till = await start();
  web = await open(till);
});
after(async () => { await web?.close(); await till?.stop(); });

// overpaid is a session that was paid with ₦200,000 too much.
async function overpaid(name) {
  const { id } = await till.api("POST", checkout, { amount: 450000, customerEmail: "payer@example.com", customerName: name, customerPhone: "08031234567" });
  const { accountNumber } = await till.api("POST", `${checkout}/${id}/pay/bank-transfer`);
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber, amount: 20450000 });
  await until("it is overpaid", async () => (await till.api("GET", `${checkout}/${id}`)).exceptions.includes("OVERPAID"));
  return id;
}

const status = async (id) => (await till.api("GET", `/v1/payments?sessionId=${id}`)).items[0].resolution;

for (const javaScriptEnabled of [true, false]) {
  test(`much money is decided about by two people${javaScriptEnabled ? "" : ", without JavaScript"}`, async () => {
    const id = await overpaid(javaScriptEnabled ? "Amara Nwosu" : "Bola Ade");
    const options = { javaScriptEnabled, viewport: { width: 360, height: 740 } };
    const first = await web.page(options), second = await web.page(options);
    for (const page of [first, second]) page.on("dialog", (d) => d.accept());
    await enter(first, till, "support", `/sessions/${id}`);
    await first.goto(`${till.url}/sessions/${id}`);
    const form = first.locator("form", { has: first.getByRole("button", { name: "Accept it" }) });
    await form.getByLabel("Why").fill("The order grew");
    await form.getByLabel("I know that this cannot be undone").check();
    await form.getByRole("button", { name: "Accept it" }).click();
    await first.getByText("It waits for a second person").waitFor();
    assert.equal(await status(id), null);
    assert.equal(await first.getByRole("button", { name: "Agree", exact: true }).count(), 0, "who asked cannot agree");

    await enter(second, till, "owner", "/exceptions?queue=second"); // three actions from here
    await second.goto(`${till.url}/exceptions?queue=second`);
    const row = second.locator("tr", { has: second.locator(`a[href="/sessions/${id}"]`) });
    assert.match(await row.innerText(), /support of .* asked to give set-aside money to the merchant, ₦200,000\.00: The order grew/);
    await row.getByLabel("Why").fill("Looked at the order");
    await row.getByLabel("I looked at it").check();
    await row.getByRole("button", { name: "Agree", exact: true }).click();
    await second.getByText("It is done: two people agreed.").waitFor();
    assert.equal(await status(id), "ACCEPTED");
    const story = await second.getByRole("main").innerText();
    assert.match(story, /agreed, as the second person, to give set-aside money to the merchant\. Reason: Looked at the order \(asked for by support of/);
    assert.match(story, /Bank transfer chosen; account number \d{10} at .* was made in \d+ ms; it holds until .*\(Lagos\)/);
    await second.goto(`${till.url}/team/audit?action=agree`);
    assert.match(await second.getByRole("main").innerText(), /agree\.payment\.accept\s+owner of .*[\s\S]*asked for by support of/);
    for (const page of [first, second]) await page.context().close();
    assert.deepEqual(web.faults.splice(0), []);
  });
}

test("an owner sets what payers read, and looks at it first", async () => {
  const page = await web.page();
  await enter(page, till, "owner", "/settings");
  await page.goto(`${till.url}/settings`);
  await page.getByLabel("A few words behind it").fill("Lagos fashion since 1999");
  await page.getByLabel("Language of a chat").selectOption("pcm");
  await page.getByLabel("It came too late").selectOption("accept");
  await page.getByLabel("How long a session lasts").fill("45");
  await page.getByRole("button", { name: "Show what payers would read" }).click();
  await page.getByRole("heading", { name: "it is not kept yet" }).waitFor();
  assert.match(await page.locator(".bubble").innerText(), /\(Lagos fashion since 1999\) dey ask you to pay/);
  await page.getByRole("button", { name: "Keep the settings" }).click();
  await page.getByText("The settings are kept").waitFor();
  const s = await till.api("POST", checkout, { amount: 450000, customerEmail: "payer@example.com", mode: "chat" });
  assert.equal(new Date(s.expiresAt) - new Date(s.createdAt), 45 * 60_000);
  const { phone } = await till.api("POST", "/v1/test/phones", {});
  await till.api("POST", `/v1/test/phones/${phone}/messages`, { text: new URL(s.checkoutUrl).searchParams.get("text") });
  let said;
  await until("the bot answers", async () => (said = (await till.api("GET", `/v1/test/phones/${phone}/messages?wait=5`)).items.find((m) => !m.fromMe)));
  assert.match(said.text, /\(Lagos fashion since 1999\) dey ask you to pay ₦4,500/);
  await page.getByLabel("A few words behind it").fill("see www.evil.example");
  await page.getByRole("button", { name: "Keep the settings" }).click();
  await page.getByRole("alert").getByText("no link").waitFor();
  await page.context().close();
  assert.deepEqual(web.faults.splice(0).filter((f) => !/422/.test(f)), []);
});

test("a search is kept under a name, and taken away as a file", async () => {
  const page = await web.page();
  await enter(page, till, "support", "/sessions");
  await page.goto(`${till.url}/sessions?q=4500`);
  await page.getByLabel("Keep this search as").fill("the usual");
  await page.getByRole("button", { name: "Keep it" }).click();
  await page.getByRole("link", { name: "the usual" }).waitFor();
  const answer = await page.request.get(`${till.url}/sessions.csv?q=4500`);
  const rows = (await answer.text()).trim().split("\r\n");
  assert.match(rows[0], /^session,opened,status,.*amount_naira,amount_kobo/);
  assert.ok(rows.length > 2 && rows.slice(1).every((r) => r.includes(",4500.00,450000,")), rows.join("\n"));
  assert.ok(rows.some((r) => r.includes("234•••••4567")) && !rows.some((r) => r.includes("8031234567")));
  await page.getByRole("button", { name: "Forget the search the usual" }).click();
  await page.getByText("The search is forgotten").waitFor();
  assert.equal(await page.getByRole("link", { name: "the usual" }).count(), 0);
  await page.context().close();
  assert.deepEqual(web.faults.splice(0), []);
});

test("a button that is pressed twice while its answer is on the way is pressed once", async () => {
  const page = await web.page();
  page.on("dialog", (d) => d.accept());
  const { id } = await till.api("POST", checkout, { amount: 450000, customerEmail: "payer@example.com" });
  await enter(page, till, "owner", `/sessions/${id}`);
  await page.goto(`${till.url}/sessions/${id}`);
  let sent = 0, pressed;
  const twice = new Promise((done) => { pressed = done; });
  await page.route("**/cancel", async (route) => { // the server does each, and its answer takes until the button was pressed again
    sent++;
    const response = await route.fetch({ maxRedirects: 0 });
    await twice;
    await route.fulfill({ response }).catch(() => {}); // the browser may wait for the other one by now
  });
  const form = page.locator(`form[action="/sessions/${id}/cancel"]`);
  await page.locator("details", { has: form }).evaluateAll((all) => all.forEach((d) => { d.open = true; }));
  await form.getByLabel("Why").fill("The order was withdrawn");
  await form.getByRole("checkbox").check();
  const { x, y, width, height } = await form.getByRole("button").boundingBox();
  await page.mouse.click(x + width / 2, y + height / 2);
  await until("it is sent", () => sent > 0);
  await page.mouse.click(x + width / 2, y + height / 2);
  pressed();
  await page.getByText("The session is cancelled.").waitFor();
  assert.equal(sent, 1);
  await page.context().close();
  assert.deepEqual(web.faults.splice(0), []);
});

test("a form of a page that Back brought as it was can be sent at once", async () => {
  const page = await web.page();
  const { id } = await till.api("POST", checkout, { amount: 450000, customerEmail: "payer@example.com" });
  await enter(page, till, "owner", `/sessions/${id}`);
  await page.goto(`${till.url}/sessions/${id}`);
  let sent = 0;
  await page.route("**/note", (route) => { sent++; return route.fulfill({ status: 204 }); }); // the page stays, as after Back
  const form = page.locator(`form[action="/sessions/${id}/note"]`);
  await page.locator("details", { has: form }).evaluateAll((all) => all.forEach((d) => { d.open = true; }));
  await form.getByRole("textbox").fill("called back");
  await form.getByRole("button").click();
  await until("it is sent", () => sent === 1);
  await page.evaluate(() => window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
  await form.getByRole("button").click();
  await until("it is sent again", () => sent === 2);
  await page.context().close();
  assert.deepEqual(web.faults.splice(0), []);
});
