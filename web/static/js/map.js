// The substrate, and over it networks: those that are chosen, or all.

import { get } from './api.js';
import { colour, levels, load } from './colour.js';
import { el, rate, row, state, table } from './dom.js';
import { fit, graph, handles } from './graph.js';
import { bounded, filterOf, keep } from './list.js';
import { keyOf, leases, onChange } from './live.js';
import { matching } from './networks.js';
import { clear, drawAll, drawOne, recolourOver } from './overlay.js';
import { flowsOf } from './flows.js';
import { side } from './paths.js';

const width = (bps) => Math.max(2, Math.min(8, Math.log10(Math.max(bps, 1e6)) - 4));
const rests = 2000; // between two readings of what is booked

export async function mapView(root, tenant, network) {
  const [substrate, links] = await Promise.all([get('/v1/substrate'), get('/v1/links')]);
  const is = { links, chosen: new Set(tenant ? [`${tenant}/${network}`] : []), all: false, by: 'booked', flows: flowsOf(links) };
  const canvas = el('div', { class: 'graph', role: 'img', 'aria-label': 'the substrate; the tables beside it say the same. Arrows move it, + and - zoom, 0 shows all of it' });
  const graphed = el('div', { class: 'graphed' }, canvas);
  root.classList.add('split');
  root.append(graphed); // a graph is laid out for the room that it has
  const cy = graph(canvas, elementsOf(substrate, is));
  const aside = sideOf(is, () => over(), () => recolour(cy, is));
  graphed.append(handles(cy, canvas));
  root.append(aside.root);
  const over = () => {
    clear(cy);
    let left = 0;
    if (is.all) left = drawAll(cy, leases);
    else for (const key of is.chosen) if (leases.has(key)) drawOne(cy, key, leases.get(key));
    aside.paint(left);
    recolour(cy, is);
  };
  over();
  fit(cy);
  return follow(is, cy, aside, over);
}

// follow paints what changes: rates often, what is booked now and then.
function follow(is, cy, aside, over) {
  let reading = null;
  const read = () => {
    reading ||= setTimeout(async () => {
      is.links = await get('/v1/links').catch(() => is.links);
      reading = null;
      recolour(cy, is);
    }, rests);
  };
  let drawn = shownOf(is);
  const end = onChange((what) => {
    if (what.has('leases') || what.has('substrate')) read();
    if (what.has('leases')) {
      is.flows = flowsOf(is.links);
      const now = shownOf(is);
      if (now !== drawn) over();
      else aside.paint();
      drawn = now;
    }
    recolour(cy, is);
    aside.update();
  });
  return () => { end(); clearTimeout(reading); cy.destroy(); };
}

// shownOf says which networks are drawn, in which form: another answer is another drawing.
const shownOf = (is) => (is.all ? [...leases.values()] : [...is.chosen].map((key) => leases.get(key)))
  .map((l) => (l ? `${l.serial} ${l.revision || 0} ${l.move ? 'moves' : ''}` : '')).join();

// part is how much of a direction of a link is taken.
function part(is, l) {
  const taken = is.by === 'booked' ? l.booked_bps : is.flows.carried(side(l.name, l.from));
  return l.leasable_bps ? taken / l.leasable_bps : 0;
}

function elementsOf(substrate, is) {
  const nodes = [
    ...(substrate.hosts || []).map((h) => ({ data: { id: h.name, label: h.name, kind: 'host', down: h.down } })),
    ...(substrate.switches || []).map((s) => ({ data: { id: s, label: s, kind: 'switch' } })),
  ];
  const pairs = new Set();
  const edges = (substrate.links || []).map((l) => {
    const pair = [...l.ends].sort().join(' ');
    const bent = pairs.has(pair); // a second link of the same two
    pairs.add(pair);
    return { data: { id: `link ${l.name}`, source: l.ends[0], target: l.ends[1], width: width(l.capacity_bps), colour: load(0), down: l.down, bent } };
  });
  return [...nodes, ...edges];
}

