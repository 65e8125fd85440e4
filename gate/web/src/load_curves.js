// Latency against load: the cells of one prompt at several concurrencies (chat@c1, chat@c4, …) of one run, as
// small pictures and as a table of the same numbers.
import {h} from './dom.js';
import {entryOf} from './state.js';
import {pagedTable} from './table.js';
import {show} from './units.js';

const CURVES = [['p50', '_seconds'], ['p90', '_p90_seconds'], ['p99', '_p99_seconds']];
const ofBase = (name) => `base ${name}`;
const latency = (base) => [...CURVES.map(([name, end]) => [name, `${base}${end}`]), ['base', ofBase(`${base}_seconds`)]];
const PANELS = [
  ['time to first token', latency('time_to_first_token')],
  ['time per output token', latency('time_per_output_token')],
  ['output tokens/s', [['rate', 'output_tokens_per_second'], ['base', ofBase('output_tokens_per_second')]]],
];
const LOAD = /^(.+)@c(\d{1,9})((?:@t\w+)?)$/s; // a cell's concurrency
const drawn = (name) => PANELS.some(([, lines]) => lines.some(([, one]) => one === name));
const TOP = 22;
const FLOOR = 104;
const HEIGHT = 122;
const LINE = 12; // of letters
const MOST_TICKS = 8; // that have room on a telephone

// Places of labels that want to stand at `wanted`: moved apart, between the title and the floor.
export function labelPlaces(wanted) {
  const down = wanted.map((y, i) => ({y, i})).sort((a, b) => a.y - b.y);
  let least = TOP + 2;
  for (const one of down) least = (one.y = Math.max(one.y, least)) + LINE;
  let most = FLOOR + 2;
  for (const one of down.reverse()) most = (one.y = Math.min(one.y, most)) - LINE;
  return down.sort((a, b) => a.i - b.i).map(({y}) => y);
}

// Which of so many concurrencies are named below the floor: the last one always.
export const hasTick = (i, count) => (count - 1 - i) % (Math.floor((count - 1) / MOST_TICKS) + 1) === 0;

// points: [cell id, cell, metric, value, exact]; metrics: what the third is a place in; bases: [cell, metric, value].
export function loadCurves(metrics, points, bases = []) {
  const groups = new Map(); // cell without its concurrency -> concurrency -> metric's name -> value
  const known = new Map();
  for (const [, cell, place, value] of points) {
    const parts = LOAD.exec(cell);
    const metric = metrics[place];
    if (!parts || !Number.isFinite(value) || !drawn(metric.name)) continue;
    known.set(metric.name, metric);
    const loads = entryOf(groups, parts[1] + parts[3], () => new Map());
    entryOf(loads, Number(parts[2]), () => new Map()).set(metric.name, value);
  }
  for (const [cell, place, value] of bases) {
    const parts = LOAD.exec(cell);
    const values = parts && groups.get(parts[1] + parts[3])?.get(Number(parts[2]));
    const metric = metrics[place];
    if (!values || !Number.isFinite(value) || !drawn(ofBase(metric.name))) continue;
    known.set(ofBase(metric.name), {...metric, label: `${metric.label}, base`});
    values.set(ofBase(metric.name), value);
  }
  return [...groups].filter(([, loads]) => loads.size > 1)
    .map(([cell, loads]) => ({cell, known, loads: [...loads].sort(([a], [b]) => a - b)}));
}

export function loadPart(metrics, points, bases) {
  const curves = loadCurves(metrics, points, bases);
  return curves.length ? [h('h2', {}, 'Latency against load'), curves.map((curve) => loadFigure(curve, loadTable(curve)))] : null;
}

export function loadFigure(curve, ...below) {
  return h('figure', {class: 'load'},
    h('figcaption', {}, `${curve.cell}: against requests at once`),
    h('div', {class: 'panels'}, PANELS.map(([title, lines]) => panel(curve, title, lines))), below);
}

function loadTable(curve) {
  return pagedTable({caption: `Latency against load of ${curve.cell}`, rows: curve.loads, columns: [
    {title: 'requests at once', cell: ([concurrency]) => String(concurrency)},
    ...PANELS.flatMap(([, lines]) => lines).filter(([line, name]) => line !== 'base' && curve.known.has(name)).map(([, name]) => ({
      title: curve.known.get(name).label, class: 'number', cell: ([, values]) => show(curve.known.get(name), values.get(name)),
    })),
  ]}).box;
}

// Places across are shares of the width: the picture fits any screen, its letters keep their size.
function panel(curve, title, lines) {
  const seen = lines.filter(([, name]) => curve.loads.some(([, values]) => values.get(name) > 0));
  if (!seen.length) return null;
  const most = Math.max(...seen.flatMap(([, name]) => curve.loads.map(([, values]) => values.get(name) ?? 0)));
  const metric = curve.known.get(seen[0][1]);
  const x = (i) => `${(6 + (78 * i) / (curve.loads.length - 1)).toFixed(2)}%`;
  const y = (value) => FLOOR - (FLOOR - TOP) * Math.max(0, value / most);
  const marks = [];
  const labels = [];
  for (const [line, name] of seen) {
    let before = null;
    curve.loads.forEach(([, values], i) => {
      const value = values.get(name);
      if (value === undefined) return; // what was not measured joins nothing
      if (before !== null && before + 1 === i) {
        marks.push(h('line', {class: line, x1: x(before), y1: y(curve.loads[before][1].get(name)), x2: x(i), y2: y(value)}));
      }
      marks.push(h('circle', {class: line, cx: x(i), cy: y(value), r: 2.5}));
      before = i;
    });
    if (before !== null && seen.length > 1) labels.push([x(before), y(curve.loads[before][1].get(name)) + 4, line]);
  }
  const places = labelPlaces(labels.map(([, at]) => at));
  const words = seen.map(([line, name]) => `${line}: ${curve.loads.map(([concurrency, values]) => `${show(metric, values.get(name))} at ${concurrency}`).join(', ')}`);
  return h('svg', {class: 'load', role: 'img', width: '100%', height: HEIGHT},
    h('title', {}, `${title} against concurrency`), h('desc', {}, words.join('; ')),
    h('text', {class: 'head', x: 0, y: 11}, title),
    h('text', {x: '100%', y: 11, 'text-anchor': 'end'}, `up to ${show(metric, most)}`),
    h('line', {class: 'axis', x1: 0, y1: FLOOR, x2: '100%', y2: FLOOR}),
    curve.loads.map(([concurrency], i) => hasTick(i, curve.loads.length) && h('text', {x: x(i), y: FLOOR + 14, 'text-anchor': 'middle'}, String(concurrency))),
    marks, labels.map(([across, , line], i) => h('text', {x: across, dx: 6, y: places[i]}, line)));
}
