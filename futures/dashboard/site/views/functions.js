// Functions with their success and their times, and queues.
import { h, section, table, link, button } from "../dom.js";
import { get, orNull, put, remove } from "../api.js";
import { bytes, duration, name, number } from "../format.js";
import { act } from "../app.js";
import { activeFunctions, byQueue } from "./overview.js";
import { functionLink, may, doButton, other, question, queueLink, when } from "./parts.js";

const spans = [["1h", "hour"], ["24h", "day"], ["7d", "week"]];

// choose offers the time that figures are of.
const choose = (path, last) => h("p", { class: "choose", key: "choose" }, "In the last ", spans.map(([value, text]) =>
  [link(path, text, { last: value }, { "aria-current": value === last ? "true" : null }), " "]));

const activity = (query, signal) => orNull(get(["activity"],
  { last: query.last || "1h", by: query.last && query.last !== "1h" ? "hour" : "minute" }, signal));

// pauseButtons pause a queue or a function, or let workers take its futures again.
function pauseButtons(what, of, paused) {
  const at = ["pauses", what, of];
  if (paused) {
    return may("admin", doButton("Resume", () => remove(at), `The ${what} was resumed.`));
  }
  return may("admin", button("Pause …", async () => {
    const reason = await question(`Keep workers from taking futures of ${name(of)}?`, "Pause it", { field: "Reason" });
    if (reason !== null) await act(() => put(at, { reason }), `The ${what} is paused.`);
  }));
}

const pausesOf = async (what, signal) => ((await get(["pauses"], {}, signal)).pauses ?? []).filter((p) => p.what === what);

export const functions = {
  title: () => "Functions",
  every: 5,
  async read({ query, signal }) {
    const [did, stored, workers, paused] = await Promise.all([activity(query, signal), get(["functions"], {}, signal),
      get(["workers"], {}, signal), pausesOf("function", signal)]);
    const offered = new Map();
    for (const w of (workers.workers ?? []).filter((one) => one.alive)) {
      for (const f of w.functions ?? []) offered.set(f, (offered.get(f) ?? 0) + 1);
    }
    return { did, stored: stored.functions ?? [], offered: [...offered].sort(), paused };
  },
  draw({ did, stored, offered, paused }, { query }) {
    const isPaused = (f) => paused.find((p) => p.name === f);
    return [
      did && [choose(["functions"], query.last || "1h"), section("What ran", activeFunctions(did.functions ?? []))],
      section("What workers offer", table([
        ["Function", ([f]) => functionLink(f)], ["Workers", ([, n]) => number(n), "number"],
        ["Paused", ([f]) => isPaused(f) && ["since ", when(isPaused(f).at), " ", isPaused(f).reason]],
        ["", ([f]) => f !== "wasm:*" && pauseButtons("function", f, isPaused(f))],
      ], offered, { key: ([f]) => f, empty: "There is no worker.", caption: "Functions of workers" })),
      section("Stored WASM modules", table([
        ["Aliases", (f) => f.aliases?.map((a) => [functionLink("wasm:" + a), " "])], ["Function", (f) => functionLink(f.function)],
        ["Size", (f) => bytes(f.size), "number"], ["Stored", (f) => when(f.stored_at)],
        ["Paused", (f) => isPaused(f.function) && ["since ", when(isPaused(f.function).at)]],
        ["", (f) => pauseButtons("function", f.function, isPaused(f.function))],
      ], stored, { key: (f) => f.cid, empty: "None: futura function put stores one.", caption: "Stored modules" })),
    ];
  },
};

export const queues = {
  title: () => "Queues",
  every: 3,
  clock: 5,
  async read({ query, signal }) {
    const [cluster, did, paused, now] = await Promise.all([get(["cluster"], {}, signal), activity(query, signal),
      pausesOf("queue", signal), get(["overview"], {}, signal)]);
    return { counts: cluster.counts, did, paused, oldest: (now.queues ?? []).filter((q) => q.oldest_ready_at) };
  },
  draw({ counts, did, paused, oldest }, { query }) {
    const of = (q) => did?.queues?.find((one) => one.queue === q.queue) ?? {};
    const isPaused = (q) => paused.find((p) => p.name === q.queue);
    const all = byQueue(counts);
    for (const p of paused) {
      if (!all.some((q) => q.queue === p.name)) all.push({ queue: p.name, ready: 0, claimed: 0, delayed: 0, blocked: 0, realized: 0, failed: 0 });
    }
    return [
      did && choose(["queues"], query.last || "1h"),
      section("All", table([
        ["Queue", (q) => queueLink(q.queue)], ["Waiting", (q) => (q.ready && q.queue !== other ?
          link(["count", "tag"], number(q.ready), { queue: q.queue, state: "ready" }) : number(q.ready)), "number"],
        ["The oldest", (q) => when(oldest.find((one) => one.queue === q.queue)?.oldest_ready_at)], ["Waited, p50", (q) => duration(of(q).wait_p50_ms), "number"], ["p99", (q) => duration(of(q).wait_p99_ms), "number"],
        ["Running", (q) => number(q.claimed), "number"], ["Later", (q) => number(q.delayed), "number"],
        ["Blocked", (q) => number(q.blocked), "number"], ["Done, kept", (q) => number(q.realized), "number"],
        ["Failed, kept", (q) => (q.failed && q.queue !== other ? link(["futures"], number(q.failed), { queue: q.queue, state: "failed" })
          : number(q.failed)), "number"],
        ["Done", (q) => number(of(q).succeeded), "number"], ["Failed attempts", (q) => number(of(q).failed_attempts), "number"],
        ["Paused", (q) => isPaused(q) && ["since ", when(isPaused(q).at), " ", isPaused(q).reason]],
        ["", (q) => q.queue !== other && pauseButtons("queue", q.queue, isPaused(q))],
      ], all, { key: (q) => q.queue, empty: "There are no futures.", caption: "Queues" })),
    ];
  },
};

// pauses are all queues and functions that are paused.
export const pauses = {
  title: () => "Pauses",
  every: 4,
  clock: 5,
  read: ({ signal }) => get(["pauses"], {}, signal),
  draw: (found) => section("All", table([
    ["What", (p) => p.what], ["Name", (p) => (p.what === "queue" ? queueLink : functionLink)(p.name)], ["Since", (p) => when(p.at)],
    ["Reason", (p) => p.reason, "wide"], ["", (p) => pauseButtons(p.what, p.name, true)],
  ], found.pauses ?? [], { key: (p) => p.what + " " + p.name, empty: "No queue and no function is paused.", caption: "Pauses" })),
};
