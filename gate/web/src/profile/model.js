// The timeline as columns. Events lie lane after lane (a lane is a row of a track whose events follow each other), in
// order of their start within each: all that draws or adds up works on stretches of these columns.
import {bytesOf, Varints} from './decode.js';
import {entryOf} from '../state.js';

export const MOST_LANES = 48;
const FORMAT = 'weir.profile-page/1';

// head: the document; text: its columns in base64 -> model. Times are nanoseconds from the first event's.
export function readModel(head, text) {
  if (head.schema !== FORMAT) throw new Error('this file is of another version of weir');
  const numbers = new Varints(bytesOf(text));
  const count = head.tracks.reduce((sum, track) => sum + track.events, 0);
  const model = {
    head, count, lanes: [], tracks: [], rows: [],
    start: new Float64Array(count), length: new Float64Array(count), name: new Uint32Array(count),
    detail: new Uint32Array(count), parent: new Int32Array(count), row: new Uint32Array(count),
    // Time before each event, in all lanes together: of a stretch of one lane the difference is its time.
    before: new Float64Array(count + 1),
    names: head.names, details: head.details, end: 0,
  };
  const slots = {row: new Uint32Array(head.names.length), track: new Int32Array(head.names.length).fill(-1)};
  head.tracks.forEach((track, index) => readTrack(model, numbers, track, index, slots));
  model.laneEnds = model.lanes.map(({to}) => to);
  for (let i = 0; i < count; ++i) model.before[i + 1] = model.before[i] + model.length[i];
  model.arrows = readArrows(model, numbers, head.arrows);
  for (const counter of head.counters) model.end = Math.max(model.end, counter.at.at(-1) ?? 0);
  model.end = Math.max(model.end, 1);
  model.longest = longestOf(model);
  model.find = head.names.map((name) => name.toLowerCase());
  return model;
}

function readTrack(model, numbers, track, index, slots) {
  const first = model.lanes.length ? model.lanes.at(-1).to : 0;
  const {events} = track;
  const raw = {start: numbers.column(events), length: numbers.column(events), name: numbers.column(events, model.names.length - 1), detail: numbers.column(events, model.details.length)};
  for (let i = 1; i < events; ++i) raw.start[i] += raw.start[i - 1];
  const {lane, parent, lanes} = laneOf(raw.start, raw.length, MOST_LANES);
  const next = new Int32Array(lanes + 1);
  for (let i = 0; i < events; ++i) next[lane[i] + 1] += 1;
  for (let i = 0; i < lanes; ++i) next[i + 1] += next[i];
  const place = new Int32Array(events);
  const own = {index, name: track.name, kind: track.kind, process: track.process, from: first, to: first + events, lanes: []};
  for (let i = 0; i < lanes; ++i) {
    const made = {track: index, number: i, from: first + next[i], to: first + next[i + 1], loose: i === MOST_LANES - 1};
    model.lanes.push(made);
    own.lanes.push(made);
  }
  for (let i = 0; i < events; ++i) {
    const at = first + next[lane[i]]++;
    place[i] = at;
    model.start[at] = raw.start[i];
    model.length[at] = raw.length[i];
    model.name[at] = raw.name[i];
    model.detail[at] = raw.detail[i];
    model.parent[at] = parent[i] < 0 ? -1 : place[parent[i]];
    model.row[at] = rowOf(model, slots, index, raw.name[i]);
    model.end = Math.max(model.end, raw.start[i] + raw.length[i]);
  }
  model.tracks.push(own);
}

// A row of the statistics is one name on one track.
function rowOf(model, slots, track, name) {
  if (slots.track[name] !== track) {
    slots.track[name] = track;
    slots.row[name] = model.rows.push({track, name}) - 1;
  }
  return slots.row[name];
}

// Arrows lie together by their two tracks, in order of their start within each such pair.
function readArrows(model, numbers, count) {
  const most = model.tracks.length - 1;
  // In the order of the file.
  const raw = {
    from: numbers.column(count, most), to: numbers.column(count, most), start: numbers.column(count),
    length: Float64Array.from({length: count}, () => numbers.signed()),
    name: numbers.column(count, model.names.length - 1), detail: numbers.column(count, model.details.length),
  };
  for (let i = 1; i < count; ++i) raw.start[i] += raw.start[i - 1];
  const pairs = new Map();
  for (let i = 0; i < count; ++i) {
    const key = raw.from[i] * (most + 1) + raw.to[i];
    const pair = entryOf(pairs, key, () => ({from: raw.from[i], to: raw.to[i], all: [], longest: 0}));
    pair.all.push(i);
    pair.longest = Math.max(pair.longest, Math.abs(raw.length[i]));
    model.end = Math.max(model.end, raw.start[i], raw.start[i] + raw.length[i]);
  }
  for (const pair of pairs.values()) pair.start = Float64Array.from(pair.all, (i) => raw.start[i]);
  return {...raw, count, pairs: [...pairs.values()]};
}

