// What is drawn over a graph: levels between changes, and the changes themselves.
import {changeText} from './units.js';
import {stateOf} from './words.js';

const LABEL_SPACE = 6; // pixels between two labels

// Where something else was measured on: device, driver or machine.
const placesOf = (changes) => changes.filter((change) => change.kind === 'place').map((change) => change.index);

// The line stops where something else was measured on: device, driver or machine.
export function gapsAt(changes) {
  const places = placesOf(changes);
  return (u, _series, from, to, gaps) => {
    const [first, last] = [u.data[0][from], u.data[0][to]];
    for (const index of places) {
      if (index <= first || index > last) continue;
      const left = u.valToPos(index - 1, 'x', true);
      const right = u.valToPos(index, 'x', true);
      if (right - left >= 1) gaps.push([left, right]);
    }
    return gaps;
  };
}

// Of many points the band, and with fewer pixels than points the line too, are columns: shapes of so many
// corners take many times as long.
export function drawColumns(u, drawn, fill, lows, highs, joined) {
  const ctx = begin(u);
  ctx.fillStyle = fill;
  let [top, bottom] = [Number.NaN, Number.NaN]; // of the column before
  for (let i = 0; i < drawn.at.length; ++i) {
    const left = Math.round(u.valToPos(drawn.at[i] - 0.5, 'x', true));
    const right = Math.round(u.valToPos(drawn.at[i] + drawn.size - 0.5, 'x', true));
    let y0 = Math.round(u.valToPos(highs[i], 'y', true));
    let y1 = Math.max(y0 + devicePixelRatio, Math.round(u.valToPos(lows[i], 'y', true)));
    const own = [y0, y1];
    if (joined && y0 > bottom) y0 = bottom;
    if (joined && y1 < top) y1 = top;
    [top, bottom] = own;
    if (Number.isFinite(y0) && Number.isFinite(y1)) ctx.fillRect(left, y0, joined ? Math.max(1, right - left) : right - left, y1 - y0);
  }
  ctx.restore();
}

const AT_ONCE = 16; // strokes

// A line of many points, a few strokes at a time: one path of a thousand long strokes takes a browser
// without a GPU 30 times as long.
export function drawLine(u, drawn, changes, stroke) {
  const places = new Set(placesOf(changes));
  const ctx = begin(u);
  ctx.strokeStyle = stroke;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.lineJoin = 'bevel';
  let open = 0;
  for (let i = 1; i < drawn.x.length; ++i) {
    if (drawn.y[i] === null || drawn.y[i - 1] === null || places.has(drawn.x[i])) continue;
    if (open === 0) ctx.beginPath();
    ctx.moveTo(u.valToPos(drawn.x[i - 1], 'x', true), u.valToPos(drawn.y[i - 1], 'y', true));
    ctx.lineTo(u.valToPos(drawn.x[i], 'x', true), u.valToPos(drawn.y[i], 'y', true));
    open = (open + 1) % AT_ONCE;
    if (open === 0) ctx.stroke();
  }
  if (open > 0) ctx.stroke();
  ctx.restore();
}

// The interval, from one change of device or machine to the next.
export function drawBand(u, drawn, changes, fill) {
  const x = (i) => u.valToPos(i, 'x', true);
  const y = (value) => u.valToPos(value, 'y', true);
  const places = placesOf(changes);
  const ctx = begin(u);
  ctx.fillStyle = fill;
  ctx.beginPath();
  for (let from = 0; from < drawn.at.length;) {
    const edge = places.find((index) => index > drawn.at[from]) ?? Infinity;
    let to = from;
    while (to < drawn.at.length && drawn.at[to] < edge) ++to;
    for (let i = from; i < to; ++i) ctx.lineTo(x(drawn.at[i]), y(drawn.high[i])); // the first one moves there
    for (let i = to - 1; i >= from; --i) ctx.lineTo(x(drawn.at[i]), y(drawn.low[i]));
    ctx.closePath();
    ctx.fill();
    ctx.beginPath();
    from = to;
  }
  ctx.restore();
}

export function drawLevels(u, series, paint) {
  const changes = series.changes;
  if (changes.length === 0) return;
  const ctx = begin(u);
  ctx.strokeStyle = paint.text;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  let drift = null; // goes on behind a step
  changes.forEach((change, i) => {
    const next = i + 1 < changes.length ? changes[i + 1].index : series.value.length;
    if (i === 0) line(u, 0, change.index - 1, change.before, change.before);
    if (change.kind === 'drift') drift = change;
    const from = change.kind === 'drift' ? change.before : change.after;
    const last = drift ? Math.max(Math.min(drift.end, next) - 1, change.index) : change.index;
    const nights = drift ? Math.max(drift.end - 1 - drift.index, 1) : 1;
    const level = from + (drift ? ((drift.after - drift.before) * (last - change.index)) / nights : 0);
    line(u, change.index, last, from, level);
    line(u, last, next - 1, level, level);
  });
  ctx.stroke();
  ctx.restore();
}

function line(u, from, to, left, right) {
  const y = (value) => u.valToPos(value, 'y', true);
  if (!Number.isFinite(y(left)) || !Number.isFinite(y(right))) return;
  u.ctx.moveTo(u.valToPos(from, 'x', true), y(left));
  u.ctx.lineTo(u.valToPos(to, 'x', true), y(right));
}

export function drawMarks(u, series, paint) {
  const {ctx, bbox} = u;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'bottom';
  ctx.textAlign = 'left';
  ctx.lineWidth = ratio;
  let free = -Infinity;
  for (const change of series.changes) {
    const x = Math.round(u.valToPos(change.index - 0.5, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const state = stateOf(series.metric, change);
    ctx.strokeStyle = ctx.fillStyle = state === 'known' ? paint.soft : paint.text;
    ctx.setLineDash(change.kind === 'place' ? [2 * ratio, 4 * ratio] : change.kind === 'drift' ? [9 * ratio, 4 * ratio] : []);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    shape(ctx, state, x, bbox.top - 5 * ratio, 4.5 * ratio);
    const text = changeText(series.metric, change);
    const left = x + 8 * ratio;
    const width = ctx.measureText(text).width;
    if (left > free && left + width <= bbox.left + bbox.width + 12 * ratio) {
      ctx.fillText(text, left, bbox.top - 0.5 * ratio);
      free = left + width + LABEL_SPACE * ratio;
    }
  }
  ctx.restore();
}

// Shapes, so that colour is not what tells them apart.
const CORNERS = {place: [[0, -1], [1, 0], [0, 1], [-1, 0]], worse: [[0, -1], [1, 1], [-1, 1]], better: [[0, 1], [1, -1], [-1, -1]]};

function shape(ctx, state, x, y, size) {
  ctx.beginPath();
  for (const [across, down] of CORNERS[state] ?? []) ctx.lineTo(x + across * size, y + down * size); // the first one moves there
  if (CORNERS[state]) ctx.closePath();
  else ctx.arc(x, y, size * 0.8, 0, 2 * Math.PI);
  if (state === 'better' || state === 'known') ctx.stroke();
  else ctx.fill();
}

// What is drawn from here to restore() stays within the graph.
function begin({ctx, bbox}) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  return ctx;
}
