// A text field for a request, with the numbers of its lines, its problems beside
// their lines, and what may stand at the cursor.

import { el } from './dom.js';
import { keep } from './list.js';
import { offered, placeOf, schema } from './schema.js';

// editor calls changed with the text a moment after it was changed. mark shows
// problems: {line, column, problem}.
export function editor(value, changed, submit, picture) {
  const text = el('textarea', { id: 'request', rows: 20, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off', 'aria-describedby': 'problems keys' });
  text.value = value;
  const gutter = el('div', { class: 'gutter', 'aria-hidden': 'true' });
  const problems = el('ul', { id: 'problems', class: 'problems', 'aria-live': 'polite' });
  const help = helpOf(text, () => typed());
  let marked = new Map();
  let timer = null;
  const numbers = () => {
    const count = text.value.split('\n').length;
    if (gutter.children.length !== count) {
      keep(gutter, Array.from({ length: count }, (_, i) => gutter.children[i] || el('div', {}, String(i + 1))));
    }
    [...gutter.children].forEach((line, i) => { line.className = marked.has(i + 1) ? 'wrong' : ''; });
    gutter.scrollTop = text.scrollTop;
  };
  const typed = () => {
    numbers();
    clearTimeout(timer);
    timer = setTimeout(() => changed(text.value), 400);
  };
  text.addEventListener('input', typed);
  text.addEventListener('scroll', () => { gutter.scrollTop = text.scrollTop; });
  text.addEventListener('keydown', (e) => keyed(e, text, help, submit));
  const mark = (list) => {
    marked = new Map(list.map((p) => [p.line, p]));
    text.setAttribute('aria-invalid', String(list.length > 0));
    problems.replaceChildren(...list.map((p) => el('li', {}, el('button', { type: 'button', onclick: () => go(text, p) }, `line ${p.line}, column ${p.column}`), ' ', p.problem)));
    numbers();
  };
  numbers();
  const root = el('div', { class: 'editing' }, el('div', {},
    el('label', { for: 'request' }, 'The request, as YAML'),
    el('div', { class: 'editor' }, gutter, text),
    el('p', { id: 'keys' }, 'Ctrl+Space goes to what may stand at the cursor, Escape back. Ctrl+Enter asks.'), problems), el('div', {}, picture, help.root));
  return { root, text, mark, end: () => { clearTimeout(timer); help.end(); } };
}

// put writes like a keyboard, so that the browser can take it back.
function put(text, from, to, written) {
  text.focus();
  text.setSelectionRange(from, to);
  if (!document.execCommand('insertText', false, written)) text.setRangeText(written, from, to, 'end');
}

function keyed(e, text, help, submit) {
  if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
    e.preventDefault();
    submit();
  } else if (e.key === ' ' && e.ctrlKey) {
    e.preventDefault();
    help.enter();
  } else if (e.key === 'Enter' && !e.shiftKey && !e.altKey) {
    e.preventDefault();
    const line = text.value.slice(0, text.selectionStart).split('\n').pop();
    put(text, text.selectionStart, text.selectionEnd, `\n${/^ */.exec(line)[0]}`);
  }
}

function go(text, { line, column }) {
  const lines = text.value.split('\n');
  const at = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0) + column - 1;
  text.focus();
  text.setSelectionRange(at, at + (/^[\w.-]*/.exec(text.value.slice(at))[0].length || 1));
  text.scrollTop = Math.max(0, (line - 5) * parseFloat(getComputedStyle(text).lineHeight));
}

const most = 60; // offers at a place

// helpOf is the list of what may stand at the cursor.
function helpOf(text, changed) {
  const about = el('p', {});
  const list = el('ul', { class: 'plain', 'aria-label': 'What may stand at the cursor' });
  const root = el('section', { class: 'help' }, el('h2', {}, 'At the cursor'), about, list);
  let said = '';
  const choose = (o) => {
    const at = text.selectionStart;
    const { word } = placeOf(text.value, at); // now: more may have been typed since the list was made
    const named = o.kind === 'value' || /^\s*:/.test(text.value.slice(at));
    put(text, at - word.length, at, named ? o.name : `${o.name}: `);
    changed();
  };
  const paint = async () => {
    if (document.activeElement !== text && said) return;
    const place = placeOf(text.value, text.selectionStart);
    const found = offered(await schema(), place);
    const now = JSON.stringify([found, place.word]);
    if (now === said) return;
    said = now;
    about.textContent = [place.path.join('.').replaceAll('.[]', '[]'), found.about].filter(Boolean).join(': ');
    list.replaceChildren(...found.list.slice(0, most).map((o) => el('li', {}, el('button', { type: 'button', tabindex: -1, onclick: () => choose(o) }, o.name), ' ', o.description)),
      found.list.length ? '' : el('li', {}, place.valued ? 'A value.' : 'Nothing begins like that.'));
  };
  const moved = () => { paint().catch(() => {}); }; // without its schema there is no help
  document.addEventListener('selectionchange', moved);
  root.addEventListener('keydown', (e) => {
    const buttons = [...list.querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement);
    if (e.key === 'Escape') text.focus();
    else if (e.key === 'ArrowDown') buttons[Math.min(at + 1, buttons.length - 1)]?.focus();
    else if (e.key === 'ArrowUp') buttons[Math.max(at - 1, 0)]?.focus();
    else return;
    e.preventDefault();
  });
  moved();
  return { root, enter: () => list.querySelector('button')?.focus(), end: () => document.removeEventListener('selectionchange', moved) };
}
