// What is booked when, of links and hosts; what is planned; and what would come of
// a request.

import { get } from './api.js';
import { load } from './colour.js';
import { el, rate, when } from './dom.js';
import { filterOf } from './list.js';
import { side } from './paths.js';

const spans = [['day', 1], ['week', 7], ['month', 30], ['year', 365]];

export async function calendarView(root) {
  const body = el('div', {});
  const choose = el('select', { 'aria-label': 'How far ahead' }, spans.map(([name, days]) => el('option', { value: days }, `the next ${name}`)));
  const filter = filterOf('Only links and hosts whose names hold', () => draw());
  let calendar;
  const draw = () => body.replaceChildren(drawCalendar(calendar, [], filter.value));
  const paint = async () => {
    const until = new Date(Date.now() + choose.value * 864e5).toISOString().slice(0, 19);
    calendar = await get(`/v1/calendar?until=${until}Z`);
    draw();
  };
  choose.addEventListener('change', paint);
  root.append(el('h1', {}, 'Calendar'), choose, ' ', filter, body);
  await paint();
}

const cpus = (milli) => `${(milli || 0) / 1000} CPU`;

// A row is a direction of a link, or a host: its steps, what is planned of it, and
// what each of some what-ifs would have of it.
function rowsOf(calendar, ifs) {
  const planned = (kind, name) => (calendar.maintenance || []).filter((m) => m[kind] === name);
  const hosts = (calendar.hosts || []).map((h) => ({
    name: h.host, of: h.cpu_milli, write: cpus, down: h.down, planned: planned('host', h.host),
    steps: (h.steps || []).map((s) => ({ at: Date.parse(s.at), value: s.exclusive ? h.cpu_milli : s.cpu_milli })),
    ifs: ifs.filter((w) => w.demand?.hosts.has(h.host)).map((w) => ({ ...w, value: w.demand.hosts.get(h.host) })),
  }));
  const links = (calendar.loads || []).concat(calendar.outside || []).map((l) => ({
    name: `${l.link}: ${l.from} to ${l.to}`, of: l.leasable_bps, write: rate, down: l.down, planned: planned('link', l.link),
    steps: (l.steps || []).map((s) => ({ at: Date.parse(s.at), value: s.booked_bps })),
    ifs: ifs.filter((w) => w.demand?.links.get(side(l.link, l.from))).map((w) => ({ ...w, value: w.demand.links.get(side(l.link, l.from)) })),
  }));
  return [...hosts, ...links];
}

const busy = (r) => r.down || r.planned.length > 0 || r.ifs.length > 0 || r.steps.some((s) => s.value > 0);

// drawCalendar draws a row for each direction of a link, and each host, which has
// something; first those that a what-if would have something of. A what-if has name,
// from, until and, if it is known, demand.
export function drawCalendar(calendar, ifs = [], word = '') {
  const window = [Date.parse(calendar.window.start), Date.parse(calendar.window.end)];
  const all = rowsOf(calendar, ifs);
  const used = all.filter((r) => busy(r) && r.name.toLowerCase().includes(word.toLowerCase()))
    .sort((a, b) => (b.ifs.length > 0) - (a.ifs.length > 0));
  const idle = all.filter((r) => !busy(r)).length;
  return el('div', { class: 'calendar' },
    el('p', {}, `${new Date(window[0]).toLocaleString()} to ${new Date(window[1]).toLocaleString()}; `
      + `${idle} of ${all.length} links and hosts have nothing booked.`),
    legend(calendar, ifs), scale(window), ifs.map((w) => drawIf(w, window)), used.map((r) => drawRow(r, window)));
}

function legend(calendar, ifs) {
  const marks = [];
  if (calendar.maintenance?.length) marks.push(el('span', {}, el('span', { class: 'mark planned' }), 'maintenance'));
  if (ifs.length) marks.push(el('span', {}, el('span', { class: 'mark whatif' }), 'what would be booked'));
  return marks.length ? el('p', { class: 'legend' }, marks) : '';
}

