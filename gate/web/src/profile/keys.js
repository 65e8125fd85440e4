// The timeline under the keyboard; docs/reference/profile-page.md and the page itself list them.
import {eventAt, laneOfEvent} from './model.js';
import {onKeys} from '../dom.js';

export const KEYS = [
  ['← →', 'the event before, the next one'], ['↑ ↓', 'the row above, below'], ['w s + −', 'closer, further'], ['a d', 'back, on'], ['0', 'all'],
  ['Enter', 'what is chosen or marked fills the view'], ['m', 'mark the chosen event’s time'], ['[ ]', 'mark from its begin, up to its end'],
  ['Escape', 'nothing chosen, nothing marked'], ['/', 'search'], ['n p', 'the next found one, the one before'],
];

// of: a TimelineBox -> a listener for keydown.
export function keysOf(of) {
  const {model, view} = of;
  const beside = (way) => {
    const {chosen} = of.state;
    if (chosen < 0) return first();
    const lane = laneOfEvent(model, chosen);
    if (chosen + way >= lane.from && chosen + way < lane.to) of.choose(chosen + way, true);
  };
  // The event that is nearest in time, in the next row that has any.
  const row = (way) => {
    const {chosen} = of.state;
    if (chosen < 0) return first();
    const time = model.start[chosen] + Math.min(model.length[chosen], view.span) / 2;
    const lane = model.lanes[model.lanes.indexOf(laneOfEvent(model, chosen)) + way];
    if (lane) of.choose(nearest(lane, time), true);
  };
  const nearest = (lane, time) => eventAt(model, lane, time, Infinity);
  const first = () => {
    if (model.lanes.length) of.choose(nearest(model.lanes[0], view.from), true);
  };
  const fill = () => {
    const {range, chosen} = of.state;
    if (range) view.show(...range);
    else if (chosen >= 0) of.frameEvent(chosen);
  };
  const edge = (begin) => {
    const {chosen, range} = of.state;
    if (chosen < 0) return;
    const [from, to] = range ?? [0, model.end];
    const end = model.start[chosen] + model.length[chosen];
    if (begin) of.mark(model.start[chosen], Math.max(to, end), true);
    else of.mark(Math.min(from, model.start[chosen]), end, true);
  };
  const acts = {
    ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowUp: () => row(-1), ArrowDown: () => row(1),
    w: () => view.zoom(0.5), '+': () => view.zoom(0.5), '=': () => view.zoom(0.5), s: () => view.zoom(2), '-': () => view.zoom(2),
    a: () => view.pan(-0.25), d: () => view.pan(0.25), 0: () => view.showAll(), Enter: fill,
    m: () => of.state.chosen >= 0 && of.mark(model.start[of.state.chosen], model.start[of.state.chosen] + model.length[of.state.chosen], true),
    '[': () => edge(true), ']': () => edge(false),
    Escape: () => { of.mark(0, 0, true); of.choose(-1); },
    '/': () => of.tell.search(), n: () => of.tell.find(1), p: () => of.tell.find(-1), N: () => of.tell.find(-1),
  };
  return onKeys(acts);
}
