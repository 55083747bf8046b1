// Logs of ordered jobs, with their consumers.
import { h, section, table, facts, link } from "../dom.js";
import { get, post, orNull } from "../api.js";
import { cut, number } from "../format.js";
import { doButton, may, when } from "./parts.js";

const behind = (c) => (c.behind === undefined ? "" : number(c.behind));

export const jobs = {
  title: () => "Ordered jobs",
  every: 4,
  read: ({ query, signal }) => get(["jobs"], { after: query.after, limit: 100 }, signal),
  draw: ({ logs = [] }) => [section("Logs", table([
    ["Log", (l) => link(["jobs", l.queue], l.queue)], ["Jobs", (l) => number(Math.max(0, l.last - l.first + 1)), "number"],
    ["Consumers", (l) => (l.consumers ?? []).map((c) => h("div", null, `${c.name}: ${behind(c)} behind`,
      c.parked ? `, ${number(c.parked)} parked` : "", c.failing ? h("span", { class: "bad" }, `, held by job ${c.failing}`) : ""))],
  ], logs, { key: (l) => l.queue, empty: "None: futura jobs append makes one.", caption: "Logs" }),
  logs.length === 100 && link(["jobs"], "Next page", { after: logs.at(-1).queue }))],
};

export const joblog = {
  title: ({ path }) => `Jobs of ${path[1]}`,
  every: 4,
  clock: 5,
  async read({ path, query, signal }) {
    const log = await get(["jobs", path[1]], {}, signal);
    const from = query.from || Math.max(log.first, log.last - 49);
    const [page, ...parked] = await Promise.all([get(["jobs", path[1], "log"], { from, limit: 50 }, signal),
      ...(log.consumers ?? []).map((c) => (c.parked ? orNull(get(["jobs", path[1], "consumers", c.name, "parked"], { limit: 50 }, signal)) : null))]);
    return { log, from: Number(from), jobs: page.jobs ?? [], unreadable: page.unreadable, parked };
  },
  draw: ({ log, from, jobs: list, unreadable, parked }, { path }) => [
    facts([["First job", log.last ? number(log.first) : ""], ["Last job", number(log.last)]]),
    section("Consumers", table([
      ["Consumer", (c) => c.name], ["Done up to", (c) => number(c.processed), "number"], ["Behind", behind, "number"],
      ["Parked", (c) => number(c.parked), "number"], ["Progress stored", (c) => when(c.at)], ["Process", (c) => c.process],
      ["Held by", (c) => (c.failing ? h("span", { class: "bad" }, `job ${c.failing}, ${c.attempts} attempts: ${cut(c.error)}`) : "")],
    ], log.consumers ?? [], { key: (c) => c.name, empty: "None has consumed.", caption: "Consumers" })),
    (log.consumers ?? []).map((c, i) => parked[i]?.jobs?.length > 0 && section(`Parked by ${c.name}`, table([
      ["Job", (j) => number(j.index), "number"], ["Parked", (j) => when(j.at)], ["Attempts", (j) => number(j.attempts), "number"],
      ["Error", (j) => cut(j.error, 200)], ["Value", (j) => cut(j.value?.data, 200)],
      ["", (j) => [may("submit", j.retrying ? "is tried again" : doButton("Retry", settle(path[1], c.name, "retry", j.index), "The job is tried again.")), " ",
        may("admin", doButton("Drop …", settle(path[1], c.name, "drop", j.index), "The job was dropped.", { ask: "Drop this job? It will not be done." }))]],
    ], parked[i].jobs, { key: (j) => j.index, caption: "Parked jobs" }))),
    section("Jobs", table([
      ["Job", (j) => number(j.index), "number"], ["Appended", (j) => when(j.at)], ["Value", (j) => cut(j.value?.data, 300), "wide"],
    ], list, { key: (j) => j.index, empty: "There are none.", caption: "Jobs" }),
    h("p", { class: "pager" }, from > log.first && link(path, "Older", { from: Math.max(log.first, from - 50) }), " ",
      (list.length === 50 || unreadable) && link(path, "Newer", { from: list.at(-1).index + (unreadable ? 2 : 1) })),
    unreadable && h("p", { class: "bad" }, `Job ${number(list.at(-1).index + 1)} can't be read: ${unreadable}`)),
  ],
};

const settle = (queue, consumer, action, index) => () =>
  post(["jobs", queue, "consumers", consumer, "parked:" + action], { indexes: [index] });
