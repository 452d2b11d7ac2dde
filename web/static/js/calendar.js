// What is booked when, of links and hosts.

import { get } from './api.js';
import { load } from './colour.js';
import { el, rate } from './dom.js';

const spans = [['day', 1], ['week', 7], ['month', 30], ['year', 365]];

export async function calendarView(root) {
  const body = el('div', {});
  const choose = el('select', { 'aria-label': 'How far ahead' }, spans.map(([name, days]) => el('option', { value: days }, `the next ${name}`)));
  const paint = async () => {
    const until = new Date(Date.now() + choose.value * 864e5).toISOString().slice(0, 19);
    body.replaceChildren(drawCalendar(await get(`/v1/calendar?until=${until}Z`)));
  };
  choose.addEventListener('change', paint);
  root.append(el('h1', {}, 'Calendar'), choose, body);
  await paint();
}

// drawCalendar draws a row for each direction of a link, and each host.
export function drawCalendar(calendar) {
  const { start, end } = calendar.window;
  const window = [Date.parse(start), Date.parse(end)];
  const links = (calendar.loads || []).concat(calendar.outside || []).map((l) => ({
    name: `${l.link}: ${l.from} to ${l.to}`, of: l.leasable_bps, write: rate, down: l.down,
    steps: (l.steps || []).map((s) => ({ at: Date.parse(s.at), value: s.booked_bps })),
  }));
  const hosts = (calendar.hosts || []).map((h) => ({
    name: `${h.host}: processors`, of: h.cpu_milli, write: (v) => `${(v || 0) / 1000} CPU`, down: h.down,
    steps: (h.steps || []).map((s) => ({ at: Date.parse(s.at), value: s.exclusive ? h.cpu_milli : s.cpu_milli })),
  }));
  const all = [...hosts, ...links];
  const used = all.filter((r) => r.down || r.steps.some((s) => s.value > 0));
  return el('div', { class: 'calendar' },
    el('p', {}, `${new Date(window[0]).toLocaleString()} to ${new Date(window[1]).toLocaleString()}; `
      + `${all.length - used.length} of ${all.length} links and hosts have nothing booked.`),
    used.map((r) => drawRow(r, window)));
}

const long = 1000;

function drawRow(r, [from, until]) {
  const x = (t) => Math.max(0, Math.min(long, long * (t - from) / (until - from)));
  const bars = r.steps.filter((s) => s.value > 0).map((s) => {
    const next = r.steps[r.steps.indexOf(s) + 1]?.at ?? until;
    const part = r.of ? s.value / r.of : 1;
    const height = Math.max(2, 24 * Math.min(1, part));
    const bar = el('svg:rect', { x: x(s.at), width: Math.max(1, x(next) - x(s.at)), y: 24 - height, height },
      el('svg:title', {}, `${new Date(s.at).toLocaleString()} to ${new Date(next).toLocaleString()}: ${r.write(s.value)} of ${r.write(r.of)}`));
    bar.style.fill = load(part);
    return bar;
  });
  const peak = Math.max(0, ...r.steps.map((s) => s.value || 0));
  return el('div', { class: `row${r.down ? ' down' : ''}` }, el('span', {}, r.name, r.down ? ' (down)' : ''),
    el('svg:svg', { viewBox: `0 0 ${long} 24`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `at most ${r.write(peak)} of ${r.write(r.of)}` }, bars),
    el('span', {}, `${r.write(peak)} of ${r.write(r.of)}`));
}
