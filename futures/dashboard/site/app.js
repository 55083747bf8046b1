// The frame of all views: which one is shown, who looks at it, and how it stays up to date.
import { h, show, link, button } from "./dom.js";
import { begin, end, kept, session, Problem } from "./api.js";
import { time } from "./format.js";
import { overview } from "./views/overview.js";
import { count, list } from "./views/list.js";
import { future } from "./views/future.js";
import { functions, pauses, queues } from "./views/functions.js";
import { lanes, kind, lane } from "./views/lanes.js";
import { actor, actors, actorType } from "./views/actors.js";
import { schedules, schedule } from "./views/schedules.js";
import { jobs, joblog } from "./views/jobs.js";
import { batches, batch } from "./views/batches.js";
import { objects, workers, peers } from "./views/workers.js";
import { promises } from "./views/promises.js";
import { limits } from "./views/limits.js";

// A view has a title, reads what it shows, and draws that. It is read again every so many
// seconds, and drawn again if what it read has changed.
const views = [
  [[], overview], [["futures"], list], [["futures", "*"], future], [["count", "*"], count], [["functions"], functions],
  [["queues"], queues], [["pauses"], pauses], [["promises"], promises],
  [["lanes"], lanes], [["lanes", "*"], kind], [["lanes", "*", "*"], lane],
  [["actors"], actors], [["actors", "*"], actorType], [["actors", "*", "*"], actor], [["schedules"], schedules],
  [["schedules", "*"], schedule], [["jobs"], jobs], [["jobs", "*"], joblog], [["batches"], batches],
  [["batches", "*"], batch], [["workers"], workers], [["objects"], objects], [["peers"], peers], [["limits"], limits],
];
const menu = [
  ["Overview", []], ["Futures", ["futures"]], ["Functions", ["functions"]], ["Queues", ["queues"]], ["Lanes", ["lanes"]],
  ["Actors", ["actors"]], ["Schedules", ["schedules"]], ["Promises", ["promises"]], ["Batches", ["batches"]], ["Jobs", ["jobs"]],
  ["Workers", ["workers"]], ["Objects", ["objects"]], ["Peers", ["peers"]], ["Limits", ["limits"]],
];

const main = document.getElementById("main");
let shown = null; // the view that is shown, with its timer

