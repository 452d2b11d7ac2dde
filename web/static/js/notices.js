// What the owner of a network should know, in a few words.

import { when } from './dom.js';

const day = 864e5;

export function noticesOf(lease, planned = []) {
  const list = [];
  const left = lease.window?.end ? Date.parse(lease.window.end) - Date.now() : Infinity;
  if (lease.state !== 'ended' && left > 0 && left < day) list.push(`ends in ${left < 36e5 ? `${Math.ceil(left / 6e4)} min` : `${Math.floor(left / 36e5)} h`}`);
  if (lease.move) list.push('is being moved');
  if (lease.paused) list.push('is paused');
  if (lease.undone) list.push(`its last change was taken back: ${lease.undone}`);
  for (const m of planned) {
    const concerned = (m.leases || []).some((l) => l.tenant === lease.request.tenant && l.network === lease.request.network);
    if (concerned) list.push(`maintenance of ${m.host || m.link} from ${when(m.start)} to ${when(m.end)}`);
  }
  if (lease.message) list.push(lease.message);
  return list;
}
