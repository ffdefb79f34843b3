// What the console's pages do beyond links and forms. Each works without it, but
// for live parts.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Copying: the buttons show themselves only where they work.
  const offerCopy = (root) => $$("[data-copy]", root).forEach((b) => { b.hidden = !navigator.clipboard; });
  document.addEventListener("click", async (e) => {
    const b = e.target.closest("[data-copy]");
    if (!b) return;
    const words = b.textContent;
    try { await navigator.clipboard.writeText(b.dataset.copy); b.textContent = "Copied"; } catch { b.textContent = "Copy it by hand"; }
    setTimeout(() => { b.textContent = words; }, 1500);
  });
  offerCopy(document);

  // What scrolls can be scrolled with the keyboard too.
  const offerScroll = () => $$(".card, pre, .command code").forEach((box) => {
    if (box.scrollWidth > box.clientWidth && !box.querySelector("a, button:not([hidden]), input, select, textarea, summary")) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
  offerScroll();
  window.addEventListener("resize", offerScroll);
  document.addEventListener("live", offerScroll);

  // Buttons that ask before they do: data-sure holds the question. What a double click
  // orders once more is not sent: that it was done already would be all that the page
  // says. Who waits for an answer for longer may press again, and who came back to the
  // page by Back at once.
  let sent = new WeakSet();
  window.addEventListener("pageshow", () => { sent = new WeakSet(); });
  document.addEventListener("submit", (e) => {
    const form = e.target, sure = e.submitter?.dataset.sure || form.dataset.sure;
    if (sent.has(form) || sure && !window.confirm(sure)) { e.preventDefault(); return; }
    if (form.method !== "post") return;
    const now = sent;
    now.add(form);
    setTimeout(() => now.delete(form), 5000);
  });

  // Live parts: the server sends the part anew whenever it changed. A stream ends
  // by itself after 25 s; the browser opens it again, but for one that was answered with
  // something else, as by a proxy while the server is away. The page opens that again
  // itself. Each stream begins with the part: where none comes, the page says so.
  // What is new in a part that has words for it (data-tell) is said to who does not see it,
  // and how many wait (data-waits) stands first in the title, which every tab shows.
  const named = (e) => e.id || e.dataset.copy || e.href; // what a thing is known by in a part that comes anew
  for (const part of $$("[data-live]")) {
    const stale = document.createElement("p");
    stale.className = "note";
    stale.setAttribute("role", "status");
    stale.textContent = "Not live right now: what is new does not show here. Load the page again if that stays.";
    const says = document.createElement("p"), title = document.title;
    says.className = "sr";
    says.setAttribute("role", "status");
    let source, again, late, lost, told;
    const tell = () => {
      const now = part.querySelector("[data-tell]")?.dataset;
      if (!now) return;
      document.title = (now.waits > 0 ? `(${now.waits}) ` : "") + title;
      if (told === undefined) part.before(says);
      else if (told !== now.tell) says.textContent = now.tell;
      told = now.tell;
    };
    const rest = () => { clearTimeout(again); clearTimeout(late); source?.close(); };
    const expect = (within) => { clearTimeout(late); late = setTimeout(() => part.before(stale), within); };
    const listen = () => {
      rest();
      lost = false;
      expect(30000);
      source = new EventSource(part.dataset.live);
      source.addEventListener("part", (e) => {
        stale.remove();
        lost = false;
        expect(30000);
        const down = part.scrollHeight - part.scrollTop - part.clientHeight < 60;
        const kept = $$("details[open][id]", part).map((d) => d.id), had = part.contains(document.activeElement) && named(document.activeElement);
        part.innerHTML = e.data;
        for (const id of kept) document.getElementById(id)?.setAttribute("open", "");
        offerCopy(part);
        if (had) $$("[id], [data-copy], a", part).find((e) => named(e) === had)?.focus({ preventScroll: true });
        if (part.dataset.follow !== undefined && down) part.scrollTop = part.scrollHeight;
        tell();
        part.dispatchEvent(new CustomEvent("live", { bubbles: true }));
        if (document.hidden) look();
      });
      source.addEventListener("error", () => {
        if (document.hidden) { look(); return; }
        if (source.readyState !== EventSource.CLOSED) { // the browser tries, each time in vain while nobody answers
          if (!lost) expect(3000);
          lost = true;
          return;
        }
        part.before(stale);
        again = setTimeout(listen, 3000);
      });
    };
    if (part.dataset.follow !== undefined) part.scrollTop = part.scrollHeight;
    // A browser has six connections to one server (HTTP/1.1): with as many tabs open the
    // next page would wait for one. Those that nobody looks at have none, but for a moment
    // twice a minute where there are words for what is new.
    const look = () => {
      if (!document.hidden) { listen(); return; }
      rest();
      if (told !== undefined) again = setTimeout(listen, 30000);
    };
    tell();
    document.addEventListener("visibilitychange", look);
    look();
    window.addEventListener("pagehide", rest);
  }

  // Keys.
  let at = -1, went = false;
  const rows = () => $$(".list tbody tr");
  document.addEventListener("live", () => { at = rows().findIndex((r) => r.contains(document.activeElement) || r.classList.contains("at")); rows()[at]?.classList.add("at"); });
  const move = (by) => {
    const all = rows();
    if (!all.length) return;
    all[at]?.classList.remove("at");
    at = Math.max(0, Math.min(all.length - 1, at + by));
    all[at].classList.add("at");
    all[at].scrollIntoView({ block: "nearest" });
    all[at].querySelector("a")?.focus();
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, [contenteditable]")) return;
    if (went) {
      went = false;
      const page = { s: "/sessions", e: "/exceptions", d: "/developers", o: "/ops", i: "/inbox", t: "/try" }[e.key];
      if (page) location.assign(page);
      return;
    }
    switch (e.key) {
      case "/": { const box = document.querySelector("input[type=search]"); if (box) { e.preventDefault(); box.focus(); box.select(); } break; }
      case "j": move(1); break;
      case "k": move(-1); break;
      case "g": went = true; break;
      case "?": document.getElementById("keys")?.showModal(); break;
    }
  });
})();
