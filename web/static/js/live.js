// What links carry now, from the stream of samples; and the leases, read anew
// when the stream says that one changed.

import { get, idOf, watch } from './api.js';

const history = 120; // samples of a direction that are kept, one a second
const listeners = new Set();

export const keyOf = (id) => `${id.tenant}/${id.network}`;
export const directions = new Map(); // "tenant/network link direction" to what it carries
export const leases = new Map(); // "tenant/network" to the lease
export let about = { read_only: true };

// onChange calls do soon after anything changed, at most four times a second;
// the function it returns ends that.
export function onChange(run) {
  listeners.add(run);
  return () => listeners.delete(run);
}

let due = false;
function changed(what) {
  pending.add(what);
  if (due) return;
  due = true;
  setTimeout(() => {
    due = false;
    const all = new Set(pending);
    pending.clear();
    for (const run of listeners) run(all);
  }, 250);
}
const pending = new Set();

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
  leases.clear();
  for (const l of list || []) if (l.state !== 'ended') leases.set(keyOf(idOf(l)), l);
  changed('leases');
}

let reading = null;
export function refresh() { // many changes at once are read once
  reading ||= new Promise((done) => { setTimeout(done, 200); })
    .then(() => { reading = null; return readLeases(); })
    .catch(() => {}); // the stream says that the server is away
}

function handle(event) {
  if (event.name === 'samples') {
    for (const sample of event.data) take(sample);
    changed('samples');
  } else if (event.name === 'state' || event.name === 'gap') {
    changed('states');
    refresh();
  }
}

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

export async function begin(tell) {
  about = await get('/page/about');
  await readLeases();
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
