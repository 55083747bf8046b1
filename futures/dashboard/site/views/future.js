// One future: what it is, what happened to it, what it takes and gives, and what it waits for.
import { h, section, facts, table, link, to, button } from "../dom.js";
import { get, post, put, remove, orNull } from "../api.js";
import { bytes, duration, name, short, text, time, number } from "../format.js";
import { load, view } from "../value.js";
import { graph } from "../chart.js";
import { act } from "../app.js";
import { actorOfLane } from "./actors.js";
import { fork, forksOf, forksSection } from "./forks.js";
import { ends } from "./promises.js";
import { timeline } from "./timeline.js";
import { badge, copyable, doButton, functionLink, futureLink, may, progress, question, queueLink, when } from "./parts.js";

const over = (f) => f.state === "realized" || f.state === "failed";
const missing = (n) => (n.unreadable ? "unreadable" : "gone");
const connected = (f) => f.input_count || f.dependants?.length || f.waits_for?.length;

export const future = {
  title: ({ path }) => `Future ${short(path[1])}`,
  heading: ({ path }, { f }) => [badge(f.state), " ", h("span", { class: "id" }, path[1])],
  every: 2,
  clock: 5,
  // Arguments and results do not change: they are read once.
  async read({ path, signal, state }) {
    const at = ["futures", path[1]];
    const f = await get(at, {}, signal);
    const [why, edges, args, result, steps, forks] = await Promise.all([
      over(f) ? null : orNull(get([...at, "explanation"], {}, signal)),
      connected(f) ? orNull(get([...at, "graph"], { dependants: true, limit: 60, depth: 6, fan: 12 }, signal)) : null,
      state.args ?? load([...at, "arguments"], f.args_bytes).catch((err) => ({ failed: err.message })),
      f.state === "realized" ? state.result ?? load([...at, "result"], f.result?.size).catch((err) => ({ failed: err.message })) : null,
      stepsOf(f, state, signal), over(f) ? forksOf(f.id, signal) : null,
    ]);
    if (!args.failed) state.args = args;
    if (result && !result.failed) state.result = result;
    return { f, why, edges, args, result, steps, forks };
  },
  draw({ f, why, edges, args, result, steps, forks }) {
    const at = ["futures", f.id];
    const shown = (value, size, part) => (value.failed ? h("p", { class: "bad" }, value.failed)
      : view(value, size, [...at, part], `${f.id}.${part}`));
    return [
      actions(f, steps),
      why && h("p", { class: "why", key: "why" }, why.text),
      f.progress && f.state === "claimed" && h("p", { class: "why", key: "progress" }, progress(f.progress), " ",
        f.progress.total ? h("progress", { max: f.progress.total, value: f.progress.done, "aria-label": "Progress" }) : ""),
      f.failure && failure(f.failure),
      waits(f),
      section("Timeline", timeline(f, steps)),
      forks && forksSection(forks, f.id),
      edges && section("Graph", graph(edges.nodes ?? [], f.id, (n) => [name(n.function) || missing(n),
        `${n.state ?? missing(n)} ${short(n.id)}`, () => { location.hash = to(["futures", n.id]); }]),
      h("details", null, h("summary", null, "As a table"), nodes(edges.nodes ?? [])),
      edges.truncated && h("p", { class: "hint" }, "More futures were left out: futura graph shows more.")),
      section("Arguments", shown(args, f.args_bytes, "arguments"),
        f.argv?.length > 0 && facts([["Command line", f.argv.join(" ")]]),
        f.env && facts(Object.entries(f.env))),
      result && section("Result", shown(result, f.result?.size ?? 0, "result"), output("Standard error", f.result?.stderr)),
      section("About it", about(f)),
      section("The same as a command", copyable(`futura get ${f.id}`),
        copyable(`curl -H "Authorization: Bearer $TOKEN" ${new URL("../", location.href.split("#")[0])}api/v1/futures/${f.id}`)),
    ];
  },
};

// stepsOf reads the recorded steps of a future: once if it is over, and many of them only now and then.
async function stepsOf(f, state, signal) {
  if (f.function === "promise") return [];
  const many = 500, seldom = 30_000;
  const kept = state.steps;
  if (kept && (over(f) ? kept.of === f.state + f.attempt : kept.all.length > many && Date.now() - kept.at < seldom)) return kept.all;
  const all = (await orNull(get(["futures", f.id, "steps"], {}, signal)))?.steps ?? [];
  state.steps = { all, at: all.length > many ? Date.now() : 0, of: f.state + f.attempt };
  return all;
}

// leave goes back, or to the list from a tab that was opened with a future.
const leave = () => (history.length > 1 ? history.back() : location.assign("#/futures"));

