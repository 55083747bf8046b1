// What can be done with all that a filter finds, after it was counted and shown.
import { h, button, link, section } from "../dom.js";
import { post } from "../api.js";
import { cut, number, short } from "../format.js";
import { say } from "../app.js";
import { forkLabel } from "./forks.js";
import { may, question } from "./parts.js";
import { stepValues } from "./values.js";

export function bulk(filter) {
  if (filter.batch) return may("submit", h("p", { class: "hint", key: "bulk" }, "Items of a batch are changed with it: ",
    link(["batches", filter.batch], "the batch"), "."));
  if (!Object.keys(filter).length) return may("submit", h("p", { class: "hint", key: "bulk" }, "With a filter, all that it finds can be changed at once."));
  const open = !filter.state || !["realized", "failed"].includes(filter.state);
  const over = !filter.state || ["realized", "failed"].includes(filter.state);
  const failed = !filter.state || filter.state === "failed";
  return may("submit", section("All that the filter finds", h("p", { class: "buttons" },
    failed && button("Retry all …", () => change("retry", "Retry", filter)),
    over && button("Fork all …", () => forkAll(filter)),
    open && button("Cancel all …", () => change("cancel", "Cancel", filter)),
    over && may("admin", button("Delete all …", () => change("delete", "Delete", filter))))));
}

// sweep sends a change page after page until none is left, as many as the limit were found, or it is stopped. It adds up what the
// answers say.
async function sweep(action, filter, { more, body, limit = 0 }, told, stopped) {
  const sum = { matched: 0, first: [], refusals: [] };
  for (let cursor = ""; ;) {
    const came = await post(["futures:" + action], body, { ...filter, ...more, cursor, limit: limit ? limit - sum.matched : "" });
    for (const [name, value] of Object.entries(came)) {
      if (typeof value === "number") sum[name] = (sum[name] ?? 0) + value;
      else if (Array.isArray(value)) sum[name] = [...sum[name], ...value].slice(0, 10);
    }
    if (stopped()) return sum;
    told(sum);
    cursor = came.cursor;
    if (!cursor || (limit && sum.matched >= limit)) return sum;
  }
}

const inWords = (filter) => Object.entries(filter).map(([name, value]) => `${name} ${value}`).join(", ");

async function change(action, verb, filter) {
  let stop = false;
  const news = h("p", { role: "status" }, "Counting …");
  const count = sweep(action, filter, { more: { preview: true } }, (sum) => {
    news.textContent = `${number(sum.matched)} futures so far …`;
  }, () => stop).then((sum) => {
    news.textContent = `${number(sum.matched)} futures` +
      (sum.of_batches ? `; ${number(sum.of_batches)} items of batches are left alone` : "") + ".";
  }, (err) => { news.textContent = err.message; });
  const yes = await question(`${verb} all futures with ${inWords(filter)}?`, `${verb} them`, { content: news });
  stop = true;
  await count;
  if (!yes) return;
  stop = false;
  const stopping = button("Stop", () => { stop = true; });
  try {
    const sum = await sweep(action, filter, {}, (so) => say(`${verb}: ${number(so.changed)} so far …`, false, stopping), () => stop);
    say(`${verb}: ${number(sum.changed)} of ${number(sum.matched)} futures were changed${stop ? ", then it was stopped" : ""}.`);
  } catch (err) {
    say(`${err.message} What was changed before stays so.`, true);
  }
}

// forkTold says what became of many, or in a preview would.
function forkTold(sum, preview) {
  const parts = [`${number(sum.forked)} futures ${preview ? "would be" : "were"} forked`, sum.existed && `${number(sum.existed)} were before, under this name`,
    sum.refused && `${number(sum.refused)} can't be`];
  const left = [[sum.of_batches, "items of batches"], [sum.cancelled, "cancelled futures"], [sum.of_name, "forks of this name"]]
    .filter(([n]) => n).map(([n, text]) => `${number(n)} ${text}`);
  return parts.filter(Boolean).join("; ") + (left.length ? `. Left alone: ${left.join(", ")}.` : ".");
}

const example = (one) => h("li", { key: one.source }, h("span", { class: "id", title: one.source }, short(one.source)), " ",
  one.reason ? h("span", { class: "bad" }, cut(one.reason, 200)) : `${one.from}, with ${number(one.copied_steps)} kept`);

// forkAll asks from where, under which name and how many, shows what that would make, and makes it.
async function forkAll(filter) {
  let asked = 0; // a preview ends where another one begins
  const news = h("div", { role: "status" }), name = forkLabel({ required: true, onchange: preview });
  const from = h("input", { name: "from", value: "failed", maxlength: 210, spellcheck: "false", list: "points", onchange: preview });
  const limit = h("input", { name: "limit", type: "number", min: 1, max: 1e9, placeholder: "all", onchange: preview });
  const values = stepValues([], preview);
  const value = (label) => label.querySelector("input").value;
  const how = (more) => ({ more, limit: Number(limit.value), body: values.body({ from: from.value, ...(value(name) && { name: value(name) }) }) });
  async function preview() {
    const mine = ++asked, asks = how({ preview: true });
    news.replaceChildren(asks.body ? "Counting …" : "A value of a step is wrong.");
    if (!asks.body) return;
    try {
      const sum = await sweep("fork", filter, asks, (so) => news.replaceChildren(forkTold(so, true)), () => mine !== asked);
      if (mine === asked) news.append(h("ul", { class: "plain", tabindex: 0, "aria-label": "Examples" }, [...sum.first, ...sum.refusals].map(example)));
    } catch (err) { if (mine === asked) news.replaceChildren(h("span", { class: "bad" }, err.message)); }
  }
  preview();
  const yes = await question(`Fork all futures with ${inWords({ state: "failed", ...filter })}, on today's code?`, "Fork them", { content: [
    h("label", null, "From: failed, start, or the name of a step ", from), h("datalist", { id: "points" }, ["failed", "start"].map((v) => h("option", { value: v }))),
    h("label", null, "At most ", limit), values.node, news, name] });
  asked++;
  if (!yes) return;
  let stop = false;
  const stopping = button("Stop", () => { stop = true; });
  const all = link(["futures"], "The forks", { label: value(name) });
  try {
    const sum = await sweep("fork", filter, how({}), (so) => say(`Fork: ${number(so.forked)} so far …`, false, stopping), () => stop);
    say(`${stop ? "It was stopped. " : ""}${forkTold(sum)} ${sum.refusals.map((r) => cut(r.reason, 200)).slice(0, 1).join()}`, false, " ", all);
  } catch (err) {
    say(`${err.message} What was made before stays, and the same name goes on with the rest.`, true, " ", all);
  }
}
