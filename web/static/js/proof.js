// How a promise was kept over time, as a bar.

import { el, when } from './dom.js';

const long = 200;

export function proofBar(proof, from, until) {
  const x = (t) => Math.max(0, Math.min(long, long * (t - from) / (until - from)));
  const runs = (proof.runs || []).map((run) => {
    const begins = Date.parse(run.from);
    return el('svg:rect', {
      x: x(begins), width: Math.max(1, x(begins + 6e4 * run.minutes) - x(begins)), y: 0, height: 14, class: run.verdict.replace(' ', '-'),
    }, el('svg:title', {}, `${when(run.from)}, ${run.minutes} min: ${run.verdict}${run.cause ? `, ${run.cause}` : ''}`));
  });
  const part = proof.availability < 0 ? 'not tested' : `${(100 * proof.availability).toFixed(proof.availability === 1 ? 0 : 3)} %`;
  return el('span', { class: 'proof' },
    el('svg:svg', { viewBox: `0 0 ${long} 14`, width: long, height: 14, role: 'img', 'aria-label': part }, runs), ' ', part);
}
