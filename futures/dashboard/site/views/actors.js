// Actors: their types, the actors of a type, and one with its state and its mailbox.
import { h, section, table, facts, link } from "../dom.js";
import { get, open, orNull } from "../api.js";
import { bytes, number } from "../format.js";
import { parse, tree } from "../value.js";
import { badge, copyable, functionLink, futureLink, pager, queueLink, shell, when } from "./parts.js";
import { held } from "./lanes.js";

const prefix = "actor."; // of the kinds of lanes that are mailboxes
const shownBusy = 20; // so many mailboxes are read for a list

export const actorLink = (type, key) => link(["actors", type, key], `${type}/${key}`);

// actorOfLane leads to the actor whose mailbox a lane is.
export const actorOfLane = (l) => l?.kind.startsWith(prefix) && actorLink(l.kind.slice(prefix.length), l.key);

const waiting = (a) => `${number(a.waiting)}${a.more_waiting ? " or more" : ""}${a.max_waiting ? ` of ${number(a.max_waiting)}` : ""}`;

const bound = (k) => (k ? (k.max_waiting ? `up to ${number(k.max_waiting)} calls wait` : "no bound") : "");

export const actors = {
  title: () => "Actors",
  every: 10,
  // A type may have calls and no actor yet: then its kind of lanes tells of it.
  async read({ signal }) {
    const [{ types }, { kinds }] = await Promise.all([get(["actors"], {}, signal), get(["lanes"], {}, signal)]);
    const of = new Map(types.map((type) => [type, null]));
    for (const k of kinds ?? []) if (k.name.startsWith(prefix)) of.set(k.name.slice(prefix.length), k);
    return [...of].sort();
  },
  draw: (types) => section("Types", table([
    ["Type", ([type]) => link(["actors", type], type)], ["Mailbox", ([, k]) => bound(k)],
    ["Calls at a time", ([, k]) => k && number(k.width), "number"], ["Paused", ([, k]) => k?.paused && "yes"],
  ], types, { key: ([type]) => type, empty: "None: a call makes one.", caption: "Types of actors" })),
};

export const actorType = {
  title: ({ path }) => `Actors of ${path[1]}`,
  every: 5,
  clock: 5,
  async read({ path: [, type], query, signal }) {
    const kind = ["lanes", prefix + type];
    const [list, k, lanes] = await Promise.all([get(["actors", type], { after: query.after, limit: 100 }, signal),
      orNull(get(kind, {}, signal)), orNull(get([...kind, "keys"], { limit: 1000 }, signal))]);
    const busy = (lanes?.lanes ?? []).filter((l) => l.open || l.lined);
    const boxes = await Promise.all(busy.slice(0, shownBusy).map(async (l) => {
      const { waiting, more_waiting, max_waiting, running } = await get(["actors", type, l.key], {}, signal).catch(() => ({}));
      return { ...l, waiting, more_waiting, max_waiting, running };
    }));
    return { list, k, boxes, others: busy.length - boxes.length };
  },
  draw: ({ list, k, boxes, others }, { path, query }) => [
    facts([["Mailbox", bound(k)], ["Calls at a time", k && number(k.width)], ["Paused", k?.paused && "yes"],
      ["Lanes", k && link(["lanes", k.name], k.name)]]),
    section("With calls", table([
      ["Key", (l) => link([...path, l.key], l.key), "wide"],
      ["Wait", (l) => (l.lined ? (l.waiting === undefined ? "yes" : waiting(l)) : ""), "number"],
      ["Runs", (l) => (l.running ? futureLink(l.running) : l.open ? `${number(l.open)} admitted` : "")], ["Held", held],
    ], boxes, { key: (l) => l.key, empty: "No call waits or runs.", caption: "Mailboxes" }),
    others > 0 && h("p", { class: "hint" }, `${number(others)} others have calls: `, link(["lanes", prefix + path[1]], "all lanes of the type"))),
    section("All", table([
      ["Key", (a) => link([...path, a.key], a.key), "wide"], ["Version", (a) => !a.problem && number(a.version), "number"],
      ["Schema", (a) => a.schema, "number"], ["Size", (a) => !a.problem && bytes(a.size), "number"],
      ["Changed", (a) => !a.problem && when(a.changed_at)], ["By", (a) => !a.problem && futureLink(a.call)],
      ["", (a) => a.problem && h("span", { class: "bad" }, a.problem), "wide"],
    ], list.actors ?? [], { key: (a) => a.key, empty: "No actor of this type has a state.", caption: "Actors" }),
    pager(path, query, list.next, "after")),
    section("The same as a command", copyable(`futura actor list ${shell(path[1])}`)),
  ],
};