// For blocks of 16 events, of 256, …: which of each is the longest.
function longestOf({count, length}) {
  const levels = [];
  let below = null;
  for (let size = Math.ceil(count / 16); size >= 1; size = Math.ceil(size / 16)) {
    const level = new Uint32Array(size);
    const many = below ? below.length : count;
    for (let i = 0; i < size; ++i) {
      let best = below ? below[i * 16] : i * 16;
      for (let k = i * 16 + 1; k < Math.min(many, i * 16 + 16); ++k) {
        const one = below ? below[k] : k;
        if (length[one] > length[best]) best = one;
      }
      level[i] = best;
    }
    levels.push(level);
    below = level;
    if (size === 1) break;
  }
  return levels;
}

// The longest event of those from `from` up to `to`, which are not none.
export function longestIn(model, from, to) {
  const {length, longest} = model;
  let best = from;
  let low = from;
  let high = to;
  for (let level = -1; low < high; ++level) {
    const at = level < 0 ? null : longest[level];
    const last = level + 1 >= longest.length;
    for (; low < high && (last || low % 16); ++low) {
      const one = at ? at[low] : low;
      if (length[one] > length[best]) best = one;
    }
    for (; low < high && high % 16; --high) {
      const one = at ? at[high - 1] : high - 1;
      if (length[one] > length[best]) best = one;
    }
    low /= 16;
    high /= 16;
  }
  return best;
}

// The first place from `from` up to `to` whose number is `value` or more; `to` if there is none.
export function lowerBound(numbers, value, from, to) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (numbers[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

// The same where it is thought to be near `from`.
export function soonBound(numbers, value, from, to) {
  let step = 1;
  let low = from;
  while (low + step < to && numbers[low + step] < value) {
    low += step;
    step *= 2;
  }
  return lowerBound(numbers, value, low, Math.min(to, low + step + 1));
}

// The first event of a lane that may reach into what begins at `time`.
export function firstReaching(model, lane, time) {
  if (lane.loose) return lane.from; // events of that lane overlap
  const first = lowerBound(model.start, time, lane.from, lane.to);
  return first > lane.from && model.start[first - 1] + model.length[first - 1] > time ? first - 1 : first;
}

export function laneOfEvent(model, event) {
  return model.lanes[lowerBound(model.laneEnds, event + 1, 0, model.lanes.length - 1)];
}

// The event of a track at a time, in its deepest lane; -1 when there is none.
export function deepestAt(model, track, time) {
  for (let i = track.lanes.length - 1; i >= 0; --i) {
    const at = eventAt(model, track.lanes[i], time, 0);
    if (at >= 0) return at;
  }
  return -1;
}

// The event of a lane at a time, or not further than `slack` from it; -1 when there is none.
export function eventAt(model, lane, time, slack) {
  const {start, length} = model;
  const after = lowerBound(start, time, lane.from, lane.to);
  let best = -1;
  let away = slack;
  for (const one of [after - 1, after]) {
    if (one < lane.from || one >= lane.to) continue;
    const far = Math.max(0, start[one] - time, time - start[one] - length[one]);
    if (far <= away) [best, away] = [one, far];
  }
  return best;
}

// Which row of its track an event lies in: what begins while another goes on lies one below it. start: ascending; of events that begin together the longer one first. -> {lane, parent, lanes}: for each event its row and
// the event that it lies within wholly (-1: none), and how many rows there are. Rows beyond `most` are the last one.
function laneOf(start, length, most) {
  const count = start.length;
  const lane = new Uint8Array(count);
  const parent = new Int32Array(count).fill(-1);
  const last = [];   // the event that each row ends with
  const ends = [];
  for (let i = 0; i < count; ++i) {
    const end = start[i] + length[i];
    let row = 0;
    while (row < ends.length && ends[row] > start[i]) ++row;
    row = Math.min(row, most - 1);
    lane[i] = row;
    const above = row > 0 ? last[row - 1] : -1;
    if (above >= 0 && ends[row - 1] >= end && ends[row - 1] > start[i]) parent[i] = above;
    last[row] = i;
    ends[row] = Math.max(end, row === most - 1 ? ends[row] ?? 0 : 0);
  }
  return {lane, parent, lanes: ends.length};
}
