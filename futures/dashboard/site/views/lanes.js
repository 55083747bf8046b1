// Kinds of lanes, the lanes of a kind, and one lane with its line.
import { h, section, table, facts, link } from "../dom.js";
import { get, post, put } from "../api.js";
import { duration, number } from "../format.js";
import { actorOfLane } from "./actors.js";
import { doButton, futureLink, may, pager, when } from "./parts.js";

const rate = (k) => (k.rate ? `${k.rate} in ${duration(k.every_ms)}` : "");

function pauseKind(k) {
  return may("admin", k.paused ? doButton("Resume", () => post(["lanes", k.name + ":resume"]), "The lanes were resumed.")
    : doButton("Pause …", () => post(["lanes", k.name + ":pause"]), "The lanes are paused.",
      { ask: `Keep all lanes of ${k.name} from admitting futures?` }));
}

export const lanes = {
  title: () => "Lanes",
  every: 5,
  read: ({ signal }) => get(["lanes"], {}, signal),
  draw: ({ kinds }) => section("Kinds", table([
    ["Kind", (k) => link(["lanes", k.name], k.name)], ["Width", (k) => number(k.width), "number"],
    ["Over all lanes", (k) => (k.total ? number(k.total) : ""), "number"], ["Rate", rate],
    ["Runs together", (k) => k.bundle && `up to ${k.most} by ${k.bundle}`], ["Paused", (k) => (k.paused ? "yes" : "")],
    ["", pauseKind],
  ], kinds ?? [], { key: (k) => k.name, empty: "None: futura lane set makes one.", caption: "Kinds of lanes" })),
};

export const kind = {
  title: ({ path }) => `Lanes of ${path[1]}`,
  every: 3,
  clock: 5,
  async read({ path, query, signal }) {
    const [k, list] = await Promise.all([get(["lanes", path[1]], {}, signal),
      get(["lanes", path[1], "keys"], { after: query.after, limit: 100 }, signal)]);
    return { k, list: list.lanes ?? [] };
  },
  draw: ({ k, list }, { path, query }) => [
    h("p", { class: "buttons", key: "actions" }, pauseKind(k)),
    facts([["Width", number(k.width)], ["Over all lanes", k.total], ["Rate", rate(k)], ["Paused", k.paused && "yes"],
      ["Runs together", k.bundle && `up to ${k.most} by ${k.bundle}, after ${duration(k.linger_ms)}`]]),
    section("Lanes in use", table([
      ["Key", (l) => link(["lanes", l.kind, l.key], l.key)], ["Admitted", (l) => number(l.open), "number"],
      ["In line", (l) => (l.lined ? "yes" : "")], ["Held", held], ["", pauseLane],
    ], list, { key: (l) => l.key, empty: "No future uses one.", caption: "Lanes" }),
    pager(path, query, list.length === 100 && list.at(-1).key, "after")),
  ],
};

export const held = (l) => [l.paused && "paused ", l.in_turn && "waits for its turn ", l.held_until && ["by its rate, until ", when(l.held_until)]];

function pauseLane(l) {
  const set = (paused) => () => put(["lanes", l.kind, "keys", l.key], { paused });
  return may("admin", l.paused ? doButton("Resume", set(false), "The lane was resumed.")
    : doButton("Pause", set(true), "The lane is paused."));
}

export const lane = {
  title: ({ path }) => `Lane ${path[1]}/${path[2]}`,
  every: 3,
  clock: 5,
  read: ({ path, signal }) => get(["lanes", path[1], "keys", path[2]], {}, signal),
  draw: (l) => [
    h("p", { class: "buttons", key: "actions" }, pauseLane(l)),
    facts([["Kind", link(["lanes", l.kind], l.kind)], ["Actor", actorOfLane(l)], ["Admitted", number(l.open)],
      ["Futures", link(["futures"], "All of this lane", { lane: `${l.kind}/${l.key}` })], ["Held", held(l).some(Boolean) && held(l)]]),
    section("In line", table([["Future", futureLink]], l.line ?? [], { key: (id) => id, empty: "No future waits.", caption: "Line" }),
      l.more && h("p", { class: "hint" }, "There are others behind those.")),
  ],
};
