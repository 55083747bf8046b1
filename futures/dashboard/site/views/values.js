// Values that a fork gives to steps: pairs of a step and JSON, which are sent as they were written.
import { h, button } from "../dom.js";

// most is how many steps a fork gives values.
const most = 100;

function problemOf(text) {
  try {
    JSON.parse(text);
    return "";
  } catch (err) { return `This is not JSON: write a text in quotes, as "paid". ${err.message}`; }
}

// stepValues has fields for steps and their values. Its body adds them to what a fork is asked with, some fields, and is
// null while a value is wrong, which its own field says. Names are the steps that are proposed; changed is called after
// each change.
export function stepValues(names = [], changed = () => {}) {
  const rows = h("div", { role: "group", "aria-label": "Values of steps" });
  let added = 0;
  const all = () => [...rows.children].map((row) => ({ row, step: row.querySelector("input"), json: row.querySelector("textarea") }));
  const filled = () => all().filter(({ step, json }) => step.value || json.value.trim());
  function mark(field, told, text) {
    field.setCustomValidity(text);
    field.setAttribute("aria-invalid", text !== "");
    if (text) told.textContent = text;
  }
  function check() {
    const seen = new Set();
    for (const { row, step, json } of all()) {
      const told = row.querySelector("p"), used = step.value || json.value.trim();
      told.textContent = "";
      mark(json, told, used && problemOf(json.value));
      mark(step, told, used && !step.value ? "Name the step that has this value." : seen.has(step.value) ? "This step has two values." : "");
      if (used) seen.add(step.value);
    }
    changed();
  }
  function add() {
    const id = `value-${++added}`, row = h("div", { class: "given", key: id },
      h("label", null, "Step ", h("input", { name: "step", maxlength: 194, spellcheck: "false", autocomplete: "off", list: "steps", "aria-describedby": id, onchange: check })),
      h("label", null, "Value, as JSON ", h("textarea", { name: "value", rows: 2, spellcheck: "false", autocomplete: "off", "aria-describedby": id, onchange: check })),
      h("p", { class: "bad", id, role: "status" }), button("Leave it out", () => { row.remove(); another.disabled = false; another.focus(); check(); }));
    rows.append(row);
    another.disabled = rows.children.length >= most;
    row.querySelector("input").focus();
  }
  const another = button("Give a step a value", add);
  return {
    node: h("div", null, h("datalist", { id: "steps" }, names.map((value) => h("option", { value }))), rows, another),
    body(rest) {
      const some = filled();
      if (some.some(({ step, json }) => !step.checkValidity() || !json.checkValidity())) return null;
      const set = some.map(({ step, json }) => `${JSON.stringify(step.value)}:${json.value}`);
      return set.length ? { json: `${JSON.stringify(rest).slice(0, -1)},"set":{${set}}}` } : rest;
    },
  };
}
