// One cell: a graph of the chosen metric and machine, its changes, and all its other metrics.
import {h, replace, choice, announce, checkBox} from '../dom.js';
import {load, subjectOf} from '../load.js';
import {keep, link} from '../state.js';
import {keysOf, makeChart} from '../chart.js';
import {spark} from '../spark.js';
import {pagedTable} from '../table.js';
import {changeText, day, intervalText, moment, show} from '../units.js';
import {RANK, commandOf, commitLink, kindWord, stateBadge, stateOf, verdictBadge} from '../words.js';

export async function cellPage({overview, state}) {
  const cell = await load(`cells/${/^[0-9a-f]+$/.test(state.id) ? state.id : 'none'}`);
  const {query} = state;
  const series = pick(cell, query.get('metric'), query.get('machine'));
  const view = {log: query.get('scale') === 'log', band: query.get('band') !== 'off', range: rangeOf(query.get('range'), series)};
  const lowest = series.value.reduce((a, b) => Math.min(a, b), Infinity);
  if (lowest <= 0) view.log = false;

  const box = h('div', {class: 'chart', tabindex: '0', role: 'application', 'aria-roledescription': 'graph', 'aria-label': describe(cell, series), 'aria-describedby': 'keys'});
  const reading = h('div', {class: 'reading'});
  const values = h('div', {});
  let chart = null;
  let at = series.value.length - 1;
  let asked = 0;
  let later = 0;

  const go = (parts) => {
    location.hash = link(`cell/${cell.id}`, {metric: series.metric.name, machine: series.machine, scale: view.log ? 'log' : '', band: view.band ? '' : 'off', range: view.range ? view.range.join('-') : '', ...parts});
  };

  async function point(i, aloud) {
    at = i;
    const mine = ++asked;
    const words = readout(overview, cell, series, i, reading);
    if (aloud) announce(words);
    const subject = await subjectOf(overview, cell.runs.commit[series.run[i]]);
    if (mine === asked && subject) readout(overview, cell, series, i, reading, subject);
  }

  function draw() {
    chart?.leave();
    box.replaceChildren();
    chart = makeChart({
      box, series, log: view.log, band: view.band, range: view.range,
      xlabel: (i) => cell.runs.commit[series.run[i]].slice(0, 7) || day(cell.runs.time[series.run[i]]),
      onpoint: (i) => i !== at && point(i, false),
      onrange(from, to, whole) {
        view.range = whole ? null : [from, to];
        clearTimeout(later);
        later = setTimeout(() => {
          keep({range: whole ? '' : `${from}-${to}`});
          if (values.open) list();
        }, 150);
      },
    });
    box.weirChart = chart; // for who measures
  }

  function list() {
    const [from, to] = view.range ?? [0, series.value.length - 1];
    const rows = [];
    for (let i = to; i >= from && rows.length < 5000; --i) rows.push(i);
    replace(table, pagedTable({caption: 'Values in the part that is shown', rows, size: 50, columns: [
      {title: 'commit', cell: (i) => commitLink(overview, cell.runs.commit[series.run[i]])},
      {title: 'measured', cell: (i) => moment(cell.runs.time[series.run[i]])},
      {title: 'value', class: 'number', cell: (i) => show(series.metric, series.value[i], exactOf(series, i))},
      {title: 'interval', class: 'number', cell: (i) => intervalOf(series, i) || '–'},
    ]}).box);
  }

  const table = h('div', {});
  replace(values, h('details', {ontoggle: (event) => {
    values.open = event.target.open;
    if (values.open) list();
  }}, h('summary', {}, 'Values as a table'), table));

  const pointAt = (i) => {
    chart.point(i);
    point(i, true);
  };
  const goTo = (i) => {
    const half = Math.max(20, Math.min(200, Math.round(series.value.length / 8)));
    chart.show(i - half, i + half);
    pointAt(i);
    box.focus();
  };
  box.addEventListener('keydown', keysOf({series, chart: () => chart, at: () => at, point: pointAt}));
  const machines = [...new Set(cell.series.filter((one) => sameMetric(one.metric, series.metric)).map((one) => one.machine))];
  const tool = (label, words, act) => h('button', {type: 'button', 'aria-label': words, title: words, onclick: act}, label);
  const toggle = (name, disabled) => checkBox(view[name], (on) => {
    view[name] = on;
    keep({scale: view.log ? 'log' : '', band: view.band ? '' : 'off'});
    draw();
  }, {disabled});

  return {
    title: `${cell.cell} ${series.metric.label}`,
    leave: () => {
      clearTimeout(later);
      chart?.leave();
    },
    shown: () => {
      draw();
      point(at, false);
    },
    nodes: [
      h('h1', {}, cell.cell),
      gateLine(overview, cell),
      h('div', {class: 'bar'},
        choice('Metric', metricsOf(cell).map((one, i) => [String(i), one.label]), String(metricsOf(cell).findIndex((one) => sameMetric(one, series.metric))), (to) => go({metric: metricsOf(cell)[Number(to)].name, range: ''})),
        machines.length > 1 ? choice('Machine', machines.map((one) => [one, one || 'not known']), series.machine, (to) => go({machine: to, range: ''})) : h('p', {class: 'field'}, h('span', {}, 'Machine'), h('span', {class: 'fixed'}, series.machine || 'not known')),
        h('label', {class: 'check'}, toggle('log', lowest <= 0), ' log scale'),
        series.low ? h('label', {class: 'check'}, toggle('band', false), ' interval') : null,
        h('div', {class: 'tools', role: 'group', 'aria-label': 'Zoom'},
          tool('+', 'Zoom in', () => chart.zoom(0.5)), tool('−', 'Zoom out', () => chart.zoom(2)),
          tool('◀', 'Earlier', () => chart.pan(-0.5)), tool('▶', 'Later', () => chart.pan(0.5)),
          tool('All', 'Show all', () => chart.showAll()))),
      box,
      reading,
      h('p', {class: 'soft small', id: 'keys'}, 'Drag to zoom, double click for all. Keys: arrows read points, with Shift they move, + and − zoom, 0 shows all, n and p go to the changes.', series.low ? ` Band: where the median of up to ${series.samples} samples lies (95 %; of fewer than 6, all of them).` : ''),
      h('h2', {}, 'Changes'),
      changeTable(overview, series, goTo),
      h('h2', {}, 'All metrics of this cell'),
      seriesTable(cell, series),
      values,
    ],
  };
}

