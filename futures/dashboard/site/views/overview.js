// What the cluster does, what it did in the last hours, and what is wrong with it.
import { h, section, table, tile, link } from "../dom.js";
import { get, orNull } from "../api.js";
import { duration, number, percent, ago, name } from "../format.js";
import { bars } from "../chart.js";
import { functionLink, futureTable, queueLink } from "./parts.js";

export const overview = {
  title: () => "Overview",
  every: 3,
  async read({ signal }) {
    const [cluster, workers, hour, day, pauses, lanes, jobs, failed] = await Promise.all([
      get(["cluster"], {}, signal), get(["workers"], {}, signal),
      orNull(get(["activity"], { last: "1h", by: "minute" }, signal)),
      orNull(get(["activity"], { last: "24h", by: "hour" }, signal)),
      get(["pauses"], {}, signal), get(["lanes"], {}, signal), get(["jobs"], {}, signal),
      get(["futures"], { state: "failed", limit: 5 }, signal),
    ]);
    return { cluster, workers: workers.workers ?? [], hour, day, pauses: pauses.pauses ?? [], kinds: lanes.kinds ?? [],
      logs: jobs.logs ?? jobs.queues ?? [], failed: failed.futures ?? [] };
  },
  draw(now) {
    const states = byState(now.cluster.counts);
    const alive = now.workers.filter((w) => w.alive);
    const slots = sum(alive, (w) => w.capacity?.slots), free = sum(alive, (w) => w.free?.slots);
    const hour = now.hour?.totals ?? total(now.hour?.points);
    return [
      section("What is wrong", wrong(now, states, alive, free)),
      h("ul", { class: "tiles", key: "tiles" },
        tile("waiting", number(states.ready), ["futures"], { state: "ready" }),
        tile("running", number(states.claimed), ["futures"], { state: "claimed" }),
        tile("later", number(states.delayed), ["futures"], { state: "delayed" }),
        tile("blocked", number(states.blocked), ["futures"], { state: "blocked" }),
        now.hour && tile("done in the last hour", number(hour.succeeded)),
        now.hour && tile("failed in the last hour", number(hour.failed), ["futures"], { state: "failed" }, hour.failed ? "bad" : ""),
        tile("workers", number(alive.length), ["workers"]),
        tile("slots free", `${number(free)} of ${number(slots)}`, ["workers"])),
      now.hour && h("div", { class: "charts", key: "charts" },
        bars("The last hour, by minute", now.hour.points ?? [], ended),
        now.day && bars("The last day, by hour", now.day.points ?? [], ended)),
      section("Queues", queues(now)),
      now.hour && section("Functions in the last hour", activeFunctions(now.hour.functions ?? [])),
      section("Failed lately", futureTable(now.failed, "No future has failed.")),
    ];
  },
};

const ended = [["succeeded", "done"], ["failed_attempts", "failed attempts"]];
const sum = (all, of) => all.reduce((n, one) => n + (of(one) ?? 0), 0);
const total = (points = []) => ({ succeeded: sum(points, (p) => p.succeeded), failed: sum(points, (p) => p.failed) });

// byState adds up counts by state.
export function byState(counts = []) {
  const states = { ready: 0, claimed: 0, delayed: 0, blocked: 0, realized: 0, failed: 0 };
  for (const c of counts) states[c.state] += c.futures;
  return states;
}

// byQueue adds up counts by queue.
export function byQueue(counts = []) {
  const queues = new Map();
  for (const c of counts) {
    if (!queues.has(c.queue)) queues.set(c.queue, { queue: c.queue, counts: [] });
    queues.get(c.queue).counts.push(c);
  }
  return [...queues.values()].map((q) => ({ queue: q.queue, ...byState(q.counts) }));
}

