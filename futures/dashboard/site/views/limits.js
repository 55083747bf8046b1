// Limits of the cluster and what is used of them, metered use, and settings.
import { h, section, table, facts } from "../dom.js";
import { get, session } from "../api.js";
import { bytes, duration, number, percent } from "../format.js";
import { when } from "./parts.js";

export const limits = {
  title: () => "Limits and use",
  every: 10,
  async read({ signal }) {
    const [limit, days, workers, cluster, tokens] = await Promise.all([get(["limits"], {}, signal),
      get(["usage"], { by: "day" }, signal), get(["usage"], { by: "worker" }, signal), get(["cluster"], {}, signal),
      session.may("admin") && get(["tokens"], {}, signal)]);
    return { limit, days, workers, cluster: { ...cluster, counts: undefined }, tokens: tokens?.tokens };
  },
  draw({ limit, days, workers, cluster, tokens }) {
    const l = limit.limits ?? {}, u = limit.used ?? {};
    const rows = [["Futures that wait", u.pending, l.pending, number], ["Futures that run", u.running, l.running, number],
      ["Bytes that the store holds", u.bytes, l.bytes, bytes], ["Futures submitted in a second", undefined, l.per_second, number]];
    const policy = cluster.policy ?? {};
    return [
      section("Limits", table([
        ["Of", ([what]) => what], ["Used", ([, used, , show]) => (used === undefined ? "" : show(used)), "number"],
        ["Limit", ([, , most, show]) => (most ? show(most) : "none"), "number"], ["", ([, used, most]) => (most && used !== undefined ? percent(used, most) : ""), "number"],
      ], rows, { key: ([what]) => what, caption: "Limits" })),
      tokens && section("Tokens", table([
        ["Name", (t) => t.name], ["Role", (t) => t.role],
        ["Expires", (t) => (t.expired ? h("span", { class: "bad" }, "has expired ", when(t.expires)) : when(t.expires) ?? "never")],
      ], tokens, { key: (t) => t.name, empty: "This server needs none.", caption: "Tokens" })),
      section("Use by day", use(days, "day")), section("Use by worker, in the last 30 days", use(workers, "worker")),
      section("Settings", facts([["Cluster", cluster.name], ["Shards", number(cluster.shards)], ["Heartbeat", duration(cluster.heartbeat_ms)],
        ["A worker is dead after", duration(cluster.dead_after_ms)], ["Futures that are over are kept for", duration(cluster.retention_ms)],
        ["A future that no worker can run fails after", duration(cluster.infeasible_after_ms)],
        ["Default timeout", duration(policy.default_timeout_ms)], ["Longest timeout", duration(policy.max_timeout_ms)],
        ["Default memory", bytes(policy.default_memory_bytes)], ["Most memory", bytes(policy.max_memory_bytes)],
        ["Highest priority", policy.max_priority], ["Largest result", bytes(policy.max_output_bytes)]])),
    ];
  },
};

function use(found, by) {
  return table([
    [by === "day" ? "Day" : "Worker", (r) => h("span", null, r[by])], ["Done", (r) => number(r.items), "number"],
    ["Failed attempts", (r) => number(r.failed), "number"], ["Run time", (r) => duration(r.run_ms), "number"],
    ["Processor", (r) => duration(r.cpu_ms), "number"], ["In", (r) => bytes(r.bytes_in), "number"], ["Out", (r) => bytes(r.bytes_out), "number"],
    ["Most memory", (r) => (r.memory_max_bytes ? bytes(r.memory_max_bytes) : ""), "number"],
  ], [...(found.rows ?? [])].reverse(), { key: (r) => (r.kind ?? "") + r[by], empty: "Nothing was used.", caption: "Use by " + by });
}
