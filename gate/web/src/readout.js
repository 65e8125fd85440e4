// What a point of a graph is: shown where it stays, so that its links can be reached.
import {h, replace} from './dom.js';
import {link} from './state.js';
import {moment, show} from './units.js';
import {commitLink} from './words.js';

// Fills `box`; the same in one sentence comes back.
export function readout(overview, cell, series, i, box, subject = '') {
  const run = series.run[i];
  const {runs} = cell;
  const exact = series.exact.find(([place]) => place === i)?.[1];
  const value = show(series.metric, series.value[i], exact);
  const low = series.low?.[i];
  const interval = low !== undefined && low !== null ? `${show(series.metric, low)} … ${show(series.metric, series.high[i])}` : '';
  const branch = runs.branches[runs.branch[run]];
  const place = cell.places[placeAt(series, i)] ?? {};
  const on = [place.device || place.device_class, place.machine || place.machine_class].filter(Boolean).join(', ');
  replace(box,
    h('strong', {}, `${value} `), interval ? h('span', {class: 'soft'}, `(${interval}) `) : null,
    commitLink(overview, runs.commit[run]), runs.dirty.includes(run) ? ' with changes not committed' : '', ' ',
    subject ? h('span', {class: 'subject'}, `${subject} `) : null,
    h('div', {class: 'small soft'}, `point ${i + 1} of ${series.value.length} · ${moment(runs.time[run])}`, branch ? ` · ${branch}` : '', on ? ` · ${on}` : '', ' ',
      runs.id[run] ? h('a', {href: link(`run/${runs.id[run]}`)}, 'run') : null));
  return `${value}${interval ? `, ${interval}` : ''}, ${runs.commit[run].slice(0, 10) || 'no commit'}, ${moment(runs.time[run])}, point ${i + 1}`;
}

// Places are kept where they change: [[first point, place], …].
function placeAt(series, i) {
  let low = 0;
  let high = series.place.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (series.place[middle][0] <= i) low = middle;
    else high = middle - 1;
  }
  return series.place[low]?.[1];
}
