// What links carry, over the last two minutes.

import { idOf } from './api.js';
import { colour } from './colour.js';
import { rate } from './dom.js';
import { direction } from './live.js';

const most = 8; // lines that can be told apart
const shades = ['#4269d0', '#efb118', '#ff725c', '#6cc5b0', '#3ca951', '#ff8ab7', '#a463f2', '#97bbf5']; // Observable 10

export function plotOf(container, lease) {
  const lines = (lease.request.links || []).flatMap((k) => [0, 1].map((d) => ({ link: k.name, d, name: `${k.ends[d]} to ${k.ends[1 - d]}` }))).slice(0, most);
  if (!lines.length) return { update() {}, destroy() {} };
  const axis = { stroke: colour('text'), grid: { stroke: colour('border'), width: 1 }, ticks: { stroke: colour('border'), width: 1 } };
  const plot = new window.uPlot({
    width: Math.max(320, container.clientWidth || 800), height: 200,
    scales: { x: { range: (_, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_, low, high) => [0, Math.max(high || 0, 1e6)] } },
    axes: [axis, { ...axis, size: 80, values: (_, list) => list.map(rate) }],
    series: [{}, ...lines.map((l, i) => ({ label: l.name, stroke: shades[i], width: 1.5, value: (_, v) => rate(v) }))],
  }, [[], ...lines.map(() => [])], container);
  const update = () => {
    const all = lines.map((l) => direction(idOf(lease), l.link, l.d));
    const times = [...new Set(all.flatMap((d) => d.times.map(Math.round)))].sort((a, b) => a - b);
    plot.setData([times, ...all.map((d) => {
      const at = new Map(d.times.map((t, i) => [Math.round(t), d.rates[i]]));
      return times.map((t) => at.get(t) ?? null);
    })]);
  };
  return { update, destroy: () => plot.destroy() };
}
