// Colours come from the style sheet, so that light and dark have one place.

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// load is the colour of how much of something is taken, 0 to 1.
export function load(part) {
  if (!(part > 0)) return colour('idle');
  return colour(part < 0.5 ? 'low' : part < 0.8 ? 'middle' : part <= 1 ? 'high' : 'over');
}
