// Forks: of one future, with what it keeps and runs again, and those that were made.
import { h, section, table } from "../dom.js";
import { orNull, get, post } from "../api.js";
import { cut, number } from "../format.js";
import { act, say } from "../app.js";
import { badge, futureLink, question, when } from "./parts.js";
import { stepValues } from "./values.js";

export const forkLabel = (properties) => h("label", null, "Name, which is the label of the forks",
  h("input", { name: "name", maxlength: 64, spellcheck: "false", autocomplete: "off", ...properties }));

export const forksOf = (id, signal) => orNull(get(["futures", id, "forks"], { limit: 20 }, signal));

export const forksSection = ({ forks, next }, id) => forks?.length > 0 && section("Forks", table([
  ["Fork", (f) => futureLink(f.id)], ["State", (f) => badge(f.state)], ["Went on", (f) => f.from, "wide"], ["Name", (f) => f.name],
  ["Made", (f) => when(f.submitted_at)],
], forks, { key: (f) => f.id, caption: "Forks" }), next && h("p", { class: "hint" }, `There are others: futura forks ${id} shows all.`));

// told says what a fork from a point keeps of the recorded steps, and what runs again.
function told(from, steps) {
  const names = (some) => `${number(some.length)} ${some.length === 1 ? "step" : "steps"} (${cut(some.map((s) => s.name).join(", "), 300)})`;
  if (from === "start" || !steps.length) return "All of it runs again. No step is kept.";
  if (from === "failed") return `Kept: ${names(steps)}. What failed runs again, and what follows.`;
  const at = steps.findIndex((s) => "step:" + s.name === from);
  return `${at ? `Kept: ${names(steps.slice(0, at))}` : "No step is kept"}. Runs again: ${names(steps.slice(at))}, and what follows.`;
}

// fork asks from where, and makes a fork of a future that is over.
export async function fork(f, steps) {
  const failed = f.state === "failed" && f.failure?.kind !== "cancelled" && steps.length > 0;
  const points = [failed && ["failed", "what failed"], ["start", "the start"], ...steps.map((s) => ["step:" + s.name, `step ${cut(s.name, 60)}`])];
  const news = h("p", { role: "status" });
  const tell = () => { news.textContent = told(from.value, steps); };
  const from = h("select", { name: "from", onchange: tell }, points.filter(Boolean).map(([value, text]) => h("option", { value }, text)));
  const label = forkLabel(), values = stepValues(steps.map((s) => s.name));
  tell();
  if (!(await question("Make a new future of this one, on today's code? This one stays as it is.", "Fork it",
    { content: [h("label", null, "It goes on from ", from), news, values.node, label] }))) return;
  const name = label.querySelector("input").value;
  const made = await act(() => post(["futures", f.id + ":fork"], values.body({ from: from.value, ...(name && { name }) })));
  if (made) say(made.existed ? "It was forked under this name before: " : "It was forked: ", false, futureLink(made.id));
}
