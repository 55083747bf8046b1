// Numbers, times and names as people read them.

const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export const number = (n) => Number(n ?? 0).toLocaleString("en");

// duration shows milliseconds.
export function duration(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms === 0) return "0 s";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
  let seconds = ms / 1000;
  if (seconds < 60) return `${Math.round(seconds * 10) / 10} s`;
  seconds = Math.round(seconds);
  const parts = [];
  for (const [name, size] of units) {
    const n = Math.floor(seconds / size);
    seconds -= n * size;
    if (n && parts.length < 2) parts.push(`${n} ${name}`);
    else if (parts.length) break;
  }
  return parts.join(" ");
}

export function bytes(n) {
  if (n === undefined || n === null) return "";
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (n < 1024 || unit === "TiB") return `${n < 10 && unit !== "B" ? Math.round(n * 10) / 10 : Math.round(n)} ${unit}`;
    n /= 1024;
  }
}

// ago shows how long ago a time was, or in how long it will be.
export function ago(at) {
  if (!at) return "";
  const ms = Date.now() - new Date(at);
  if (Math.abs(ms) < 1000) return "now";
  return ms < 0 ? `in ${duration(-ms)}` : `${duration(Math.floor(ms / 1000) * 1000)} ago`;
}

export function time(at) {
  if (!at) return "";
  const t = new Date(at), pad = (n, l = 2) => String(n).padStart(l, "0");
  const day = `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())}`;
  return `${day} ${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
}

// short is the end of an id, which tells futures of the same moment apart.
export const short = (id) => (id?.length > 14 ? "…" + id.slice(-12) : id ?? "");

// name shortens the content id in the name of a function.
export function name(text) {
  const [kind, rest] = [text?.slice(0, 5), text?.slice(5) ?? ""];
  return kind === "wasm:" && rest.length > 30 ? `wasm:${rest.slice(0, 6)}…${rest.slice(-8)}` : text ?? "";
}

export const cut = (text, most = 120) => (text?.length > most ? text.slice(0, most) + "…" : text ?? "");

export const percent = (part, whole) => (whole ? `${Math.round((1000 * part) / whole) / 10} %` : "");

// text shows bytes as the API has them.
export const text = (bytes) => (bytes?.data ? (bytes.encoding === "text" ? bytes.data : `base64: ${bytes.data}`) : "");