function queues(now) {
  return table([
    ["Queue", (q) => queueLink(q.queue)],
    ["Waiting", (q) => number(q.ready), "number"], ["Running", (q) => number(q.claimed), "number"],
    ["Later", (q) => number(q.delayed), "number"], ["Blocked", (q) => number(q.blocked), "number"],
    ["Done", (q) => number(q.realized), "number"], ["Failed", (q) => number(q.failed), "number"],
  ], byQueue(now.cluster.counts).sort((a, b) => b.ready + b.claimed - a.ready - a.claimed).slice(0, 10),
  { key: (q) => q.queue, empty: "There are no futures.", caption: "Queues" });
}

// activeFunctions shows what functions did, those that fail first.
export function activeFunctions(functions) {
  return table([
    ["Function", (f) => functionLink(f.function)], ["Queue", (f) => queueLink(f.queue)],
    ["Done", (f) => number(f.succeeded), "number"],
    ["Failed attempts", (f) => f.failed_attempts ? h("span", { class: "bad" }, `${number(f.failed_attempts)} (${
      percent(f.failed_attempts, f.succeeded + f.failed_attempts)})`) : "0", "number"],
    ["Failed for good", (f) => f.failed ? link(["futures"], number(f.failed), { state: "failed", function: f.function }) : "0", "number"],
    ["Runs, p50", (f) => duration(f.run_p50_ms), "number"], ["p99", (f) => duration(f.run_p99_ms), "number"],
    ["Waits, p50", (f) => duration(f.wait_p50_ms), "number"], ["p99", (f) => duration(f.wait_p99_ms), "number"],
  ], [...functions].sort((a, b) => b.failed_attempts - a.failed_attempts || b.succeeded - a.succeeded),
  { key: (f) => f.function + " " + f.queue, empty: "No function has run.", caption: "Functions" });
}

// wrong lists what an operator should look at, each with a link.
function wrong(now, states, alive, free) {
  const all = [];
  const add = (kind, text, path, query) => all.push([kind, text, path, query]);
  const dead = now.workers.filter((w) => !w.alive);
  if (!alive.length && states.ready) add("bad", `${number(states.ready)} futures wait, and there is no worker`, ["workers"]);
  else if (states.ready && free > 0 && !states.claimed) {
    add("warn", `${number(states.ready)} futures wait while ${number(free)} slots are free: see why`, ["futures"], { state: "ready" });
  }
  if (dead.length) add("bad", `${number(dead.length)} workers died; their futures are being taken back`, ["workers"]);
  for (const w of alive.filter((one) => one.draining)) add("warn", `Worker ${w.name || w.id} stops, and takes no more futures`, ["workers"]);
  for (const p of now.pauses) {
    add("warn", `The ${p.what} ${name(p.name)} was paused ${ago(p.at)}${p.reason ? ": " + p.reason : ""}`,
      [p.what === "queue" ? "queues" : "functions"]);
  }
  for (const k of now.kinds.filter((one) => one.paused)) add("warn", `Lanes of ${k.name} are paused`, ["lanes", k.name]);
  for (const f of now.hour?.functions ?? []) {
    const ran = f.succeeded + f.failed_attempts;
    if (f.failed_attempts && f.failed_attempts * 10 >= ran) {
      add("bad", `${name(f.function)} in the queue ${f.queue} fails: ${number(f.failed_attempts)} of ${number(ran)} attempts in the last hour`,
        ["futures"], { state: "failed", function: f.function, queue: f.queue });
    }
  }
  for (const log of now.logs) {
    for (const c of log.consumers ?? []) {
      if (c.failing) add("bad", `Consumer ${c.name} of the job log ${log.queue} is held by job ${c.failing}: ${c.error ?? ""}`, ["jobs", log.queue]);
      else if (c.parked) add("warn", `Consumer ${c.name} of the job log ${log.queue} has parked ${number(c.parked)} jobs`, ["jobs", log.queue]);
    }
  }
  if (!all.length) return h("p", { class: "fine" }, "Nothing.");
  return h("ul", { class: "wrong" }, all.slice(0, 20).map(([kind, text, path, query]) =>
    h("li", { class: kind, key: text.replace(/\d+/g, "#") }, link(path, text, query))));
}

