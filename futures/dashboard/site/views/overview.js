// What the cluster does, what it did in the last hours, and what is wrong with it.
import { h, section, table, tile, link } from "../dom.js";
import { get, orNull } from "../api.js";
import { duration, number, percent } from "../format.js";
import { bars } from "../chart.js";
import { functionLink, futureTable, other, queueLink, when } from "./parts.js";

export const overview = {
  title: () => "Overview",
  every: 3,
  clock: 5,
  async read({ signal }) {
    const [now, hour, day] = await Promise.all([get(["overview"], {}, signal),
      orNull(get(["activity"], { last: "1h", by: "minute" }, signal)),
      orNull(get(["activity"], { last: "24h", by: "hour" }, signal))]);
    return { now, hour, day };
  },
  draw({ now, hour, day }) {
    const all = now.total;
    const did = hour && total(hour.points);
    return [
      section("What is wrong", wrong(now.wrong)),
      h("ul", { class: "tiles", key: "tiles" },
        tile(all.oldest_ready_at ? ["waiting; the oldest came ", when(all.oldest_ready_at)] : "waiting", number(all.ready),
          ["futures"], { state: "ready" }),
        tile("running", number(all.claimed), ["futures"], { state: "claimed" }),
        tile("later", number(all.delayed), ["futures"], { state: "delayed" }),
        tile("blocked", number(all.blocked), ["futures"], { state: "blocked" }),
        did && tile("done in the last hour", number(did.succeeded)),
        did && tile("failed in the last hour", number(did.failed), ["futures"], { state: "failed" }, did.failed ? "bad" : ""),
        tile("workers", number(now.workers_alive), ["workers"]),
        tile("slots free", `${number(now.free_slots)} of ${number(now.slots)}`, ["workers"])),
      hour && h("div", { class: "charts", key: "charts" },
        bars("The last hour, by minute", hour.points ?? [], ended),
        day && bars("The last day, by hour", day.points ?? [], ended)),
      section("Queues", queues(now.queues ?? [])),
      section("Functions in the last hour", activeFunctions(now.functions ?? [])),
      section("Failed lately", futureTable(now.failed ?? [], "No future has failed.")),
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

function queues(all) {
  return table([
    ["Queue", (q) => queueLink(q.queue)],
    ["Waiting", (q) => number(q.ready), "number"], ["The oldest", (q) => when(q.oldest_ready_at)],
    ["Running", (q) => number(q.claimed), "number"],
    ["Later", (q) => number(q.delayed), "number"], ["Blocked", (q) => number(q.blocked), "number"],
    ["Done", (q) => number(q.realized), "number"], ["Failed", (q) => number(q.failed), "number"],
  ], all.slice(0, 10), { key: (q) => q.queue, empty: "There are no futures.", caption: "Queues" });
}

// activeFunctions shows what functions did, those that fail first.
export function activeFunctions(functions) {
  return table([
    ["Function", (f) => functionLink(f.function)], ["Queue", (f) => queueLink(f.queue)],
    ["Done", (f) => number(f.succeeded), "number"],
    ["Failed attempts", (f) => f.failed_attempts ? h("span", { class: "bad" }, `${number(f.failed_attempts)} (${
      percent(f.failed_attempts, f.succeeded + f.failed_attempts)})`) : "0", "number"],
    ["Failed for good", (f) => f.failed && f.function !== other ? link(["futures"], number(f.failed), { state: "failed", function: f.function }) : number(f.failed), "number"],
    ["Runs, p50", (f) => duration(f.run_p50_ms), "number"], ["p99", (f) => duration(f.run_p99_ms), "number"],
    ["Waits, p50", (f) => duration(f.wait_p50_ms), "number"], ["p99", (f) => duration(f.wait_p99_ms), "number"],
  ], [...functions].sort((a, b) => b.failed_attempts - a.failed_attempts || b.succeeded - a.succeeded),
  { key: (f) => f.function + " " + f.queue, empty: "No function has run.", caption: "Functions" });
}

// wrong lists what an operator should look at. Each leads to the view of the API's path that shows more.
function wrong(all = []) {
  if (!all.length) return h("p", { class: "fine" }, "Nothing.");
  return h("ul", { class: "wrong" }, all.map((one) => {
    const [path, query] = one.see.replace("/api/v1/", "").split("?");
    return h("li", { class: one.severity, key: one.text.replace(/\d+/g, "#") },
      link(path.split("/").map(decodeURIComponent), one.text, Object.fromEntries(new URLSearchParams(query))));
  }));
}