const long = 1000;
const high = 24;

const place = ([from, until]) => (t) => Math.max(0, Math.min(long, long * (t - from) / (until - from)));

// The hours or days of the window, above the rows.
function scale(window) {
  const whole = window[1] - window[0];
  const each = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => new Date(window[0] + n * whole / 8));
  const text = (t) => (whole <= 2 * 864e5 ? t.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }) : t.toLocaleDateString([], { month: 'short', day: 'numeric' }));
  return el('div', { class: 'row scale', 'aria-hidden': 'true' }, el('span', {}), el('div', { class: 'ticks' }, each.map((t) => el('span', {}, text(t)))), el('span', {}));
}

const drawing = (label, ...parts) => el('svg:svg', { viewBox: `0 0 ${long} ${high}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label }, ...parts);

function bar(x, window, from, until, attributes, title) {
  const begins = x(from);
  return el('svg:rect', { x: begins, width: Math.max(1, x(until) - begins), ...attributes }, el('svg:title', {}, title));
}

const span = (from, until) => `${new Date(from).toLocaleString()} to ${until === Infinity ? 'its release' : new Date(until).toLocaleString()}`;

// A what-if by itself: when it would be.
function drawIf(w, window) {
  const x = place(window);
  const text = span(w.from, w.until);
  const after = w.from >= window[1] ? 'after what is shown' : '';
  return el('div', { class: 'row asked' }, el('span', {}, w.name),
    drawing(text, after ? '' : bar(x, window, w.from, w.until, { y: 4, height: high - 8, class: 'whatif' }, `${w.name}: ${text}`)),
    el('span', {}, after || (w.from <= window[0] ? 'at once' : `from ${when(w.from)}`)));
}

function drawRow(r, window) {
  const x = place(window);
  const ends = (i) => r.steps[i + 1]?.at ?? window[1];
  const booked = r.steps.map((s, i) => {
    if (!(s.value > 0)) return '';
    const part = r.of ? s.value / r.of : 1;
    const height = Math.max(2, high * Math.min(1, part));
    const drawn = bar(x, window, s.at, ends(i), { y: high - height, height }, `${span(s.at, ends(i))}: ${r.write(s.value)} of ${r.write(r.of)}`);
    drawn.style.fill = load(part);
    return drawn;
  });
  const planned = r.planned.map((m) => bar(x, window, Date.parse(m.start), Date.parse(m.end), { y: 0, height: high, class: 'planned' },
    `maintenance, ${span(Date.parse(m.start), Date.parse(m.end))}${m.note ? `: ${m.note}` : ''}`));
  const peak = Math.max(0, ...r.steps.map((s) => s.value || 0));
  const more = Math.max(0, ...r.ifs.map((w) => w.value));
  const text = `${r.write(peak)} of ${r.write(r.of)}${more ? `, ${r.write(more)} more if` : r.ifs.length ? ', nodes more if' : ''}${r.planned.length ? ', maintenance' : ''}`;
  return el('div', { class: `row${r.down ? ' down' : ''}` }, el('span', {}, r.name, r.down ? ' (down)' : ''),
    drawing(text, booked, r.ifs.flatMap((w) => stacked(w, r, x, window, ends)), planned), el('span', {}, text));
}

// stacked draws what a what-if would have, on top of what is booked meanwhile.
function stacked(w, r, x, window, ends) {
  return r.steps.map((s, i) => {
    const from = Math.max(s.at, w.from);
    const until = Math.min(ends(i), w.until);
    if (until <= from) return '';
    const tall = Math.max(2, high * Math.min(1, r.of ? w.value / r.of : 1));
    const below = high * Math.min(1, r.of ? (s.value || 0) / r.of : 0);
    return bar(x, window, from, until, { y: Math.max(0, high - below - tall), height: tall, class: 'whatif' }, `${w.name}: ${r.write(w.value)} more`);
  });
}
