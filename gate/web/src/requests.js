// What a server did in a run: a point for each request, and bars of how many tokens its graphs compute at
// once. A verdict keeps some of the requests; how they were chosen is said below the picture.
import {h} from './dom.js';
import {show} from './units.js';

const SECONDS = {unit: 's'};
const WIDTH = 1000;
const HEIGHT = 100;
const LEAST_REQUESTS = 20; // fewer make no picture

const seconds = (microseconds) => show(SECONDS, microseconds / 1e6);
const share = (part, whole) => Math.min(1, Math.max(0, part / whole));

// served: [cell, latencies, bars, requests]; latencies: start, first token and last token in microseconds,
// request by request; bars: [from, to, graphs]; requests: how many there were, 0 where unknown.
export function servedPart(served) {
  const figures = served.flatMap(([cell, latencies, bars, requests]) => [requestsFigure(cell, latencies, requests), batchesFigure(cell, bars)]).filter(Boolean);
  return figures.length ? [h('h2', {}, 'Requests and batches'), figures] : null;
}

function figure(kind, caption, title, words, marks) {
  return h('figure', {class: 'served'},
    h('figcaption', {}, caption),
    h('svg', {class: kind, role: 'img', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none'},
      h('title', {}, title), h('desc', {}, words), marks),
    h('p', {class: 'soft'}, words));
}

function requestsFigure(cell, latencies, all) {
  const count = Math.floor(latencies.length / 3);
  if (count < LEAST_REQUESTS) return null;
  const requests = Array.from({length: count}, (_, i) => latencies.slice(3 * i, 3 * i + 3));
  const last = Math.max(1, ...requests.map(([start]) => start));
  const most = Math.max(1, ...requests.map(([, , whole]) => whole));
  const path = (which) => requests.map((one) => `M${(WIDTH * share(one[0], last)).toFixed(1)} ${(HEIGHT * (1 - share(one[which], most))).toFixed(1)}h0`).join('');
  const chosen = all > count;
  return figure('requests', `${cell}: requests of the last timed run, from 0 to ${seconds(most)}: end-to-end latency, and below it time to first token`,
    'latency of each request', `${count}${chosen ? ` of ${all}` : ''} requests over ${seconds(last)}${chosen ? ': the fastest and slowest of every few (stalls look more frequent than they are)' : ''}; end-to-end latency up to ${seconds(most)}`,
    [h('path', {class: 'whole', d: path(2)}), h('path', {class: 'first', d: path(1)})]);
}

function batchesFigure(cell, bars) {
  if (!bars.length) return null;
  const most = Math.max(...bars.map(([, , graphs]) => graphs));
  const width = WIDTH / bars.length;
  return figure('batches', `${cell}: graphs of the last counted run, by how many tokens each computes at once (prompts, and one of each request that generates)`,
    'graphs by tokens', `${bars.map(([from, to, graphs]) => `${from === to ? from : `${from} to ${to}`}: ${graphs}`).join(' · ')} (tokens: graphs)`,
    bars.map(([, , graphs], i) => {
      const height = (HEIGHT * graphs) / most;
      return h('rect', {x: width * (i + 0.1), y: HEIGHT - height, width: 0.8 * width, height});
    }));
}
