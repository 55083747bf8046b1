// One future: what it is, what happened to it, what it takes and gives, and what it waits for.
import { h, section, facts, table, link, to, button } from "../dom.js";
import { get, post, put, remove, orNull } from "../api.js";
import { bytes, duration, name, short, time, number } from "../format.js";
import { load, view } from "../value.js";
import { graph } from "../chart.js";
import { act } from "../app.js";
import { badge, copyable, doButton, functionLink, futureLink, may, progress, question, queueLink, when } from "./parts.js";

const over = (f) => f.state === "realized" || f.state === "failed";
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
    const [why, edges, args, result] = await Promise.all([
      over(f) ? null : orNull(get([...at, "explanation"], {}, signal)),
      connected(f) ? orNull(get([...at, "graph"], { dependants: true, limit: 60, depth: 6, fan: 12 }, signal)) : null,
      state.args ?? load([...at, "arguments"], f.args_bytes).catch((err) => ({ failed: err.message })),
      f.state === "realized" ? state.result ?? load([...at, "result"], f.result?.size).catch((err) => ({ failed: err.message })) : null,
    ]);
    if (!args.failed) state.args = args;
    if (result && !result.failed) state.result = result;
    return { f, why, edges, args, result };
  },
  draw({ f, why, edges, args, result }) {
    const at = ["futures", f.id];
    const shown = (value, size, part) => (value.failed ? h("p", { class: "bad" }, value.failed)
      : view(value, size, [...at, part], `${f.id}.${part}`));
    return [
      actions(f),
      why && h("p", { class: "why", key: "why" }, why.text),
      f.progress && f.state === "claimed" && h("p", { class: "why", key: "progress" }, progress(f.progress), " ",
        f.progress.total ? h("progress", { max: f.progress.total, value: f.progress.done, "aria-label": "Progress" }) : ""),
      f.failure && failure(f.failure),
      section("Timeline", timeline(f)),
      edges && section("Graph", graph(edges.nodes ?? [], f.id, (n) => [name(n.function) || "gone",
        `${n.state ?? "gone"} ${short(n.id)}`, () => { location.hash = to(["futures", n.id]); }]),
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

function actions(f) {
  const at = ["futures", f.id];
  return may("submit", h("p", { class: "buttons", key: "actions" },
    (f.state === "failed" || f.state === "delayed") && doButton(f.state === "failed" ? "Retry" : "Run now",
      () => post(["futures", f.id + ":retry"]), "It runs again as soon as a worker takes it.", { kind: "primary" }),
    !over(f) && button("Cancel …", async () => {
      const reason = await question("Cancel this future?", "Cancel it", { field: "Reason (stored with it)" });
      if (reason === null) return;
      await act(() => post(["futures", f.id + ":cancel"], { reason }), (came) =>
        ({ cancelled: "It was cancelled.", requested: "Its worker was asked to stop it.", over: "It was over." })[came.outcome]);
    }),
    f.pins?.includes("page") ? doButton("Unpin", () => remove([...at, "pins", "page"]), "It may be removed after its retention.")
      : doButton("Pin", () => put([...at, "pins", "page"]), "It is kept until it is unpinned."),
    over(f) && may("admin", doButton("Delete …", async () => { await remove(at); history.back(); }, "It was deleted.",
      { ask: "Delete this future and its result? That can't be undone." }))));
}

function failure(e) {
  return section(e.final ? "Why it failed" : "Why the last attempt failed",
    h("p", { class: "bad" }, h("b", null, e.kind), e.exit_code ? ` (exit code ${e.exit_code})` : "", ": ", e.message),
    output("Standard output", e.stdout), output("Standard error", e.stderr));
}

function output(title, data) {
  if (!data) return null;
  return h("details", { open: true }, h("summary", null, title), h("pre", { class: "value" },
    data.encoding === "text" ? data.data : `base64: ${data.data}`));
}

function timeline(f) {
  const steps = [[f.submitted_at, "submitted", f.schedule && ["by the schedule ", link(["schedules", f.schedule], f.schedule)]]];
  for (const a of f.attempts ?? []) {
    const took = a.started_at ? new Date(a.ended_at) - new Date(a.started_at) : 0;
    const ran = took ? `after ${duration(took)}` : "";
    steps.push([a.ended_at, `attempt ${a.attempt} ${a.kind ? "failed" : "ended"} ${ran}`,
      [a.kind && h("b", null, a.kind, ": "), a.message, " ", workerLink(a.worker)]]);
  }
  if (f.result && !f.attempts?.some((a) => !a.kind)) {
    steps.push([f.result.at, `attempt ${f.result.attempt} ended after ${duration(f.result.run_time_ms)}`, workerLink(f.result.worker)]);
  }
  if (f.cancel) steps.push([f.cancel.at, "asked to stop", f.cancel.reason]);
  if (f.state === "claimed") steps.push([null, `attempt ${f.attempt} is with a worker`, workerLink(f.worker)]);
  if (f.due_at) steps.push([f.due_at, "due", null]);
  if (f.expires_at) steps.push([f.expires_at, "ends if it still waits", null]);
  if (f.deadline) steps.push([f.deadline, "must be over", null]);
  return h("ol", { class: "timeline" }, steps.map(([at, what, more], i) => h("li", { key: i },
    h("span", { class: "at" }, at ? time(at) : "now"), h("span", null, what), more && h("span", { class: "more" }, more))));
}

const workerLink = (id) => id && h("span", null, "on ", link(["workers"], short(id), { worker: id }, { title: id }));

function about(f) {
  const r = f.requirements ?? {};
  return facts([
    ["Function", functionLink(f.function)], ["Queue", queueLink(f.queue)], ["Label", f.label],
    ["Tags", f.tags?.map((t) => [link(["futures"], t, { tag: t }), " "])], ["Priority", f.priority || ""],
    ["Batch", f.owner && link(["batches", f.owner], short(f.owner))],
    ["Lane", f.lane && link(["lanes", f.lane.kind, f.lane.key], `${f.lane.kind}/${f.lane.key}`)],
    ["In line", f.in_line && "its lane has not admitted it yet"],
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
    ["State", (n) => (n.state ? badge(n.state) : "gone")], ["Function", (n) => name(n.function)],
    ["Ran", (n) => duration(n.run_time_ms || null), "number"],
    ["Inputs", (n) => (n.inputs ?? []).map((i) => [futureLink(i), " "])],
  ], all, { key: (n) => n.id, caption: "Futures of the graph" });
}
