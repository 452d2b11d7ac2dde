// What may stand at a place of a request, by its schema.

let read = null;
export const schema = () => (read ||= fetch('request.schema.json').then((r) => r.json()));

// placeOf finds where in a YAML text the cursor is: the path of keys ([] is an item
// of a list), the word before the cursor, and whether a key or the value of one is
// written there. It knows blocks and brackets; of quotes, comments and block texts
// only what completion needs.
export function placeOf(text, cursor) {
  const blocks = []; // {column, step}
  let brackets = []; // {step, key}; step [] of a list
  const lines = text.slice(0, cursor).split('\n');
  lines.forEach((line, i) => {
    const last = i === lines.length - 1;
    if (!last && !line.replace(/#.*$/, '').trim()) return;
    let rest = line;
    if (!brackets.length) rest = indented(line, blocks);
    brackets = bracketed(rest, brackets, blocks);
  });
  const path = blocks.map((b) => b.step).concat(brackets.flatMap((b) => (b.list ? ['[]'] : b.key ? [b.key] : [])));
  const word = /[\w.-]*$/.exec(lines[lines.length - 1])[0];
  const inner = brackets[brackets.length - 1];
  const valued = inner ? !inner.list && Boolean(inner.key) : Boolean(blocks[blocks.length - 1]?.here);
  return { path, word, valued };
}

// indented takes the dashes and the key at the beginning of a line, and gives what
// follows.
function indented(line, blocks) {
  for (const b of blocks) b.here = false;
  let column = /^ */.exec(line)[0].length;
  let rest = line.slice(column);
  const dash = rest === '-' || rest.startsWith('- ');
  while (blocks.length && (blocks[blocks.length - 1].column > column
    || (blocks[blocks.length - 1].column === column && !(dash && blocks[blocks.length - 1].step !== '[]')))) blocks.pop();
  while (rest === '-' || rest.startsWith('- ')) {
    blocks.push({ column, step: '[]' });
    const skipped = /^- */.exec(rest)[0].length;
    column += skipped;
    rest = rest.slice(skipped);
  }
  const key = /^([\w./-]+):(\s|$)/.exec(rest);
  if (key) {
    blocks.push({ column, step: key[1], here: true });
    rest = rest.slice(key[0].length);
  }
  return rest;
}

function bracketed(rest, brackets) {
  const open = [...brackets];
  let word = '';
  for (const c of rest.replace(/(^|\s)#.*$/, '')) {
    const inner = open[open.length - 1];
    if (c === '{') open.push({ list: false, key: '' });
    else if (c === '[') open.push({ list: true });
    else if (c === '}' || c === ']') open.pop();
    else if (c === ',' && inner) inner.key = '';
    else if (c === ':' && inner && !inner.list && !inner.key) inner.key = word.trim();
    word = /[{[,:]/.test(c) ? '' : word + c;
  }
  return open;
}

// formsOf follows references and alternatives: a schema may be several forms at once.
function formsOf(root, s) {
  if (!s || typeof s !== 'object') return [];
  if (s.$ref) return formsOf(root, s.$ref.replace('#/', '').split('/').reduce((at, step) => at?.[step], root)).map((f) => ({ ...f, description: s.description || f.description }));
  const others = [...(s.oneOf || []), ...(s.anyOf || [])].flatMap((o) => formsOf(root, o));
  return [s, ...others];
}

const inside = (root, forms, step) => forms.flatMap((f) => {
  if (step === '[]') return formsOf(root, f.items);
  if (f.properties && Object.hasOwn(f.properties, step)) return formsOf(root, f.properties[step]);
  return formsOf(root, f.additionalProperties);
});

// offered is what may be written at a place: fields, or values of one, each with its
// description, that begin with the word.
export function offered(root, { path, word, valued }) {
  const forms = path.reduce((at, step) => inside(root, at, step), formsOf(root, root));
  const found = new Map();
  const add = (name, description, kind) => { if (!found.has(name) && name.startsWith(word) && name !== word) found.set(name, { name, description, kind }); };
  if (valued) {
    for (const f of forms) {
      for (const v of f.enum || []) add(String(v), '', 'value');
      if (f.type === 'boolean') ['true', 'false'].forEach((v) => add(v, '', 'value'));
    }
  } else {
    for (const f of forms) for (const [name, p] of Object.entries(f.properties || {})) add(name, formsOf(root, p)[0]?.description || p.description || '', 'field');
  }
  return { list: [...found.values()], about: valued ? forms.map((f) => f.description).find(Boolean) || '' : '' };
}
