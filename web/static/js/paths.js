// What networks take of the substrate: the ways of their links, direction by direction.

import { of } from './dom.js';

// Direction of a link of the substrate: by its name and the end where it begins.
export const side = (link, from) => `${link} ${from}`;

// sidesOf are all directions of the substrate's links, by name and beginning.
export const sidesOf = (links) => new Map(links.map((l) => [side(l.link ?? l.name, l.from), l]));

// crossings calls take for each direction of the substrate that a direction of a
// network's link crosses, with the part of it that goes there.
export function crossings(request, mapping, sides, take) {
  for (const link of request.links || []) {
    const splits = of(mapping.splits, link.name) || [];
    const units = splits.reduce((sum, s) => sum + s.units, 0);
    const ways = splits.length ? splits.map((s) => [s.path, s.units / units]) : [[of(mapping.links, link.name), 1]];
    for (const [path, share] of ways) cross(link, path || [], of(mapping.nodes, link.ends[0]), share, sides, take);
  }
}

function cross(link, path, from, share, sides, take) {
  let at = from;
  for (const hop of path) {
    const forward = sides.get(side(hop, at));
    if (!forward) return; // the substrate is another one by now
    take(link, 0, side(hop, at), share);
    take(link, 1, side(hop, forward.to), share);
    at = forward.to;
  }
}

// demandOf is what a request would have booked where a mapping says: bit/s by the
// direction of a link, and thousandths of processors by host.
export function demandOf(request, mapping, calendar) {
  const links = new Map();
  crossings(request, mapping, sidesOf(calendar.loads || []), (link, d, key, share) => {
    links.set(key, (links.get(key) || 0) + share * (link.bandwidth[d].min_bps || 0));
  });
  const hosts = new Map();
  for (const kind of ['nodes', 'routers', 'switches']) {
    for (const node of request[kind] || []) {
      const host = of(mapping.nodes, node.name);
      if (host) hosts.set(host, (hosts.get(host) || 0) + (node.cpu_milli || 0));
    }
  }
  return { links, hosts };
}
