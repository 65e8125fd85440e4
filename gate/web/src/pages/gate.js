// The gate's own tally: what it said, and what became of it.
import {h, filterButton} from '../dom.js';
import {load} from '../load.js';
import {keep, link} from '../state.js';
import {pagedTable} from '../table.js';
import {counted, day, number} from '../units.js';
import {cellLink, commitLink} from '../words.js';

const FATES = [
  ['accepted', 'meant: waived, or the baseline was changed'],
  ['reverted', 'gone again beside the same baseline'],
  ['disputed', 'the same commit, judged again, was not red'],
  ['open', 'red still, or nothing came after'],
];

export async function gatePage({overview, state}) {
  const tally = await load('tally');
  const share = tally.judged + tally.undecided ? ` (${number((100 * tally.undecided) / (tally.judged + tally.undecided), 2)} %)` : '';
  const wanted = state.query.get('fate') ?? '';
  const rows = () => tally.reds.filter((red) => !chosen || red.fate === chosen);
  let chosen = FATES.some(([fate]) => fate === wanted) ? wanted : '';
  const table = pagedTable({caption: 'Red metrics, the newest first', rows: rows(), size: 50, empty: 'None.', columns: [
    {title: 'cell', cell: (red) => cellLink(red.id, red.cell, {metric: red.metric})},
    {title: 'metric', cell: (red) => red.metric.replaceAll('_', ' ')},
    {title: 'became', cell: (red) => h('span', {class: 'badge'}, red.fate)},
    {title: 'commit', cell: (red) => commitLink(overview, red.commit)},
    {title: 'branch', cell: (red) => red.branch || '–'},
    {title: 'judged', cell: (red) => (red.run ? h('a', {href: link(`run/${red.run}`)}, day(red.time)) : day(red.time))},
  ]});
  const filters = FATES.map(([fate, why]) => filterButton(() => chosen === fate, () => {
    chosen = chosen === fate ? '' : fate;
    keep({fate: chosen});
    table.show(rows());
  }, why, `${fate} ${tally.fates[fate]}`));
  return {title: 'Gate', nodes: [
    h('h1', {}, 'The gate itself'),
    tally.verdicts === 0 ? h('p', {class: 'soft'}, 'No verdict is kept yet: weir trend import keeps them with their runs.') : [
      h('dl', {class: 'tally'},
        [['gates', number(tally.verdicts)], ['red', number(tally.red_gates)], ['could not measure', number(tally.errors)],
          ['metrics judged', number(tally.judged)], ['undecided', number(tally.undecided) + share]]
          .map(([term, what]) => h('div', {}, h('dt', {}, term), h('dd', {}, what)))),
      h('h2', {}, `What became of ${counted(tally.reds.length, 'red metric')}`),
      h('ul', {class: 'plain soft small'}, FATES.map(([fate, why]) => h('li', {}, h('strong', {}, fate), `: ${why}`))),
      h('div', {class: 'filters', role: 'group', 'aria-label': 'Show those that became'}, filters),
      table.box,
    ],
  ]};
}
