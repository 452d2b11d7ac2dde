// What happened, and what was told.

import { get } from './api.js';
import { el, row, table, when } from './dom.js';
import { bounded, filterOf } from './list.js';

const pathOf = (id) => `#/network/${encodeURIComponent(id.tenant)}/${encodeURIComponent(id.network)}`;

const rowOf = (e) => row(when(e.time), e.lease?.network ? el('a', { href: pathOf(e.lease) }, `${e.lease.tenant}/${e.lease.network}`) : '',
  `${e.kind} ${e.what}`, e.state, e.why || '', e.by || '');

const tableOf = (rows) => table('', ['when', 'network', 'what', 'state', 'why', 'by'], rows);

export const eventRows = (list) => (list.length ? tableOf(list.map(rowOf)) : el('p', {}, 'Nothing happened.'));

const most = 2000;

export async function eventsView(root) {
  const body = el('div', {});
  let list = (await get('/v1/events') || []).slice(-most);
  const rows = bounded((e) => e.number, rowOf, () => paint());
  const filter = filterOf('Only events that hold these words', () => paint());
  const paint = () => {
    const word = filter.value.toLowerCase();
    const found = list.toReversed().filter((e) => !word || JSON.stringify(e).toLowerCase().includes(word));
    body.replaceChildren(found.length ? tableOf(rows.rows(found)) : el('p', {}, word ? 'None is like that.' : 'Nothing happened.'), rows.more(found) || '');
  };
  root.append(el('h1', {}, 'Events'), filter, body);
  paint();
  const timer = setInterval(async () => {
    const after = list.length ? list[list.length - 1].number : 0;
    const more = await get(`/v1/events?after=${after}`).catch(() => []);
    if (!more?.length) return;
    list = list.concat(more).slice(-most);
    paint();
  }, 3000);
  return () => clearInterval(timer);
}
