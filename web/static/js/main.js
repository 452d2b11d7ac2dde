import { takeSecret } from './api.js';
import { forget } from './colour.js';
import { el, say } from './dom.js';
import { begin } from './live.js';
import { calendarView } from './calendar.js';
import { consoleView } from './console.js';
import { eventsView } from './events.js';
import { mapView } from './map.js';
import { networkView } from './network.js';
import { networksView } from './networks.js';
import { requestView } from './request.js';

const views = {
  map: mapView, networks: networksView, network: networkView, calendar: calendarView,
  events: eventsView, request: requestView, console: consoleView,
};

let leave = null;
let shown = 0;

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function show() {
  takeSecret();
  const [name, ...rest] = location.hash.slice(2).split('/').map(decoded);
  const view = Object.hasOwn(views, name) ? views[name] : mapView;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.hash === `#/${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  leave?.();
  leave = null;
  say('');
  const mine = ++shown;
  const root = el('div', { class: 'view' });
  document.getElementById('view').replaceChildren(root);
  try {
    const end = await view(root, ...rest);
    if (mine === shown) leave = end;
    else end?.(); // another view was asked for meanwhile
  } catch (err) {
    say(err.message);
  }
}

function tell(text) {
  const live = document.getElementById('live');
  live.textContent = text;
  live.className = text === 'live' ? 'live' : '';
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  localStorage.setItem('sublet.theme', root.dataset.theme);
  repaint();
}

function repaint() {
  forget();
  show();
}

const chosen = localStorage.getItem('sublet.theme');
if (chosen) document.documentElement.dataset.theme = chosen;
document.getElementById('theme').addEventListener('click', theme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
addEventListener('hashchange', show);
takeSecret();
try {
  await begin(tell);
} catch (err) {
  tell('not connected');
  say(err.message);
}
await show();
requestAnimationFrame(() => setTimeout(() => { // the view is painted by then
  performance.mark('drawn');
  document.documentElement.dataset.ready = 'true';
}));
