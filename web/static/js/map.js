// The substrate, and over it the network that is chosen.

import { get } from './api.js';
import { load } from './colour.js';
import { el, of, rate, row, state, table } from './dom.js';
import { fit, graph } from './graph.js';
import { leases, onChange } from './live.js';

const width = (bps) => Math.max(2, Math.min(8, Math.log10(Math.max(bps, 1e6)) - 4));

export async function mapView(root, tenant, network) {
  const [substrate, links] = await Promise.all([get('/v1/substrate'), get('/v1/links')]);
  const canvas = el('div', { class: 'graph', role: 'img', 'aria-label': 'the substrate; the tables beside it say the same' });
  const side = el('aside', {});
  root.classList.add('split');
  root.append(canvas, side);
  const cy = graph(canvas, elementsOf(substrate, links));
  let chosen = tenant ? `${tenant}/${network}` : '';
  const paint = () => {
    overlay(cy, leases.get(chosen));
    side.replaceChildren(legend(), networksOf(chosen, (key) => {
      chosen = chosen === key ? '' : key;
      paint();
      fit(cy);
    }), linksOf(links));
  };
  paint();
  fit(cy);
  const end = onChange(async (what) => {
    if (!what.has('leases')) return;
    const now = await get('/v1/links').catch(() => links);
    links.splice(0, links.length, ...now);
    recolour(cy, links);
    paint();
  });
  return () => { end(); cy.destroy(); };
}

// taken is the larger part that is booked of a link's directions.
const taken = (links, name) => Math.max(0, ...links.filter((l) => l.name === name)
  .map((l) => (l.leasable_bps ? l.booked_bps / l.leasable_bps : 0)));

function elementsOf(substrate, links) {
  const nodes = [
    ...(substrate.hosts || []).map((h) => ({ data: { id: h.name, label: h.name, kind: 'host', down: h.down } })),
    ...(substrate.switches || []).map((s) => ({ data: { id: s, label: s, kind: 'switch' } })),
  ];
  const edges = (substrate.links || []).map((l) => ({ data: {
    id: `link ${l.name}`, source: l.ends[0], target: l.ends[1], width: width(l.capacity_bps),
    colour: load(taken(links, l.name)), down: l.down,
  } }));
  return [...nodes, ...edges];
}

function recolour(cy, links) {
  cy.batch(() => {
    for (const name of new Set(links.map((l) => l.name))) {
      const edge = cy.getElementById(`link ${name}`);
      edge.data({ colour: load(taken(links, name)), down: links.some((l) => l.name === name && l.down) });
    }
  });
}

// overlay draws a network where it is: its nodes beside their hosts, its links,
// and the paths that carry them.
function overlay(cy, lease) {
  cy.batch(() => {
    cy.remove('.overlay');
    cy.elements().removeClass('path');
    if (!lease) return;
    const at = new Map();
    for (const [name, host] of Object.entries(lease.mapping.nodes || {})) {
      const n = at.get(host) || 0;
      at.set(host, n + 1);
      const place = cy.getElementById(host).position();
      if (!place) continue;
      const angle = -Math.PI / 2 + (n % 2 ? -1 : 1) * Math.ceil(n / 2) * Math.PI / 4;
      cy.add([
        { classes: 'overlay', data: { id: `v ${name}`, label: name, kind: 'virtual' },
          position: { x: place.x + 55 * Math.cos(angle), y: place.y + 55 * Math.sin(angle) } },
        { classes: 'overlay', data: { id: `at ${name}`, source: `v ${name}`, target: host, kind: 'at', width: 1 } },
      ]);
    }
    for (const l of lease.request.links || []) {
      const ends = l.ends.map((e) => `v ${e}`);
      if (ends.some((e) => cy.getElementById(e).empty())) continue;
      cy.add({ classes: 'overlay', data: { id: `vl ${l.name}`, source: ends[0], target: ends[1], kind: 'virtual', width: 3 } });
      const paths = [of(lease.mapping.links, l.name), ...(of(lease.mapping.splits, l.name) || []).map((s) => s.path)];
      for (const hop of paths.flat()) if (hop) cy.getElementById(`link ${hop}`).addClass('path');
    }
  });
}

const legend = () => el('p', { class: 'legend' }, 'Of each link is booked: ',
  ...[[0, 'nothing'], [0.3, 'less than half'], [0.6, 'less than 80 %'], [0.9, 'more']].map(([part, text]) => {
    const mark = el('span', { class: 'mark' });
    mark.style.background = load(part);
    return el('span', {}, mark, text);
  }));

function networksOf(chosen, choose) {
  const list = [...leases].map(([key, l]) => el('li', {}, el('button', {
    type: 'button', 'aria-pressed': String(key === chosen), onclick: () => choose(key),
  }, key, ' ', state(l.state)), ' ', el('a', { href: `#/network/${key}` }, 'open')));
  return el('section', {}, el('h2', {}, 'Networks'),
    list.length ? el('ul', { class: 'plain' }, list) : el('p', {}, 'There are none.'));
}

const linksOf = (links) => el('details', {}, el('summary', {}, `Links of the substrate (${links.length} directions)`),
  table('Links', ['link', 'from', 'to', 'booked', 'leasable'], links.map((l) => row(l.name, l.from, l.to, rate(l.booked_bps), rate(l.leasable_bps)))));
