// Networks over the substrate.

import { colour, load } from './colour.js';
import { of } from './dom.js';
import { directions } from './live.js';

export function clear(cy) {
  cy.batch(() => {
    cy.remove('.overlay');
    cy.elements().removeClass('path');
  });
}

// drawOne draws a network where it is: its nodes beside their hosts, its links, and
// the paths that carry them.
export function drawOne(cy, key, lease) {
  cy.batch(() => {
    for (const [name, host] of Object.entries(lease.mapping.nodes || {})) beside(cy, key, name, host);
    for (const l of lease.request.links || []) {
      const ends = l.ends.map((e) => `v ${key} ${e}`);
      if (ends.some((e) => cy.getElementById(e).empty())) continue;
      cy.add({ classes: 'overlay', data: { id: `vl ${key} ${l.name}`, source: ends[0], target: ends[1], kind: 'virtual', width: 3, colour: colour('accent'), network: key, link: l.name } });
      const paths = [of(lease.mapping.links, l.name), ...(of(lease.mapping.splits, l.name) || []).map((s) => s.path)];
      for (const hop of paths.flat()) if (hop) cy.getElementById(`link ${hop}`).addClass('path');
    }
  });
}

// beside places a node on a circle about its host, after those that are there.
function beside(cy, key, name, host) {
  const at = cy.getElementById(host);
  if (at.empty()) return;
  const n = at.connectedEdges('[kind = "at"]').length;
  const angle = -Math.PI / 2 + (n % 2 ? -1 : 1) * Math.ceil(n / 2) * Math.PI / 4;
  const radius = 55 + 25 * Math.floor(n / 8);
  const { x, y } = at.position();
  cy.add([
    { classes: 'overlay', data: { id: `v ${key} ${name}`, label: name, kind: 'virtual' }, position: { x: x + radius * Math.cos(angle), y: y + radius * Math.sin(angle) } },
    { classes: 'overlay', data: { id: `at ${key} ${name}`, source: `v ${key} ${name}`, target: host, kind: 'at', width: 1 } },
  ]);
}

const most = 500; // curves that are drawn of all networks

// drawAll draws a curve between two hosts for all links between them, of whatever
// networks; how many pairs of hosts are left out it returns.
export function drawAll(cy, leases) {
  const pairs = new Map();
  for (const [key, lease] of leases) {
    for (const l of lease.request.links || []) {
      const ends = l.ends.map((e) => of(lease.mapping.nodes, e));
      if (!ends[0] || !ends[1] || ends[0] === ends[1]) continue;
      const pair = ends.sort().join(' ');
      if (!pairs.has(pair)) pairs.set(pair, { ends, links: [] });
      pairs.get(pair).links.push([key, l.name]);
    }
  }
  const drawn = [...pairs].sort(([, a], [, b]) => b.links.length - a.links.length).slice(0, most);
  cy.batch(() => cy.add(drawn.filter(([, p]) => p.ends.every((e) => !cy.getElementById(e).empty())).map(([pair, p]) => ({
    classes: 'overlay', data: { id: `all ${pair}`, source: p.ends[0], target: p.ends[1], kind: 'all', width: Math.min(6, 1 + Math.log2(p.links.length)), colour: colour('accent'), links: p.links },
  }))));
  return pairs.size - drawn.length;
}

// recolourOver gives what is drawn of networks the colour of what it carries now: of
// what it may use, the busiest of its links and directions. What carries nothing is
// no part of the substrate, so it is not grey.
export function recolourOver(cy, leases) {
  cy.edges('.overlay[colour]').forEach((edge) => {
    const links = edge.data('links') || [[edge.data('network'), edge.data('link')]];
    const busiest = Math.max(0, ...links.map(([key, link]) => used(leases, key, link)));
    const shown = busiest > 0 ? load(busiest) : colour('accent');
    if (edge.data('colour') !== shown) edge.data('colour', shown);
  });
}

const used = (leases, key, link) => Math.max(...[0, 1].map((d) => (
  (directions.get(`${key} ${link} ${d}`)?.bps || 0) / (of(leases.get(key)?.rates, link)?.[d] || Infinity))));
