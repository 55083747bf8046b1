// What happened to a future, and what is to come, in the order of time.
import { h, link } from "../dom.js";
import { bytes, duration, number, short, time } from "../format.js";
import { futureLink } from "./parts.js";

// Of more steps, only the last ones are shown.
const shownSteps = 200;

const workerLink = (id) => id && h("span", null, "on ", link(["workers"], short(id), { worker: id }, { title: id }));

// timeline shows a future with its recorded steps.
export function timeline(f, steps) {
  const left = steps.length - shownSteps;
  const lines = [...inOrder([...past(f), ...stepLines(steps.slice(Math.max(left, 0)))]), ...future(f)];
  return [h("ol", { class: "timeline" }, lines.map(({ at, what, more, kind }, i) => h("li", { key: i, class: kind },
    h("span", { class: "at" }, at ? time(at) : "now"), h("span", null, what), more && h("span", { class: "more" }, more)))),
  left > 0 && h("p", { class: "hint" }, `${number(left)} earlier steps are left out: futura steps ${f.id} shows all.`)];
}

function past(f) {
  const lines = [{ at: f.submitted_at, what: "submitted", more: f.schedule ?
    ["by the schedule ", link(["schedules", f.schedule], f.schedule)] : f.fork && ["as a fork of ", futureLink(f.fork.source), ", ", f.fork.from] }];
  for (const a of f.attempts ?? []) {
    const took = a.started_at ? new Date(a.ended_at) - new Date(a.started_at) : 0;
    lines.push({ at: a.ended_at, attempt: a.attempt, what: `attempt ${a.attempt} ${a.kind ? "failed" : "ended"} ${took ? `after ${duration(took)}` : ""}`,
      more: [a.kind && h("b", null, a.kind, ": "), a.message, " ", workerLink(a.worker)] });
  }
  if (f.result && !f.attempts?.some((a) => !a.kind)) {
    const what = f.function === "promise" ? "resolved" : `attempt ${f.result.attempt} ended after ${duration(f.result.run_time_ms)}`;
    lines.push({ at: f.result.at, attempt: f.result.attempt, what, more: workerLink(f.result.worker) });
  }
  if (f.cancel) lines.push({ at: f.cancel.at, what: "asked to stop", more: f.cancel.reason });
  return lines;
}

// stepLines never go back in time: clocks of two workers differ, the numbers of steps do not.
function stepLines(steps) {
  let last = 0;
  return steps.map((s) => {
    const took = new Date(s.recorded_at) - new Date(s.started_at);
    const about = [{ copied: "copied from its source", set: "given a value" }[s.origin] ?? `attempt ${s.attempt}`, !s.wakes_at && bytes(s.size), !s.wakes_at && `took ${duration(Math.max(took, 0))}`,
      s.wakes_at && `until ${time(s.wakes_at)}`, s.unused && "unused: the last attempt did not ask for it"];
    last = Math.max(last, new Date(s.recorded_at));
    return { at: s.recorded_at, sorted: last, what: ["step ", h("b", null, s.name)], more: about.filter(Boolean).join(", "), kind: "step",
      attempt: s.attempt };
  });
}

const when = (line) => line.sorted ?? Number(new Date(line.at));

// inOrder merges what happened. Of the same moment, a step comes before the end of its attempt.
const inOrder = ([submitted, ...lines]) => [submitted, ...lines.sort((a, b) =>
  when(a) - when(b) || (a.attempt ?? 0) - (b.attempt ?? 0) || (b.kind === "step") - (a.kind === "step"))];

function future(f) {
  const lines = [];
  if (f.state === "claimed") lines.push({ what: `attempt ${f.attempt} is with a worker`, more: workerLink(f.worker) });
  if (f.due_at) lines.push({ at: f.due_at, what: "due" });
  if (f.expires_at) lines.push({ at: f.expires_at, what: "ends if it still waits" });
  if (f.deadline) lines.push({ at: f.deadline, what: "must be over" });
  return lines;
}
