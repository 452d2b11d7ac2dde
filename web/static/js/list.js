// Long lists: only the first rows are made, and more on demand, so that the time
// a list takes does not grow with its length.

import { el } from './dom.js';

const step = 100;

// bounded gives the rows of the first items and, if there are more, a button that
// shows more of them. The row of an item is made once, and anew when another object
// stands for it.
export function bounded(keyOf, rowOf, again) {
  let shown = step;
  let made = new Map();
  return {
    rows(items) {
      const next = new Map();
      for (const item of items.slice(0, shown)) {
        const was = made.get(keyOf(item));
        next.set(keyOf(item), was && was.item === item ? was : { item, row: rowOf(item) });
      }
      made = next;
      return [...next.values()].map((m) => m.row);
    },
    more(items) {
      return items.length > shown && el('p', {}, `${shown} of ${items.length} are shown. `, el('button', {
        type: 'button', onclick: () => { shown += step; again(); },
      }, `Show ${Math.min(step, items.length - shown)} more`));
    },
  };
}

// keep puts children into a parent and moves none that is where it shall be: what
// has the focus keeps it.
export function keep(parent, children) {
  let at = parent.firstChild;
  for (const child of children) {
    if (child === at) at = at.nextSibling;
    else parent.insertBefore(child, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// filterOf is a field that narrows a list.
export const filterOf = (label, change) => el('input', { type: 'search', 'aria-label': label, placeholder: 'filter', oninput: change });
