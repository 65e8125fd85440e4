// Where a kernel is taken: from which commit to which, by which cells, how often.
import {h, replace, checkBox, hasWords, searchField, wordsOf} from '../dom.js';
import {load} from '../load.js';
import {entryOf, keep, link} from '../state.js';
import {pagedTable} from '../table.js';
import {counted, number} from '../units.js';
import {cellFacts, cellLink, commandOf, placesOf} from '../words.js';

// Programs that do not name their kernels for the driver have them by the hash of their code.
const named = (name) => !/@[0-9a-f]{8,}$/.test(name);

export async function kernelsPage({overview, state}) {
  const index = await load('kernels');
  const kernels = index.kernels.map(([name, cells, first, last], place) => ({name, cells, first, last, place})).sort((a, b) => named(b.name) - named(a.name) || (a.name < b.name ? -1 : 1));
  const view = {find: state.query.get('find') ?? '', kernel: state.query.get('kernel') ?? '', hashes: state.query.get('hashes') === 'yes'};
  const facts = cellFacts(overview);
  const placeOf = placesOf(index.cells);
  const box = h('div', {});
  const hidden = kernels.filter((one) => !named(one.name)).length;
  const range = (from, to) => `${index.commits[from]}${from === to ? '' : ` – ${index.commits[to]}`}${to === index.commits.length - 1 ? ' (newest)' : ''}`;
  // Those that have all words; where none has, those that have all parts of them.
  const fits = () => {
    const some = kernels.filter((one) => view.hashes || named(one.name));
    const having = (text) => some.filter((one) => hasWords(one.name, wordsOf(text)));
    const whole = having(view.find);
    return whole.length ? whole : having(view.find.replaceAll('_', ' '));
  };
  let turn = 0;

  async function draw() {
    keep({find: view.find, kernel: view.kernel, hashes: view.hashes ? 'yes' : ''});
    const some = fits();
    table.show(some);
    table.box.hidden = some.length === 1;
    const exact = kernels.find((one) => one.name === (view.kernel || view.find)) ?? (some.length === 1 ? some[0] : null);
    const mine = ++turn;
    const runs = exact ? (await load(`kernels/${Math.floor(exact.place / index.a_file)}`))[exact.place % index.a_file] : [];
    if (mine === turn) replace(box, exact ? taken(exact, runs) : null);
  }

  // Backends that take it alike in one line.
  function taken(kernel, runs) {
    const groups = new Map();
    for (const [at, from, to, times] of runs) {
      const {row, backend} = placeOf(index.cells[at]);
      const key = JSON.stringify([row, from, to, times]);
      const make = () => ({row, from, to, times, per: facts.get(index.cells[at])?.per ?? 'token or prefill', cells: []});
      entryOf(groups, key, make).cells.push({name: index.cells[at], backend});
    }
    const rows = [...groups.values()].sort((a, b) => b.to - a.to || (a.row < b.row ? -1 : a.row > b.row ? 1 : 0) || b.from - a.from);
    return [h('h2', {id: 'kernel'}, h('code', {}, kernel.name)), h('p', {class: 'soft'}, `Taken by ${kernel.cells} of ${counted(index.cells.length, 'cell')}, ${range(kernel.first, kernel.last)}.`),
      pagedTable({caption: `Where ${kernel.name} is taken, the newest first`, rows, size: 40, columns: [
        {title: 'model / prompt', cell: (one) => one.row},
        {title: 'commits', cell: (one) => range(one.from, one.to)},
        {title: 'how often', class: 'number', cell: (one) => `${number(one.times)} per ${one.per}`},
        {title: 'backends', cell: (one) => one.cells.map(({name, backend}, i) => [i ? ', ' : '', cellLink(facts.get(name)?.id, backend || name)])},
        overview.changes.repeat ? {title: 'count it again', cell: (one) => commandOf(overview, index.commits[one.to], one.cells[0].name)} : null,
      ].filter(Boolean)}).box];
  }

  const table = pagedTable({caption: 'Kernels', rows: fits(), size: 25, empty: 'No kernel has such a name.', columns: [
    {title: 'kernel', cell: (one) => h('a', {href: link('kernels', {find: view.find, kernel: one.name, hashes: view.hashes ? 'yes' : ''})}, h('code', {}, one.name))},
    {title: 'commits', cell: (one) => range(one.first, one.last)},
    {title: 'cells', class: 'number', cell: (one) => number(one.cells)},
  ]});
  await draw();
  return {title: 'Kernels', nodes: [
    h('h1', {}, 'Kernels'),
    h('p', {class: 'soft'}, `${counted(kernels.length, 'kernel')} in ${counted(index.commits.length, 'commit')}`, hidden ? `, ${hidden} of them without a name for the driver: the hash of their code stands for it.` : '.'),
    h('div', {class: 'bar', role: 'search'}, h('label', {class: 'field grow'}, h('span', {}, 'Find kernels'), searchField(view.find, (text) => {
      Object.assign(view, {find: text, kernel: ''});
      draw();
    }, {placeholder: 'flash_attn cm2'})),
    hidden ? h('label', {class: 'check'}, checkBox(view.hashes, (on) => {
      view.hashes = on;
      draw();
    }), ' without names') : null),
    box, table.box,
  ]};
}
