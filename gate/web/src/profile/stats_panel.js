// The statistics: a row for each name, of what is in view or of the marked stretch.
import {addUp, KINDS, tableRows} from './stats.js';
import {sortedTable} from './sorted_table.js';
import {timeText} from './view.js';
import {announce, choice, h, hasWords, replace, searchField, wordsOf} from '../dom.js';
import {counted, number, show} from '../units.js';

const SECONDS = {unit: 's'};
const BYTES = {unit: 'B'};
const SPACE = '\u202f';
const percent = (share) => (share === null ? '–' : `${(share * 100).toFixed(1)}${SPACE}%`);
const giga = (value) => (value === null ? '–' : number(value / 1e9));

const COLUMNS = (mark) => [
  {key: 'name', title: 'What', cell: (row) => (row.rows ? h('button', {type: 'button', class: 'row', 'aria-pressed': String(mark.is(row)), onclick: () => mark.turn(row)}, row.name) : row.name)},
  {key: 'where', title: 'Where', cell: (row) => row.where},
  {key: 'calls', title: 'Calls', number: true, about: 'That reach into this stretch of time', cell: (row) => number(row.calls)},
  {key: 'total', title: 'Total', number: true, about: 'Their time within it', cell: (row) => show(SECONDS, row.total)},
  {key: 'own', title: 'Own', number: true, about: 'The same without what is nested in them', cell: (row) => show(SECONDS, row.own)},
  {key: 'share', title: 'Share', number: true, about: 'Of the own time of everything of that kind (CPU, devices, copies)', cell: (row) => percent(row.share)},
  {key: 'average', title: 'Average', number: true, about: 'Of one whole call', cell: (row) => show(SECONDS, row.average)},
  {key: 'least', title: 'Least', number: true, about: 'Of one whole call', cell: (row) => show(SECONDS, row.least)},
  {key: 'most', title: 'Most', number: true, about: 'Of one whole call', cell: (row) => show(SECONDS, row.most)},
  {key: 'bytes', title: 'Moved', number: true, about: 'By these calls', cell: (row) => (row.bytes === null ? '–' : show(BYTES, row.bytes))},
  {key: 'rate', title: 'GB/s', number: true, about: 'Of the calls whose bytes are known', cell: (row) => giga(row.rate)},
  {key: 'speed', title: 'GFLOP/s', number: true, about: 'Of the calls whose arithmetic is known', cell: (row) => giga(row.speed)},
];

// set: {by, kind, of, sort, text, rows (indices into model.rows that are marked, or null)}; tell: {mark(rows or null, name), keep(parts)}.
export class StatsPanel {
  constructor(model, set, tell) {
    Object.assign(this, {model, set, tell, all: []});
    const mark = {is: (row) => same(row.rows, this.set.rows), turn: (row) => this.turn(row)};
    this.columns = COLUMNS(mark);
    this.table = sortedTable({caption: 'Statistics', columns: this.columns, sort: set.sort, empty: 'Nothing in this stretch of time.',
      onsort: (sort) => this.change({sort}, false), foot: (rows) => this.foot(rows)});
    this.filter = searchField(set.text, (text) => this.change({text}), {placeholder: 'words in its name'});
    this.scope = h('p', {class: 'scope', id: 'scope'});
    const kinds = KINDS.filter(([kind]) => model.tracks.some((track) => track.kind === kind && track.to > track.from));
    this.box = h('section', {'aria-labelledby': 'stats-title'}, h('h2', {id: 'stats-title'}, 'Statistics'), this.scope,
      h('div', {class: 'bar'},
        h('label', {class: 'field'}, h('span', {}, 'Filter'), this.filter),
        choice('Of', [['view', 'what is in view'], ['all', 'all of it']], set.of, (of) => this.change({of})),
        choice('Kind', [['', 'all'], ...kinds], set.kind, (kind) => this.change({kind})),
        choice('A row for', [['name', 'each name'], ['track', 'each name on each track']], set.by, (by) => this.change({by}))),
      this.table.box);
  }

  change(parts, draw = true) {
    Object.assign(this.set, parts);
    this.tell.keep(parts);
    if (draw) this.list();
  }

  turn(row) {
    const rows = same(row.rows, this.set.rows) ? null : row.rows;
    this.set.rows = rows;
    this.tell.mark(rows, row);
    this.list();
  }

  // range: [from, to] marked, or null; view: what is looked at otherwise.
  show(range, view) {
    this.last = {range, view};
    const [from, to] = range ?? (this.set.of === 'all' ? [0, this.model.end] : [view.from, view.to]);
    const whole = from <= 0 && to >= this.model.end;
    const key = `${from} ${to}`;
    if (this.key !== key) this.sums = addUp(this.model, from, to);
    this.key = key;
    replace(this.scope, range ? 'Of the marked time: ' : whole ? 'Of all of it: ' : 'Of what is in view: ',
      `${timeText(to - from)}, ${timeText(from)} to ${timeText(to)}`);
    this.rows();
  }

  list() { this.show(this.last.range, this.last.view); }

  rows() {
    this.all = tableRows(this.model, this.sums, this.set.by, this.set.kind);
    const words = wordsOf(this.set.text);
    const rows = this.all.filter((row) => hasWords(`${row.name} ${row.where}`, words));
    const has = (key) => this.all.some((row) => row[key] !== null);
    this.table.show({rows, columns: this.columns.filter(({key}) => !['bytes', 'rate', 'speed'].includes(key) || has(key))});
  }

  foot(rows) {
    // What an engine's marks say is work of another track.
    const once = this.set.kind ? rows : rows.filter((row) => row.kind !== 'marks');
    const sum = (key) => once.reduce((all, row) => all + (row[key] ?? 0), 0);
    const none = {share: null, average: null, least: null, most: null, rate: null, speed: null};
    return {...none, key: '', class: 'sum', name: counted(rows.length, 'row'), where: '', calls: sum('calls'), total: sum('total'), own: sum('own'), bytes: sum('bytes') || null};
  }

  say() { announce(this.scope.textContent); }
}

const same = (a, b) => a !== null && b !== null && a.length === b.length && a.every((one, i) => one === b[i]);