const sameMetric = (a, b) => a.name === b.name && a.unit === b.unit && a.kind === b.kind && a.better === b.better;
const exactOf = (series, i) => series.exact.find(([place]) => place === i)?.[1];

// Of a point's samples; '' where it has none.
function intervalOf({metric, low, high}, i) {
  return low?.[i] !== undefined && low[i] !== null ? `${show(metric, low[i])} … ${show(metric, high[i])}` : '';
}

// What a point of the graph is: shown in `box`, where it stays, so that its links can be reached. The same in one sentence comes back.
function readout(overview, cell, series, i, box, subject = '') {
  const run = series.run[i];
  const {runs} = cell;
  const value = show(series.metric, series.value[i], exactOf(series, i));
  const interval = intervalOf(series, i);
  const branch = runs.branches[runs.branch[run]];
  const place = cell.places[series.place.findLast(([first]) => first <= i)?.[1]] ?? {}; // places are kept where they change
  const on = [place.device || place.device_class, place.machine || place.machine_class].filter(Boolean).join(', ');
  replace(box,
    h('strong', {}, `${value} `), interval ? h('span', {class: 'soft'}, `(${interval}) `) : null,
    commitLink(overview, runs.commit[run]), runs.dirty.includes(run) ? ' with changes not committed' : '', ' ',
    subject ? h('span', {class: 'subject'}, `${subject} `) : null,
    h('div', {class: 'small soft'}, `point ${i + 1} of ${series.value.length} · ${moment(runs.time[run])}`, branch ? ` · ${branch}` : '', on ? ` · ${on}` : '', ' ',
      runs.id[run] ? h('a', {href: link(`run/${runs.id[run]}`)}, 'run') : null),
    commandOf(overview, runs.commit[run], cell.cell));
  return `${value}${interval ? `, ${interval}` : ''}, ${runs.commit[run].slice(0, 10) || 'no commit'}, ${moment(runs.time[run])}, point ${i + 1}`;
}

