// The list of networks, and one of them.

import { call, get, idOf, leasePath, send } from './api.js';
import { bandwidth, el, of, rate, row, say, state, table, when } from './dom.js';
import { eventRows } from './events.js';
import { graph, kindOf } from './graph.js';
import { load } from './colour.js';
import { about, direction, keyOf, leases, onChange, refresh } from './live.js';
import { plotOf } from './plot.js';
import { proofBar } from './proof.js';

const promised = (l) => (l.request.links || []).reduce((sum, k) => sum + k.bandwidth[0].min_bps + k.bandwidth[1].min_bps, 0);

export function networksView(root) {
  const filter = el('input', { type: 'search', 'aria-label': 'Only networks whose name, tenant, state or labels hold' , placeholder: 'filter' });
  const body = el('div', {});
  root.append(el('h1', {}, 'Networks'), filter, body);
  const paint = () => {
    const word = filter.value.toLowerCase();
    const rows = [...leases].filter(([key, l]) => `${key} ${l.state} ${JSON.stringify(l.request.labels || {})}`.toLowerCase().includes(word))
      .map(([key, l]) => row(el('a', { href: `#/network/${key}` }, key), state(l.state), Object.keys(l.mapping.nodes || {}).length,
        (l.request.links || []).length, rate(promised(l)), when(l.window.end), l.message || ''));
    body.replaceChildren(rows.length ? table('', ['network', 'state', 'nodes', 'links', 'promised in all', 'until', ''], rows)
      : el('p', {}, word ? 'None is like that.' : 'There are none: ask for one under New network.'));
  };
  filter.addEventListener('input', paint);
  paint();
  return onChange((what) => { if (what.has('leases')) paint(); });
}

export async function networkView(root, tenant, network) {
  const id = { tenant, network };
  const lease = leases.get(keyOf(id)) || await get(leasePath(id));
  const head = el('div', {});
  const picture = el('div', { class: 'graph small', role: 'img', 'aria-label': 'the network; the tables below say the same' });
  const plot = el('div', {});
  const links = el('div', {});
  const nodes = el('div', {});
  const happened = el('section', {});
  root.append(head, picture, el('h2', {}, 'Links'), plot, links, el('h2', {}, 'Nodes'), nodes, happened);
  let is = lease;
  const cy = graph(picture, elementsOf(is));
  cy.on('dbltap', 'node', (e) => { location.hash = `#/console/${keyOf(id)}/${e.target.id()}`; });
  const drawn = plotOf(plot, is);
  let proofs = await get(`${leasePath(id)}/proof?since=${new Date(Date.now() - 864e5).toISOString().slice(0, 19)}Z`).catch(() => []);
  const paint = (what) => {
    is = leases.get(keyOf(id)) || is;
    if (!what || what.has('leases')) {
      head.replaceChildren(...headOf(is));
      nodes.replaceChildren(nodesOf(is));
    }
    links.replaceChildren(linksOf(is, proofs));
    drawn.update();
    recolour(cy, is);
  };
  const recent = async () => {
    const query = new URLSearchParams({ tenant, network });
    const list = await get(`/v1/events?${query}`).catch(() => []);
    happened.replaceChildren(el('h2', {}, 'Events'), eventRows(list.slice(-50).reverse()));
    proofs = await get(`${leasePath(id)}/proof?since=${new Date(Date.now() - 864e5).toISOString().slice(0, 19)}Z`).catch(() => proofs);
  };
  paint();
  recent();
  const timer = setInterval(recent, 15000);
  const end = onChange(paint);
  return () => { end(); clearInterval(timer); drawn.destroy(); cy.destroy(); };
}

function elementsOf(l) {
  const names = Object.keys(l.mapping.nodes || {});
  return [
    ...names.map((name) => ({ data: { id: name, label: name, kind: kindOf(l.request, name) } })),
    ...(l.request.links || []).filter((k) => k.ends.every((e) => names.includes(e)))
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

function headOf(l) {
  const id = idOf(l);
  return [
    el('h1', {}, `${keyOf(id)} `, state(l.state)),
    el('p', {}, `from ${when(l.window.start)} ${l.window.end ? `to ${when(l.window.end)}` : 'until released'}`, l.message ? `: ${l.message}` : ''),
    el('p', {}, el('a', { href: `#/map/${keyOf(id)}` }, 'where it is'), ' ', !about.read_only && releaseOf(id)),
  ];
}

function releaseOf(id) {
  return el('button', { type: 'button', onclick: async () => {
    if (!confirm(`End ${keyOf(id)} and remove it?`)) return;
    try {
      await send('DELETE', leasePath(id));
      location.hash = '#/networks';
      refresh();
    } catch (err) { say(err.message); }
  } }, 'Release');
}

function linksOf(l, proofs) {
  const id = idOf(l);
  const rows = (l.request.links || []).flatMap((k) => [0, 1].map((d) => {
    const now = direction(id, k.name, d);
    const proof = proofs.find((p) => p.link === k.name && p.direction === d);
    return row(k.name, k.ends[d], k.ends[1 - d], bandwidth(k.bandwidth[d]), rate(of(l.rates, k.name)?.[d]), rate(now.bps),
      now.dropped ? `${Math.round(now.dropped)}/s` : '', proof ? proofBar(proof) : '', d === 0 ? tools(id, k, l) : '');
  }));
  return table('', ['link', 'from', 'to', 'asked for', 'may use', 'carries', 'dropped', 'kept, last day', ''], rows);
}

function tools(id, link, l) {
  const down = of(l.link_states, link.name)?.down;
  return el('span', { class: 'tools' },
    !about.read_only && el('button', { type: 'button', onclick: () => setDown(id, link.name, !down) }, down ? 'Mend' : 'Cut'),
    !about.read_only && el('button', { type: 'button', onclick: (e) => download(id, link.name, e.currentTarget) }, 'Capture 5 s'));
}

async function setDown(id, link, down) {
  try {
    await send('PUT', `${leasePath(id)}/links/${encodeURIComponent(link)}/state`, { down });
    refresh();
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
    kindOf(l.request, name) !== 'switch' && !about.read_only ? el('a', { href: `#/console/${keyOf(id)}/${encodeURIComponent(name)}` }, 'console') : ''));
  return table('', ['node', 'kind', 'host', 'address', ''], rows);
}
