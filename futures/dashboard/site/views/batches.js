// Batches, where this server has a head.
import { h, section, table, facts, link } from "../dom.js";
import { get, orNull, post, remove } from "../api.js";
import { bytes, cut, duration, number, short } from "../format.js";
import { badge, doButton, may, pager, when } from "./parts.js";

const called = (b) => (b.method ? `${b.function_id}/${b.method}` : b.function_id);
// output is why an item failed, and what its last attempt wrote.
const output = ({ reason, result: r = {} }) => [reason, r.stdout || r.stdout_base64 && `base64: ${r.stdout_base64}`,
  r.stderr || r.stderr_base64 && `base64: ${r.stderr_base64}`].filter(Boolean).join(" ");
const shownOutput = 160; // characters, of at most 4 bytes each
const done = (b) => (b.progress?.done ?? 0) + (b.progress?.permanently_failed ?? 0);
const bar = (b) => h("progress", { max: Math.max(1, b.items), value: done(b), "aria-label": `${done(b)} of ${b.items} items ended` });

export const batches = {
  title: () => "Batches",
  every: 4,
  clock: 10,
  // Behind a batch that was deleted there is no page, which is no sign of a server without a head.
  read({ query, signal }) {
    const asked = get(["batches"], { after: query.after, limit: 50 }, signal);
    return query.after ? asked : orNull(asked);
  },
  draw: (found, { query }) => (found ? [section("All", table([
    ["Batch", (b) => link(["batches", b.id], short(b.id), {}, { title: b.id, class: "id" })], ["State", (b) => badge(b.state)],
    ["Function", called], ["Items", (b) => number(b.items), "number"], ["Ended", (b) => [bar(b), " ", number(done(b))]],
    ["Failed", (b) => number(b.progress?.permanently_failed), "number"],
    ["Rate", (b) => (b.rate ? `${Math.round(b.rate * 10) / 10}/s` : ""), "number"], ["Created", (b) => when(b.created_at)],
  ], found.batches ?? [], { key: (b) => b.id, empty: "There are no batches.", caption: "Batches" }),
  pager(["batches"], query, found.next, "after"))] : h("p", null, "This server has no head for batches.")),
};

export const batch = {
  title: ({ path }) => `Batch ${short(path[1])}`,
  every: 2,
  clock: 5,
  async read({ path, query, signal }) {
    const at = ["batches", path[1]];
    const [b, chunks, items] = await Promise.all([get(at, {}, signal), get([...at, "chunks"], { after: query.chunk, limit: 50 }, signal),
      get([...at, "results"], { state: query.state, from: query.from, limit: 50, output: 4 * shownOutput }, signal)]);
    return { b, chunks, items: items.items ?? [], next: items.next };
  },
  draw: ({ b, chunks, items, next }, { path, query }) => [
    h("p", { class: "buttons", key: "actions" }, may("submit",
      !b.finished_at && doButton("Cancel …", () => post(["batches", b.id + ":cancel"], {}), "The batch was cancelled.", { ask: "Cancel this batch?" }),
      b.progress?.permanently_failed > 0 && doButton("Retry failed items", () => post(["batches", b.id + ":retry"]),
        (came) => `${number(came.items)} items run again.`)), b.finished_at && may("admin", doButton("Delete …", async () => {
      await remove(["batches", b.id]);
      location.hash = "#/batches";
    }, "The batch was deleted.", { ask: "Delete this batch and its results?" }))),
    facts([["State", badge(b.state)], ["Why", b.reason || b.message], ["Function", called(b)], ["Items", number(b.items)],
      ["Ended", [bar(b), " ", number(done(b))]], ["Done", number(b.progress?.done)], ["Failed for good", number(b.progress?.permanently_failed)],
      ["Running", number(b.progress?.in_progress)], ["Rate", b.rate && `${Math.round(b.rate * 10) / 10} items a second`],
      ["Time left", b.seconds_left !== undefined && duration(b.seconds_left * 1000)], ["Created", when(b.created_at)], ["Finished", when(b.finished_at)]]),
    section("Chunks", table([
      ["Chunk", (c) => short(c.id)], ["State", (c) => badge(c.state)], ["Worker", (c) => short(c.peer || c.worker)],
      ["Items", (c) => number(c.items), "number"], ["Lost", (c) => c.lost || "", "number"], ["Moved", (c) => c.moved || "", "number"],
      ["Created", (c) => when(c.created_at)],
    ], chunks.chunks ?? [], { key: (c) => c.id, empty: "No worker has been given one.", caption: "Chunks" }),
    pager(path, query, chunks.next, "chunk")),
    section("Items", h("p", { class: "choose" }, ["", "done", "permanently_failed", "failed", "in_progress", "created"].map((s) =>
      [link(path, s.replace("_", " ") || "all", { ...query, state: s, from: "" }, { "aria-current": (query.state ?? "") === s ? "true" : null }), " "])), table([
      ["Item", (i) => number(i.index), "number"], ["State", (i) => badge(i.state)], ["Arguments", (i) => cut(i.arguments?.join(" "), 80)],
      ["Worker", (i) => short(i.worker)], ["Failed attempts", (i) => i.failed_attempts || "", "number"],
      ["Output", (i) => [cut(output(i), shownOutput), i.result?.left_out > 0 && ` (${bytes(i.result.left_out)} more)`], "wide"],
    ], items, { key: (i) => i.index, empty: "There are none.", caption: "Items" }),
    pager(path, query, next, "from")),
  ],
};
