// Logs of ordered jobs, with their consumers.
import { h, section, table, facts, link } from "../dom.js";
import { get, post, orNull } from "../api.js";
import { cut, number, text } from "../format.js";
import { doButton, may, pager, shell, when } from "./parts.js";

const behind = (c) => (c.behind === undefined ? "" : number(c.behind));

const unread = () => h("span", { class: "bad" }, "can't be read");

// readJobs reads a page of a log: none if the first job of it can't be read.
const readJobs = (queue, from, signal) => get(["jobs", queue, "log"], { from, limit: 50 }, signal).catch((err) => {
  if (err.code === "bad_record" || err.code === "newer_record") return { unreadable: err.message };
  throw err;
});

export const jobs = {
  title: () => "Ordered jobs",
  every: 4,
  read: ({ query, signal }) => get(["jobs"], { after: query.after, limit: 100 }, signal),
  draw: ({ logs = [] }, { query }) => [section("Logs", table([
    ["Log", (l) => link(["jobs", l.queue], l.queue)], ["Jobs", (l) => number(Math.max(0, l.last - l.first + 1)), "number"],
    ["Consumers", (l) => (l.consumers ?? []).map((c) => h("div", null, `${c.name}: `, c.unreadable ? unread() : `${behind(c)} behind`,
      c.parked ? `, ${number(c.parked)} parked` : "", c.failing ? h("span", { class: "bad" }, `, held by job ${c.failing}`) : ""))],
  ], logs, { key: (l) => l.queue, empty: "None: futura jobs append makes one.", caption: "Logs" }),
  pager(["jobs"], query, logs.length === 100 && logs.at(-1).queue, "after"))],
};

export const joblog = {
  title: ({ path }) => `Jobs of ${path[1]}`,
  every: 4,
  clock: 5,
  async read({ path, query, signal }) {
    const log = await get(["jobs", path[1]], {}, signal);
    const from = Math.max(log.first, Number(query.from) || log.last - 49);
    const [{ jobs: list = [], unreadable }, ...parked] = await Promise.all([readJobs(path[1], from, signal),
      ...(log.consumers ?? []).map((c) => (c.parked ? orNull(get(["jobs", path[1], "consumers", c.name, "parked"], { limit: 50 }, signal)) : null))]);
    // A page ends with its limit, with 1 MiB, or before a job that can't be read.
    const next = (list.at(-1)?.index ?? from - 1) + (unreadable ? 2 : 1);
    return { log, from, list, unreadable, next, parked };
  },
  draw: ({ log, from, list, unreadable, next, parked }, { path }) => [
    facts([["First job", log.last ? number(log.first) : ""], ["Last job", number(log.last)]]),
    section("Consumers", table([
      ["Consumer", (c) => c.name], ["Done up to", (c) => (c.unreadable ? unread() : number(c.processed)), "number"], ["Behind", behind, "number"],
      ["Parked", (c) => number(c.parked), "number"], ["Progress stored", (c) => !c.unreadable && when(c.at)], ["Process", (c) => c.process],
      ["Held by", (c) => (c.failing ? h("span", { class: "bad" }, `job ${c.failing}, ${c.attempts} attempts: ${cut(c.error)}`) : "")],
    ], log.consumers ?? [], { key: (c) => c.name, empty: "None has consumed.", caption: "Consumers" })),
    (log.consumers ?? []).map((c, i) => parked[i]?.jobs?.length > 0 && section(`Parked by ${c.name}`, table([
      ["Job", (j) => number(j.index), "number"], ["Parked", (j) => when(j.at)], ["Attempts", (j) => number(j.attempts), "number"],
      ["Error", (j) => cut(j.error, 200)], ["Value", (j) => cut(text(j.value), 200)],
      ["", (j) => [may("submit", j.retrying ? "is tried again" : doButton("Retry", settle(path[1], c.name, "retry", j.index), "The job is tried again.")), " ",
        may("admin", doButton("Drop …", settle(path[1], c.name, "drop", j.index), "The job was dropped.", { ask: "Drop this job? It will not be done." }))]],
    ], parked[i].jobs, { key: (j) => j.index, caption: "Parked jobs" }),
    c.parked > parked[i].jobs.length && h("p", { class: "hint" }, "The first ones are shown: ",
      h("code", null, `futura jobs parked ${shell(path[1])} ${shell(c.name)}`), " shows all."))),
    section("Jobs", table([
      ["Job", (j) => number(j.index), "number"], ["Appended", (j) => when(j.at)], ["Value", (j) => cut(text(j.value), 300), "wide"],
    ], list, { key: (j) => j.index, empty: "There are none.", caption: "Jobs" }),
    h("p", { class: "pager" }, from > log.first && link(path, "Older", { from: Math.max(log.first, from - 50) }), " ",
      next <= log.last && link(path, "Newer", { from: next })),
    unreadable && h("p", { class: "bad" }, `Job ${number(next - 1)} can't be read: ${unreadable}`)),
  ],
};

const settle = (queue, consumer, action, index) => () =>
  post(["jobs", queue, "consumers", consumer, "parked:" + action], { indexes: [index] });
