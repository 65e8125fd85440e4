// One run: what the gate said, which kernels changed, all its numbers.
import {h} from '../dom.js';
import {pictureOf} from '../figures.js';
import {load} from '../load.js';
import {loadPart} from '../load_curves.js';
import {link} from '../state.js';
import {pagedTable} from '../table.js';
import {moment, betweenText, show} from '../units.js';
import {cellLink, commitLink, verdictBadge} from '../words.js';

export async function runPage({overview, state}) {
  const {run, name, weir_version, places, verdicts, metrics, points, bases, served} = await load(`runs/${/^[0-9a-f]+$/.test(state.id) ? state.id : 'none'}`);
  const facts = [
    ['commit', commitLink(overview, run.commit)], ['branch', run.branch], ['measured', moment(run.time)],
    ['machine', run.machine], ['project', run.project], ['from', run.source], ['weir', weir_version], ['name', name],
    ...places.map((one) => ['on', [one.device || one.device_class, one.machine || one.machine_class, one.build].filter(Boolean).join(' · ')]),
  ];
  return {title: `Run of ${moment(run.time)}`, nodes: [
    h('h1', {}, 'Run of ', moment(run.time)),
    h('dl', {}, facts.filter(([, what]) => what).map(([term, what]) => [h('dt', {}, term), h('dd', {}, what, term === 'commit' && run.dirty ? ' with changes not committed' : '')])),
    run.commit ? h('p', {}, h('a', {href: link('compare', {b: run.commit.slice(0, 12)})}, 'Compare with another commit')) : null,
    verdicts.length ? verdicts.map((verdict, i) => verdictPart(overview, verdict, i)) : h('p', {class: 'soft'}, 'No gate judged this run.'),
    loadPart(metrics, points, bases),
    servedPart(served),
    h('h2', {}, 'All numbers'),
    pagedTable({caption: 'All numbers of this run', rows: points, size: 60, empty: 'None.', columns: [
      {title: 'cell', cell: ([id, cell, metric]) => cellLink(id, cell, {metric: metrics[metric].name, machine: run.machine})},
      {title: 'metric', cell: (point) => metrics[point[2]].label},
      {title: 'value', class: 'number', cell: (point) => show(metrics[point[2]], point[3], point[4])},
    ]}).box,
  ]};
}

// served: of each cell of a server what is known of its requests and batches.
function servedPart(served) {
  return served.length ? [h('h2', {}, 'Requests and batches'), served.flatMap(({cell, figures}) => figures.map((figure) => h('figure', {class: 'served'},
    h('figcaption', {}, `${cell}: ${figure.caption}`), pictureOf(figure), h('p', {class: 'soft'}, figure.words))))] : null;
}

function verdictPart(overview, verdict, i) {
  const loud = verdict.cells.filter((cell) => !['pass', 'skipped', 'info'].includes(cell.verdict));
  const quiet = verdict.cells.length - loud.length;
  return h('section', {class: 'verdict-part'},
    h('h2', {}, i ? 'Judged before: ' : 'Verdict: ', verdictBadge(verdict.verdict)),
    h('p', {class: 'soft'}, `against ${verdict.base || 'no base'} `, verdict.base_commit ? commitLink(overview, verdict.base_commit) : null),
    verdict.not_judged.map((one) => h('p', {class: 'missing'}, one)),
    loud.map(cellPart),
    quiet ? h('p', {}, `${quiet} other cell${quiet === 1 ? '' : 's'} within limits.`) : null);
}

function cellPart(cell) {
  return h('section', {class: 'cell'},
    h('h3', {}, verdictBadge(cell.verdict), ' ', cellLink(cell.id, cell.cell)),
    cell.reason ? h('p', {class: 'lines'}, cell.reason) : null,
    cell.judgements.length ? pagedTable({caption: `Metrics of ${cell.cell}`, rows: cell.judgements, columns: [
      {title: 'metric', cell: (one) => one.metric.label},
      {title: 'verdict', cell: (one) => verdictBadge(one.verdict)},
      {title: 'base', class: 'number', cell: (one) => show(one.metric, one.baseline, one.baseline_text)},
      {title: 'now', class: 'number', cell: (one) => show(one.metric, one.current, one.current_text)},
      {title: 'change', class: 'number', cell: (one) => (one.baseline === null || one.current === null ? '–' : betweenText(one.metric, one.baseline, one.current))},
      {title: 'why', cell: (one) => one.reason},
    ]}).box : null,
    cell.judgements.map((one) => changed(one.metric.name === 'placement' ? 'Ops that moved' : 'Kernels', one.changed)),
    changed('Functions', cell.functions),
    cell.fine ? h('p', {class: 'soft'}, `${cell.fine} other metrics within limits.`) : null);
}

function changed(title, list) {
  if (!list.length) return null;
  return [h('h4', {}, title),
    pagedTable({caption: title, rows: list, size: 40, columns: [
      {title: 'name', cell: ([name]) => h('code', {}, name)},
      {title: 'base', class: 'number', cell: (one) => one[1] ?? '–'},
      {title: 'now', class: 'number', cell: (one) => one[2] ?? '–'},
    ]}).box];
}
