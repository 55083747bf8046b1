// Futures by a filter, the newest first, and what can be done with all that it finds.
import { h, link, section, table } from "../dom.js";
import { get } from "../api.js";
import { bytes, name, number } from "../format.js";
import { bulk } from "./bulk.js";
import { copyable, futureTable, pager, shell, when } from "./parts.js";

const states = ["blocked", "ready", "delayed", "claimed", "realized", "failed"];
const fields = [["queue", "Queue"], ["function", "Function"], ["tag", "Tag"], ["error", "Error"], ["label", "Label"], ["lane", "Lane"],
  ["worker", "Worker"], ["batch", "Batch"], ["since", "Since"], ["until", "Until"]];
const groups = ["tag", "lane", "function", "queue", "state", "worker", "batch"];

// The filter of an address. A time is one of this browser's, the API's have a zone.
function filterOf(query) {
  const filter = {};
  for (const name of ["state", "queue", "function", "tag", "error", "label", "lane", "worker", "batch"]) {
    if (query[name]) filter[name] = query[name];
  }
  for (const name of ["since", "until"]) {
    const at = new Date(query[name] ?? "");
    if (query[name] && !Number.isNaN(at.valueOf())) filter[name] = at.toISOString();
  }
  return filter;
}

export const list = {
  title: () => "Futures",
  every: 4,
  clock: 10,
  read: ({ query, signal }) => get(["futures"], { ...filterOf(query), items: query.items, cursor: query.cursor, limit: 50 }, signal),
  draw(found, { query }) {
    return [
      form(query), countLinks(query),
      section("Found", futureTable(found.futures ?? [], "No future is like this."),
        found.items_left_out > 0 && h("p", { class: "hint" }, `${number(found.items_left_out)} items of batches are left out.`),
        pager(["futures"], query, found.cursor)),
      bulk(filterOf(query)),
      section("The same as a command", copyable(command(query))),
    ];
  },
};

const countLinks = (query, by) => h("p", { class: "choose", key: "choose" }, "Count them by ", groups.map((name) =>
  [link(["count", name], name, { ...query, cursor: "" }, { "aria-current": name === by ? "true" : null }), " "]));

// count tells how many of the futures of a filter have what in common.
export const count = {
  title: ({ path }) => `Futures by ${path[1]}`,
  every: 30,
  clock: 10,
  read: ({ path, query, signal }) => get(["futures:count"], { ...filterOf(query), by: path[1] }, signal),
  draw: (found, { path, query }) => [
    h("p", { key: "of" }, link(["futures"], "The futures themselves", query), found.complete ? `: all ${number(found.futures)}` :
      `: the newest ${number(found.futures)} were counted, there are more`),
    countLinks(query, path[1]),
    section("Groups", table([
      [path[1], (g) => groupLink(path[1], g.value, query)], ["Futures", (g) => number(g.futures), "number"], ["Arguments and results", (g) => bytes(g.bytes), "number"],
      ["The oldest", (g) => when(g.oldest)], ["The newest", (g) => when(g.newest)],
    ], found.groups ?? [], { key: (g) => g.value, empty: "No future is like this.", caption: `Futures by ${path[1]}` }),
    found.others > 0 && h("p", { class: "hint" }, `${number(found.others)} are in groups that are not shown.`)),
    section("The same as a command", copyable(`${command(query)} --count-by ${path[1]}`)),
  ],
};

function groupLink(by, value, query) {
  if (!value) return "none";
  return by === "batch" ? link(["batches", value], value) : link(["futures"], name(value), { ...query, [by]: value });
}

function command(query) {
  const filter = filterOf(query);
  return ["futura list", ...Object.entries(filter).map(([name, value]) => `--${name} ${shell(value)}`)].join(" ");
}

function form(query) {
  const ask = (event) => {
    event.preventDefault();
    const asked = [...new FormData(event.currentTarget)].filter(([, value]) => value);
    location.hash = "#/futures" + (asked.length ? "?" + new URLSearchParams(asked) : "");
  };
  return h("form", { class: "filter", key: "filter", onsubmit: ask, role: "search" },
    h("label", null, "State", h("select", { name: "state", onchange: (e) => e.currentTarget.form.requestSubmit() },
      h("option", { value: "" }, "any"), states.map((s) => h("option", { value: s, selected: query.state === s }, s)))),
    fields.map(([name, text]) => h("label", { key: name }, text, h("input", {
      name, value: query[name] ?? "", type: text === "Since" || text === "Until" ? "datetime-local" : "search", spellcheck: "false",
    }))),
    h("button", { type: "submit" }, "Filter"));
}
