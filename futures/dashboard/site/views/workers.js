// Workers of the cluster, and libp2p peers of this server's head.
import { h, section, table, facts, link } from "../dom.js";
import { get, orNull } from "../api.js";
import { bytes, cut, number, percent, short } from "../format.js";
import { functionLink, futureLink, pager, when } from "./parts.js";

const most = 200; // how many workers are drawn

const state = (w) => (w.alive ? (w.draining ? "draining" : "alive") : "dead");

export const workers = {
  title: () => "Workers",
  every: 3,
  clock: 3,
  read: ({ signal }) => get(["workers"], {}, signal),
  draw({ workers: all = [] }, { query }) {
    const found = all.filter((w) => !query.worker || w.id === query.worker || w.name?.includes(query.worker));
    const ask = (event) => {
      event.preventDefault();
      const worker = new FormData(event.currentTarget).get("worker");
      location.hash = "#/workers" + (worker ? "?" + new URLSearchParams({ worker }) : "");
    };
    return [
      h("form", { class: "filter", key: "filter", onsubmit: ask, role: "search" },
        h("label", null, "Name or id", h("input", { name: "worker", type: "search", value: query.worker ?? "" })),
        h("button", { type: "submit" }, "Find")),
      query.worker && !found.length && h("p", { class: "hint" },
        "No worker is registered with this name or id: it has left, or has died and all it held was taken back. ", had(query.worker)),
      query.worker && found.length === 1 ? one(found[0]) : section(`${number(found.length)} workers`, table([
        ["Worker", (w) => link(["workers"], w.name || short(w.id), { worker: w.id }, { title: w.id })],
        ["State", (w) => h("span", { class: "badge " + state(w) }, state(w))],
        ["Running", (w) => `${number(w.running)} of ${number(w.capacity?.slots)}`, "number"],
        ["Wait for futures", (w) => w.awaiting || "", "number"], ["Heartbeat", (w) => when(w.heartbeat_at)],
        ["Objects", (w) => (w.stored_bytes ? bytes(w.stored_bytes) : ""), "number"],
        ["Queues", (w) => cut(w.queues?.join(", "), 40)], ["Functions", (w) => cut(w.functions?.join(", "), 60)],
        ["Started", (w) => when(w.started_at)],
      ], found.slice(0, most), { key: (w) => w.id, empty: "None: futura worker starts one.", caption: "Workers" }),
      found.length > most && h("p", { class: "hint" }, `The first ${most} are shown.`)),
    ];
  },
};

// had leads to what a worker has, and to what it did before it ended.
const had = (id) => link(["futures"], "Futures that it has or had", { worker: id });

function one(w) {
  const r = (all) => all && [all.slots && `${all.slots} slots`, all.cpu_millis && `${all.cpu_millis / 1000} cores`,
    all.ram_bytes && bytes(all.ram_bytes), all.gpu_millis && `${all.gpu_millis / 1000} GPUs`].filter(Boolean).join(", ");
  return section(w.name || short(w.id), facts([
    ["Id", w.id], ["State", h("span", { class: "badge " + state(w) }, state(w))], ["Version", w.version], ["Address", w.address],
    ["Futures", had(w.id)], ["Running", number(w.running)], ["Wait for other futures", w.awaiting], ["Capacity", r(w.capacity)], ["Free", r(w.free)],
    ["Queues", w.queues?.join(", ")], ["Functions", w.functions?.map((f) => [functionLink(f), " "])],
    ["Labels", w.labels && Object.entries(w.labels).map(([k, v]) => `${k}=${v}`).join(", ")],
    ["Objects", w.stored_bytes && bytes(w.stored_bytes)], ["Room for more", w.object_room_bytes && bytes(w.object_room_bytes)],
    ["No room for objects", w.no_object_room && "it takes no futures whose results are objects"],
    ["Started", when(w.started_at)], ["Heartbeat", when(w.heartbeat_at)],
  ]));
}

export const peers = {
  title: () => "Peers",
  every: 4,
  clock: 4,
  read: ({ query, signal }) => orNull(get(["peers"], { after: query.after, limit: 100 }, signal)),
  draw: (found, { query }) => (found?.takes_peers ? section("All", table([
    ["Peer", (p) => h("span", { title: p.id }, p.name || short(p.id))], ["Dialect", (p) => p.dialect],
    ["Connected", (p) => (p.connected ? "yes" : ["no, since ", when(p.lost_at)])], ["Items", (p) => `${number(p.items)} of ${number(p.limit)}`, "number"],
    ["Slots", (p) => number(p.slots), "number"], ["Done", (p) => number(p.done), "number"], ["Failed", (p) => number(p.failed), "number"],
    ["Refused", (p) => number(p.refused), "number"], ["Disagreed", (p) => number(p.disagreed), "number"],
    ["Answers", (p) => percent(p.score, 1), "number"], ["Heard", (p) => when(p.heard_at)], ["Why", (p) => cut(p.reason)],
  ], found.peers ?? [], { key: (p) => p.id, empty: "No peer has been met.", caption: "Peers" }),
  pager(["peers"], query, found.next, "after")) : h("p", null, "This server takes no peers.")),
};

// objects are the largest results that workers hold.
export const objects = {
  title: () => "Objects",
  every: 10,
  read: ({ signal }) => get(["objects"], {}, signal),
  draw: (found) => [
    h("p", { key: "sum" }, `${number(found.copies)}${found.complete ? "" : " or more"} copies of results with ${bytes(found.bytes)} are held by `,
      link(["workers"], "workers"), "."),
    section("The largest", table([
      ["Future", (o) => futureLink(o.future)], ["Size", (o) => bytes(o.size), "number"],
      ["Held by", (o) => o.workers.map((w) => [link(["workers"], short(w), { worker: w }), " "])],
    ], found.largest ?? [], { key: (o) => o.future, empty: "No result is an object.", caption: "Objects" })),
  ],
};
