// What links carry now, from the stream of samples; and the leases, each read anew
// when the stream says that it changed.

import { get, idOf, leasePath, watch } from './api.js';

const history = 120; // samples of a direction that are kept, one a second
const listeners = new Set();

export const keyOf = (id) => `${id.tenant}/${id.network}`;
export const directions = new Map(); // "tenant/network link direction" to what it carries
export const leases = new Map(); // "tenant/network" to the lease
export let about = { read_only: true };

// onChange calls run soon after anything changed, at most four times a second, and
// not while the page is hidden; the function it returns ends that.
export function onChange(run) {
  listeners.add(run);
  return () => listeners.delete(run);
}

const pending = new Set();
let due = false;
function changed(what) {
  pending.add(what);
  if (due) return;
  due = true;
  setTimeout(() => requestAnimationFrame(() => {
    due = false;
    const all = new Set(pending);
    pending.clear();
    for (const run of listeners) run(all);
  }), 250);
}

export function direction(id, link, d) {
  const key = `${keyOf(id)} ${link} ${d}`;
  let found = directions.get(key);
  if (!found) {
    found = { bps: 0, pps: 0, dropped: 0, times: [], rates: [], last: null, drops: new Map() };
    directions.set(key, found);
  }
  return found;
}

const sum = (sample, name, unit) => (sample.counters || [])
  .filter((c) => c.name === name && c.unit === unit).reduce((n, c) => n + c.value, 0);

function take(sample) {
  if (sample.kind !== 'vxlink' || !sample.labels?.link) return;
  const d = direction(sample.lease, sample.labels.link, +sample.labels.direction);
  const at = Date.parse(sample.at) / 1000;
  const dropped = sum(sample, 'dropped', 'packets');
  const was = d.drops.get(sample.host);
  if (was && at > was.at && dropped >= was.dropped) d.dropped = (dropped - was.dropped) / (at - was.at);
  d.drops.set(sample.host, { at, dropped });
  if (sample.labels.enters !== 'true') return;
  const now = { at, bytes: sum(sample, 'entered', 'bytes'), packets: sum(sample, 'entered', 'packets') };
  if (d.last && at > d.last.at && now.bytes >= d.last.bytes) {
    const span = at - d.last.at;
    d.bps = 8 * (now.bytes - d.last.bytes) / span;
    d.pps = (now.packets - d.last.packets) / span;
    d.times.push(at);
    d.rates.push(d.bps);
    if (d.times.length > history) {
      d.times.shift();
      d.rates.shift();
    }
  }
  d.last = now;
}

async function readLeases() {
  const list = await get('/v1/leases');
  const there = new Set();
  for (const l of list || []) {
    if (l.state === 'ended') continue;
    there.add(keyOf(idOf(l)));
    leases.set(keyOf(idOf(l)), l);
  }
  for (const key of leases.keys()) if (!there.has(key)) forget(key);
  changed('leases');
}

function forget(key) {
  leases.delete(key);
  for (const d of directions.keys()) if (d.startsWith(`${key} `)) directions.delete(d);
}

async function readLease(id) {
  const l = await get(leasePath(id)).catch((err) => {
    if (err.status !== 404) throw err;
    return null;
  });
  if (!l || l.state === 'ended') forget(keyOf(id));
  else leases.set(keyOf(id), l);
  changed('leases');
}

// Reading waits for a moment, so that many changes at once are read once: a few
// leases each by itself, many as the list, which then rests in proportion.
const few = 8;
const dirty = new Map(); // "tenant/network" to what it is of
let all = false; // the list is to be read
let reading = false;
let rest = 200;

export function refresh(id) {
  if (id) dirty.set(keyOf(id), id);
  else all = true;
  if (reading) return;
  reading = true;
  setTimeout(async () => {
    const ids = [...dirty.values()];
    const whole = all || ids.length > few;
    dirty.clear();
    all = false;
    const began = performance.now();
    try {
      await (whole ? readLeases() : Promise.all(ids.map(readLease)));
    } catch {
      // the stream says that the server is away
    }
    rest = whole && ids.length > few ? Math.min(10000, Math.max(2000, 20 * (performance.now() - began))) : 200;
    reading = false;
    if (all || dirty.size) refresh([...dirty.values()][0]);
  }, rest);
}

// takeState takes a state at once; the rest of the lease is read soon.
function takeState(sample) {
  if (sample.kind !== 'lease' || !sample.lease?.network) return refresh();
  const l = leases.get(keyOf(sample.lease));
  if (l && l.state !== sample.state) leases.set(keyOf(sample.lease), { ...l, state: sample.state });
  changed('leases');
  refresh(sample.lease);
}

function handle(event) {
  if (event.name === 'samples') {
    for (const sample of event.data) take(sample);
    changed('samples');
  } else if (event.name === 'state') {
    if (event.data.kind === 'host' || event.data.kind === 'link') changed('substrate');
    else takeState(event.data);
  } else if (event.name === 'gap') {
    changed('substrate');
    refresh();
  }
}

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

export async function begin(tell) {
  [about] = await Promise.all([get('/page/about'), readLeases()]);
  (async () => {
    let last = '';
    for (let wait = 500; ; wait = Math.min(2 * wait, 10000)) {
      await watch(last, (event) => {
        wait = 500;
        tell('live');
        last = event.id || last;
        handle(event);
      });
      tell('not connected');
      await pause(wait);
    }
  })();
}
