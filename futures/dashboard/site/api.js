// The HTTP API, with the session of this page. The session is kept by the browser for this
// address alone, and sent in a header.

const base = new URL("../", location.href.split("#")[0]);
export const kept = "futura-session";

// How long a server may take to begin an answer, in milliseconds: to a read, and to a change. The rest of an answer that is read
// here may take as long again.
const patience = { GET: 15000, other: 60000 };

// Problem is an error that the API answered with.
export class Problem extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

export const session = {
  role: "", name: "", until: null,
  may(role) {
    const roles = ["read", "submit", "admin"];
    return roles.indexOf(this.role) >= roles.indexOf(role);
  },
};

// call sends a request, and returns its answer, or what read makes of that. A body { json } is sent as it is written there: numbers
// keep their digits.
async function call(method, path, { query, body, signal, headers, read = (answer) => answer } = {}) {
  if (path.some((part) => part === "." || part === "..")) {
    throw new Problem(400, "bad_name", "No address can contain the name . or .. alone: use the command futura.");
  }
  const url = new URL("api/v1/" + path.map(encodeURIComponent).join("/").replaceAll("%3A", ":"), base);
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(key, value);
  }
  const secret = localStorage.getItem(kept);
  const sent = { ...(secret && { Authorization: "Bearer " + secret }), ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const late = new AbortController(), wait = () => setTimeout(() => late.abort(), patience[method] ?? patience.other);
  let timer = wait();
  try {
    const answer = await fetch(url, {
      method, signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal, headers: sent,
      body: body === undefined ? undefined : body?.json ?? JSON.stringify(body), credentials: "omit", redirect: "error", cache: "no-store",
    });
    clearTimeout(timer);
    timer = wait();
    if (answer.ok) return await read(answer);
    const told = await answer.json().catch(() => ({}));
    throw new Problem(answer.status, told.code ?? "", told.detail ?? told.message ?? `The server answered ${answer.status}.`);
  } catch (err) {
    if (err instanceof Problem || err instanceof SyntaxError) throw err;
    if (late.signal.aborted) {
      throw new Problem(0, "unreachable", "The server does not answer. It is busy, or was stopped." +
        (method === "GET" ? "" : " What was asked for may yet be done."));
    }
    if (err.name === "AbortError") throw err;
    throw new Problem(0, "unreachable", "The server does not answer. It may be stopped, or restarting.");
  } finally { clearTimeout(timer); }
}

const read = (answer) => (answer.status === 204 ? null : answer.json());

export const get = (path, query, signal) => call("GET", path, { query, signal, read });
export const post = (path, body, query) => call("POST", path, { body, query, read });
export const put = (path, body) => call("PUT", path, { body, read });
export const remove = (path) => call("DELETE", path, { read });

// open returns what read makes of an answer, the answer itself by default: of a range, if it is given.
export const open = (path, { range, read } = {}) => call("GET", path, { headers: range ? { Range: range } : {}, read });

// orNull is null for what this server does not have, or has not yet.
export async function orNull(asked) {
  try {
    return await asked;
  } catch (err) {
    if (err instanceof Problem && (err.status === 404 || err.status === 501)) return null;
    throw err;
  }
}

// begin learns what this page may do. With the secret of a link, or with a token, it logs in
// first. The token itself is not kept.
export async function begin({ linkSecret, token } = {}) {
  if (token && /[^\x21-\x7e]/.test(token)) throw new Problem(401, "unauthorized", "This is no token.");
  if (linkSecret || token) {
    const made = await call("POST", ["sessions"], linkSecret ? { body: { link: linkSecret }, read }
      : { body: {}, headers: { Authorization: "Bearer " + token }, read });
    if (made.token) localStorage.setItem(kept, made.token);
  }
  const now = await get(["sessions", "this"]);
  Object.assign(session, { role: now.role, name: now.name ?? "", until: now.until });
}

export async function end() {
  await remove(["sessions", "this"]).catch(() => {});
  localStorage.removeItem(kept);
  session.role = "";
}
