// What is drawn over a graph: levels between changes, and the changes themselves.
import {changeText} from './units.js';
import {stateOf} from './words.js';

const LABEL_SPACE = 6; // pixels between two labels

// The line stops where something else was measured on: device, driver or machine.
export function gapsAt(changes) {
  const places = changes.filter((change) => change.kind === 'place').map((change) => change.index);
  return (u, _series, from, to, gaps) => {
    for (const index of places) {
      if (index <= from || index > to) continue;
      const left = u.valToPos(index - 1, 'x', true);
      const right = u.valToPos(index, 'x', true);
      if (right - left >= 1) gaps.push([left, right]);
    }
    return gaps;
  };
}

export function drawLevels(u, series, paint) {
  const changes = series.changes;
  if (changes.length === 0) return;
  const {ctx} = u;
  ctx.save();
  clip(u);
  ctx.strokeStyle = paint.text;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  changes.forEach((change, i) => {
    const before = i ? (changes[i - 1].end ?? changes[i - 1].index) : 0;
    const next = i + 1 < changes.length ? changes[i + 1].index : series.value.length;
    if (i === 0) line(u, before, change.index - 1, change.before, change.before);
    const settled = change.kind === 'drift' ? Math.max(change.end - 1, change.index) : change.index;
    if (change.kind === 'drift') line(u, change.index, settled, change.before, change.after);
    line(u, settled, next - 1, change.after, change.after);
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
function shape(ctx, state, x, y, size) {
  ctx.beginPath();
  if (state === 'place') {
    ctx.moveTo(x, y - size);
    ctx.lineTo(x + size, y);
    ctx.lineTo(x, y + size);
    ctx.lineTo(x - size, y);
    ctx.closePath();
    ctx.fill();
  } else if (state === 'worse') {
    ctx.moveTo(x, y - size);
    ctx.lineTo(x + size, y + size);
    ctx.lineTo(x - size, y + size);
    ctx.closePath();
    ctx.fill();
  } else if (state === 'better') {
    ctx.moveTo(x, y + size);
    ctx.lineTo(x + size, y - size);
    ctx.lineTo(x - size, y - size);
    ctx.closePath();
    ctx.stroke();
  } else {
    ctx.arc(x, y, size * 0.8, 0, 2 * Math.PI);
    if (state === 'known') ctx.stroke();
    else ctx.fill();
  }
}

function clip(u) {
  const {left, top, width, height} = u.bbox;
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
}
