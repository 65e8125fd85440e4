// What changed from commit to commit: the steps; and of one step every cell, model and prompt against backend.
import {h, replace, checkBox, choice, filterButton, hasWords, searchField, wordsOf} from '../dom.js';
import {load} from '../load.js';
import {entryOf, keep, link} from '../state.js';
import {pagedTable} from '../table.js';
import {betweenText, counted, number, show} from '../units.js';
import {cellFacts, cellLink, commandOf, placesOf, stateBadge} from '../words.js';

const STATES = ['worse', 'mixed', 'better', 'changed'];
const arrow = ({before, commit}) => `${before} → ${commit}`;
const kindWords = (kind) => kind.replaceAll('_', ' ');
const firstLine = (text) => text.split('\n', 1)[0];

export async function changesPage({overview, state}) {
  if (state.id) return stepPage(overview, state);
  const {metrics, steps} = await load('changes');
  const all = steps.map((step, place) => ({...step, place, quiet: Object.keys(step.states).length === 0})).reverse();
  const view = {show: state.query.get('show') ?? '', metric: state.query.get('metric') ?? ''};
  const has = (step, way, metric) => step.metrics.some(([at, worse, better]) => (!metric || metrics[at].name === metric) && (way === 'worse' ? worse : way === 'better' ? better : true));
  const rows = () => all.filter((step) => (!view.show && !view.metric) || has(step, view.show, view.metric));
  const set = (name) => (to) => {
    view[name] = to;
    keep(view);
    table.show(rows());
  };
  const table = pagedTable({caption: 'Steps, the newest first', rows: rows(), size: 60, empty: 'No step fits.', columns: [
    {title: 'step', cell: (step) => [h('a', {href: link(`changes/${step.place}`, {})}, arrow(step)),
      h('div', {class: 'small soft'}, counted(step.counted, 'cell'), step.failed ? `, ${step.failed} could not run` : '')]},
    ...STATES.map((name) => ({title: name, class: 'number', cell: (step) => (step.states[name] ? [stateBadge(name), ` ${number(step.states[name])}`] : '')})),
    {title: 'on', cell: (step) => (step.quiet ? h('span', {class: 'soft'}, 'nothing changed') : onWhat(metrics, step))},
    {title: 'explained as', cell: (step) => Object.entries(step.findings).sort((a, b) => b[1] - a[1]).slice(0, 3).map(([kind, cells]) => h('div', {}, `${kindWords(kind)} ${cells}`))},
  ]});
  const some = metrics.map((one) => [one.name, one.label]).sort((a, b) => (a[1] < b[1] ? -1 : 1));
  return {title: 'Changes', nodes: [
    h('h1', {}, 'Changes'),
    h('p', {class: 'soft'}, `${counted(steps.length, 'step')} from one commit to the next, the newest first, of which ${all.filter((step) => step.quiet).length} changed nothing. A cell is worse where a count per token or prefill, or the peak of device memory, is.`),
    h('div', {class: 'bar'}, h('div', {class: 'filters', role: 'group', 'aria-label': 'Show steps'},
      ['worse', 'better'].map((name) => filterButton(() => view.show === name, () => set('show')(view.show === name ? '' : name), null,
        stateBadge(name), ` than the one before ${all.filter((step) => has(step, name)).length}`))),
    some.length > 1 ? choice('Metric', [['', 'any'], ...some], view.metric, set('metric')) : null),
    table.box,
  ]};
}

function onWhat(metrics, step) {
  const lines = step.metrics.map(([at, worse, better]) => ({label: metrics[at].label, worse, better}));
  const line = ({label, worse, better}) => h('div', {}, `${label}: `, [worse && `${worse} worse`, better && `${better} better`].filter(Boolean).join(', '));
  return lines.length <= 4 ? lines.map(line) : [lines.slice(0, 3).map(line), h('details', {}, h('summary', {}, `${lines.length - 3} more`), lines.slice(3).map(line))];
}

// "+1 sync", "other kernels": what of a cell is shown first, each with its state.
function marksOf({metrics}, cell) {
  const told = cell.values.filter(([, , , state]) => state !== 'changed');
  const ways = new Set(told.map(([, , , state]) => state)).size;
  const some = ways > 1 ? told.filter((one, i) => told.findIndex(([, , , state]) => state === one[3]) === i) : told.length || cell.kernels ? told.slice(0, 2) : cell.values.slice(0, 1);
  const marks = some.map(([at, before, after, state]) => {
    const what = metrics[at].label.replace(/\/(token|prefill)$| bytes$/, '');
    return {state, text: `${betweenText(metrics[at], before, after)} ${Math.abs(after - before) === 1 ? what.replace(/ies$/, 'y').replace(/(ch|sh)es$|s$/, '$1') : what}`};
  });
  if (marks.length < 2 && cell.kernels) marks.push({state: 'changed', text: 'other kernels'});
  return marks.length ? marks : [{state: 'changed', text: 'changed'}];
}

