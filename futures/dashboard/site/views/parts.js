// What several views show alike.
import { h, link, table, button } from "../dom.js";
import { session } from "../api.js";
import { ago, cut, name, short, time } from "../format.js";
import { act } from "../app.js";

export const badge = (state) => h("span", { class: "badge " + state }, state);

export const when = (at) => at && h("time", { datetime: at, title: time(at) }, ago(at));

export const futureLink = (id) => link(["futures", id], short(id), {}, { title: id, class: "id" });

// other stands for all functions and queues that are not listed. No list has it.
export const other = "(other)";

export const functionLink = (text) => (text && text !== other ? link(["futures"], name(text), { function: text }, { title: text }) : text);

export const queueLink = (text) => (text && text !== other ? link(["futures"], text, { queue: text }) : text);

// futureTable shows futures.
export function futureTable(futures, empty) {
  return table([
    ["Future", (f) => futureLink(f.id)], ["State", (f) => badge(f.state)], ["Function", (f) => functionLink(f.function)],
    ["Queue", (f) => queueLink(f.queue)], ["Submitted", (f) => when(f.submitted_at)],
    ["Attempts", (f) => (f.attempt > 1 || f.failed_attempts ? `${f.attempt} of ${f.max_retries + 1}` : ""), "number"],
    ["What happened", told, "wide"],
  ], futures, { key: (f) => f.id, empty, caption: "Futures" });
}

function told(f) {
  if (f.failure && f.state !== "realized") return `${f.failure.kind}: ${cut(f.failure.message, 160)}`;
  if (f.progress && f.state === "claimed") return cut(progress(f.progress), 160);
  if (f.due_at) return h("span", null, "due ", when(f.due_at));
  return f.label ? cut(f.label) : "";
}

export const progress = (p) => [p.total ? `${p.done} of ${p.total}` : p.done || "", p.text].filter(Boolean).join(" ");

// may is what a role may do: others don't see it.
export const may = (role, ...content) => (session.may(role) ? content : null);

// doButton does something, after a question if it can't be taken back.
export function doButton(text, what, done, { ask, kind } = {}) {
  return button(text, async () => {
    if (ask && !(await question(ask, text))) return;
    await act(what, done);
  }, { class: kind });
}

// question asks whether to go on. It resolves to what was entered, true without a field.
export function question(text, go, { field, content } = {}) {
  return new Promise((resolve) => {
    const input = field && h("input", { id: "answer", maxlength: 256 });
    const dialog = h("dialog", { onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes" ? (input ? input.value : true) : null); } },
      h("form", { method: "dialog" }, h("p", null, text), content,
        field && [h("label", { for: "answer" }, field), input],
        h("menu", null, button("Back", () => dialog.close("no")), h("button", { value: "yes", class: "primary" }, go))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// copyable is a command that can be copied.
export function copyable(text) {
  return h("div", { class: "copy" }, h("code", null, text), button("Copy", async (event) => {
    const from = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      from.textContent = "Copied";
    } catch { // a browser gives a page of plain HTTP no clipboard
      getSelection().selectAllChildren(from.previousSibling);
      from.textContent = "Selected: copy it with the keyboard";
    }
  }));
}

// pager leads to the next page of a list.
export const pager = (path, query, cursor, name = "cursor") => h("p", { class: "pager" },
  query[name] && link(path, "First page", { ...query, [name]: "" }), " ",
  cursor && link(path, "Next page", { ...query, [name]: cursor }));

export const shell = (text) => (/^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