function metricsOf(cell) {
  const all = cell.series.map(({metric}) => metric);
  return all.filter((metric, i) => all.findIndex((one) => sameMetric(one, metric)) === i);
}

// What was asked for, else what is worst, else throughput; the machine with the newest point.
function pick(cell, metric, machine) {
  const newest = (one) => cell.runs.time[one.run.at(-1)] ?? 0;
  const asked = (one) => (one.metric.name === metric ? 2 : 0) + (one.machine === machine ? 1 : 0);
  const rank = (one) => (one.metric.unit === 'tok/s' ? 2 : 0) + (one.metric.name.endsWith('_per_token') ? 1 : 0);
  return [...cell.series].sort((a, b) => asked(b) - asked(a) || RANK[a.state] - RANK[b.state] || rank(b) - rank(a) || newest(b) - newest(a))[0];
}

function rangeOf(text, series) {
  const [from, to] = (text ?? '').split('-').map(Number);
  const last = series.value.length - 1;
  return Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from < to && from <= last ? [from, Math.min(to, last)] : null;
}

function describe(cell, series) {
  return `${series.metric.label} of ${cell.cell}, ${series.value.length} points, ${series.changes.length} changes, last ${show(series.metric, series.value.at(-1))}`;
}

function gateLine(overview, cell) {
  if (!cell.gate) return null;
  return h('p', {}, 'Gate: ', verdictBadge(cell.gate.verdict), ' ', commitLink(overview, cell.gate.commit), ` ${day(cell.gate.time)} `,
    cell.gate.run ? h('a', {href: link(`run/${cell.gate.run}`)}, 'run') : null, cell.gate.reason ? h('span', {class: 'soft'}, ` ${cell.gate.reason}`) : null);
}

function changeTable(overview, series, goTo) {
  return pagedTable({caption: 'Changes, the newest first', rows: [...series.changes].reverse(), size: 20, empty: 'None found.', columns: [
    {title: 'first changed', cell: (one) => commitLink(overview, one.commit)},
    {title: 'measured', cell: (one) => day(one.time)},
    {title: 'what', cell: (one) => [stateBadge(stateOf(series.metric, one)), ` ${kindWord(one.kind)}`, one.kind === 'place' ? h('div', {class: 'small soft'}, `${one.from || 'not known'} → ${one.to || 'not known'}`) : null]},
    {title: 'size', class: 'number', cell: (one) => changeText(series.metric, one)},
    {title: 'interval', class: 'number', cell: (one) => intervalText(series.metric, one) || '–'},
    {title: 'from → to', class: 'number', cell: (one) => `${show(series.metric, one.before)} → ${show(series.metric, one.after)}`},
    {title: 'known', cell: (one) => (one.known ? [one.known.reason, h('div', {class: 'small soft'}, `${one.known.who} ${day(one.known.at)}`)] : '–')},
    {title: 'in the graph', cell: (one) => h('button', {type: 'button', onclick: () => goTo(one.index)}, 'show')},
  ]}).box;
}

function seriesTable(cell, shown) {
  const rows = [...cell.series].sort((a, b) => RANK[a.state] - RANK[b.state]);
  return pagedTable({caption: 'All metrics of this cell, the worst first', rows, size: 60, columns: [
    {title: 'metric', cell: (one) => (one === shown ? h('strong', {}, one.metric.label) : h('a', {href: link(`cell/${cell.id}`, {metric: one.metric.name, machine: one.machine})}, one.metric.label))},
    {title: 'machine', cell: (one) => one.machine || 'not known'},
    {title: 'lately', cell: (one) => spark(one.value.slice(-40), one.changes.length ? one.changes.at(-1).index - Math.max(0, one.value.length - 40) : null)},
    {title: 'last', class: 'number', cell: (one) => show(one.metric, one.value.at(-1), exactOf(one, one.value.length - 1))},
    {title: 'last change', cell: (one) => (one.changes.length ? [changeText(one.metric, one.changes.at(-1)), ' ', stateBadge(one.state)] : stateBadge(one.state))},
    {title: 'points', class: 'number', cell: (one) => String(one.value.length)},
  ]}).box;
}