async function stepPage(overview, state) {
  const step = await load(`changes/${/^\d+$/.test(state.id) ? state.id : 'none'}`);
  const place = Number(state.id);
  const facts = cellFacts(overview);
  const {query} = state;
  const view = {find: query.get('find') ?? '', state: query.get('state') ?? '', all: query.get('all') === 'yes'};
  const said = (at) => step.texts[at];
  const fields = [
    ...step.cells.map((one) => ({...one, marks: marksOf(step, one)})),
    ...step.same.map((cell) => ({cell, state: 'same'})), ...step.new.map((cell) => ({cell, state: 'new'})),
    ...step.failed.map(([cell, text]) => ({cell, state: 'failed', words: said(text)})),
  ];
  const placeOf = placesOf(fields.map((one) => one.cell));
  for (const one of fields) Object.assign(one, placeOf(one.cell));
  // Those that most cells are of first: the others would stand where nobody looks.
  const cellsOf = new Map();
  for (const {backend} of fields) cellsOf.set(backend, (cellsOf.get(backend) ?? 0) + 1);
  const columns = [...cellsOf.keys()].sort((a, b) => cellsOf.get(b) - cellsOf.get(a) || (a < b ? -1 : 1));
  const dialog = h('dialog', {'aria-labelledby': 'shown', onclose: () => keep({cell: ''}), onclick: (event) => event.target === dialog && dialog.close()});
  const body = h('div', {});

  const open = (one) => {
    keep({cell: one.cell});
    replace(dialog, h('div', {class: 'inside'}, h('div', {class: 'head'}, h('h2', {id: 'shown'}, cellLink(facts.get(one.cell)?.id, one.cell)), h('button', {type: 'button', onclick: () => dialog.close()}, 'Close')),
      h('p', {}, arrow(step), ' ', one.marks ? stateBadge(one.state) : null), details(overview, step, one)));
    dialog.showModal();
  };

  function field(one) {
    if (!one) return '';
    if (one.state === 'same') return h('span', {class: 'soft'}, 'same');
    const sentence = one.words ?? (one.findings?.length ? firstLine(said(one.findings[0][1])) : '');
    return h('button', {type: 'button', class: 'entry mark', 'aria-haspopup': 'dialog', onclick: () => open(one)},
      one.marks?.map((mark) => stateBadge(mark.state, mark.text)) ?? h('span', {class: 'badge'}, one.state === 'failed' ? '! could not run' : 'new'),
      sentence ? h('span', {class: 'sentence'}, sentence) : null);
  }

  function draw() {
    keep({find: view.find, state: view.state, all: view.all ? 'yes' : ''});
    const words = wordsOf(view.find);
    const fits = (one) => hasWords(`${one.cell}\n${one.marks?.map(({text}) => text).join('\n') ?? one.words ?? ''}`, words) && (!view.state || one.state === view.state);
    const kept = fields.filter(fits);
    const rows = new Map();
    for (const one of kept) entryOf(rows, one.row, () => []).push(one);
    const quiet = (row) => row.every((one) => one.state === 'same');
    const shown = [...rows].filter(([, row]) => view.all || !quiet(row)).sort(([a], [b]) => (a < b ? -1 : 1));
    const used = columns.filter((name) => shown.some(([, row]) => row.some((one) => one.backend === name)));
    replace(body, sentences(kept), h('h2', {}, 'Cell by cell'), shown.length ? h('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Cells, model and prompt against backend'}, h('table', {class: 'matrix step', role: 'table'},
      h('caption', {class: 'unseen'}, `What changed from ${arrow(step)}`),
      h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, h('th', {scope: 'col', role: 'columnheader'}, 'model / prompt'), used.map((name) => h('th', {scope: 'col', role: 'columnheader'}, name)))),
      h('tbody', {role: 'rowgroup'}, shown.map(([name, row]) => h('tr', {role: 'row'}, h('th', {scope: 'row', role: 'rowheader'}, name),
        used.map((column) => h('td', {role: 'cell', 'data-label': column}, field(row.find((one) => one.backend === column))))))))) : h('p', {class: 'soft'}, fields.some((one) => one.state !== 'same') ? 'No cell fits.' : 'Nothing changed.'),
    rows.size > shown.length || view.all ? h('label', {class: 'check'}, checkBox(view.all, (on) => {
      view.all = on;
      draw();
    }), ` ${counted([...rows.values()].filter(quiet).length, 'row')} in which nothing changed`) : null);
  }

  // What many cells have in common, once: causes that somebody found, then what explain says, then what could not run.
  function sentences(cells) {
    const groups = new Map();
    const add = (rank, words, one) => entryOf(groups, words, () => ({rank, words, cells: []})).cells.push(one.cell);
    for (const one of cells) {
      if (one.words) add(2, one.words, one);
      if (!one.marks) continue;
      for (const at of one.causes) add(0, at, one);
      if (one.findings.length || !one.causes.length) add(1, one.findings.length ? firstLine(said(one.findings[0][1])) : 'No explanation.', one);
    }
    const lists = [...groups.values()].sort((a, b) => a.rank - b.rank || b.cells.length - a.cells.length);
    const item = ({rank, words, cells: some}) => h('li', {}, h('strong', {}, counted(some.length, 'cell')), rank === 2 ? ' could not run: ' : ' ', rank ? words : causeOf(overview, step.causes[words]),
      h('details', {}, h('summary', {class: 'small'}, 'which'), h('p', {class: 'small'}, some.join(', '))));
    const list = (title, some) => (some.length ? [h('h2', {}, title), h('ul', {class: 'told'}, some.slice(0, 4).map(item)), some.length > 4 ? h('details', {}, h('summary', {}, `${some.length - 4} more`), h('ul', {class: 'told'}, some.slice(4).map(item))) : null] : null);
    return [list('Known causes', lists.filter(({rank}) => !rank)), list('First findings of weir explain', lists.filter(({rank}) => rank === 1)), list('What could not run', lists.filter(({rank}) => rank === 2))];
  }

  const set = (name) => (to) => {
    view[name] = to;
    draw();
  };
  draw();
  const here = fields.find((one) => one.cell === query.get('cell') && one.state !== 'same');
  const to = (at, words) => (at >= 0 && at < step.steps ? h('a', {href: link(`changes/${at}`)}, words) : null);
  return {title: arrow(step), leave: () => dialog.close(), shown: () => here && open(here), nodes: [
    h('p', {class: 'small path'}, h('a', {href: '#/changes'}, 'All steps'), to(place - 1, '← the step before'), to(place + 1, 'the step after →')),
    h('h1', {}, arrow(step)),
    h('p', {class: 'soft'}, `${counted(fields.length, 'cell')}: ${step.cells.length} changed, ${step.same.length} the same`, step.new.length ? `, ${step.new.length} new` : '', step.failed.length ? `, ${step.failed.length} could not run` : '', '.'),
    h('div', {class: 'bar'}, h('label', {class: 'field grow'}, h('span', {}, 'Find cells'), searchField(view.find, set('find'), {placeholder: 'gemma decode'}))),
    h('div', {class: 'filters', role: 'group', 'aria-label': 'Show cells by state'}, STATES.map((name) => {
      const cells = step.cells.filter((one) => one.state === name).length;
      return cells ? filterButton(() => view.state === name, () => set('state')(view.state === name ? '' : name), null, stateBadge(name), ` ${cells}`) : null;
    })),
    body, dialog,
  ]};
}

