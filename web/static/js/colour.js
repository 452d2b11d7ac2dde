// Colours come from the style sheet, so that light and dark have one place.

let known = new Map(); // asking for the style of the document makes the browser compute it

export function colour(name) {
  if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return known.get(name);
}

// forget makes colours be read anew, as light or dark was chosen.
export function forget() { known = new Map(); }

// levels are how much of something is taken, 0 to 1, the name of its colour, and in words.
export const levels = [[0, 'idle', 'nothing'], [0.5, 'low', 'less than half'], [0.8, 'middle', 'less than 80 %'], [1, 'high', 'more'], [Infinity, 'over', 'more than there is']];

export const level = (part) => levels.find(([most, , text]) => (text === 'more' || most === 0 ? part <= most : part < most)) || levels[0];

export const load = (part) => colour(part > 0 ? level(part)[1] : 'idle');
