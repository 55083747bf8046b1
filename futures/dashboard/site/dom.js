// Elements are made from data here, and nowhere else. A text becomes a text node, never
// markup, and a link leads into this page alone.

const svgTags = new Set(["svg", "g", "path", "rect", "line", "text", "title", "polyline"]);

// h makes an element. Properties that begin with "on" are listeners, and null, undefined and
// false leave a property or a child out.
export function h(tag, properties, ...children) {
  const node = svgTags.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  node.heard = {};
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) listen(node, name.slice(2), value);
    else if (name === "key") node.key = String(value);
    else if (name === "value") { node.setAttribute("value", value); node.value = value; }
    else node.setAttribute(name, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// listen has one listener for each kind of event of an element: what it calls may change.
function listen(node, kind, call) {
  node.heard[kind] = call;
  node.addEventListener(kind, (event) => node.heard[kind]?.(event));
}

// show makes a node the same as a fresh one, and keeps what has not changed: focus,
// selection, scroll positions, and what a person has opened or typed. Children with keys are
// matched by them, each once: several may have the same key.
export function show(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value && !(name === "open" && old.nodeName === "DETAILS")) old.setAttribute(name, value);
  }
  for (const kind of Object.keys(fresh.heard ?? {})) {
    if (old.heard?.[kind]) old.heard[kind] = fresh.heard[kind];
    else { old.heard ??= {}; listen(old, kind, fresh.heard[kind]); }
  }
  old.key = fresh.key;
  showChildren(old, [...fresh.childNodes]);
}

function showChildren(old, fresh) {
  const keyed = new Map([...old.childNodes].filter((n) => n.key).map((n) => [n.key, n]));
  let next = old.firstChild;
  for (const child of fresh) {
    const same = child.key ? keyed.get(child.key) : next;
    keyed.delete(child.key);
    if (same && same.nodeName === child.nodeName && (same.key ?? "") === (child.key ?? "")) {
      if (same === next) next = next.nextSibling;
      else old.insertBefore(same, next);
      show(same, child);
    } else {
      old.insertBefore(child, next);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

// to is the address of a view: a path, and what it asks for.
export function to(path, query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== "" && v !== undefined && v !== null));
  const text = path.map(encodeURIComponent).join("/");
  return "#/" + text + (asked.size ? "?" + asked : "");
}

// link leads to a view.
export function link(path, text, query, properties) {
  return h("a", { href: to(path, query), ...properties }, text);
}

// button is something that a person may do, once at a time: a second click does nothing until the first is done.
export function button(text, onclick, properties) {
  return h("button", { type: "button", ...properties, onclick: async (event) => {
    const node = event.currentTarget;
    if (node.busy) return;
    node.busy = true;
    try { await onclick(event); } finally { node.busy = false; }
  } }, text);
}

// table shows rows. A column has a title, a cell for a row, and a class.
export function table(columns, rows, { key, empty = "There are none.", caption } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption ?? "Table" }, h("table", null,
    caption && h("caption", null, caption),
    h("thead", null, h("tr", null, columns.map(([title, , kind]) => h("th", { scope: "col", class: kind }, title)))),
    h("tbody", null, rows.map((row, i) => h("tr", { key: key ? key(row) : i },
      columns.map(([, cell, kind]) => h("td", { class: kind }, cell(row))))))));
}

// facts is a list of names and values; those without a value are left out.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, v]) => v || v === "0")
    .map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))));
}

// section is a part of a view with a heading.
export function section(title, ...content) {
  return h("section", { key: title }, h("h2", null, title), ...content);
}

// tile is a number with its name.
export function tile(name, value, path, query, kind) {
  const inside = [h("b", null, value), h("span", null, name)];
  return h("li", { class: kind }, path ? h("a", { href: to(path, query) }, inside) : h("span", { class: "flat" }, inside));
}
