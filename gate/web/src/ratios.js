// Times that pairs of processes judge: how many pairs changed by how much (now / base - 1, so a drop is to the left).
import {h} from './dom.js';
import {changeText} from './units.js';

// Down the picture, in pixels: two rows of labels, bars, the interval, the axis and its numbers.
const LIMIT_TEXT = 11;
const TOLERATED_TEXT = 25;
const TOP = 31;
const FLOOR = 87;
const INTERVAL = 96;
const AXIS = 105;
const AXIS_TEXT = 119;
const HEIGHT = 124;

const percent = (change) => changeText(null, {relative: true, size: change});
const x = (place) => `${place.toFixed(2)}%`;
const line = (name, from, y1, to, y2) => h('line', {class: name, x1: x(from), y1, x2: x(to), y2});
// At its place, towards the middle where that is near an end of the axis.
const letters = (text, place, y) => h('text', {x: x(place), y, 'text-anchor': place < 25 ? 'start' : place > 75 ? 'end' : 'middle'}, text);
const endText = (change, beyond) => percent(change) + (beyond > 0 ? ` (${beyond} beyond)` : '');

// bars: [from, to, pairs] from left to right without gaps, each on one side of every mark (limit, tolerated, 0); below, above:
// pairs beyond the axis; an end of the interval that is null is open. Places across are shares of the width.
export function ratiosPicture({title, words, bars, limit, tolerated, change, low, high, below, above, failed}) {
  const from = bars[0][0];
  const to = bars.at(-1)[1];
  const at = (one) => 100 * Math.min(1, Math.max(0, (one - from) / (to - from)));
  const most = Math.max(...bars.map(([, , pairs]) => pairs));
  const isBroken = (middle) => failed && limit !== null && (limit < 0 ? middle < limit : middle > limit);
  const marks = [['tolerated', tolerated, TOLERATED_TEXT], ['limit', limit, LIMIT_TEXT]].filter(([, place]) => place !== null);
  return h('svg', {class: 'ratios', role: 'img', width: '100%', height: HEIGHT},
    h('title', {}, title), h('desc', {}, words),
    bars.filter(([, , pairs]) => pairs > 0).map(([left, right, pairs]) => {
      const height = Math.max(2, ((FLOOR - TOP) * pairs) / most);
      return h('rect', {class: isBroken((left + right) / 2) ? 'beyond' : 'bar', x: x(at(left)), y: FLOOR - height, width: x(Math.max(0.3, at(right) - at(left) - 0.15)), height});
    }),
    marks.map(([name, place, y]) => line(name, at(place), y + 3, at(place), AXIS)),
    line('zero', at(0), TOP, at(0), AXIS),
    change === null ? null : [line('interval', at(low ?? from), INTERVAL, at(high ?? to), INTERVAL), h('circle', {class: 'estimate', cx: x(at(change)), cy: INTERVAL, r: 3.5})],
    line('axis', 0, AXIS, 100, AXIS),
    // Letters come last, so that no line runs through them; numbers of the ends give way to the one of no change.
    marks.map(([name, place, y]) => letters(`${name} ${percent(place)}`, at(place), y)),
    at(0) > 20 ? letters(endText(from, below), 0, AXIS_TEXT) : null,
    letters('no change', at(0), AXIS_TEXT),
    at(0) < 80 ? letters(endText(to, above), 100, AXIS_TEXT) : null);
}
