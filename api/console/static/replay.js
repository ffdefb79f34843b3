// Plays a conversation turn by turn. Without it all of it is shown, and links
// step through it.
(() => {
  "use strict";
  const player = document.querySelector("[data-player]");
  const turns = [...document.querySelectorAll(".turns > li")];
  if (!player || !turns.length) return;
  const says = player.querySelector("[data-at]"), speed = document.getElementById("speed");
  const play = player.querySelector("[data-do=play]"), first = turns.findIndex((t) => t.dataset.surprise !== undefined);
  const longest = 3000; // milliseconds that a gap is waited for, before the speed divides it
  let at = turns.length, timer = 0;

  document.querySelector("[data-steps]").hidden = true;
  player.hidden = false;
  player.querySelector("[data-do=surprise]").disabled = first < 0;

  const show = (to) => {
    at = Math.max(1, Math.min(turns.length, to));
    turns.forEach((t, i) => { t.hidden = i >= at; t.classList.toggle("at", i === at - 1); });
    says.textContent = `Step ${at} of ${turns.length}`;
    turns[at - 1].scrollIntoView({ block: "nearest" });
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
  };
  const next = () => {
    if (at >= turns.length) return stop();
    const gap = Number(turns[at].dataset.at) - Number(turns[at - 1].dataset.at);
    timer = setTimeout(() => { show(at + 1); next(); }, Math.max(300, Math.min(gap, longest)) / Number(speed.value));
  };
  const start = () => {
    if (at >= turns.length) show(1);
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    next();
  };
  const does = {
    play: () => (timer ? stop() : start()),
    back: () => { stop(); show(at - 1); },
    on: () => { stop(); show(at + 1); },
    surprise: () => { stop(); show(first + 1); },
    all: () => { stop(); turns.forEach((t) => { t.hidden = false; t.classList.remove("at"); }); at = turns.length; says.textContent = `${turns.length} turns`; },
  };
  player.addEventListener("click", (e) => does[e.target.closest("[data-do]")?.dataset.do]?.());
  speed.addEventListener("change", () => { if (timer) { clearTimeout(timer); next(); } });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select")) return;
    if (e.key === "ArrowRight") { e.preventDefault(); does.on(); }
    if (e.key === "ArrowLeft") { e.preventDefault(); does.back(); }
  });
  document.querySelector("#verdict a[href^='#turn-']")?.addEventListener("click", does.all);
})();
