// One lane on a canvas. What is narrower than two pixels is drawn a pixel at a time: as high as that pixel is busy, in the
// colour of its longest event. So a frame costs the width of the screen, not the number of events.
import {nextMarked} from './find.js';
import {firstReaching, longestIn, lowerBound, soonBound} from './model.js';

const WIDE = 2;
const GAP = 4;       // boxes from this width on keep a pixel apart
const LABEL = 34;    // and from this on have a label

// Rectangles by colour, since to change colours costs more than to fill.
export class Rectangles {
  constructor(colours) {
    this.byColour = Array.from({length: colours}, () => []);
  }

  add(colour, x, y, width, height) {
    this.byColour[colour].push(x, y, width, height);
  }

  fill(context, fills) {
    this.byColour.forEach((list, index) => {
      if (!list.length) return;
      context.fillStyle = fills[index];
      for (let i = 0; i < list.length; i += 4) context.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
    });
  }
}

// to: {rectangles, labels}; look: {view, width, y, height, colour (by name), dim (index of its colour), marked (sums of
// found events, or null)}.
export function drawLane(model, lane, look, to) {
  const {view, width} = look;
  const {start, length} = model;
  const scale = width / view.span;
  let i = lane.loose ? lowerBound(start, view.from, lane.from, lane.to) : firstReaching(model, lane, view.from);
  while (i < lane.to && start[i] < view.to) {
    const x = (start[i] - view.from) * scale;
    if (length[i] * scale >= WIDE) {
      box(model, i, x, x + length[i] * scale, look, to);
      i += 1;
      continue;
    }
    const pixel = Math.floor(x);
    let next = soonBound(start, view.from + (pixel + 1) / scale, i, lane.to);
    if (next - i > 1 && length[next - 1] * scale >= WIDE) next -= 1; // begins here, ends elsewhere
    next = Math.max(next, i + 1);
    sliver(model, i, next, pixel, scale, look, to);
    i = next;
  }
}

function box(model, event, x, end, look, to) {
  const left = Math.max(x, -2);
  const right = Math.min(end, look.width + 2);
  const found = !look.marked || look.marked[event + 1] > look.marked[event];
  const gap = end - x > GAP ? 1 : 0;
  to.rectangles.add(found ? look.colour[model.name[event]] : look.dim, left, look.y, Math.max(1, right - left - gap), look.height - 1);
  if (right - left >= LABEL) to.labels.push({event, x: Math.max(0, left) + 3, y: look.y, width: right - Math.max(0, left) - 6, found});
}

function sliver(model, from, to, pixel, scale, look, into) {
  const found = !look.marked || look.marked[to] > look.marked[from];
  const busy = Math.min(1, (model.before[to] - model.before[from]) * scale);
  // What was looked for is seen however short it is.
  const height = Math.max(look.marked && found ? look.height - 1 : 2, Math.round(busy * (look.height - 1)));
  const event = to - from === 1 ? from : longestIn(model, from, to);
  const colour = found ? look.colour[model.name[look.marked ? nextMarked(look.marked, from, to) : event]] : look.dim;
  into.rectangles.add(colour, pixel, look.y + look.height - 1 - height, 1, height);
}

// A counter over time: steps, each pixel as high as the highest of what falls into it.
export function drawCounter(context, item, {view, ink}, {top, width, height}) {
  const {at, value} = item.counter;
  const most = item.most ??= value.reduce((a, b) => Math.max(a, b), 0) || 1;
  const scale = width / view.span;
  let i = Math.max(0, lowerBound(at, view.from, 0, at.length) - 1);
  context.fillStyle = ink.fills[item.track.index % ink.fills.length];
  while (i < at.length && at[i] < view.to) {
    const x = Math.max(0, Math.floor((at[i] - view.from) * scale));
    const next = Math.max(i + 1, soonBound(at, view.from + (x + 1) / scale, i, at.length));
    let high = 0;
    for (let k = i; k < next; ++k) high = Math.max(high, value[k]);
    const end = next < at.length ? Math.max(x + 1, (at[next] - view.from) * scale) : width;
    const tall = (high / most) * (height - 2);
    context.fillRect(x, top + height - 1 - tall, Math.min(width, end) - x, tall);
    i = next;
  }
}
