// A long series as few numbers as a screen can tell apart: of every few points the least and the most,
// so that no spike is lost. Points are few by powers of two, so that a line keeps its shape when it is
// moved.

const NONE = Number.NaN;

// Columns of numbers; null is none.
function column(list, count, positive) {
  const made = new Float64Array(count);
  for (let i = 0; i < count; ++i) {
    const one = list?.[i];
    made[i] = one === null || one === undefined || (positive && one <= 0) ? NONE : one;
  }
  return made;
}

export function thinner(series, {positive, banded}) {
  const count = series.value.length;
  const value = column(series.value, count, positive);
  // A point without samples is its own interval.
  const filled = (list) => column(list, count, positive).map((one, i) => (Number.isNaN(one) ? value[i] : one));
  const low = banded ? filled(series.low) : value;
  const high = banded ? filled(series.high) : value;
  // Of each 2^k points: the places of the least and the most value, the least and most of the band.
  const levels = [null];

  function level(k) {
    for (let at = levels.length; at <= k; ++at) levels.push(above(levels[at - 1], at));
    return levels[k];
  }

  function above(below, k) {
    const size = Math.ceil(count / 2 ** k);
    const made = {least: new Int32Array(size), most: new Int32Array(size), low: new Float64Array(size), high: new Float64Array(size)};
    for (let i = 0; i < size; ++i) {
      const a = 2 * i;
      const b = Math.min(a + 1, (below ? below.least.length : count) - 1);
      made.least[i] = below ? less(below.least[a], below.least[b]) : less(a, b);
      made.most[i] = below ? more(below.most[a], below.most[b]) : more(a, b);
      made.low[i] = below ? Math.min(below.low[a], below.low[b]) : Math.min(low[a], low[b]);
      made.high[i] = below ? Math.max(below.high[a], below.high[b]) : Math.max(high[a], high[b]);
    }
    return made;
  }
  const less = (a, b) => (value[b] < value[a] || Number.isNaN(value[a]) ? b : a);
  const more = (a, b) => (value[b] > value[a] || Number.isNaN(value[a]) ? b : a);

  // What to draw of the points from … to, on so many pixels: places and values of the line; of every
  // `size` points from `at` on the bounds of the line (min, max) and of the band (low, high); and how far
  // all of it reaches.
  return (from, to, pixels) => {
    const first = Math.max(0, Math.floor(from) - 1);
    const last = Math.min(count - 1, Math.ceil(to) + 1);
    const k = Math.max(0, Math.ceil(Math.log2((last - first + 1) / Math.max(1, pixels))));
    const made = {x: [], y: [], size: 2 ** k, at: [], min: [], max: [], low: [], high: [], least: Infinity, most: -Infinity};
    if (k === 0) {
      for (let i = first; i <= last; ++i) add(made, i, i, i, low[i], high[i]);
    } else {
      const all = level(k);
      for (let i = first >> k; i <= last >> k; ++i) add(made, all.least[i], all.most[i], i * 2 ** k, all.low[i], all.high[i]);
    }
    return made;
  };

  function add(made, least, most, at, bottom, top) {
    for (const i of least === most ? [least] : least < most ? [least, most] : [most, least]) {
      made.x.push(i);
      made.y.push(Number.isNaN(value[i]) ? null : value[i]);
    }
    made.at.push(at);
    made.min.push(value[least]);
    made.max.push(value[most]);
    made.low.push(bottom);
    made.high.push(top);
    if (bottom < made.least) made.least = bottom;
    if (top > made.most) made.most = top;
    if (value[least] < made.least) made.least = value[least];
    if (value[most] > made.most) made.most = value[most];
  }
}
