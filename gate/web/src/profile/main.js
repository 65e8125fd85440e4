// One profile in one file: its timeline and what it adds up to. docs/reference/profile-page.md says what is in the file.
import '../style.css';
import './profile.css';
import {findRows, findWords, step} from './find.js';
import {KEYS} from './keys.js';
import {readModel} from './model.js';
import {readArrow, readEvent} from './reading.js';
import {sortedTable} from './sorted_table.js';
import {KINDS} from './stats.js';
import {StatsPanel} from './stats_panel.js';
import {TimelineBox} from './timeline.js';
import {timeText, View} from './view.js';
import {announce, h, replace} from '../dom.js';
import {keep, read} from '../state.js';
import {startTheme} from '../theme.js';
import {counted, number, show} from '../units.js';

const main = document.getElementById('main');
const SOON = 150; // milliseconds that the table waits for the view to stand still

function later(act, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
}

class Page {
  constructor(model) {
    this.model = model;
    this.view = new View(model.end, () => this.moved());
    const settle = later(() => this.settled(), SOON);
    this.soon = settle;
    this.find = later(() => this.search(), 80);
    this.found = null;
    this.timeline = new TimelineBox(model, this.view, {
      chosen: (event) => this.chosen(event), hovered: (there) => this.hovered(there), range: (range) => this.ranged(range),
      drawn: ({arrows}) => this.tellArrows(arrows === null), find: (way) => this.next(way), search: () => this.input.focus(),
    });
    const {query} = read();
    const word = (name, allowed, other) => (allowed.includes(query.get(name)) ? query.get(name) : other);
    this.stats = new StatsPanel(model, {
      by: word('by', ['name', 'track'], 'name'), kind: word('kind', KINDS.map(([name]) => name), ''), of: word('of', ['view', 'all'], 'view'),
      sort: /^-?[a-z]+$/.test(query.get('sort') ?? '') ? query.get('sort') : '-own', text: query.get('filter') ?? '', rows: null,
    }, {mark: (rows, row) => this.markRows(rows, row), keep: ({text, ...parts}) => keep(text === undefined ? parts : {...parts, filter: text})});
    this.reading = h('div', {class: 'reading', id: 'reading'});
    this.foundText = h('span', {class: 'soft found', role: 'status'});
    this.arrowText = h('span', {class: 'soft'});
    this.input = h('input', {type: 'search', id: 'find', placeholder: 'words in names and details', oninput: () => this.find(),
      onkeydown: (event) => this.inputKey(event)});
  }

  nodes() {
    const act = (words, title, onclick) => h('button', {type: 'button', title, onclick}, words);
    return [
      h('h1', {}, this.model.head.title), factsOf(this.model.head),
      ...(this.model.tracks.length ? this.timelineNodes(act) : [h('p', {class: 'soft', id: 'no-moments'}, 'This profile holds totals, no moments: there is no timeline.')]),
      tablesOf(this.model.head),
    ];
  }

  timelineNodes(act) {
    return [
      h('section', {'aria-labelledby': 'timeline-title'}, h('h2', {id: 'timeline-title'}, 'Timeline'),
        h('div', {class: 'bar', role: 'toolbar', 'aria-label': 'Timeline'},
          h('label', {class: 'field'}, h('span', {}, 'Search'), this.input),
          act('Previous', 'The found event before (p)', () => this.next(-1)), act('Next', 'The next found event (n)', () => this.next(1)),
          act('Zoom in', 'w or +', () => this.view.zoom(0.5)), act('Zoom out', 's or −', () => this.view.zoom(2)), act('All', '0', () => this.view.showAll()),
          act('To the marked time', 'Enter', () => this.timeline.state.range && this.view.show(...this.timeline.state.range)),
          this.model.arrows.count ? h('label', {class: 'check'}, h('input', {type: 'checkbox', id: 'arrows', checked: true, onchange: (event) => this.timeline.set({arrows: event.target.checked})}), ' Arrows', this.arrowText) : null),
        this.foundText, this.timeline.box, this.reading,
        h('details', {}, h('summary', {}, 'By hand and by keyboard'),
          h('p', {}, 'A drag moves; with Shift, or on the ruler, it marks a stretch of time, and the statistics are of that. Ctrl and the wheel, or two fingers, zoom. A double click brings an event near. Narrower than two pixels, a column is as high as that time is busy.'),
          h('dl', {class: 'keys', id: 'timeline-keys'}, KEYS.map(([key, what]) => [h('dt', {}, key), h('dd', {}, what)])))),
      this.stats.box,
    ];
  }

