// Two commits side by side, of all runs that have a page.
import {h, replace, checkBox, choice, hasWords, searchField, wordsOf} from '../dom.js';
import {load} from '../load.js';
import {entryOf, keep} from '../state.js';
import {pagedTable} from '../table.js';
import {day, betweenText, show} from '../units.js';
import {cellLink, commitLink} from '../words.js';

const MOST_RUNS = 40; // of one commit

export async function comparePage({overview, state}) {
  const {runs} = await load('runs');
  const commits = new Map(); // key -> {label, runs}
  for (const run of runs) {
    const key = run.commit ? run.commit.slice(0, 12) : run.id;
    const label = `${run.commit ? run.commit.slice(0, 10) : 'no commit'} · ${day(run.time)}${run.branch ? ` · ${run.branch}` : ''}`;
    entryOf(commits, key, () => ({commit: run.commit, label, runs: []})).runs.push(run);
  }
  const keys = [...commits.keys()];
  if (keys.length < 2) return {title: 'Compare', nodes: [h('h1', {}, 'Compare'), h('p', {class: 'soft'}, 'There are not two commits to compare yet.')]};
  const known = (key, other) => (commits.has(key) ? key : other);
  const view = {a: known(state.query.get('a'), keys[1]), b: known(state.query.get('b'), keys[0]), all: state.query.get('all') === '1', find: state.query.get('find') ?? ''};
  const body = h('div', {});
  const heads = h('p', {});
  let drawn = 0;

  async function draw() {
    const mine = ++drawn;
    replace(heads, commitLink(overview, commits.get(view.a).commit), ' → ', commitLink(overview, commits.get(view.b).commit));
    const [before, after] = await Promise.all([valuesOf(commits.get(view.a).runs), valuesOf(commits.get(view.b).runs)]);
    if (mine !== drawn) return;
    keep({a: view.a, b: view.b, all: view.all ? '1' : '', find: view.find});
    const rows = [];
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const a = before.get(key);
      const b = after.get(key);
      const one = b ?? a;
      rows.push({...one, a: a?.value, b: b?.value, size: a && b ? Math.abs(Math.log((b.value || 1e-30) / (a.value || 1e-30)) || 0) : Infinity});
    }
    rows.sort((x, y) => y.size - x.size);
    const words = wordsOf(view.find);
    const some = rows.filter((row) => (view.all || row.a !== row.b) && hasWords(`${row.cell} ${row.metric.label} ${row.machine}`, words));
    replace(body, h('p', {class: 'soft'}, `${rows.length - rows.filter((row) => row.a === row.b).length} of ${rows.length} numbers differ. Medians, where a commit was measured more than once.`),
      pagedTable({caption: 'Numbers of two commits', rows: some, size: 60, empty: 'Nothing differs.', columns: [
        {title: 'cell', cell: (row) => cellLink(row.id, row.cell, {metric: row.metric.name, machine: row.machine})},
        {title: 'metric', cell: (row) => row.metric.label},
        {title: 'machine', cell: (row) => row.machine || '–'},
        {title: 'before', class: 'number', cell: (row) => show(row.metric, row.a)},
        {title: 'after', class: 'number', cell: (row) => show(row.metric, row.b)},
        {title: 'change', class: 'number', cell: (row) => (row.a === undefined ? 'new' : row.b === undefined ? 'gone' : betweenText(row.metric, row.a, row.b))},
      ]}).box);
  }

  const entries = keys.map((key) => [key, commits.get(key).label]);
  const set = (name) => (to) => {
    view[name] = to;
    draw();
  };
  await draw();
  return {title: 'Compare', nodes: [
    h('h1', {}, 'Compare two commits'),
    h('div', {class: 'bar'},
      choice('Before', entries, view.a, set('a')),
      choice('After', entries, view.b, set('b')),
      h('label', {class: 'field grow'}, h('span', {}, 'Find'), searchField(view.find, set('find'))),
      h('label', {class: 'check'}, checkBox(view.all, set('all')), ' also what is the same')),
    heads, body,
  ]};
}

// "id metric machine" -> the median over a commit's runs.
async function valuesOf(runs) {
  const found = new Map();
  for (const run of runs.slice(0, MOST_RUNS)) {
    const {metrics, points} = await load(`runs/${run.id}`);
    for (const [id, cell, at, value] of points) {
      const metric = metrics[at];
      const key = JSON.stringify([id, cell, metric.name, metric.unit, run.machine]);
      entryOf(found, key, () => ({id, cell, metric, machine: run.machine, values: []})).values.push(value);
    }
  }
  for (const one of found.values()) one.value = median(one.values);
  return found;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
