// Values as people can read them: JSON and msgpack as trees, text, images; else a download.
import { h, button } from "./dom.js";
import { open } from "./api.js";
import { say } from "./app.js";
import { bytes } from "./format.js";

const shownBytes = 64 << 10; // how much of a value is fetched to be shown
const downloadBytes = 512 << 20; // how much a browser is asked to hold

// load reads the beginning of a value.
export async function load(path, size) {
  if (!size) return { data: new Uint8Array(0), codec: "" };
  return open(path, { range: size > shownBytes ? `bytes=0-${shownBytes - 1}` : null, read: async (answer) => {
    const data = new Uint8Array(await answer.arrayBuffer());
    return { data, codec: answer.headers.get("Futura-Codec") ?? "", toJSON: () => data.length }; // it does not change
  } });
}

const images = [["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]], ["image/webp", [0x52, 0x49, 0x46, 0x46]]];

// view shows a value of a size whose beginning was loaded.
export function view({ data, codec }, size, path, file) {
  const whole = data.length >= size;
  return [h("p", { class: "hint" }, [bytes(size), codec && `codec ${codec}`].filter(Boolean).join(", "), " ",
    size > 0 && download(path, size, file)),
  size > 0 && inner(data, codec, whole),
  size > 0 && !whole && h("p", { class: "hint" }, `The first ${bytes(data.length)} are shown.`)];
}

function inner(data, codec, whole) {
  const image = images.find(([, magic]) => magic.every((b, i) => data[i] === b));
  if (image && whole) return picture(data, image[0]);
  if (whole && codec === "msgpack") {
    try { return tree(unpack(data)); } catch { /* shown as bytes */ }
  }
  const text = asText(data, whole);
  if (text === null) return h("pre", { class: "value" }, hex(data));
  if (whole && (codec === "json" || /^\s*[[{]/.test(text))) {
    try { return tree(parse(text)); } catch { /* shown as text */ }
  }
  return h("pre", { class: "value" }, text);
}

// exact keeps the digits of integers that a number of a browser would round.
const exact = (_, value, { source } = {}) =>
  (Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "") ? BigInt(source) : value);

// parse reads JSON with all digits of its numbers.
export const parse = (text) => JSON.parse(text, exact);

function asText(data, whole) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data, { stream: !whole });
    // eslint-disable-next-line no-control-regex
    return /[\u0000-\u0008\u000e-\u001a]/.test(text) ? null : text;
  } catch { return null; }
}

function picture(data, type) {
  const url = URL.createObjectURL(new Blob([data], { type }));
  return h("img", { src: url, alt: "The value is an image", class: "value", onload: () => URL.revokeObjectURL(url) });
}

function hex(data) {
  const lines = [];
  for (let i = 0; i < Math.min(data.length, 4096); i += 16) {
    const row = [...data.subarray(i, i + 16)];
    lines.push(`${i.toString(16).padStart(6, "0")}  ${row.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48)} ` +
      row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join(""));
  }
  if (data.length > 4096) lines.push("…");
  return lines.join("\n");
}

// tree shows a value of JSON. What is deep or long is closed, and at most so many parts of one
// value are shown.
export function tree(value, depth = 0) {
  if (value === null || typeof value !== "object") {
    return h("span", { class: "leaf " + typeof value }, typeof value === "string" ? JSON.stringify(value) : String(value));
  }
  const list = Array.isArray(value), entries = Object.entries(value), most = 200;
  if (depth > 24) return h("span", { class: "leaf" }, "…");
  if (!entries.length) return h("span", { class: "leaf" }, list ? "[]" : "{}");
  return h("details", { class: "tree", open: depth < 2 && entries.length <= 50 },
    h("summary", null, `${entries.length} ${list ? "item" : "field"}${entries.length === 1 ? "" : "s"}`),
    h("ul", null, entries.slice(0, most).map(([k, v]) => h("li", null, h("span", { class: "name" }, k), ": ", tree(v, depth + 1))),
      entries.length > most && h("li", null, `… and ${entries.length - most} more`)));
}

// download saves a value. A very large one is left to a program that writes it to disk.
function download(path, size, file) {
  if (size > downloadBytes) return "Too large for a browser: use futura get with --output.";
  return button("Download", async () => {
    try {
      const url = URL.createObjectURL(new Blob([await (await open(path)).blob()], { type: "application/octet-stream" }));
      h("a", { href: url, download: file }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (err) {
      say(err.message, true);
    }
  });
}

// unpack decodes msgpack. It throws for what is not msgpack, or is too deep.
export function unpack(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength), text = new TextDecoder();
  let at = 0;
  const take = (n) => { at += n; if (at > data.length) throw new Error("it is cut off"); return at - n; };
  const long = (n) => (Number.isSafeInteger(Number(n)) ? Number(n) : n);
  const uint = (n) => ({ 1: () => view.getUint8(take(1)), 2: () => view.getUint16(take(2)), 4: () => view.getUint32(take(4)),
    8: () => long(view.getBigUint64(take(8))) })[n]();
  const sint = (n) => ({ 1: () => view.getInt8(take(1)), 2: () => view.getInt16(take(2)), 4: () => view.getInt32(take(4)),
    8: () => long(view.getBigInt64(take(8))) })[n]();
  const str = (n) => { const from = take(n); return text.decode(data.subarray(from, from + n)); };
  const bin = (n) => { const from = take(n); return `(${n} bytes) ` + hex(data.subarray(from, from + Math.min(n, 32))).slice(8, 56).trim(); };
  const array = (n, depth) => { const all = []; for (let i = 0; i < n; i++) all.push(any(depth)); return all; };
  const map = (n, depth) => {
    const all = Object.create(null);
    for (let i = 0; i < n; i++) {
      const key = any(depth); // one that is no text has a name of bounded size: its text could be exponential in its depth
      all[key !== null && typeof key === "object" ? `(a key with ${Object.keys(key).length} parts, ${i})` : String(key)] = any(depth);
    }
    return all;
  };
  const ext = (n) => { const kind = sint(1); return `(extension ${kind}) ${bin(n)}`; };
  function any(depth) {
    if (depth > 64) throw new Error("it is too deep");
    const b = uint(1), d = depth + 1;
    if (b < 0x80) return b;
    if (b < 0x90) return map(b & 15, d);
    if (b < 0xa0) return array(b & 15, d);
    if (b < 0xc0) return str(b & 31);
    if (b >= 0xe0) return b - 256;
    switch (b) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return bin(uint(1 << (b - 0xc4)));
      case 0xc7: case 0xc8: case 0xc9: return ext(uint(1 << (b - 0xc7)));
      case 0xca: return view.getFloat32(take(4));
      case 0xcb: return view.getFloat64(take(8));
      case 0xcc: case 0xcd: case 0xce: case 0xcf: return uint(1 << (b - 0xcc));
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: return sint(1 << (b - 0xd0));
      case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return ext(1 << (b - 0xd4));
      case 0xd9: case 0xda: case 0xdb: return str(uint(1 << (b - 0xd9)));
      case 0xdc: return array(uint(2), d);
      case 0xdd: return array(uint(4), d);
      case 0xde: return map(uint(2), d);
      case 0xdf: return map(uint(4), d);
      default: throw new Error("it is not msgpack");
    }
  }
  const value = any(0);
  if (at !== data.length) throw new Error("bytes follow");
  return value;
}
