// All cells: a matrix of cells and metrics, the few that changed found by their state.
import {h, replace, choice, announce, checkBox, filterButton, hasWords, searchField, wordsOf} from '../dom.js';
import {load} from '../load.js';
import {keep, link} from '../state.js';
import {spark} from '../spark.js';
import {pager} from '../table.js';
import {changeText, counted, day, show} from '../units.js';
import {RANK, STATES, cellLink, stateBadge, stateOf, verdictBadge} from '../words.js';

const A_PAGE = 25;
const SORTS = [['state', 'the worst first'], ['changed', 'last change first'], ['name', 'name']];
const rankOf = (cell) => (cell.gate === 'fail' ? -1 : RANK[cell.state]);

// A line of overview.cells as an object.
const cellOf = ([id, project, name, state, time, changed, gate, metrics, machines], place) =>
  ({id, project, name, state, time, changed, gate, metrics, machines, place});

export async function overviewPage({overview, state}) {
  const {query} = state;
  const cells = overview.cells.map(cellOf);
  const projects = new Set(cells.map((cell) => cell.project));
  const view = {
    find: query.get('find') ?? '',
    state: query.get('state') ?? '',
    machine: query.get('machine') ?? '',
    sort: query.get('sort') ?? 'state',
    at: Number.parseInt(query.get('at') ?? '0', 10) || 0,
    columns: columnsOf(query.get('columns'), overview),
  };
  const body = h('div', {'aria-live': 'off'});
  let drawn = 0;

  const remember = () => keep({find: view.find, state: view.state, machine: view.machine, sort: view.sort === 'state' ? '' : view.sort, at: view.at || '', columns: view.columns.join() === overview.columns.join() ? '' : view.columns.join('.')});

  function chosen() {
    const words = wordsOf(view.find);
    const machine = overview.machines.indexOf(view.machine);
    const some = cells.filter((cell) =>
      (!view.state || (view.state === 'fail' ? cell.gate === 'fail' : cell.state === view.state)) &&
      (!view.machine || cell.machines.includes(machine)) &&
      hasWords(`${cell.name}\n${cell.project}`, words));
    if (view.sort === 'state') some.sort((a, b) => rankOf(a) - rankOf(b) || (b.changed ?? 0) - (a.changed ?? 0));
    if (view.sort === 'changed') some.sort((a, b) => (b.changed ?? 0) - (a.changed ?? 0));
    return some;
  }

  async function draw() {
    const mine = ++drawn;
    const some = chosen();
    const pages = Math.max(1, Math.ceil(some.length / A_PAGE));
    view.at = Math.min(Math.max(0, view.at), pages - 1);
    const part = some.slice(view.at * A_PAGE, (view.at + 1) * A_PAGE);
    const files = [...new Set(part.map((cell) => Math.floor(cell.place / overview.cells_a_file)))];
    const sparks = new Map(await Promise.all(files.map(async (file) => [file, await load(`sparks/${file}`)])));
    if (mine !== drawn) return;
    remember();
    const lines = part.map((cell) => ({cell, series: sparks.get(Math.floor(cell.place / overview.cells_a_file))[cell.place % overview.cells_a_file] ?? []}));
    replace(body, part.length ? matrix(lines) : h('p', {class: 'soft'}, cells.length ? 'No cell fits.' : 'Nothing is kept yet: weir trend import keeps runs.'),
      pages > 1 ? pager(view.at, pages, some.length, (to) => {
        view.at = to;
        draw().then(() => body.querySelector('.pager button:not([disabled])')?.focus());
        announce(`Page ${to + 1}`);
      }) : null);
  }

  function matrix(lines) {
    // Of those that nobody chose, none that is empty here.
    const columns = view.columns === overview.columns ? view.columns.filter((at) => lines.some(({series}) => series.some((one) => one.metric === at))) : view.columns;
    return h('div', {class: 'wide'}, h('table', {class: 'matrix', role: 'table'},
      h('caption', {class: 'unseen'}, 'Cells and what their metrics did lately'),
      h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, h('th', {scope: 'col', role: 'columnheader'}, 'cell'),
        columns.map((at) => h('th', {scope: 'col', role: 'columnheader'}, overview.metrics[at].label)))),
      h('tbody', {role: 'rowgroup'}, lines.map(({cell, series}) => h('tr', {role: 'row'},
        h('th', {scope: 'row', role: 'rowheader'},
          h('div', {}, cellLink(cell.id, cell.name, {machine: view.machine})),
          h('div', {class: 'small'}, projects.size > 1 ? `${cell.project} · ` : '', stateBadge(cell.state),
            cell.gate ? [' gate ', verdictBadge(cell.gate)] : null, ` ${day(cell.time)}`)),
        columns.map((at) => h('td', {role: 'cell', 'data-label': overview.metrics[at].label}, entry(cell, series, at))))))));
  }

  // The worst of a metric's series, and of these the newest.
  function entry(cell, series, at) {
    const some = series.filter((one) => one.metric === at && (!view.machine || one.machine === view.machine))
      .sort((a, b) => RANK[a.state] - RANK[b.state] || b.time - a.time);
    if (some.length === 0) return h('span', {class: 'soft'}, '–');
    const [one] = some;
    const metric = overview.metrics[at];
    const from = one.points - one.spark.length;
    return h('a', {class: 'entry', href: link(`cell/${cell.id}`, {metric: metric.name, machine: some.length > 1 || view.machine ? one.machine : ''})},
      spark(one.spark, one.change ? one.change.index - from : null),
      h('span', {class: 'value'}, show(metric, one.last)),
      one.change ? h('span', {class: `change ${one.state}`}, changeText(metric, one.change), ' ', stateBadge(stateOf(metric, one.change))) : null,
      some.length > 1 ? h('span', {class: 'more'}, `1 of ${some.length} machines`) : null);
  }

  const set = (name) => (to) => {
    view[name] = to;
    view.at = 0;
    draw();
  };
  const find = searchField(view.find, set('find'), {id: 'find', placeholder: 'vulkan decode'});
  const states = ['fail', ...STATES.map(([name]) => name)].map((name) => {
    const number = cells.filter((cell) => (name === 'fail' ? cell.gate === 'fail' : cell.state === name)).length;
    if (!number) return null;
    return filterButton(() => view.state === name, () => set('state')(view.state === name ? '' : name), null, name === 'fail' ? [verdictBadge('fail'), ' at the gate'] : stateBadge(name), ` ${number}`);
  });
  await draw();
  return {
    title: 'Cells',
    nodes: [
      h('h1', {}, overview.title || 'Trends'),
      h('p', {class: 'soft'}, `${counted(cells.length, 'cell')} · ${counted(overview.series, 'series', 'series')} · ${counted(overview.points, 'point')} of ${counted(overview.runs, 'run')}`),
      h('div', {class: 'bar', role: 'search'}, h('label', {class: 'field grow'}, h('span', {}, 'Find cells'), find),
        overview.machines.length > 1 ? choice('Machine', [['', 'all'], ...overview.machines.map((one) => [one, one || 'not known'])], view.machine, set('machine')) : null,
        choice('Order', SORTS, view.sort, set('sort'))),
      h('div', {class: 'filters', role: 'group', 'aria-label': 'Show cells by state'}, states),
      columnPicker(overview, view, draw),
      body,
    ],
  };
}

function columnsOf(text, overview) {
  const some = (text ?? '').split('.').map(Number).filter((at) => Number.isInteger(at) && overview.metrics[at]);
  return text && some.length ? [...new Set(some)] : overview.columns;
}

function columnPicker(overview, view, draw) {
  if (overview.metrics.length < 2) return null;
  return h('details', {class: 'columns'}, h('summary', {}, 'Metrics shown'),
    h('div', {class: 'checks'}, overview.metrics.map((metric, at) => {
      const box = checkBox(view.columns.includes(at), (shown) => {
        view.columns = shown ? [...view.columns, at] : view.columns.filter((one) => one !== at);
        draw();
      });
      return h('label', {}, box, ' ', metric.label);
    })));
}
