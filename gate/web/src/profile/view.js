// The stretch of time that is looked at, within [0, end] nanoseconds.

const LEAST = 10; // nanoseconds

export class View {
  constructor(end, onchange) {
    Object.assign(this, {from: 0, to: end, end, onchange});
  }

  show(from, to) {
    const span = Math.min(this.end, Math.max(LEAST, to - from));
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(0, middle - span / 2), this.end - span);
    if (![start, span].every(Number.isFinite) || (start === this.from && start + span === this.to)) return;
    [this.from, this.to] = [start, start + span];
    this.onchange();
  }

  get span() { return this.to - this.from; }
  get isAll() { return this.from <= 0 && this.to >= this.end; }

  showAll() { this.show(0, this.end); }
  pan(share) { this.show(this.from + this.span * share, this.to + this.span * share); }

  // factor < 1: closer; what is at `at` stays where it is.
  zoom(factor, at = (this.from + this.to) / 2) {
    const span = Math.min(this.end, Math.max(LEAST, this.span * factor));
    const share = (at - this.from) / this.span;
    this.show(at - share * span, at + (1 - share) * span);
  }

  // So that [from, to] fills most of it, or is at least in it.
  frame(from, to) {
    const margin = Math.max((to - from) * 0.1, LEAST / 2);
    this.show(from - margin, to + margin);
  }

  reach(from, to) {
    if (from >= this.from && to <= this.to) return;
    if (to - from > this.span) return this.frame(from, to);
    const middle = (from + to) / 2;
    this.show(middle - this.span / 2, middle + this.span / 2);
  }
}

// Round times about every 90 pixels: {step, first}.
export function ticks(view, width) {
  const raw = (view.span * 90) / Math.max(width, 90);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((one) => one * power >= raw) ?? 10);
  return {step, first: Math.ceil(view.from / step) * step};
}

// Nanoseconds as people read them; of ticks `step` apart no digit more than they need.
const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
export function timeText(time, step = 0) {
  if (time === 0) return '0';
  const [factor, unit] = UNITS.find(([size]) => Math.abs(time) >= size) ?? UNITS.at(-1);
  const value = time / factor;
  const digits = step ? Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9)) : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toFixed(Math.min(digits, 12));
  return `${step || !text.includes('.') ? text : text.replace(/\.?0+$/, '')}\u202f${unit}`;
}

// Where tracks lie, from the top, in CSS pixels: a line with its name, then its lanes.

export const RULER = 22;
const HEAD = 18;
const LANE = 17;
const COUNTER = 34;
const BETWEEN = 7;

// -> {items: [{track, top, height, lanesTop, laneHeight}], height}; items of counters have `counter`.
export function layOut(model) {
  const items = [];
  let top = RULER + 2;
  model.tracks.forEach((track) => {
    const counter = model.head.counters.find((one) => one.track === track.index);
    const lanes = counter ? COUNTER : Math.max(1, track.lanes.length) * LANE;
    items.push({track, counter, top, lanesTop: top + HEAD, laneHeight: LANE, height: HEAD + lanes});
    top += HEAD + lanes + BETWEEN;
  });
  return {items, height: top};
}

export const laneTop = (item, number) => item.lanesTop + number * item.laneHeight;

// The track at a height: -> {item, lane} (lane: index within the track; null where none is); null beyond all.
export function placeAt(layout, y) {
  const item = layout.items.find((one) => y >= one.top && y < one.top + one.height);
  if (!item) return null;
  const number = Math.floor((y - item.lanesTop) / item.laneHeight);
  return {item, lane: number >= 0 && !item.counter ? item.track.lanes[number] ?? null : null};
}
