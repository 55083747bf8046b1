// Schedules: when they fire next, and what they fired.
import { h, section, table, facts, link } from "../dom.js";
import { get, post, remove } from "../api.js";
import { duration, number, time } from "../format.js";
import { doButton, functionLink, futureLink, may, pager, queueLink, when } from "./parts.js";

const times = (s) => (s.cron ? `${s.cron}${s.zone ? " " + s.zone : ""}` : `every ${duration(s.every_ms)}`);

const runNow = (s) => may("submit", doButton("Run now", () => post(["schedules", s.name + ":trigger"]), "Its future was submitted."));

function pause(s) {
  return may("admin", s.paused_at ? doButton("Resume", () => post(["schedules", s.name + ":resume"]), "The schedule was resumed.")
    : doButton("Pause", () => post(["schedules", s.name + ":pause"], {}), "The schedule is paused."));
}

export const schedules = {
  title: () => "Schedules",
  every: 5,
  clock: 5,
  read: ({ query, signal }) => get(["schedules"], { after: query.after, limit: 100 }, signal),
  draw: ({ schedules: all = [] }, { query }) => [section("All", table([
    ["Schedule", (s) => link(["schedules", s.name], s.name)], ["Times", times], ["Function", (s) => functionLink(s.function)],
    ["Next", (s) => (s.paused_at ? "paused" : when(s.next?.[0]))], ["Last", (s) => s.runs?.[0] && when(s.runs[0].fired_at)],
    ["Fired", (s) => number(s.fired), "number"],
    ["Left out", (s) => number(s.missed_times + s.skipped_times + s.refused_times), "number"],
    ["", (s) => [runNow(s), " ", pause(s)]],
  ], all, { key: (s) => s.name, empty: "None: futura schedule add makes one.", caption: "Schedules" }),
  pager(["schedules"], query, all.length === 100 && all.at(-1).name, "after"))],
};

export const schedule = {
  title: ({ path }) => `Schedule ${path[1]}`,
  every: 5,
  clock: 5,
  read: ({ path, signal }) => get(["schedules", path[1]], { times: 10 }, signal),
  draw: (s) => [
    h("p", { class: "buttons", key: "actions" }, runNow(s), " ", pause(s), " ", may("admin", doButton("Remove …", async () => {
      await remove(["schedules", s.name]);
      location.hash = "#/schedules";
    }, "The schedule was removed.", { ask: "Remove this schedule? Its futures stay." }))),
    facts([["Times", times(s)], ["Function", functionLink(s.function)], ["Queue", queueLink(s.queue)],
      ["Paused", s.paused_at && ["since ", when(s.paused_at), " ", s.paused_because]], ["From", s.from && time(s.from)],
      ["Until", s.until && time(s.until)], ["While the former one is open", s.overlap], ["Missed times", s.missed],
      ["Fired", number(s.fired)], ["Left out: no janitor looked in time", s.missed_times || ""],
      ["Left out: the former one was not over", s.skipped_times || ""], ["Left out: it could not be submitted", s.refused_times || ""]]),
    section("Next", h("ol", { class: "plain" }, (s.next ?? []).map((at) => h("li", { key: at }, time(at), " (", when(at), ")")))),
    section("Last", table([
      ["For", (r) => time(r.at)], ["Fired", (r) => when(r.fired_at)],
      ["Future", (r) => (r.id ? futureLink(r.id) : h("span", { class: "bad" }, r.error))], ["", (r) => (r.triggered ? "by hand" : "")],
    ], s.runs ?? [], { key: (r) => r.at + r.fired_at, empty: "It has not fired.", caption: "Runs" })),
  ],
};
