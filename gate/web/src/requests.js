// What a server did in a run: a point for each request, and bars of how many tokens its graphs compute at once.
import {h} from './dom.js';

const WIDTH = 1000;
const HEIGHT = 100;

const share = (part, whole) => Math.min(1, Math.max(0, part / whole));
const largest = (numbers) => numbers.reduce((most, one) => Math.max(most, one), 1);

function picture(kind, {title, words}, marks) {
  return h('svg', {class: kind, role: 'img', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none'},
    h('title', {}, title), h('desc', {}, words), marks);
}

// Points of so many requests as two paths, so that ten thousand of them open at once: end-to-end latency and time to first
// token against when each should have begun. latencies: start, first token and last token, request by request.
export function requestPaths(latencies) {
  const requests = Array.from({length: Math.floor(latencies.length / 3)}, (_, i) => latencies.slice(3 * i, 3 * i + 3));
  const last = largest(requests.map(([start]) => start));
  const most = largest(requests.map(([, , whole]) => whole));
  const path = (which) => requests.map((one) => `M${(WIDTH * share(one[0], last)).toFixed(1)} ${(HEIGHT * (1 - share(one[which], most))).toFixed(1)}h0`).join('');
  return {whole: path(2), first: path(1)};
}

export function requestsPicture(figure) {
  return picture('requests', figure, Object.entries(requestPaths(figure.latencies)).map(([name, d]) => h('path', {class: name, d})));
}

// bars: [from tokens, to tokens, graphs].
export function batchesPicture(figure) {
  const most = largest(figure.bars.map(([, , graphs]) => graphs));
  const width = WIDTH / figure.bars.length;
  return picture('batches', figure, figure.bars.map(([, , graphs], i) => {
    const height = (HEIGHT * graphs) / most;
    return h('rect', {x: width * (i + 0.1), y: HEIGHT - height, width: 0.8 * width, height});
  }));
}