  // As the address has it: v=from-to (in view), r=from-to (marked), e (chosen), find, and the table's own.
  restore() {
    const {query} = read();
    const pair = (name) => /^\d{1,17}(\.\d+)?-\d{1,17}(\.\d+)?$/.test(query.get(name) ?? '') && query.get(name).split('-').map(Number);
    const seen = pair('v');
    if (seen) this.view.show(...seen);
    else this.view.showAll();
    const marked = pair('r');
    this.timeline.mark(...(marked || [0, 0]), false);
    const event = /^\d{1,9}$/.test(query.get('e') ?? '') ? Number(query.get('e')) : -1;
    this.timeline.choose(event < this.model.count ? event : -1);
    this.input.value = query.get('find') ?? '';
    this.search(false);
    this.stats.show(this.timeline.state.range, this.view);
  }

  moved() {
    this.timeline.redraw();
    this.soon();
  }

  // More than a screen can show are not drawn.
  tellArrows(tooMany) {
    const text = tooMany ? ' (from nearer)' : '';
    if (this.arrowText.textContent !== text) this.arrowText.textContent = text;
  }

  settled() {
    keep({v: this.view.isAll ? '' : `${Math.round(this.view.from)}-${Math.round(this.view.to)}`});
    this.stats.show(this.timeline.state.range, this.view);
  }

  chosen(event) {
    keep({e: event < 0 ? '' : event});
    if (event < 0) this.idle();
    else announce(readEvent(this.model, event, this.reading));
  }

  idle() {
    replace(this.reading, h('span', {class: 'soft'}, `${counted(this.model.count, 'event')} in ${timeText(this.model.end)}. Point at one, or choose it with the keyboard.`));
  }

  hovered(there) {
    if (there && there.event >= 0) readEvent(this.model, there.event, this.reading);
    else if (there && there.arrow >= 0) readArrow(this.model, there.arrow, this.reading);
    else if (this.timeline.state.chosen >= 0) readEvent(this.model, this.timeline.state.chosen, this.reading);
    else this.idle();
  }

  ranged(range) {
    keep({r: range ? range.map(Math.round).join('-') : ''});
    this.stats.show(range, this.view);
    if (range) this.stats.say();
  }

  search(told = true) {
    const text = this.input.value;
    keep({find: text});
    if (told && this.stats.set.rows) {
      this.stats.set.rows = null;
      this.stats.list();
    }
    this.mark(findWords(this.model, text));
  }

  markRows(rows, row) {
    this.input.value = '';
    keep({find: ''});
    this.mark(rows ? findRows(this.model, rows) : null);
    if (rows) announce(`${row.name}: ${this.foundText.textContent}`);
  }

  mark(found) {
    this.found = found;
    this.timeline.set({marked: found?.marked ?? null});
    replace(this.foundText, found ? `${counted(found.count, 'event')}, ${timeText(found.time)} together` : '');
  }

  next(way) {
    const event = this.found && step(this.model, this.found, this.timeline.state.chosen, way);
    if (event !== null) this.timeline.choose(event, true);
  }

  inputKey(event) {
    if (event.key === 'Enter') {
      this.search();
      this.next(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape' && !this.input.value) this.timeline.scroller.focus();
  }
}

// What stands around the timeline: facts, doubts, small tables.
function factsOf(head) {
  return [
    head.warnings.length ? h('section', {class: 'doubts', 'aria-label': 'Doubts'}, head.warnings.map((warning) => h('p', {class: 'missing'}, warning))) : null,
    head.facts.length ? h('details', {class: 'facts', open: head.facts.length <= 12}, h('summary', {}, 'Where and how this was measured'),
      h('dl', {}, head.facts.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))) : null,
  ];
}

// Tables that came with the file, as they are: {title, note, columns: [{title, unit}], rows}; a column with a unit has numbers.
function tablesOf(head) {
  return head.tables.map((table) => {
    const columns = table.columns.map(({title, unit}, i) => ({key: `c${i}`, title, number: unit !== undefined,
      cell: (row) => (unit === undefined ? row[`c${i}`] ?? '–' : unit === '' ? number(row[`c${i}`]) : show({unit}, row[`c${i}`]))}));
    const made = sortedTable({caption: table.title, columns, sort: ''});
    made.show({rows: table.rows.map((row, at) => ({key: String(at), ...Object.fromEntries(row.map((value, i) => [`c${i}`, value]))}))});
    return h('section', {}, h('h2', {}, table.title), table.note ? h('p', {class: 'soft'}, table.note) : null, made.box);
  });
}

function start() {
  startTheme();
  try {
    const text = (id) => document.getElementById(id).textContent;
    const head = JSON.parse(text('weir-profile'));
    const model = readModel(head, text('weir-events'));
    document.getElementById('weir-events').remove(); // megabytes that nobody needs any more
    const page = new Page(model);
    replace(main, page.nodes());
    document.title = `${head.title} · weir`;
    page.restore();
    addEventListener('hashchange', () => location.hash.startsWith('#/') && page.restore()); // "#main" skips to the content
    page.timeline.draw();
    page.timeline.scroller.weirPage = page;
  } catch (error) {
    replace(main, h('h1', {}, 'Not shown'), h('p', {class: 'missing'}, error.message));
    throw error;
  } finally {
    main.removeAttribute('aria-busy');
  }
}

start();
