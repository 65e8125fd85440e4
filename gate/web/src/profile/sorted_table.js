// A table that is sorted by any column, a page at a time. Its head stays while its rows change, so the keyboard keeps its place.
import {announce, h, replace} from '../dom.js';
import {pager} from '../table.js';

const SIZE = 100;

// columns: [{key, title, number, cell(row)}]; sorting is by row[key]. onsort(sort): "key" ascending, "-key" descending.
export function sortedTable({caption, columns, sort, onsort, foot = null, empty = 'Nothing here.'}) {
  let state = {rows: [], columns, sort, page: 0};
  const head = h('tr', {role: 'row'});
  const body = h('tbody', {role: 'rowgroup'});
  const end = h('tfoot', {role: 'rowgroup'});
  const pages = h('div');
  const buttons = new Map(columns.map((column) => [column.key, sortButton(column, turnTo)]));

  function turnTo(column) {
    const back = column.number ? `-${column.key}` : column.key;
    const other = column.number ? column.key : `-${column.key}`;
    state.sort = state.sort === back ? other : back;
    state.page = 0;
    draw();
    onsort?.(state.sort);
    announce(`Sorted by ${column.title}, ${state.sort.startsWith('-') ? 'most' : 'least'} first`);
  }

  function draw() {
    const key = state.sort.replace(/^-/, '');
    for (const [name, {cell}] of buttons) cell.setAttribute('aria-sort', name !== key ? 'none' : state.sort.startsWith('-') ? 'descending' : 'ascending');
    const shown = state.columns.map((column) => buttons.get(column.key).cell);
    if (shown.length !== head.children.length || shown.some((cell, i) => head.children[i] !== cell)) replace(head, shown);
    const rows = sortRows(state.rows, key, state.sort.startsWith('-'));
    const count = Math.max(1, Math.ceil(rows.length / SIZE));
    state.page = Math.min(state.page, count - 1);
    const held = document.activeElement?.closest?.('tr')?.dataset.key;
    const inBody = body.contains(document.activeElement);
    const part = rows.slice(state.page * SIZE, (state.page + 1) * SIZE);
    replace(body, part.length ? part.map((row) => line(row, state.columns)) : h('tr', {role: 'row'}, h('td', {role: 'cell', colspan: state.columns.length, class: 'soft'}, empty)));
    if (inBody) [...body.children].find((row) => row.dataset.key === held)?.querySelector('button')?.focus();
    replace(end, foot && part.length ? line(foot(state.rows), state.columns) : null);
    replace(pages, count > 1 ? pager(state.page, count, rows.length, turnPage) : null);
  }

  function turnPage(to) {
    state.page = to;
    draw();
    pages.querySelector('button:not([disabled])')?.focus();
  }

  const table = h('table', {role: 'table'}, h('caption', {class: 'unseen'}, caption), h('thead', {role: 'rowgroup'}, head), body, end);
  const box = h('div', {class: 'sorted'}, h('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': caption}, table), pages);
  return {
    box,
    // What is not given stays; a new list of rows keeps the page.
    show(more) {
      state = {...state, ...more};
      draw();
    },
  };
}

function sortButton(column, turnTo) {
  const button = h('button', {type: 'button', class: 'sort', title: column.about, onclick: () => turnTo(column)}, column.title, h('span', {class: 'way', 'aria-hidden': 'true'}));
  return {button, cell: h('th', {scope: 'col', role: 'columnheader', 'aria-sort': 'none', class: column.number ? 'number' : null}, button)};
}

function line(row, columns) {
  return h('tr', {role: 'row', 'data-key': row.key, class: row.class}, columns.map((column, i) => {
    const cell = column.cell(row);
    const words = [column.number ? 'number' : '', cell === '–' || cell === '' ? 'none' : ''].filter(Boolean).join(' ');
    return h(i ? 'td' : 'th', {role: i ? 'cell' : 'rowheader', scope: i ? null : 'row', class: words || null, 'data-label': column.title}, cell);
  }));
}

// What is not known comes last, either way.
export function sortRows(rows, key, descending) {
  const way = descending ? -1 : 1;
  const none = (value) => value === null || value === undefined;
  return [...rows].sort((a, b) => {
    const [one, other] = [a[key], b[key]];
    if (none(one) || none(other)) return none(one) - none(other);
    return way * (typeof one === 'string' || typeof other === 'string' ? String(one).localeCompare(String(other), 'en', {numeric: true}) : one - other);
  });
}
