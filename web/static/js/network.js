// One network: its links and nodes, what they carry, how promises were kept, events.

import { call, get, idOf, leasePath, send } from './api.js';
import { load } from './colour.js';
import { bandwidth, el, of, rate, row, say, state, table, when } from './dom.js';
import { eventRows } from './events.js';
import { graph, kindOf } from './graph.js';
import { keep } from './list.js';
import { about, direction, keyOf, leases, onChange, refresh } from './live.js';
import { noticesOf } from './notices.js';
import { plotOf } from './plot.js';
import { proofBar } from './proof.js';

const day = 864e5;
const spans = [['day', 1], ['week', 7], ['month', 30], ['90 days', 90]];

const route = (view, ...parts) => `#/${view}/${parts.map(encodeURIComponent).join('/')}`;

export async function networkView(root, tenant, network) {
  const id = { tenant, network };
  let is = leases.get(keyOf(id)) || await get(leasePath(id));
  const head = el('div', {});
  const picture = el('div', { class: 'graph small', role: 'img', 'aria-label': 'the network; the tables below say the same' });
  const plot = el('div', {});
  const kept = { from: 0, until: 0, proofs: [] };
  const span = el('select', { 'aria-label': 'How far back promises are shown', onchange: () => recent() }, spans.map(([name, days]) => el('option', { value: days }, `last ${name}`)));
  const links = linksOf(() => is, kept, () => links.paint());
  const nodes = el('div', {});
  const happened = el('section', {});
  root.append(head, picture, el('h2', {}, 'Links'), plot, el('p', {}, el('label', {}, 'Promises kept: ', span)), links.table, links.rest, el('h2', {}, 'Nodes'), nodes, happened);
  const cy = graph(picture, elementsOf(is));
  cy.on('dbltap', 'node', (e) => { location.hash = route('console', tenant, network, e.target.id()); });
  const drawn = plotOf(plot, is);
  let planned = [];
  const paint = (what) => {
    is = leases.get(keyOf(id)) || is;
    if (!what || what.has('leases')) {
      head.replaceChildren(...headOf(is, planned));
      nodes.replaceChildren(nodesOf(is));
      links.paint();
    }
    links.update();
    drawn.update();
    recolour(cy, is);
  };
  const recent = async () => {
    const query = new URLSearchParams({ tenant, network });
    const until = Date.now();
    const from = until - span.value * day;
    const [list, proofs, plans] = await Promise.all([
      get(`/v1/events?${query}`).catch(() => []),
      get(`${leasePath(id)}/proof?since=${new Date(from).toISOString().slice(0, 19)}Z`).catch(() => kept.proofs),
      get('/v1/maintenance').catch(() => []),
    ]);
    happened.replaceChildren(el('h2', {}, 'Events'), eventRows((list || []).slice(-50).reverse()));
    Object.assign(kept, { from, until, proofs: proofs || [] });
    planned = plans || [];
    paint();
  };
  paint();
  recent();
  const timer = setInterval(recent, 15000);
  const end = onChange(paint);
  return () => { end(); clearInterval(timer); drawn.destroy(); cy.destroy(); };
}

function elementsOf(l) {
  const names = Object.keys(l.mapping.nodes || {});
  const known = new Set(names);
  return [
    ...names.map((name) => ({ data: { id: name, label: name, kind: kindOf(l.request, name) } })),
    ...(l.request.links || []).filter((k) => k.ends.every((e) => known.has(e)))
      .map((k) => ({ data: { id: `link ${k.name}`, source: k.ends[0], target: k.ends[1], width: 3, colour: load(0) } })),
  ];
}

function recolour(cy, l) {
  cy.batch(() => {
    for (const k of l.request.links || []) {
      const used = Math.max(...[0, 1].map((d) => direction(idOf(l), k.name, d).bps / (of(l.rates, k.name)?.[d] || Infinity)));
      cy.getElementById(`link ${k.name}`).data({ colour: load(used), down: of(l.link_states, k.name)?.down });
    }
  });
}