// place is where the address leads: a path and what it asks for. #main, where the link to the content leads, is the overview.
function place() {
  const [path, query] = location.hash.replace(/^#(main$|\/?)/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { path: parts, query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

const find = (path) => views.find(([pattern]) => pattern.length === path.length &&
  pattern.every((part, i) => part === "*" || part === path[i]))?.[1];

// say tells what happened, to those who listen too, with what can be done about it.
export function say(text, bad, ...more) {
  const news = document.getElementById("news");
  show(news, h("div", { id: "news", role: "status", "aria-live": "polite" }, h("p", { class: bad ? "bad" : "good" }, text, ...more,
    button("×", () => news.replaceChildren(), { "aria-label": "Dismiss" }))));
}

// act does something for a person, and shows what came of it.
export async function act(what, done) {
  try {
    const came = await what();
    const text = typeof done === "function" ? done(came) : done;
    if (text) say(text);
    await refresh();
    return came;
  } catch (err) {
    say(err.message, true);
    return undefined;
  }
}

function drawFrame() {
  const { path } = place();
  show(document.getElementById("nav"), h("nav", { id: "nav", "aria-label": "Views" }, h("ul", null,
    menu.map(([text, to]) => h("li", { key: text }, link(to, text, {},
      { "aria-current": (path[0] ?? "") === (to[0] ?? "") ? "page" : null }))))));
  show(document.getElementById("who"), h("div", { id: "who" }, session.role && session.name && [
    h("span", { title: session.until ? `until ${time(session.until)}` : "" }, `${session.name} (${session.role})`),
    button("Log out", async () => { await end(); drawLogin("You have logged out."); }),
  ]));
}

// linkIn is the secret of a link that logs in.
const linkIn = (text) => text.match(/#login=([0-9a-f]+)$/)?.[1];

// drawLogin asks for a token.
function drawLogin(text) {
  stop();
  session.role = "";
  drawFrame();
  const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  main.replaceChildren(h("form", { class: "login", onsubmit: async (event) => {
    event.preventDefault();
    try {
      const token = field.value.trim(), linkSecret = linkIn(token);
      await begin(linkSecret ? { linkSecret } : { token });
      await go();
    } catch (err) {
      drawLogin(err.status === 401 && !linkIn(field.value.trim()) ? "This token is not valid." : err.message);
    }
  } }, h("h1", null, "Log in"), text && h("p", { role: "alert" }, text),
  h("label", { for: "token" }, "Token"), field, h("button", { type: "submit" }, "Log in"),
  h("p", { class: "hint" }, "The command ", h("code", null, "futura ui"),
    " prints a link that logs in, and the file token in the store's directory has a token.")));
  document.title = "Log in · Futura";
  field.focus();
}

// stop ends the view that is shown, with the questions that are about it.
function stop() {
  for (const dialog of document.querySelectorAll("dialog")) dialog.close("no");
  if (!shown) return;
  clearTimeout(shown.timer);
  shown.control.abort();
  shown = null;
}

// go shows the view of the address.
async function go() {
  stop();
  const at = place(), view = find(at.path);
  drawFrame();
  if (!view) {
    main.replaceChildren(h("h1", null, "There is no such view"), h("p", null, link([], "Back to the overview")));
    return;
  }
  shown = { view, at, control: new AbortController(), timer: 0, turns: 0, drawn: 0, last: "", state: {} };
  main.replaceChildren(h("p", { class: "empty", "aria-busy": "true" }, "Loading …"));
  document.title = `${view.title(at)} · Futura`;
  const now = shown;
  await refresh();
  if (now === shown) main.focus({ preventScroll: true });
}

// refresh reads what the view shows, and draws it if it has changed.
export async function refresh() {
  const now = shown;
  if (!now) return;
  clearTimeout(now.timer);
  const turn = ++now.turns;
  let every = now.view.every ?? 3;
  try {
    const from = performance.now();
    if (!document.hidden || !now.last) await draw(now, turn);
    // A page keeps a slow server busy for a twentieth of the time, but is no older than half a minute.
    every = Math.max(every, Math.min(30, (performance.now() - from) / 50));
  } catch (err) {
    if (now !== shown || turn < now.drawn || err.name === "AbortError") return;
    if (err instanceof Problem && err.status === 401) {
      drawLogin("Your session has ended: it lasts a day, and until the server is started again.");
      return;
    }
    every = 5;
    drawFailure(now, err);
  }
  if (now !== shown) return;
  clearTimeout(now.timer); // of another that was under way
  now.timer = setTimeout(refresh, every * 1000);
}

function drawFailure(now, err) {
  const text = h("p", { class: "failure", role: "alert", key: "failure" }, err.message);
  const before = main.querySelector(".failure");
  if (before) before.replaceWith(text);
  else if (now.last) main.prepend(text);
  else main.replaceChildren(h("h1", null, now.view.title(now.at)), text);
}

// draw shows what a turn has read, unless a later one was faster.
async function draw(now, turn) {
  const read = await now.view.read({ ...now.at, signal: now.control.signal, state: now.state });
  if (now !== shown || turn < now.drawn) return;
  now.drawn = turn;
  const minute = now.view.clock ? Math.floor(Date.now() / 1000 / (now.view.clock === true ? 1 : now.view.clock)) : 0;
  const text = JSON.stringify([read, minute, now.state]);
  const failed = main.querySelector(".failure");
  if (text === now.last && !failed) return;
  const first = now.last === "";
  now.last = text;
  const content = now.view.draw(read, { ...now.at, state: now.state });
  const fresh = h("main", { id: "main", tabindex: "-1" }, h("h1", null, now.view.heading?.(now.at, read) ?? now.view.title(now.at)),
    content);
  if (first) main.replaceChildren(...fresh.childNodes);
  else show(main, fresh);
}

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
addEventListener("hashchange", (event) => {
  if (linkIn(location.hash)) start(new URL(event.oldURL).hash);
  else if (session.role) go();
});
addEventListener("storage", (event) => { if (event.key === kept && event.newValue && !session.role) start(); });

// start logs in with the secret of a link, if the address has one, and takes it away from the
// address and from the history: a place that was shown takes its place.
async function start(before = "") {
  const secret = linkIn(location.hash);
  if (secret) history.replaceState(null, "", location.pathname + (linkIn(before) ? "#/" : before || "#/"));
  try {
    await begin({ linkSecret: secret });
  } catch (err) {
    if (secret && await begin().then(() => true, () => false)) {
      await go(); // the link was used, by this browser
      return;
    }
    drawLogin(secret ? err.message : err.status === 401 ? "" : err.message);
    return;
  }
  await go();
}

start();
