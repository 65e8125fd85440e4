// A table of any length, a page of it at a time.
import {h, replace, announce} from './dom.js';

// columns: [{title, cell(row) -> node or text, class}]; a title of "" has no words to show.
export function pagedTable({caption, columns, rows, size = 100, empty = 'Nothing here.', page = 0, onpage}) {
  const box = h('div', {class: 'paged'});
  let shown = rows;
  const draw = () => {
    const pages = Math.max(1, Math.ceil(shown.length / size));
    page = Math.min(Math.max(0, page), pages - 1);
    const part = shown.slice(page * size, (page + 1) * size);
    const body = part.map((row) => h('tr', {role: 'row'}, columns.map((column, i) =>
      h(i ? 'td' : 'th', {class: column.class, role: i ? 'cell' : 'rowheader', scope: i ? null : 'row', 'data-label': column.title},
        h('div', {}, column.cell(row))))));
    replace(box, part.length === 0 ? h('p', {class: 'soft'}, empty) : [
      h('div', {class: 'wide'}, h('table', {role: 'table'}, h('caption', {class: 'unseen'}, caption),
        h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, columns.map((column) =>
          h('th', {scope: 'col', role: 'columnheader', class: column.class}, column.title)))),
        h('tbody', {role: 'rowgroup'}, body))),
      pages > 1 ? pager(page, pages, shown.length, turn) : null]);
  };
  const turn = (to) => {
    page = to;
    draw();
    onpage?.(page);
    announce(`Page ${page + 1}`);
    box.querySelector('.pager button:not([disabled])')?.focus();
  };
  draw();
  return {box, show(those) { shown = those; page = 0; draw(); }};
}

export function pager(page, pages, rows, turn) {
  return h('nav', {class: 'pager', 'aria-label': 'Pages of this table'},
    h('button', {type: 'button', disabled: page === 0, onclick: () => turn(page - 1)}, 'Previous'),
    h('span', {}, `${page + 1} of ${pages} · ${rows} lines`),
    h('button', {type: 'button', disabled: page === pages - 1, onclick: () => turn(page + 1)}, 'Next'));
}
