// A request as text, what would come of it, and what would be admitted instead.

import { readRequest, send } from './api.js';
import { drawCalendar } from './calendar.js';
import { el, say, when } from './dom.js';
import { about, refresh } from './live.js';

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
  const text = el('textarea', { rows: 18, spellcheck: 'false', 'aria-label': 'The request, as YAML' });
  text.value = sessionStorage.getItem(draft) || example;
  const answer = el('div', { 'aria-live': 'polite' });
  const ask = async () => {
    sessionStorage.setItem(draft, text.value);
    say('');
    try {
      const request = await readRequest(text.value);
      answer.replaceChildren(...shown(await send('POST', '/v1/offers', { request }), request));
    } catch (err) {
      answer.replaceChildren();
      say(err.message);
    }
  };
  text.addEventListener('keydown', (e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) ask(); });
  root.append(el('h1', {}, 'New network'), text,
    el('p', {}, el('button', { type: 'button', onclick: ask }, 'What would come of it?'), ' Ctrl+Enter does the same. Nothing is booked by asking.'), answer);
}

function shown(proposal, request) {
  const parts = [];
  if (proposal.admitted) {
    parts.push(el('p', { class: 'good' }, proposal.taken ? 'It would be admitted under another name: there is a network of this one.' : 'It would be admitted.'), take(request));
  } else {
    const refusal = proposal.refusal || {};
    parts.push(el('p', { class: 'bad' }, 'It would be refused:'), el('ul', {}, (refusal.reasons || []).map((r) => el('li', {}, r))));
    if (refusal.never) parts.push(el('p', {}, refusal.never));
    for (const offer of refusal.offers || []) parts.push(offered(offer));
  }
  if (proposal.calendar) parts.push(el('h2', {}, 'What is booked'), drawCalendar(proposal.calendar));
  return parts;
}

const offered = (offer) => el('div', { class: 'offer' }, el('p', {}, `It would be admitted with another ${(offer.axes || []).join(' and ')}:`),
  el('ul', {}, (offer.changes || []).map((c) => el('li', {}, `${c.what}: ${readable(c.to)} in place of ${readable(c.from)}`))), take(offer.request));

const readable = (text) => (/^\d{4}-\d\d-\d\dT/.test(text) ? when(text) : text);

function take(request) {
  if (about.read_only) return el('p', {}, 'This page only shows.');
  return el('button', { type: 'button', onclick: async () => {
    try {
      const { lease } = await send('POST', '/v1/leases', { request });
      refresh();
      location.hash = `#/network/${lease.request.tenant}/${lease.request.network}`;
    } catch (err) { say(err.message); }
  } }, 'Lease it');
}