// recolour writes the colours that are others than before.
function recolour(cy, is) {
  const worst = new Map();
  for (const l of is.links) {
    const was = worst.get(l.name) || { part: 0, down: false };
    worst.set(l.name, { part: Math.max(was.part, part(is, l)), down: was.down || Boolean(l.down) });
  }
  cy.batch(() => {
    for (const [name, now] of worst) {
      const edge = cy.getElementById(`link ${name}`);
      if (edge.empty()) continue;
      if (edge.data('colour') !== load(now.part)) edge.data('colour', load(now.part));
      if (Boolean(edge.data('down')) !== now.down) edge.data('down', now.down);
    }
    recolourOver(cy, leases);
  });
}

// sideOf is what stands beside the map: what colours mean, which networks are over
// it, and the substrate's links as a table.
function sideOf(is, over, recoloured) {
  const legend = el('p', { class: 'legend' });
  const by = el('select', { 'aria-label': 'What colours of links show', onchange: () => { is.by = by.value; paint(); recoloured(); } },
    el('option', { value: 'booked' }, 'is booked'), el('option', { value: 'carried' }, 'networks carry now'));
  const all = el('button', { type: 'button', onclick: () => { is.all = !is.all; over(); } }, 'All of them');
  const filter = filterOf('Only networks whose name, tenant, state, labels or notices hold', () => paint());
  const said = el('p', { role: 'status' });
  const list = el('ul', { class: 'plain' });
  const more = el('div', {});
  const rows = bounded((i) => i.key, (i) => itemOf(i, is, over), () => paint());
  const links = linksOf(is);
  let left = 0;
  const paint = (undrawn = left) => {
    left = undrawn || 0;
    legend.replaceChildren('Of each link ', by, ': ', ...levels.slice(0, is.by === 'booked' ? 4 : 5).map(([, name, text]) => {
      const mark = el('span', { class: 'mark' });
      mark.style.background = colour(name);
      return el('span', {}, mark, text);
    }), ' Curves are links of networks, in the colour of what they carry now of what they may use.');
    all.setAttribute('aria-pressed', String(is.all));
    said.textContent = is.all && left ? `${left} pairs of hosts with the fewest links between them are not drawn.` : '';
    const found = matching(filter.value);
    keep(list, rows.rows(items(found, is)));
    more.replaceChildren(rows.more(found) || '', found.length ? '' : el('p', {}, 'There are none.'));
  };
  return { root: el('aside', {}, legend, el('h2', {}, 'Networks over it'), el('p', { class: 'tools' }, all, filter), said, list, more, links.root), paint, update: links.update };
}

const made = new Map(); // so that a row is made anew only when what it shows is another
function items(found, is) {
  return found.map(([key, l]) => {
    const pressed = is.chosen.has(key) && !is.all;
    const was = made.get(key);
    if (was && was.is === is && was.state === l.state && was.pressed === pressed) return was;
    const item = { key, is, lease: l, state: l.state, pressed };
    made.set(key, item);
    return item;
  });
}

function itemOf({ key, lease, pressed }, is, over) {
  const { tenant, network } = lease.request;
  return el('li', {}, el('button', { type: 'button', 'aria-pressed': String(pressed), onclick: () => {
    is.all = false;
    if (!is.chosen.delete(key)) is.chosen.add(key);
    over();
    document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  }, 'data-key': key }, key, ' ', state(lease.state)), ' ',
  el('a', { href: `#/network/${encodeURIComponent(tenant)}/${encodeURIComponent(network)}`, 'aria-label': `open ${keyOf({ tenant, network })}` }, 'open'));
}

// linksOf is made when somebody looks: there may be thousands.
function linksOf(is) {
  const rows = bounded((l) => `${l.name} ${l.from}`, (l) => row(l.name, l.from, l.to, rate(l.booked_bps), '', rate(l.leasable_bps)), () => update());
  const list = table('Links', ['link', 'from', 'to', 'booked', 'carries', 'leasable'], []);
  const more = el('div', {});
  const root = el('details', { ontoggle: () => update() }, el('summary', {}, `Links of the substrate (${is.links.length} directions)`), list, more);
  const update = () => {
    if (!root.open) return;
    const drawn = rows.rows(is.links);
    drawn.forEach((r, i) => {
      const text = rate(is.flows.carried(side(is.links[i].name, is.links[i].from)));
      if (r.cells[4].textContent !== text) r.cells[4].textContent = text;
    });
    keep(list.tBodies[0], drawn);
    more.replaceChildren(rows.more(is.links) || '');
  };
  return { root, update };
}
