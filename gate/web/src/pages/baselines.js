// How old the baselines are that gates judge by.
import {h} from '../dom.js';
import {load} from '../load.js';
import {pagedTable} from '../table.js';
import {age, counted, day} from '../units.js';
import {cellLink, commitLink} from '../words.js';

export async function baselinesPage({overview}) {
  const {baselines} = await load('baselines');
  const rows = [...baselines].sort((a, b) => a.time - b.time);
  const old = rows.filter((row) => Date.now() / 1000 - row.time > 90 * 86400).length;
  return {title: 'Baselines', nodes: [
    h('h1', {}, 'Baselines'),
    h('p', {class: 'soft'}, rows.length ? `${counted(rows.length, 'baseline')}, ${old} of them older than 90 days. The oldest first.`
      : 'None are kept here: weir trend import --from-dir reads them from the repository.'),
    rows.length ? pagedTable({caption: 'Baselines, the oldest first', rows, size: 60, columns: [
      {title: 'cell', cell: (row) => cellLink(row.id, row.cell)},
      {title: 'of', cell: (row) => row.on},
      {title: 'age', class: 'number', cell: (row) => age(row.time)},
      {title: 'stored', cell: (row) => day(row.time)},
      {title: 'commit', cell: (row) => commitLink(overview, row.commit)},
    ]}).box : null,
  ]};
}
