// Where we are, as the address has it: "#/cell/ID?metric=…&range=3-90". Whoever follows a link sees
// what its maker saw.

export function read() {
  const [path, query = ''] = location.hash.replace(/^#/, '').split('?');
  const [, page = '', id = ''] = path.split('/');
  return {page, id, query: new URLSearchParams(query)};
}

// An address: link('cell/0a1b', {metric: 'x', range: ''}); what is empty is left out.
export function link(path, parts = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) {
    if (value !== '' && value !== null && value !== undefined && value !== false) query.set(name, value);
  }
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ''}`;
}

// What a map has under a key, made where there is none yet.
export function entryOf(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

// Keeps parts of the state without making a new step of the browser's history.
export function keep(parts) {
  const {page, id, query} = read();
  const all = {...Object.fromEntries(query), ...parts};
  const to = link(id ? `${page}/${id}` : page, all);
  if (to !== location.hash) history.replaceState(null, '', to);
}
