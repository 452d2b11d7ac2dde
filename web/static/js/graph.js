// Graphs by cytoscape, in the colours of the page.

import { colour } from './colour.js';

const base = () => [
  { selector: 'node', style: {
    label: 'data(label)', color: colour('text'), 'font-size': 11, 'text-valign': 'bottom', 'text-margin-y': 3,
    'background-color': colour('node'), 'border-color': colour('border'), 'border-width': 1, width: 26, height: 26,
  } },
  { selector: 'node[kind = "host"]', style: { shape: 'round-rectangle', width: 34, height: 26 } },
  { selector: 'node[kind = "switch"]', style: { shape: 'diamond' } },
  { selector: 'node[kind = "router"]', style: { shape: 'hexagon' } },
  { selector: 'node[kind = "virtual"]', style: { width: 16, height: 16, 'background-color': colour('accent') } },
  { selector: 'node[?down]', style: { 'background-color': colour('broken') } },
  { selector: 'edge', style: { 'curve-style': 'bezier', width: 'data(width)', 'line-color': 'data(colour)' } },
  { selector: 'edge[?down]', style: { 'line-style': 'dashed', 'line-color': colour('broken') } },
  { selector: 'edge[kind = "at"]', style: { 'line-style': 'dotted', width: 1, 'line-color': colour('border') } },
  { selector: 'edge[kind = "virtual"]', style: { 'curve-style': 'unbundled-bezier', width: 3, 'line-color': colour('accent') } },
  { selector: '.path', style: { 'underlay-color': colour('accent'), 'underlay-opacity': 0.35, 'underlay-padding': 5 } },
  { selector: ':selected', style: { 'border-width': 3, 'border-color': colour('accent') } },
];

// Large graphs are laid out in levels, since forces take seconds there.
const forces = 80;

export function layout(nodes) {
  return nodes > forces
    ? { name: 'breadthfirst', animate: false, roots: 'node[kind = "switch"]', spacingFactor: 1.2 }
    : { name: 'cose', animate: false, nodeRepulsion: 9000, idealEdgeLength: 90, randomize: false };
}

export function graph(container, elements) {
  const nodes = elements.filter((e) => !e.data.source).length;
  const cy = window.cytoscape({
    container, elements, style: base(), layout: nodes ? layout(nodes) : { name: 'null' }, maxZoom: 3, minZoom: 0.05,
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

export const kindOf = (topology, name) => ['nodes', 'routers', 'switches']
  .find((kind) => (topology[kind] || []).some((n) => n.name === name))?.replace(/e?s$/, '') || 'node';
