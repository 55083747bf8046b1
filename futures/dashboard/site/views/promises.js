// Promises: those that wait, and what became of others.
import { h, link, section, table } from "../dom.js";
import { get } from "../api.js";
import { cut } from "../format.js";
import { badge, copyable, futureLink, pager, when } from "./parts.js";

const states = [["blocked", "those that wait"], ["realized", "resolved"], ["failed", "rejected or ended"], ["any", "all"]];

const asked = (query) => (states.some(([state]) => state === query.state) ? query.state : "blocked");

// ends is when a promise ends by itself: the earlier one of its two times.
export const ends = (f) => [f.expires_at, f.deadline].filter(Boolean).sort((a, b) => new Date(a) - new Date(b))[0];

export const promises = {
  title: () => "Promises",
  every: 4,
  clock: 5,
  read: ({ query, signal }) => get(["futures"], { function: "promise", state: asked(query) === "any" ? "" : asked(query),
    cursor: query.cursor, limit: 50 }, signal),
  draw: (found, { query }) => [
    h("p", { class: "choose", key: "choose" }, "Show ", states.map(([state, text]) => [link(["promises"], text, { state },
      { "aria-current": state === asked(query) ? "true" : null }), " "]),
    "· ", link(["futures"], "with more filters", { function: "promise", state: asked(query) === "any" ? "" : asked(query) })),
    section("Found", table([
      ["Promise", (f) => futureLink(f.id)], ["Label", (f) => cut(f.label), "wide"], ["State", (f) => badge(f.state)],
      ["Since", (f) => when(f.submitted_at)],
      ["Until", (f) => (f.state === "blocked" ? when(ends(f)) ?? "no end" : "")],
      ["Tags", (f) => f.tags?.map((t) => [link(["futures"], t, { tag: t, function: "promise" }), " "])],
    ], found.futures ?? [], { key: (f) => f.id, empty: "No promise is like this.", caption: "Promises" }),
    pager(["promises"], query, found.cursor)),
    section("The same as a command", copyable(asked(query) === "blocked" ? "futura promise list"
      : asked(query) === "any" ? "futura promise list --all" : `futura list --function promise --state ${asked(query)}`)),
  ],
};
