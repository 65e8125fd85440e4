// Which events somebody looks for: by words in their names and details, or one row of the statistics.
import {lowerBound} from './model.js';
import {wordsOf} from '../dom.js';

const MOST_WORDS = 8;

// -> {marked, count, time, first, next, previous}; marked[i]: how many events before i are found. null without words.
export function findWords(model, text) {
  const words = wordsOf(text).slice(0, MOST_WORDS);
  if (!words.length) return null;
  const has = (texts) => Uint8Array.from(texts, (one) => words.reduce((bits, word, i) => (one.includes(word) ? bits | (1 << i) : bits), 0));
  model.findDetails ??= ['', ...model.details.map((one) => one.words.map(([key, value]) => `${key} ${value}`).join('\n').toLowerCase())];
  const [names, details] = [has(model.find), has(model.findDetails)];
  const all = (1 << words.length) - 1;
  return found(model, (i) => (names[model.name[i]] | details[model.detail[i]]) === all);
}

// rows: indices into model.rows.
export function findRows(model, rows) {
  const wanted = new Uint8Array(model.rows.length);
  for (const row of rows) wanted[row] = 1;
  return found(model, (i) => wanted[model.row[i]] === 1);
}

function found(model, is) {
  const {count, length} = model;
  const marked = new Uint32Array(count + 1);
  let time = 0;
  for (let i = 0; i < count; ++i) {
    const one = is(i) ? 1 : 0;
    marked[i + 1] = marked[i] + one;
    if (one) time += length[i];
  }
  return {marked, count: marked[count], time};
}

// The found event after (way 1) or before (way -1) one, by start over all lanes; around again at the ends. `event` may be -1.
// -> its index and its place among the found ones; null when nothing is found.
export function step(model, {marked, count}, event, way) {
  if (!count) return null;
  const from = event < 0 ? [-1, -1] : [model.start[event], event];
  let best = null;
  let outermost = null;
  for (const lane of model.lanes) {
    const edge = way > 0 ? nextMarked(marked, lane.from, lane.to) : lastMarked(marked, lane.from, lane.to);
    if (edge === null) continue;
    if (outermost === null || before(model, edge, outermost) === way > 0) outermost = edge;
    // Among equals in time the order is that of the columns.
    const split = splitAt(model, lane, from);
    const one = way > 0 ? nextMarked(marked, split.after, lane.to) : lastMarked(marked, lane.from, split.before);
    if (one !== null && (best === null || before(model, one, best) === way > 0)) best = one;
  }
  return best ?? outermost;
}

const before = (model, a, b) => model.start[a] < model.start[b] || (model.start[a] === model.start[b] && a < b);

// Events of a lane from `after` on come after (time, index); those up to `before` come before it.
function splitAt(model, lane, [time, event]) {
  const low = lowerBound(model.start, time, lane.from, lane.to);
  let high = low;
  while (high < lane.to && model.start[high] === time && high < event) ++high;
  return {before: high, after: high === event ? high + 1 : high};
}

export function nextMarked(marked, from, to) {
  return from < to && marked[to] > marked[from] ? lowerBound(marked, marked[from] + 1, from + 1, to) - 1 : null;
}

function lastMarked(marked, from, to) {
  return from < to && marked[to] > marked[from] ? lowerBound(marked, marked[to], from + 1, to) - 1 : null;
}
