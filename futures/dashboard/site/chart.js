// Charts: bars over time, with a table of the same numbers for those who can't see them.
import { h } from "./dom.js";
import { number, time } from "./format.js";

const width = 600, height = 120, left = 44, bottom = 18;

// bars shows points [{at, …}] as stacked bars of series [[key, name], …].
export function bars(title, points, series) {
  const total = (p) => series.reduce((sum, [key]) => sum + (p[key] ?? 0), 0);
  const most = Math.max(1, ...points.map(total));
  const step = (width - left) / Math.max(1, points.length), scale = (height - bottom - 6) / most;
  const drawn = points.map((p, i) => {
    let y = height - bottom;
    const told = `${time(p.at)}: ${series.map(([key, name]) => `${number(p[key])} ${name}`).join(", ")}`;
    return h("g", { key: p.at }, h("title", null, told), h("rect", {
      x: left + i * step, y: 0, width: step, height: height - bottom, class: "hover",
    }), series.map(([key], n) => {
      const tall = (p[key] ?? 0) * scale;
      y -= tall;
      return h("rect", { x: left + i * step + step * 0.1, y, width: step * 0.8, height: tall, class: "series" + n });
    }));
  });
  const label = (x, y, text, anchor) => h("text", { x, y, "text-anchor": anchor }, text);
  return h("figure", { key: title }, h("figcaption", null, title, h("span", { class: "legend" },
    series.map(([, name], n) => h("span", { key: name }, h("i", { class: "series" + n, "aria-hidden": "true" }), name)))),
  h("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${summary(points, series)}` },
    h("line", { x1: left, x2: width, y1: height - bottom, y2: height - bottom }),
    label(left - 6, 12, number(most), "end"), label(left - 6, height - bottom, "0", "end"),
    points.length > 0 && [label(left, height - 4, clock(points, points[0]), "start"),
      label(width, height - 4, clock(points, points.at(-1)), "end")],
    drawn));
}

// clock shows the time of a point, with its day where the points are of more than one.
function clock(points, point) {
  const at = time(point.at), days = new Date(points.at(-1).at) - new Date(points[0].at) > 12 * 3600 * 1000;
  return at.slice(days ? 5 : 11, 16);
}

const summary = (points, series) => series.map(([key, name]) =>
  `${number(points.reduce((sum, p) => sum + (p[key] ?? 0), 0))} ${name}`).join(", ");

const box = { width: 190, height: 44, across: 40, down: 14 };

// graph draws the nodes of a future's graph: inputs on the left, dependants on the right.
export function graph(nodes, of, node) {
  const levels = [...new Set(nodes.map((n) => n.level))].sort((a, b) => a - b);
  const at = new Map();
  let rows = 1;
  for (const [x, level] of levels.entries()) {
    nodes.filter((n) => n.level === level).forEach((n, y) => {
      at.set(n.id, [x * (box.width + box.across), y * (box.height + box.down)]);
      rows = Math.max(rows, y + 1);
    });
  }
  const wide = levels.length * (box.width + box.across) - box.across, tall = rows * (box.height + box.down) - box.down;
  const edges = nodes.flatMap((n) => (n.inputs ?? []).filter((i) => at.has(i)).map((i) => {
    const [x1, y1] = at.get(i), [x2, y2] = at.get(n.id);
    const a = x1 + box.width, b = y1 + box.height / 2, c = y2 + box.height / 2, half = (x2 - a) / 2;
    return h("path", { key: i + n.id, class: "edge", d: `M${a} ${b} C${a + half} ${b} ${x2 - half} ${c} ${x2} ${c}` });
  }));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph" },
    h("svg", { class: "graph", viewBox: `-2 -2 ${wide + 4} ${tall + 4}`, width: wide + 4, height: tall + 4, role: "img",
      "aria-label": `A graph of ${nodes.length} futures` }, edges, nodes.map((n) => {
      const [x, y] = at.get(n.id), [first, second, open] = node(n);
      return h("g", { key: n.id, class: `node ${n.state ?? "gone"}${n.id === of ? " this" : ""}`, onclick: open,
        transform: `translate(${x} ${y})` }, h("rect", { width: box.width, height: box.height, rx: 6 }),
      h("text", { x: 10, y: 18 }, first), h("text", { x: 10, y: 35, class: "small" }, second));
    })));
}
