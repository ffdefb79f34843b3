// The phone page: a payer's side of the chat, in development. It only talks to
// /phone/api, builds its page out of text nodes and keeps the chosen phone in
// localStorage, nothing else.
'use strict';

/** @typedef {{phone: string, pushName: string}} Phone */
/** @typedef {{id: string, text: string, fromMe: boolean, at: string, status: string, quoted?: string}} Message */

/** Milliseconds before a lost stream is opened again, at first and at most. */
const AGAIN = [300, 8000];

/** @param {string} id @returns {any} */
const the = (id) => document.getElementById(id);

/** @type {Phone[]} */
let phones = [];
let current = '';
/** @type {Map<string, Message>} */
let messages = new Map();
/** Counts how often the phones were asked for. */
let loads = 0;
/** The message that is answered to, '' for none. */
let quoted = '';
/** @type {AbortController} */
let listening = new AbortController();

/**
 * Calls the server. The header is what keeps other sites' pages out.
 * @param {string} method @param {string} path @param {object} [body] @param {AbortSignal} [signal]
 */
async function call(method, path, body, signal) {
  const headers = { 'X-Till-Phone': '1' };
  if (body) headers['Content-Type'] = 'application/json';
  const answer = await fetch('/phone/api' + path, { method, headers, body: body && JSON.stringify(body), signal });
  const out = await answer.json();
  if (!out.status) throw new Error(out.error.message);
  return out.data;
}

/** Says how something went. @param {string} words @param {boolean} [bad] */
function say(words, bad) {
  the('status').textContent = words;
  the('status').classList.toggle('bad', Boolean(bad));
}

/** Runs what a button does, shows its failure and keeps the button still meanwhile. @param {any} button @param {() => Promise<void>} act */
async function press(button, act) {
  button.disabled = true;
  try {
    await act();
  } catch (err) {
    say(err.message, true);
  } finally {
    button.disabled = false;
  }
}

/** A name that turns nothing round that stands beside it, where no element can say so. @param {string} name */
const apart = (name) => '\u2068' + name + '\u2069';

/** Loads the phones and shows the one that was used last. @param {string} [wanted] */
async function load(wanted) {
  const turn = ++loads;
  const list = (await call('GET', '/phones')).items;
  if (turn !== loads) return; // asked again meanwhile
  phones = list;
  the('phones').replaceChildren(...phones.map((p) => new Option(p.pushName ? apart(p.pushName) + ' · ' + p.phone : p.phone, p.phone)));
  const last = wanted || localStorage.getItem('till.phone');
  const found = phones.find((p) => p.phone === last) || phones[phones.length - 1];
  the('remove').disabled = the('phones').disabled = !found;
  open(found ? found.phone : '');
  if (!found && !the('new').open) the('new').showModal();
}

/** Shows the chat of a phone. @param {string} phone */
function open(phone) {
  listening.abort();
  listening = new AbortController();
  current = phone;
  messages = new Map();
  quote('');
  typing(false);
  the('log').replaceChildren();
  the('phones').value = phone;
  const it = phones.find((p) => p.phone === phone);
  the('face').textContent = it ? [...(it.pushName || it.phone.slice(-2))].slice(0, 2).join('').toUpperCase() : '?';
  suggest();
  if (phone) {
    localStorage.setItem('till.phone', phone);
    listen(phone, listening.signal);
  }
}

/** Shows what the server sends of a phone's screen until another phone is shown. @param {string} phone @param {AbortSignal} signal */
async function listen(phone, signal) {
  const path = '/phone/api/phones/' + encodeURIComponent(phone) + '/live';
  let [pause] = AGAIN;
  let bad = false;
  while (!signal.aborted) {
    try {
      const answer = await fetch(path, { headers: { 'X-Till-Phone': '1', Accept: 'text/event-stream' }, signal });
      if (!answer.ok) throw new Error((await answer.json()).error.message);
      const stream = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const { value, done } = await stream.read();
        if (done) break;
        const events = (rest + value).split('\n\n');
        rest = events.pop();
        for (const one of events) {
          const data = one.split('\n').filter((l) => l.startsWith('data: ')).map((l) => l.slice(6)).join('\n');
          if (data) screen(phone, JSON.parse(data));
        }
        if (bad) say('');
        bad = false;
        [pause] = AGAIN;
      }
    } catch (err) {
      if (signal.aborted) return;
      say(err.message + ' Trying again…', true);
      bad = true;
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, AGAIN[1]);
    }
  }
}

/** Shows a phone's screen as it is now. @param {string} phone @param {{typing: boolean, messages: Message[]}} now */
function screen(phone, now) {
  if (phone !== current) return;
  const before = messages.size;
  now.messages.forEach(show);
  typing(now.typing);
  if (messages.size === before) return;
  suggest();
  read();
}

