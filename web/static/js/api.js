// Calls of the API, and the stream of what changes.

const kept = 'sublet.secret';
let secret = sessionStorage.getItem(kept) || '';

// takeSecret takes the secret out of the page's address, where it must not stay:
// addresses are kept in histories and shown on screens.
export function takeSecret() {
  const text = location.hash.slice(1);
  if (!text || text.startsWith('/')) return;
  const [found, ...view] = text.split('/');
  secret = found;
  sessionStorage.setItem(kept, secret);
  history.replaceState(null, '', `#/${view.join('/') || 'map'}`);
}

export async function call(path, options = {}) {
  const response = await fetch(path, {
    ...options, headers: { ...options.headers, ...(secret && { Authorization: `Bearer ${secret}` }) },
  });
  if (!response.ok) throw await failure(response);
  return response;
}

// failure is what a problem of the API says; of a text, with the places (problems).
async function failure(response) {
  const text = await response.text();
  const { status } = response;
  try {
    const problem = JSON.parse(text);
    const words = [problem.detail, ...(problem.reasons || [])].filter(Boolean).join('; ') || problem.title;
    return Object.assign(new Error(words), { status, problems: problem.problems });
  } catch {
    return Object.assign(new Error(`${status} ${text.slice(0, 200)}`), { status });
  }
}

export const get = async (path) => (await call(path)).json();

export async function send(method, path, body) {
  const response = await call(path, { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  const text = await response.text();
  return text ? exact(text) : null;
}

// exact reads JSON whose large whole numbers must be written as they were: a
// maximum that nobody stated is one of 63 bits, which a number here is not.
const exact = (text) => JSON.parse(text, (_, value, context) => (
  typeof value === 'number' && JSON.rawJSON && /^\d{16,}$/.test(context?.source) ? JSON.rawJSON(context.source) : value));

// The request of a text as people write it.
export const readRequest = async (text) => exact(await (await call('/page/request', { method: 'POST', body: text })).text());

export const leasePath = (id) => `/v1/leases/${encodeURIComponent(id.tenant)}/${encodeURIComponent(id.network)}`;

export const idOf = (lease) => ({ tenant: lease.request.tenant, network: lease.request.network });

function open(path, query) {
  const kind = location.protocol === 'https:' ? 'wss' : 'ws';
  const words = secret ? ['sublet.page', `sublet.bearer.${secret}`] : ['sublet.page']; // without one, the connection says who calls
  return new WebSocket(`${kind}://${location.host}${path}?${new URLSearchParams(query)}`, words);
}

export function openConsole(id, node) {
  const socket = open('/page/console', { tenant: id.tenant, network: id.network, node });
  socket.binaryType = 'arraybuffer';
  return socket;
}

// watch hands each event after one to take, until the stream ends.
export function watch(after, take) {
  return new Promise((done) => {
    const socket = open('/page/watch', { after });
    socket.onmessage = (e) => take(JSON.parse(e.data));
    socket.onclose = done;
  });
}
