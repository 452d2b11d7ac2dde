// The console of a node, by xterm.js. That is loaded when it is wanted first.

import { openConsole } from './api.js';
import { colour } from './colour.js';
import { el, say } from './dom.js';

function script(src) {
  return new Promise((done, fail) => {
    const s = el('script', { src, onload: done, onerror: () => fail(new Error(`${src} cannot be loaded`)) });
    document.head.append(s);
  });
}

export async function consoleView(root, tenant, network, node) {
  if (!window.Terminal) await script('vendor/xterm.js');
  if (!window.FitAddon) await script('vendor/xterm-addon-fit.js');
  const place = el('div', { class: 'console' });
  root.append(el('h1', {}, `${network}/${node}`), place);
  const terminal = new window.Terminal({ fontSize: 13, theme: { background: colour('panel'), foreground: colour('text'), cursor: colour('accent') } });
  const fit = new window.FitAddon.FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  const socket = openConsole({ tenant, network }, node);
  const size = () => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ Rows: terminal.rows, Cols: terminal.cols })); };
  const bytes = new TextEncoder();
  socket.onopen = size;
  socket.onmessage = (e) => terminal.write(new Uint8Array(e.data));
  socket.onclose = (e) => say(e.reason || 'the console cannot be opened');
  terminal.onData((text) => { if (socket.readyState === WebSocket.OPEN) socket.send(bytes.encode(text)); });
  terminal.onResize(size);
  const resized = () => fit.fit();
  addEventListener('resize', resized);
  terminal.focus();
  return () => { removeEventListener('resize', resized); socket.onclose = null; socket.close(); terminal.dispose(); };
}