/** Says whether the other side writes. @param {boolean} on */
function typing(on) {
  const log = the('log');
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  the('typing').hidden = !on;
  the('peer').textContent = on ? 'typing…' : 'business account';
  if (atEnd) log.scrollTop = log.scrollHeight;
}

/** Lets the other side see blue ticks for what is before the payer's eyes. */
function read() {
  if (current && !document.hidden && [...messages.values()].some((m) => !m.fromMe && m.status !== 'read')) {
    call('POST', '/phones/' + encodeURIComponent(current) + '/read').catch(() => {}); // nothing hangs on it
  }
}

/** Chooses the message that is answered to. @param {string} id '' for none */
function quote(id) {
  quoted = id;
  const m = messages.get(id);
  the('quote').hidden = !m;
  the('quoteWho').textContent = m ? (m.fromMe ? 'You' : 'Till') : '';
  the('quoteText').textContent = m ? m.text : '';
  if (m) the('text').focus();
}

const lagos = 'Africa/Lagos'; // where payers are, and what the bot's texts count by

/** The day of a time, for the line between two days. @param {string} at */
function day(at) {
  const name = (/** @type {Date} */ date) => date.toLocaleDateString([], { timeZone: lagos, day: 'numeric', month: 'long', year: 'numeric' });
  return name(new Date(at)) === name(new Date()) ? 'Today' : name(new Date(at));
}

/** Shows a message, or what became of one that is shown already. @param {Message} m */
function show(m) {
  const known = messages.get(m.id);
  messages.set(m.id, m);
  if (known) {
    if (known.status !== m.status) document.getElementById('m-' + m.id)?.querySelector('.tick')?.replaceWith(tick(m.status));
    return;
  }
  const log = the('log');
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const before = [...messages.values()].at(-2);
  if (!before || day(before.at) !== day(m.at)) {
    const line = document.createElement('li');
    line.className = 'day';
    line.textContent = day(m.at);
    log.append(line);
  }
  const bubble = document.createElement('li');
  bubble.id = 'm-' + m.id;
  bubble.className = (m.fromMe ? 'mine' : '') + (before && before.fromMe === m.fromMe ? ' more' : '');
  const about = messages.get(m.quoted || '');
  if (about) {
    const said = document.createElement('blockquote');
    const who = document.createElement('strong');
    who.textContent = about.fromMe ? 'You' : 'Till';
    said.append(who, about.text.slice(0, 200));
    bubble.append(said);
  }
  const words = document.createElement('p');
  words.append(...format(m.text));
  const foot = document.createElement('div');
  foot.className = 'foot';
  const time = document.createElement('time');
  time.dateTime = m.at;
  time.textContent = new Date(m.at).toLocaleTimeString([], { timeZone: lagos, hour: '2-digit', minute: '2-digit' });
  const bare = m.text.trim();
  if (!m.fromMe && /^(\d{10}|\*\d[\d*]*#)$/.test(bare)) {
    words.className = 'plain';
    foot.append(copier(bare));
  }
  if (!m.fromMe) {
    const answer = document.createElement('button');
    answer.type = 'button';
    answer.className = 'answer quiet';
    answer.textContent = '↩';
    answer.setAttribute('aria-label', 'Answer to: ' + m.text.slice(0, 60));
    answer.onclick = () => quote(m.id);
    foot.append(answer);
  }
  foot.append(time);
  if (m.fromMe) foot.append(tick(m.status));
  bubble.append(words, foot);
  log.append(bubble);
  if (atEnd || m.fromMe) log.scrollTop = log.scrollHeight;
}

/** The ticks of a message of ours. @param {string} status */
function tick(status) {
  const mark = document.createElement('span');
  mark.className = 'tick ' + (status === 'read' ? 'read' : '');
  mark.textContent = status === 'sent' ? '✓' : status === 'delivered' || status === 'read' ? '✓✓' : '🕓';
  mark.setAttribute('role', 'img');
  mark.setAttribute('aria-label', status || 'sending');
  return mark;
}

/** A button that copies exactly these words. @param {string} words */
function copier(words) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy quiet';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', 'Copy ' + words);
  button.onclick = () => press(button, async () => {
    await navigator.clipboard.writeText(words);
    say('Copied ' + words + '.');
  });
  return button;
}

/**
 * Words as WhatsApp shows them: links, *bold* and _italic_. A dial code keeps its stars.
 * @param {string} text @returns {(Node|string)[]}
 */
