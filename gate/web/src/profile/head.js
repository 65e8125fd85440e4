// What stands around the timeline: facts, doubts, small tables.
import {sortedTable} from './sorted_table.js';
import {h} from '../dom.js';
import {number, show} from '../units.js';

export function factsOf(head) {
  return [
    head.warnings.length ? h('section', {class: 'doubts', 'aria-label': 'Doubts'}, head.warnings.map((warning) => h('p', {class: 'missing'}, warning))) : null,
    head.facts.length ? h('details', {class: 'facts', open: head.facts.length <= 12}, h('summary', {}, 'Where and how this was measured'),
      h('dl', {}, head.facts.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))) : null,
  ];
}

// Tables that came with the file, as they are: {title, note, columns: [{title, unit}], rows}; a column with a unit has numbers.
export function tablesOf(head) {
  return head.tables.map((table) => {
    const columns = table.columns.map(({title, unit}, i) => ({key: `c${i}`, title, number: unit !== undefined,
      cell: (row) => (unit === undefined ? row[`c${i}`] ?? '–' : unit === '' ? number(row[`c${i}`]) : show({unit}, row[`c${i}`]))}));
    const made = sortedTable({caption: table.title, columns, sort: ''});
    made.show({rows: table.rows.map((row, at) => ({key: String(at), ...Object.fromEntries(row.map((value, i) => [`c${i}`, value]))}))});
    return h('section', {}, h('h2', {}, table.title), table.note ? h('p', {class: 'soft'}, table.note) : null, made.box);
  });
}
