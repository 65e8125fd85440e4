// Arrows from track to track: copies between backends, and what was submitted to where it ran.
import {laneTop} from './view.js';
import {deepestAt, laneOfEvent, lowerBound} from './model.js';

const OUTSIDE = 400;
const MOST = 200; // more than these in view are black, and are not drawn

// Those that can be seen: [{arrow, x, y, toX, toY}]; nothing when they are too many.
export function arrowsInView({width, height, scroll}, state) {
  const {model: {arrows}, view} = state;
  const stretches = arrows.pairs.map((pair) => around(arrows, pair, view.from, view.to));
  const begin = arrows.pairs.reduce((sum, pair) => sum + firstArrow(pair, view.to) - firstArrow(pair, view.from), 0);
  if (begin > MOST) return null;
  const out = [];
  arrows.pairs.forEach((pair, index) => {
    for (let i = stretches[index][0]; i < stretches[index][1]; ++i) {
      const [start, end] = [arrows.start[pair.all[i]], arrows.start[pair.all[i]] + arrows.length[pair.all[i]]];
      if (Math.max(start, end) < view.from || Math.min(start, end) > view.to) continue;
      const made = placed(state, pair.all[i], width, scroll);
      if (Math.max(made.y, made.toY) >= 0 && Math.min(made.y, made.toY) <= height) out.push(made);
    }
  });
  return out;
}

const firstArrow = ({start}, time) => lowerBound(start, time, 0, start.length);

// The places in `pair` of those that may be seen in a stretch: of what begins outside of it only so many, lest a frame cost
// what all of them do.
function around(arrows, pair, from, to) {
  const first = Math.max(firstArrow(pair, from - pair.longest), firstArrow(pair, from) - OUTSIDE);
  const last = Math.min(firstArrow(pair, to + pair.longest), firstArrow(pair, to) + OUTSIDE);
  return [Math.max(0, first), Math.min(pair.all.length, last + 1)];
}

function placed(state, arrow, width, scroll) {
  const {model, view} = state;
  const {from, to, start, length} = model.arrows;
  const x = (time) => ((time - view.from) / view.span) * width;
  const end = start[arrow] + length[arrow];
  return {arrow, x: x(start[arrow]), y: yOf(state, from[arrow], start[arrow]) - scroll, toX: x(end), toY: yOf(state, to[arrow], end) - scroll};
}

// The middle of the lane whose event is at that time.
function yOf({model, layout}, track, time) {
  const item = layout.items[track];
  const event = deepestAt(model, item.track, time);
  return laneTop(item, event < 0 ? 0 : laneOfEvent(model, event).number) + item.laneHeight / 2;
}

// The drawn arrow that passes within a few pixels of a place; null when none does.
export function arrowNear(drawn, x, y) {
  let best = null;
  let least = 5;
  for (const one of drawn) {
    const [w, h] = [one.toX - one.x, one.toY - one.y];
    const share = Math.min(1, Math.max(0, ((x - one.x) * w + (y - one.y) * h) / (w * w + h * h || 1)));
    const away = Math.hypot(one.x + share * w - x, one.y + share * h - y);
    if (away < least) [best, least] = [one, away];
  }
  return best;
}

// Any arrow that begins or ends at an event: of what it says when it is chosen.
export function arrowsOf(model, track, from, to, most = 4) {
  const out = [];
  const {arrows} = model;
  for (const pair of arrows.pairs) {
    if (pair.from !== track && pair.to !== track) continue;
    let [i, last] = around(arrows, pair, from, to);
    for (; i < last && out.length < most; ++i) {
      const arrow = pair.all[i];
      const begin = arrows.start[arrow];
      const end = begin + arrows.length[arrow];
      if ((pair.from === track && begin >= from && begin <= to) || (pair.to === track && end >= from && end <= to)) out.push(arrow);
    }
  }
  return out;
}