function actions(f, steps) {
  const at = ["futures", f.id];
  return may("submit", h("p", { class: "buttons", key: "actions" },
    (f.state === "failed" || f.state === "delayed") && doButton(f.state === "failed" ? "Retry" : "Run now",
      () => post(["futures", f.id + ":retry"]), f.function === "promise" ? "It waits again, by the same link." : "It runs again as soon as a worker takes it.", { kind: "primary" }),
    over(f) && f.function !== "promise" && !f.owner && button("Fork …", () => fork(f, steps)),
    !over(f) && button("Cancel …", async () => {
      const reason = await question("Cancel this future?", "Cancel it", { field: "Reason (stored with it)" });
      if (reason === null) return;
      await act(() => post(["futures", f.id + ":cancel"], { reason }), (came) =>
        ({ cancelled: "It was cancelled.", requested: "Its worker was asked to stop it.", over: "It was over." })[came.outcome]);
    }),
    f.pins?.includes("page") ? doButton("Unpin", () => remove([...at, "pins", "page"]), "It may be removed after its retention.")
      : doButton("Pin", () => put([...at, "pins", "page"]), "It is kept until it is unpinned."),
    over(f) && may("admin", doButton("Delete …", async () => { await remove(at); leave(); }, "It was deleted.",
      { ask: "Delete this future and its result? That can't be undone." }))));
}

function failure(e) {
  return section(e.final ? "Why it failed" : "Why the last attempt failed",
    h("p", { class: "bad" }, h("b", null, e.kind), e.exit_code ? ` (exit code ${e.exit_code})` : "", ": ", e.message),
    output("Standard output", e.stdout), output("Standard error", e.stderr));
}

function output(title, data) {
  if (!data) return null;
  return h("details", { open: true }, h("summary", null, title), h("pre", { class: "value" }, text(data)));
}

// waits says of a promise since when it waits, until when, and for whom. Its token is not known here.
function waits(f) {
  if (f.function !== "promise" || over(f)) return null;
  const until = ends(f);
  return section("It waits for an answer", facts([
    ["Since", when(f.submitted_at)], ["Until", until ? [time(until), " (", when(until), ")"] : "it is answered: it has no end"],
    ["Who may answer", "whoever has its link, without any other right; and who may change futures"],
  ]), h("p", { class: "hint" }, "The link is shown once, to the one that makes the promise. ",
    link(["promises"], "All promises that wait")));
}

function about(f) {
  const r = f.requirements ?? {};
  return facts([
    ["Function", functionLink(f.function)], ["Queue", queueLink(f.queue)], ["Label", f.label],
    ["Tags", f.tags?.map((t) => [link(["futures"], t, { tag: t }), " "])], ["Priority", f.priority || ""],
    ["Batch", f.owner && link(["batches", f.owner], short(f.owner))],
    ["Lane", f.lane && link(["lanes", f.lane.kind, f.lane.key], `${f.lane.kind}/${f.lane.key}`)],
    ["Actor", actorOfLane(f.lane)], ["In line", f.in_line && "its lane has not admitted it yet"],
    ["Attempts", `${f.attempt || 0} of ${f.max_retries + 1}`], ["Failed attempts", f.failed_attempts || ""],
    ["Workers that died with it", f.deaths ? `${f.deaths}, of which it may have caused ${f.crashes}` : ""],
    ["Given back by workers", f.rejected || ""], ["Put off by itself", f.snoozes || ""],
    ["Timeout", duration(f.timeout_ms || null)], ["Processor", r.cpu_millis && `${r.cpu_millis / 1000} cores`],
    ["Memory", r.ram_bytes && bytes(r.ram_bytes)], ["GPU", r.gpu_millis && `${r.gpu_millis / 1000}`],
    ["Needs labels", r.labels && Object.entries(r.labels).map(([k, v]) => `${k}=${v}`).join(", ")],
    ["Unique key", f.unique?.key], ["Pinned by", f.pins?.join(", ")],
    ["Result held by", f.held_by?.map((w) => [link(["workers"], short(w), { worker: w }), " "])],
    ["Waits for", f.waits_for?.map((i) => [futureLink(i), " "])], ["Trace", f.trace?.traceparent],
    ["Submitted", when(f.submitted_at)],
  ]);
}

function nodes(all) {
  return table([
    ["Distance", (n) => (n.level ? number(n.level) : "itself"), "number"], ["Future", (n) => futureLink(n.id)],
    ["State", (n) => (n.state ? badge(n.state) : missing(n))], ["Function", (n) => name(n.function)],
    ["Ran", (n) => duration(n.run_time_ms || null), "number"],
    ["Inputs", (n) => (n.inputs ?? []).map((i) => [futureLink(i), " "])],
  ], all, { key: (n) => n.id, caption: "Futures of the graph" });
}
