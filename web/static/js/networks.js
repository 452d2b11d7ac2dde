// The list of networks.

import { get } from './api.js';
import { el, rate, row, state, table, when } from './dom.js';
import { bounded, filterOf, keep } from './list.js';
import { leases, onChange } from './live.js';
import { noticesOf } from './notices.js';

const promised = (l) => (l.request.links || []).reduce((sum, k) => sum + k.bandwidth[0].min_bps + k.bandwidth[1].min_bps, 0);

const pathOf = (id) => `#/network/${encodeURIComponent(id.tenant)}/${encodeURIComponent(id.network)}`;

const words = new WeakMap(); // of a lease, what filters look in
function wordsOf(key, l) {
  if (!words.has(l)) words.set(l, `${key} ${l.state} ${JSON.stringify(l.request.labels || {})} ${noticesOf(l).join(' ')}`.toLowerCase());
  return words.get(l);
}

// matching are the networks that hold some words, with their keys.
export const matching = (word) => [...leases].filter(([key, l]) => !word || wordsOf(key, l).includes(word.toLowerCase()));

export async function networksView(root) {
  const planned = await get('/v1/maintenance').catch(() => []) || [];
  const rows = bounded((l) => `${l.request.tenant}/${l.request.network}`, (l) => row(
    el('a', { href: pathOf(l.request) }, `${l.request.tenant}/${l.request.network}`), state(l.state), Object.keys(l.mapping.nodes || {}).length,
    (l.request.links || []).length, rate(promised(l)), when(l.window.end), noticesOf(l, planned).join('; ')), () => paint());
  const filter = filterOf('Only networks whose name, tenant, state, labels or notices hold', () => paint());
  const list = table('', ['network', 'state', 'nodes', 'links', 'promised in all', 'until', 'to know'], []);
  const rest = el('div', {});
  root.append(el('h1', {}, 'Networks'), filter, list, rest);
  const paint = () => {
    const found = matching(filter.value).map(([, l]) => l);
    list.hidden = !found.length;
    keep(list.tBodies[0], rows.rows(found));
    rest.replaceChildren(rows.more(found) || '', found.length ? '' : el('p', {}, filter.value ? 'None is like that.' : 'There are none: ask for one under New network.'));
  };
  paint();
  return onChange((what) => { if (what.has('leases')) paint(); });
}
