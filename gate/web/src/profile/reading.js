// What an event or an arrow is, in words.
import {arrowsOf} from './arrows.js';
import {laneOfEvent} from './model.js';
import {timeText} from './view.js';
import {h, replace} from '../dom.js';
import {show} from '../units.js';

const BYTES = {unit: 'B'};

function work(detail) {
  if (!detail) return [];
  return [...(detail.bytes ? [['moved', show(BYTES, detail.bytes)]] : []), ...(detail.flops ? [['arithmetic', `${(detail.flops / 1e9).toPrecision(4)} GFLOP`]] : []), ...detail.words];
}

const listOf = (details) => (details.length ? h('dl', {class: 'small'}, details.map(([key, value]) => [h('dt', {}, key), h('dd', {}, value)])) : null);

function arrowWords(model, arrow) {
  const {from, to, length, name, detail} = model.arrows;
  const size = detail[arrow] ? model.details[detail[arrow] - 1].bytes : null;
  return `${model.names[name[arrow]]}: ${model.tracks[from[arrow]].name} → ${model.tracks[to[arrow]].name}, ${timeText(length[arrow])}${size ? `, ${show(BYTES, size)}` : ''}`;
}

// Fills `box`; the same in one sentence comes back.
export function readEvent(model, event, box) {
  const track = model.tracks[laneOfEvent(model, event).track];
  const name = model.names[model.name[event]];
  const [start, length] = [model.start[event], model.length[event]];
  const details = work(model.details[model.detail[event] - 1]);
  const arrows = arrowsOf(model, track.index, start, start + length);
  replace(box, h('strong', {}, name), ` ${timeText(length)} `, h('span', {class: 'soft'}, `from ${timeText(start)} on · ${track.name}`),
    listOf(details),
    arrows.map((arrow) => h('div', {class: 'small'}, arrowWords(model, arrow))));
  return `${name}, ${timeText(length)}, from ${timeText(start)} on, ${track.name}${details.map(([key, value]) => `, ${key} ${value}`).join('')}`;
}

export function readArrow(model, arrow, box) {
  const details = work(model.details[model.arrows.detail[arrow] - 1]);
  replace(box, h('strong', {}, arrowWords(model, arrow)), ' ', h('span', {class: 'soft'}, `from ${timeText(model.arrows.start[arrow])} on`), listOf(details));
}
