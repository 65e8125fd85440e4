// A counter over time: steps, each pixel as high as the highest of what falls into it.
import {lowerBound, soonBound} from './model.js';

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
