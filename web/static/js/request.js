// A request as text, what would come of it, and what would be admitted instead.

import { readRequest, send } from './api.js';
import { drawCalendar } from './calendar.js';
import { load } from './colour.js';
import { el, say, when } from './dom.js';
import { editor } from './editor.js';
import { graph } from './graph.js';
import { about, refresh } from './live.js';
import { demandOf } from './paths.js';

const draft = 'sublet.draft';
const example = `network: hello
nodes:
  - {name: a}
  - {name: b}
links:
  - {name: a-b, ends: [a, b], min: 10Mbit, max: 50Mbit}
window: {for: 1h}
`;

export function requestView(root) {
  const answer = el('div', { 'aria-live': 'polite' });
  const picture = el('div', { class: 'graph sketch', role: 'img', 'aria-label': 'the network of the request' });
  const drawn = drawing(picture);
  let last = 0;
  const read = async (text) => { // of several, the last one counts
    const mine = ++last;
    sessionStorage.setItem(draft, text);
    try {
      const request = await readRequest(text);
      if (mine !== last) return null;
      edit.mark([]);
      drawn.show(request);
      return request;
    } catch (err) {
      if (mine === last) edit.mark(err.problems || [{ line: 1, column: 1, problem: err.message }]);
      return null;
    }
  };
  const ask = async () => {
    say('');
    answer.replaceChildren();
    const request = await read(edit.text.value);
    if (!request) return;
    try {
      answer.replaceChildren(...shown(await send('POST', '/v1/offers', { request }), request));
    } catch (err) {
      say(err.message);
    }
  };
  const edit = editor(sessionStorage.getItem(draft) || example, read, ask, picture);
  root.append(el('h1', {}, 'New network'), edit.root,
    el('p', {}, el('button', { type: 'button', id: 'ask', onclick: ask }, 'What would come of it?'), ' Nothing is booked by asking.'), answer);
  read(edit.text.value);
  return () => { edit.end(); drawn.end(); };
}

// drawing shows the network that is written, as far as it can be read.
function drawing(picture) {
  let cy = null;
  let was = '';
  const show = (request) => {
    const kinds = { nodes: 'node', routers: 'router', switches: 'switch' };
    const nodes = Object.keys(kinds).flatMap((kind) => (request[kind] || []).map((n) => ({ data: { id: n.name, label: n.name, kind: kinds[kind] } })));
    const known = new Set(nodes.map((n) => n.data.id));
    const links = (request.links || []).filter((l) => l.ends.every((e) => known.has(e)))
      .map((l) => ({ data: { id: `link ${l.name}`, source: l.ends[0], target: l.ends[1], width: 3, colour: load(0) } }));
    const elements = [...nodes, ...links];
    if (JSON.stringify(elements) === was) return;
    was = JSON.stringify(elements);
    cy?.destroy();
    cy = graph(picture, elements);
  };
  return { show, end: () => cy?.destroy() };
}

function shown(proposal, request) {
  const parts = [];
  const booked = el('div', {});
  const ifs = [whatIf('this request', request, proposal.quote, proposal.calendar)];
  const draw = () => booked.replaceChildren(drawCalendar(proposal.calendar, ifs));
  if (proposal.admitted) {
    parts.push(el('p', { class: 'good' }, proposal.taken ? 'It would be admitted under another name: there is a network of this one.' : 'It would be admitted.'), take(request));
  } else {
    const refusal = proposal.refusal || {};
    parts.push(el('p', { class: 'bad' }, 'It would be refused:'), el('ul', {}, (refusal.reasons || []).map((r) => el('li', {}, r))));
    if (refusal.never) parts.push(el('p', {}, refusal.never));
    (refusal.offers || []).forEach((offer, i) => {
      const mine = whatIf(`with another ${(offer.axes || []).join(' and ')}`, offer.request, null, proposal.calendar);
      ifs.push(mine);
      parts.push(offered(offer, () => where(mine, offer.request, proposal.calendar, draw), i));
    });
  }
  if (!proposal.calendar) return parts;
  draw();
  return [...parts, el('h2', {}, 'In the calendar'), booked];
}

// whatIf is a request as the calendar draws it: when it would be and, if it is
// known how it would be admitted, what it would have booked.
function whatIf(name, request, quote, calendar) {
  const time = (text, other) => (text && !text.startsWith('0001-') ? Date.parse(text) : other);
  const from = time(quote?.window?.start ?? request.start, Date.parse(calendar?.window.start));
  const span = Number(String(request.for_ns?.rawJSON ?? request.for_ns ?? 0)) / 1e6;
  const until = quote ? time(quote.window?.end, Infinity) : span ? from + span : Infinity;
  return { name, from, until, demand: quote && calendar ? demandOf(request, quote.mapping, calendar) : null };
}

// where asks how an offer would be admitted, and draws what it would have booked.
async function where(mine, request, calendar, draw) {
  try {
    const { quote } = await send('POST', '/v1/offers', { request });
    if (!quote) return say('It is not on offer any more: ask anew.');
    Object.assign(mine, whatIf(mine.name, request, quote, calendar));
    draw();
  } catch (err) { say(err.message); }
}

const offered = (offer, show, i) => el('div', { class: 'offer' }, el('p', {}, `It would be admitted with another ${(offer.axes || []).join(' and ')}:`),
  el('ul', {}, (offer.changes || []).map((c) => el('li', {}, `${c.what}: ${readable(c.to)} in place of ${readable(c.from)}`))),
  el('p', { class: 'tools' }, take(offer.request), el('button', { type: 'button', onclick: show, 'aria-label': `Show offer ${i + 1} in the calendar` }, 'Show in the calendar')));

const readable = (text) => (/^\d{4}-\d\d-\d\dT/.test(text) ? when(text) : text);

function take(request) {
  if (about.read_only) return el('p', {}, 'This page only shows.');
  return el('button', { type: 'button', onclick: async () => {
    try {
      const { lease } = await send('POST', '/v1/leases', { request });
      refresh({ tenant: lease.request.tenant, network: lease.request.network });
      location.hash = `#/network/${encodeURIComponent(lease.request.tenant)}/${encodeURIComponent(lease.request.network)}`;
    } catch (err) { say(err.message); }
  } }, 'Lease it');
}