// stateOf reads an actor, with all digits of the numbers in its state.
async function stateOf(path) {
  const text = await open(path, { read: (answer) => answer.text() });
  return Object.assign(parse(text), { toJSON: () => text });
}

export const actor = {
  title: ({ path }) => `Actor ${path[1]}/${path[2]}`,
  every: 3,
  clock: 5,
  async read({ path: [, type, key], query, signal }) {
    const [a, l] = await Promise.all([orNull(stateOf(["actors", type, key])),
      orNull(get(["lanes", prefix + type, "keys", key], {}, signal))]);
    const ids = [...new Set([a?.running, ...(l?.line ?? [])].filter(Boolean))];
    // The first in line knows most of what it waits for.
    const first = l?.line?.[0] ?? a?.running;
    const [why, ...calls] = await Promise.all([first ? orNull(get(["futures", first, "explanation"], {}, signal)) : null,
      ...ids.slice(0, shownBusy).map((id) => orNull(get(["futures", id], {}, signal)))]);
    const parts = a?.parts ? await get(["actors", type, key, "parts"], { after: query.after, limit: 100 }, signal) : null;
    return { a, l, ids, why, calls, parts };
  },
  draw({ a, l, ids, why, calls, parts }, { path, query }) {
    const [, type, key] = path;
    const lane = `${prefix}${type}/${key}`, of = new Map(calls.filter(Boolean).map((f) => [f.id, f]));
    return [
      why && h("p", { class: "why", key: "why" }, l?.line?.length ? "The first call in line: " : "The call that runs: ", why.text),
      section("State", a ? a.bytes ? h("pre", { class: "value" }, `base64: ${a.bytes.data}`) : h("div", { class: "value" }, tree(a.state))
        : h("p", { class: "empty" }, "It has none: a call that leaves a state makes the actor.")),
      parts && section("Parts", table([["Name", (p) => p.name, "wide"], ["Size", (p) => !p.problem && bytes(p.size), "number"],
        ["Schema", (p) => p.schema, "number"], ["", (p) => p.problem && h("span", { class: "bad" }, p.problem), "wide"],
      ], parts.parts, { key: (p) => p.name, empty: "It has none now.", caption: "Named parts" }),
      pager(path, query, parts.next, "after")),
      section("Mailbox", table([
        ["Call", futureLink], ["Function", (id) => functionLink(of.get(id)?.function)], ["State", (id) => of.has(id) && badge(of.get(id).state)],
        ["Queue", (id) => queueLink(of.get(id)?.queue)], ["Submitted", (id) => when(of.get(id)?.submitted_at)],
      ], ids, { key: (id) => id, empty: l?.open ? `${number(l.open)} admitted, and no call waits.` : "No call waits or runs.", caption: "Mailbox" }),
      l?.more && h("p", { class: "hint" }, "There are others behind those.")),
      facts([["Wait", a && waiting(a)], ["Admitted", l && number(l.open)], ["Held", l && held(l).some(Boolean) && held(l)],
        ["Lane", l && link(["lanes", l.kind, l.key], lane)], ["Calls", link(["futures"], "all that are kept", { lane })]]),
      a && section("About it", facts([["Type", link(["actors", type], type)], ["Version", number(a.version)], ["Schema", a.schema],
        ["Size", bytes(a.size)], ["Created", when(a.created_at)], ["Changed", [when(a.changed_at), " by ", futureLink(a.call)]]])),
      section("The same as a command", copyable(`futura actor show ${shell(`${type}/${key}`)}`)),
    ];
  },
};