// A cause that somebody found, with its pull requests.
function causeOf(overview, [text, sure, pulls]) {
  const home = /^https:\/\/github\.com\/[^/]+\/[^/]+$/.test(overview.repo) ? overview.repo : '';
  return [text, pulls.map((pull) => [' ', home ? h('a', {href: `${home}/pull/${pull}`, rel: 'noreferrer'}, `#${pull}`) : `#${pull}`]), sure ? h('span', {class: 'soft'}, ` (${sure})`) : null];
}

function details(overview, step, one) {
  const again = (commit) => commandOf(overview, commit, one.cell);
  const numbers = (caption, rows) => pagedTable({caption, rows, size: 100, columns: [
    {title: 'metric', cell: ([at]) => step.metrics[at].label},
    {title: 'before → after', class: 'number', cell: ([at, before, after]) => `${show(step.metrics[at], before)} → ${show(step.metrics[at], after)}`},
    {title: 'change', class: 'number', cell: ([at, before, after, state]) => [betweenText(step.metrics[at], before, after), ' ', state === 'changed' ? null : stateBadge(state)]},
  ]}).box;
  const judged = (one.values ?? []).filter(([, , , state]) => state !== 'changed');
  const others = (one.values ?? []).filter(([, , , state]) => state === 'changed');
  return [
    one.words ? h('pre', {class: 'lines'}, one.words) : null,
    one.causes?.length ? [h('h3', {}, 'Cause'), one.causes.map((at) => h('p', {}, causeOf(overview, step.causes[at])))] : null,
    judged.length ? [h('h3', {}, 'Numbers'), numbers('Numbers that are worse or better', judged)] : null,
    (one.findings ?? []).map(([kind, text]) => [h('h3', {}, kindWords(kind)), h('p', {class: 'lines'}, step.texts[text])]),
    again(step.commit) ? [h('h3', {}, 'Count it again'), again(step.commit), again(step.before)] : null,
    others.length ? h('details', {}, h('summary', {}, counted(others.length, 'number'), ' that a gate shows and does not judge'), numbers('Other numbers', others)) : null,
  ];
}
