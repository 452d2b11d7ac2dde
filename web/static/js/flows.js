// What all networks together carry over each direction of the substrate's links.

import { directions, leases } from './live.js';
import { crossings, sidesOf } from './paths.js';

// flowsOf remembers which links of networks cross which direction; carried adds up
// what they carry now.
export function flowsOf(links) {
  const sides = sidesOf(links);
  const over = new Map();
  for (const [key, l] of leases) {
    crossings(l.request, l.mapping, sides, (link, d, where, share) => {
      if (!over.has(where)) over.set(where, []);
      over.get(where).push([`${key} ${link.name} ${d}`, share]);
    });
  }
  const carried = (where) => (over.get(where) || []).reduce((sum, [key, share]) => sum + share * (directions.get(key)?.bps || 0), 0);
  return { carried };
}
