// Requests to the server that this page comes from, and its stream of events.

// Relative to this file, so that any path may stand in front.
const BASE = new URL("../", import.meta.url);
const KEY = "token";
const PATIENCE = 10_000;
// Signs of life come every 15 s.
const SILENCE = 40_000;

let token = null;
try {
  token = sessionStorage.getItem(KEY);
} catch {
  // Then it lasts until the page is loaded again.
}

// Kept as long as the tab.
export function setToken(value) {
  token = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {}
}

export const hasToken = () => token !== null;
export const address = (path) => new URL(path, BASE).href;

// An answer that is not 200, with what the server says of it.
export class Refusal extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function send(path, options) {
  const headers = { ...options.headers, ...(token !== null && { Authorization: `Bearer ${token}` }) };
  const answer = await fetch(new URL(path, BASE), { ...options, headers, cache: "no-store", credentials: "omit" });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const seconds = Number(answer.headers.get("Retry-After")) || 0;
  throw new Refusal(answer.status, String(problem.detail ?? answer.statusText), seconds);
}

// Asks by GET, or by POST if there is a body.
export async function ask(path, body) {
  const post = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await send(path, { ...post, signal: AbortSignal.timeout(PATIENCE) })).json();
}

// The events at `path` behind the one named `last`, as {id, event, data}, after one without any of these when the stream
// begins. Throws when it is silent for too long.
export async function* events(path, last) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), PATIENCE);
  try {
    const headers = last && { "Last-Event-ID": last };
    const answer = await send(path, { headers, signal: silence.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    yield {};
    for (;;) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE);
      const { value, done } = await reader.read();
      if (done) return;
      const pieces = (rest + value).split("\n\n");
      rest = pieces.pop();
      for (const piece of pieces) yield parse(piece);
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

// The fields of one event; of a comment there are none.
function parse(piece) {
  const event = {};
  for (const line of piece.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return event;
}