function format(text) {
  const out = [];
  const parts = /(https?:\/\/[^\s<>"]+[^\s<>".,;:!?)])|(?<![\w*#])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*#])|(?<![\w_])_([^\s_](?:[^_\n]*[^\s_])?)_(?![\w_])/g;
  let at = 0;
  for (const found of text.matchAll(parts)) {
    out.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    let node;
    if (found[1]) {
      node = document.createElement('a');
      node.href = node.textContent = found[1];
      node.target = '_blank';
      node.rel = 'noopener noreferrer';
    } else {
      node = document.createElement(found[2] ? 'strong' : 'em');
      node.textContent = found[2] || found[3];
    }
    out.push(node);
  }
  out.push(text.slice(at));
  return out;
}

/** The newest match in what the bot said since a payment code was sent: before it is another payment's. @param {RegExp} what */
function newest(what) {
  for (const m of [...messages.values()].reverse()) {
    if (m.fromMe && /[0-9a-z]{4}-[0-9a-z]{4}/i.test(m.text)) return '';
    const found = !m.fromMe && m.text.match(what);
    if (found) return found[0].trim();
  }
  return '';
}

/** Offers what can be paid right now. */
function suggest() {
  const log = the('log');
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const account = newest(/^\s*\d{10}\s*$/) || newest(/(?<!\d)\d{10}(?!\d)/);
  const code = newest(/\*\d{2,4}\*[\d*]*\d#/);
  the('account').textContent = account;
  the('code').textContent = code;
  the('transfer').hidden = !account;
  the('ussd').hidden = !code;
  the('hint').hidden = Boolean(account || code);
  if (atEnd) log.scrollTop = log.scrollHeight; // the panel may have taken room from the chat
}

/** Sends money to the account shown. @param {string} [kobo] all that was asked for, where missing */
async function pay(kobo) {
  const body = { accountNumber: the('account').textContent };
  if (kobo) body.amount = Number(kobo);
  const sent = await call('POST', '/bank/transfers', body);
  say('The bank sent ₦' + sent.amountMinor.replace(/(\d\d)$/, '.$1') + '.');
}

/** Dials the code shown; its last number is the payment's. @param {string} outcome */
async function dial(outcome) {
  const code = the('code').textContent.match(/(\d+)#$/)[1];
  await call('POST', '/ussd/' + encodeURIComponent(code) + '/complete', { outcome });
  say(outcome === 'success' ? 'Dialled, and paid.' : 'Dialled, and the bank refused.');
}

/** Sends what is typed. */
async function send() {
  const words = the('text').value.trim();
  if (!words) return;
  if (!current) throw new Error('No phone is on: add a payer first.');
  const body = { text: words };
  if (quoted) body.quoted = quoted;
  const sent = await call('POST', '/phones/' + encodeURIComponent(current) + '/messages', body);
  the('text').value = '';
  if (!messages.has(sent.id)) show({ ...sent, quoted });
  quote('');
}

the('compose').onsubmit = (e) => { e.preventDefault(); press(e.submitter || the('text'), send).then(() => the('text').focus()); };
the('text').onkeydown = (e) => { if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); the('compose').requestSubmit(); } };
the('phones').onchange = () => open(the('phones').value);
the('unquote').onclick = () => quote('');
document.addEventListener('visibilitychange', read);
the('add').onclick = () => { the('wrong').textContent = ''; the('new').showModal(); };
the('close').onclick = () => the('new').close();
the('remove').onclick = () => press(the('remove'), async () => {
  if (!confirm('Take ' + current + ' off the network for good?')) return;
  await call('DELETE', '/phones/' + encodeURIComponent(current));
  await load();
});
the('create').onsubmit = (e) => {
  e.preventDefault();
  press(e.submitter || the('name'), async () => { // a second press would make a second payer
    const body = {};
    if (the('name').value.trim()) body.pushName = the('name').value.trim();
    if (the('number').value.trim()) body.phone = the('number').value.trim();
    try {
      const made = await call('POST', '/phones', body);
      await load(made.phone); // before it is shut: what is sent meanwhile would be nobody's
      the('new').close();
      the('text').focus();
    } catch (err) {
      the('wrong').textContent = err.message;
    }
  });
};
the('pay').onclick = () => press(the('pay'), () => pay());
the('other').onsubmit = (e) => {
  e.preventDefault();
  const [naira, kobo] = the('amount').value.split('.');
  press(e.submitter || the('amount'), () => pay(naira + (kobo || '00')));
};
the('dial').onclick = () => press(the('dial'), () => dial('success'));
the('fail').onclick = () => press(the('fail'), () => dial('failed'));

const asked = new URLSearchParams(location.search);
document.body.classList.toggle('bare', asked.has('bare')); // the page around it has a panel of its own
const words = asked.get('text');
if (words) {
  the('text').value = words;
  history.replaceState(null, '', asked.has('bare') ? '/phone?bare' : '/phone');
}
load().catch((err) => say(err.message, true));