function headOf(l, planned) {
  const id = idOf(l);
  const know = noticesOf(l, planned);
  return [
    el('h1', {}, `${keyOf(id)} `, state(l.state)),
    el('p', {}, `from ${when(l.window.start)} ${l.window.end ? `to ${when(l.window.end)}` : 'until released'}`),
    know.length ? el('ul', { class: 'notices', 'aria-label': 'To know' }, know.map((n) => el('li', {}, n))) : '',
    el('p', {}, el('a', { href: route('map', id.tenant, id.network) }, 'where it is'), ' ', !about.read_only && releaseOf(id)),
  ];
}

function releaseOf(id) {
  return el('button', { type: 'button', onclick: async () => {
    if (!confirm(`End ${keyOf(id)} and remove it?`)) return;
    try {
      await send('DELETE', leasePath(id));
      location.hash = '#/networks';
      refresh(id);
    } catch (err) { say(err.message); }
  } }, 'Release');
}

// linksOf is the table of a network's links. Its rows are made anew when the lease
// or a proof is another one; what they carry now is written into their cells.
function linksOf(lease, kept, again) {
  const list = table('', ['link', 'from', 'to', 'asked for', 'may use', 'carries', 'dropped', 'kept', ''], []);
  const rest = el('div', {});
  let cells = [];
  const paint = () => {
    const l = lease();
    const directions = (l.request.links || []).flatMap((k) => [0, 1].map((d) => ({ k, d })));
    cells = [];
    keep(list.tBodies[0], directions.slice(0, paint.most).map((r) => rowOf(l, r, kept, cells)));
    rest.replaceChildren(directions.length > paint.most ? el('p', {}, `${paint.most} of ${directions.length} directions are shown. `,
      el('button', { type: 'button', onclick: () => { paint.most += 100; again(); } }, 'Show more')) : '');
  };
  paint.most = 100;
  const update = () => {
    for (const c of cells) {
      const now = direction(idOf(lease()), c.link, c.d);
      write(c.carries, rate(now.bps));
      write(c.drops, now.dropped ? `${Math.round(now.dropped)}/s` : '');
    }
  };
  return { table: list, rest, paint, update };
}

function write(cell, text) { if (cell.textContent !== text) cell.textContent = text; }

function rowOf(l, { k, d }, kept, cells) {
  const proof = kept.proofs.find((p) => p.link === k.name && p.direction === d);
  const made = row(k.name, k.ends[d], k.ends[1 - d], bandwidth(k.bandwidth[d]), rate(of(l.rates, k.name)?.[d]), '', '',
    proof ? proofBar(proof, kept.from, kept.until) : '', d === 0 ? tools(idOf(l), k, l) : '');
  cells.push({ link: k.name, d, carries: made.cells[5], drops: made.cells[6] });
  return made;
}

function tools(id, link, l) {
  const down = of(l.link_states, link.name)?.down;
  return el('span', { class: 'tools' },
    !about.read_only && el('button', { type: 'button', 'aria-label': `${down ? 'Mend' : 'Cut'} ${link.name}`, onclick: () => setDown(id, link.name, !down) }, down ? 'Mend' : 'Cut'),
    !about.read_only && el('button', { type: 'button', 'aria-label': `Capture 5 s of ${link.name}`, onclick: (e) => download(id, link.name, e.currentTarget) }, 'Capture 5 s'));
}

async function setDown(id, link, down) {
  try {
    await send('PUT', `${leasePath(id)}/links/${encodeURIComponent(link)}/state`, { down });
    refresh(id);
  } catch (err) { say(err.message); }
}

async function download(id, link, button) {
  button.disabled = true;
  try {
    const query = new URLSearchParams({ ...id, link, count: 10000, for: '5s' });
    const data = await (await call(`/page/capture?${query}`)).blob();
    const url = URL.createObjectURL(data);
    el('a', { href: url, download: `${id.network}-${link}.pcapng` }).click();
    URL.revokeObjectURL(url);
  } catch (err) { say(err.message); }
  button.disabled = false;
}

function nodesOf(l) {
  const id = idOf(l);
  const rows = Object.entries(l.mapping.nodes || {}).map(([name, host]) => row(name, kindOf(l.request, name), host, of(l.addresses, name) || '',
    kindOf(l.request, name) !== 'switch' && !about.read_only ? el('a', { href: route('console', id.tenant, id.network, name), 'aria-label': `console of ${name}` }, 'console') : ''));
  return table('', ['node', 'kind', 'host', 'address', ''], rows);
}
