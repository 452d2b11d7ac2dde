// Elements. Text of tenants is only ever set as text, never parsed as HTML.

export function el(tag, attributes = {}, ...children) {
  const e = tag.startsWith('svg:')
    ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, '');
    else if (value !== false && value != null) e.setAttribute(name, value);
  }
  e.append(...children.flat().filter((c) => c != null && c !== false));
  return e;
}

export function table(caption, heads, rows) {
  return el('table', {},
    el('caption', {}, caption),
    el('thead', {}, el('tr', {}, heads.map((h) => el('th', { scope: 'col' }, h)))),
    el('tbody', {}, rows));
}

export const row = (...cells) => el('tr', {}, cells.map((c) => el('td', {}, c)));

export const state = (name) => el('span', { class: `state ${name}` }, name);

export function say(text) {
  const alert = document.getElementById('alert');
  alert.textContent = text;
  alert.hidden = !text;
}

// of looks up a name that a tenant chose, such as constructor.
export const of = (all, name) => (all && Object.hasOwn(all, name) ? all[name] : undefined);

const units = [[1e9, 'Gbit/s'], [1e6, 'Mbit/s'], [1e3, 'kbit/s']];

export function rate(bps) {
  if (bps == null) return '';
  for (const [unit, name] of units) if (bps >= unit) return `${+(bps / unit).toPrecision(3)} ${name}`;
  return `${Math.round(bps)} bit/s`;
}

// Bandwidth without a maximum has the largest number that 63 bits hold.
const unbounded = 2 ** 62;

export function bandwidth(b) {
  if (!b || !b.max_bps) return 'best effort';
  if (b.max_bps >= unbounded) return `at least ${rate(b.min_bps)}`;
  if (b.min_bps === b.max_bps) return rate(b.max_bps);
  return b.min_bps ? `${rate(b.min_bps)} to ${rate(b.max_bps)}` : `up to ${rate(b.max_bps)}`;
}

export function when(text) {
  if (!text) return 'until released';
  const t = new Date(text);
  const day = t.toDateString() === new Date().toDateString() ? '' : `${t.toLocaleDateString()} `;
  return day + t.toLocaleTimeString();
}
