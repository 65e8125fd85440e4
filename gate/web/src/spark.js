// A series in a line of text. What it says is said in words beside it.
import {h} from './dom.js';

const WIDTH = 96;
const HEIGHT = 22;
const EDGE = 3;

export function spark(values, changed) {
  const known = values.filter(Number.isFinite);
  const low = Math.min(...known);
  const high = Math.max(...known);
  const x = (i) => EDGE + (values.length < 2 ? 0.5 : i / (values.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (value) => (high === low ? HEIGHT / 2 : EDGE + (1 - (value - low) / (high - low)) * (HEIGHT - 2 * EDGE));
  const at = (i) => `${x(i).toFixed(1)} ${y(values[i]).toFixed(1)}`;
  const line = values.map((_, i) => (i ? 'L' : 'M') + at(i)).join('');
  const last = values.length - 1;
  return h('svg', {class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, 'aria-hidden': 'true'},
    changed !== null && changed >= 0
      ? h('path', {class: 'mark', d: `M${x(changed).toFixed(1)} 1V${HEIGHT - 1}`}) : null,
    values.length > 1 ? h('path', {class: 'line', d: line}) : null,
    values.length ? h('circle', {cx: x(last), cy: y(values[last]), r: 2}) : null);
}
