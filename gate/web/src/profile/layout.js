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
