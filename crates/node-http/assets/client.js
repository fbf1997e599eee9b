// Requests to the server of this page, and its event stream.

// Relative to this file, so that it works with any path prefix.
const BASE = new URL("../", import.meta.url);
const KEY = "token";
const REQUEST_TIMEOUT = 10_000;
// The server sends keep-alive comments every 15 s.
const STREAM_TIMEOUT = 40_000;

let token = null;
try {
  token = sessionStorage.getItem(KEY);
} catch {
  // Without session storage, the token is lost when the page reloads.
}

export function setToken(value) {
  token = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {}
}

export const hasToken = () => token !== null;
export const address = (path) => new URL(path, BASE).href;

// A response other than 200, with the detail of its problem.
export class Refusal extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function send(path, options) {
  const headers = { ...options.headers, ...(token !== null && { Authorization: `Bearer ${token}` }) };
  const response = await fetch(new URL(path, BASE), { ...options, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const seconds = Number(response.headers.get("Retry-After")) || 0;
  throw new Refusal(response.status, String(problem.detail ?? response.statusText), seconds);
}

// Sends a GET request, or a POST request if there is a body, and returns the JSON of the response.
export async function ask(path, body) {
  const post = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await send(path, { ...post, signal: AbortSignal.timeout(REQUEST_TIMEOUT) })).json();
}

// Yields new events at `path`, as {id, event, data}. Yields {} first, when the stream opens. Throws
// if nothing arrives for too long, or when the page is hidden: browsers open at most six connections to a server for all tabs.
export async function* events(path) {
  const silence = new AbortController();
  const hide = () => document.hidden && silence.abort();
  document.addEventListener("visibilitychange", hide);
  let timer = setTimeout(() => silence.abort(), REQUEST_TIMEOUT);
  try {
    const response = await send(path, { signal: silence.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    yield {};
    for (;;) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), STREAM_TIMEOUT);
      const { value, done } = await reader.read();
      if (done) return;
      const pieces = (rest + value).split("\n\n");
      rest = pieces.pop();
      for (const piece of pieces) yield parse(piece);
    }
  } finally {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", hide);
    silence.abort();
  }
}

// The fields of an event; {} for a comment.
function parse(piece) {
  const event = {};
  for (const line of piece.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return event;
}
