import { get } from './api.js';
import { el, row, table, when } from './dom.js';

export function eventRows(list) {
  if (!list.length) return el('p', {}, 'Nothing happened.');
  return table('', ['when', 'network', 'what', 'state', 'why'], list.map((e) => row(
    when(e.time), e.lease?.network ? el('a', { href: `#/network/${e.lease.tenant}/${e.lease.network}` }, `${e.lease.tenant}/${e.lease.network}`) : '',
    `${e.kind} ${e.what}`, e.state, e.why || '')));
}

export async function eventsView(root) {
  const body = el('div', {});
  root.append(el('h1', {}, 'Events'), body);
  let list = (await get('/v1/events') || []).slice(-500);
  const paint = () => body.replaceChildren(eventRows(list.toReversed()));
  paint();
  const timer = setInterval(async () => {
    const after = list.length ? list[list.length - 1].number : 0;
    const more = await get(`/v1/events?after=${after}`).catch(() => []);
    if (!more?.length) return;
    list = list.concat(more).slice(-500);
    paint();
  }, 3000);
  return () => clearInterval(timer);
}
