// Graphs by cytoscape, in the colours of the page.

import { colour } from './colour.js';
import { el } from './dom.js';

const base = () => [
  { selector: 'node', style: {
    label: 'data(label)', color: colour('text'), 'font-size': 11, 'text-valign': 'bottom', 'text-margin-y': 3, 'min-zoomed-font-size': 6,
    'text-background-color': colour('panel'), 'text-background-opacity': 0.8,
    'background-color': colour('node'), 'border-color': colour('border'), 'border-width': 1, width: 26, height: 26,
  } },
  { selector: 'node[kind = "host"]', style: { shape: 'round-rectangle', width: 34, height: 26 } },
  { selector: 'node[kind = "switch"]', style: { shape: 'diamond' } },
  { selector: 'node[kind = "router"]', style: { shape: 'hexagon' } },
  { selector: 'node[kind = "virtual"]', style: { width: 16, height: 16, 'background-color': colour('accent') } },
  { selector: 'node[?down]', style: { 'background-color': colour('broken') } },
  { selector: 'edge', style: { 'curve-style': 'haystack', 'haystack-radius': 0, width: 'data(width)', 'line-color': 'data(colour)' } },
  { selector: 'edge[?bent]', style: { 'curve-style': 'bezier' } },
  { selector: 'edge[?down]', style: { 'line-style': 'dashed', 'line-color': colour('broken') } },
  { selector: 'edge[kind = "at"]', style: { 'line-style': 'dotted', width: 1, 'line-color': colour('border') } },
  { selector: 'edge[kind = "virtual"]', style: { 'curve-style': 'unbundled-bezier', 'control-point-distances': 30, opacity: 0.9 } },
  { selector: 'edge[kind = "all"]', style: { 'curve-style': 'unbundled-bezier', 'control-point-distances': 25, opacity: 0.55 } },
  { selector: '.path', style: { 'underlay-color': colour('accent'), 'underlay-opacity': 0.45, 'underlay-padding': 5 } },
  { selector: ':selected', style: { 'border-width': 3, 'border-color': colour('accent') } },
];

// Forces take seconds in large graphs, and hide the order of a fabric.
const forces = 60;
const fabric = 12;

function layout(elements) {
  const nodes = elements.filter((e) => !e.data.source);
  if (!nodes.length) return { name: 'null' };
  const at = nodes.length >= fabric ? racks(nodes, elements.filter((e) => e.data.source)) : null;
  if (at) return { name: 'preset', positions: (n) => at.get(n.id()) };
  if (nodes.length <= forces) return { name: 'cose', animate: false, nodeRepulsion: 20000, idealEdgeLength: 80, nodeOverlap: 20, randomize: false };
  return { name: 'circle', spacingFactor: 1 };
}

// racks places a fabric: the switches that hosts hang on in one line, their hosts in
// a block below each, other switches above by how far they are; null: it is none.
function racks(nodes, edges) {
  const around = new Map(nodes.map((n) => [n.data.id, []]));
  for (const { data: { source, target } } of edges) {
    around.get(source)?.push(target);
    around.get(target)?.push(source);
  }
  const isSwitch = new Set(nodes.filter((n) => n.data.kind === 'switch').map((n) => n.data.id));
  const hosts = nodes.map((n) => n.data.id).filter((id) => !isSwitch.has(id));
  const racksOf = new Map();
  for (const h of hosts) {
    const leaf = around.get(h).find((id) => isSwitch.has(id));
    if (!leaf) return null;
    racksOf.set(leaf, [...(racksOf.get(leaf) || []), h]);
  }
  const columns = Math.max(1, Math.ceil(Math.sqrt(Math.max(...[...racksOf.values()].map((r) => r.length)) / 2)));
  const wide = (columns + 1) * 52;
  const at = new Map();
  [...racksOf].forEach(([leaf, rack], i) => {
    at.set(leaf, { x: (i + 0.5) * wide, y: 0 });
    rack.forEach((h, n) => at.set(h, { x: (i + 0.5) * wide + (n % columns - (columns - 1) / 2) * 52, y: 90 + 52 * Math.floor(n / columns) }));
  });
  let tier = [...racksOf.keys()];
  for (let height = -260; tier.length; height -= 160) {
    tier = [...new Set(tier.flatMap((id) => around.get(id)))].filter((id) => isSwitch.has(id) && !at.has(id));
    tier.forEach((id, i) => at.set(id, { x: (i + 0.5) * wide * racksOf.size / tier.length, y: height }));
  }
  for (const id of isSwitch) if (!at.has(id)) at.set(id, { x: 0, y: -160 });
  return at;
}

export function graph(container, elements) {
  const cy = window.cytoscape({
    container, elements, style: base(), layout: layout(elements), maxZoom: 3, minZoom: 0.05,
    hideEdgesOnViewport: elements.length > 2000,
  });
  fit(cy);
  return cy;
}

// fit shows all of a graph, and a small one not larger than it need be.
export function fit(cy) {
  cy.fit(undefined, 40);
  if (cy.zoom() > 1.4) {
    cy.zoom(1.4);
    cy.center();
  }
}

const step = 60;
const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };

// handles are the buttons of a graph, and its keys: arrows, + and -, 0 for all of it.
export function handles(cy, container) {
  const zoom = (by) => cy.zoom({ level: cy.zoom() * by, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  const does = { '+': () => zoom(1.25), '-': () => zoom(0.8), 0: () => fit(cy) };
  container.tabIndex = 0;
  container.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (Object.hasOwn(moves, e.key)) cy.panBy({ x: moves[e.key][0], y: moves[e.key][1] });
    else if (Object.hasOwn(does, e.key)) does[e.key]();
    else return;
    e.preventDefault();
  });
  const button = (text, label, key) => el('button', { type: 'button', 'aria-label': label, title: label, onclick: does[key] }, text);
  return el('div', { class: 'handles', role: 'group', 'aria-label': 'View of the graph' },
    button('+', 'Nearer', '+'), button('−', 'Farther', '-'), button('⤢', 'All of it', '0'));
}

export const kindOf = (topology, name) => ['nodes', 'routers', 'switches']
  .find((kind) => (topology[kind] || []).some((n) => n.name === name))?.replace(/e?s$/, '') || 'node';
