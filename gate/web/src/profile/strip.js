// The whole of time in one line, with what of it is looked at: drag there to go elsewhere.
import {lowerBound} from './model.js';

const HEIGHT = 36;

// How busy each of `width` stretches of time is: two numbers each, devices (and copies) and CPU, 0 to 1.
export function busy(model, width) {
  const out = {device: new Float32Array(width), cpu: new Float32Array(width)};
  const size = model.end / width;
  for (const track of model.tracks) {
    const lane = track.lanes[0];
    if (!lane || track.kind === 'counter' || track.kind === 'marks') continue; // another track has that work
    const to = track.kind === 'cpu' ? out.cpu : out.device;
    let i = lane.from;
    for (let x = 0; x < width && i < lane.to; ++x) {
      const next = lowerBound(model.start, (x + 1) * size, i, lane.to);
      if (next === i) continue;
      spread(to, model, i, next, x, size);
      i = next;
    }
  }
  return out;
}

// All but the last end before the next begins, so within this stretch; the last may go on.
function spread(to, model, from, next, x, size) {
  to[x] += (model.before[next - 1] - model.before[from]) / size;
  let begin = model.start[next - 1];
  const end = begin + model.length[next - 1];
  for (let at = x; at < to.length && begin < end; ++at) {
    const edge = Math.min(end, (at + 1) * size);
    to[at] += Math.max(0, edge - begin) / size;
    begin = Math.max(begin, edge);
  }
}

export function strip(model, view) {
  const canvas = document.createElement('canvas');
  canvas.className = 'strip';
  canvas.setAttribute('aria-hidden', 'true');
  let cache = null;

  function draw(ink) {
    const [width, dots] = [canvas.clientWidth, devicePixelRatio];
    if (!width) return;
    const key = JSON.stringify([width, dots, ink]);
    if (cache?.key !== key) cache = {key, image: paint(model, width, dots, ink)};
    if (canvas.width !== cache.image.width) [canvas.width, canvas.height] = [cache.image.width, cache.image.height];
    const context = canvas.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(cache.image, 0, 0);
    context.setTransform(dots, 0, 0, dots, 0, 0);
    const [from, to] = [view.from, view.to].map((time) => (time / model.end) * width);
    context.fillStyle = ink['band-fill'];
    context.fillRect(from, 0, Math.max(2, to - from), HEIGHT);
    context.fillStyle = ink.accent;
    for (const x of [from, Math.max(from + 2, to) - 1]) context.fillRect(x, 0, 1, HEIGHT);
  }

  // A click brings that place to the middle, a drag shows what it covers.
  let start = null;
  const timeAt = (event) => ((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * model.end;
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    start = {time: timeAt(event), x: event.clientX};
  });
  canvas.addEventListener('pointermove', (event) => {
    if (start && Math.abs(event.clientX - start.x) > 3) view.show(Math.min(start.time, timeAt(event)), Math.max(start.time, timeAt(event)));
  });
  canvas.addEventListener('pointerup', (event) => {
    if (start && Math.abs(event.clientX - start.x) <= 3) view.show(start.time - view.span / 2, start.time + view.span / 2);
    start = null;
  });
  canvas.addEventListener('pointercancel', () => { start = null; });
  return {canvas, draw};
}

function paint(model, width, dots, ink) {
  const image = document.createElement('canvas');
  [image.width, image.height] = [Math.round(width * dots), Math.round(HEIGHT * dots)];
  const context = image.getContext('2d');
  context.scale(dots, dots);
  context.fillStyle = ink.band;
  context.fillRect(0, 0, width, HEIGHT);
  const shares = busy(model, Math.ceil(width));
  for (const [list, top, fill] of [[shares.cpu, 0, ink.soft], [shares.device, HEIGHT / 2, ink.fills[0]]]) {
    context.fillStyle = fill;
    list.forEach((share, x) => {
      const tall = Math.min(1, share) * (HEIGHT / 2 - 2);
      if (share > 0) context.fillRect(x, top + HEIGHT / 2 - 1 - Math.max(1, tall), 1, Math.max(1, tall));
    });
  }
  return image;
}
