// Which cells make a picture of latency against load, and where the marks of pictures of requests lie.
import {test} from 'node:test';
import assert from 'node:assert/strict';
import {hasTick, labelPlaces, loadCurves} from '../../gate/web/src/load_curves.js';
import {requestPaths} from '../../gate/web/src/requests.js';

const metrics = [
  {name: 'time_to_first_token_seconds', label: 'TTFT', unit: 's'},
  {name: 'output_tokens_per_second', label: 'output tok/s', unit: 'tok/s'},
  {name: 'dispatches_per_token', label: 'dispatches/token', unit: ''},
];

test('those of one prompt at several concurrencies, by rising concurrency', () => {
  const points = [
    ['1', 's/m/cpu/chat@c16', 0, 0.2], ['2', 's/m/cpu/chat@c4', 0, 0.05], ['2', 's/m/cpu/chat@c4', 1, 300],
    ['3', 's/m/vulkan/chat@c4', 0, 0.03], // alone on its backend
    ['4', 's/m/cpu/long@d256', 0, 1], ['5', 's/m/cpu/long@d512', 0, 2], // depths are no load
    ['6', 's/m/cpu/busy@c1', 2, 65], ['7', 's/m/cpu/busy@c2', 2, 65], // counts are no latency
  ];
  const curves = loadCurves(metrics, points);
  assert.deepEqual(curves.map(({cell}) => cell), ['s/m/cpu/chat']);
  assert.deepEqual(curves[0].loads.map(([concurrency]) => concurrency), [4, 16]);
  assert.equal(curves[0].loads[0][1].get('output_tokens_per_second'), 300);
  assert.equal(curves[0].loads[1][1].get('output_tokens_per_second'), undefined);
});

test('threads of a cell part curves, at a concurrency as without', () => {
  const points = [1, 4].flatMap((load) => ['', '@t2', '@tall'].map((threads) => ['', `s / m / cpu / chat@c${load}${threads}`, 0, load]));
  assert.deepEqual(loadCurves(metrics, points).map(({cell, loads}) => [cell, loads.length]),
    [['s / m / cpu / chat', 2], ['s / m / cpu / chat@t2', 2], ['s / m / cpu / chat@tall', 2]]);
});

test("the base's medians and rates lie next to those of the run, as far as it has the load", () => {
  const points = [['1', 's/m/cpu/chat@c1', 0, 0.2], ['2', 's/m/cpu/chat@c4', 0, 0.3]];
  const bases = [['s/m/cpu/chat@c1', 0, 0.1], ['s/m/cpu/chat@c8', 0, 0.1], ['s/m/cpu/chat@c4', 2, 65], ['s/m/cpu/other@c4', 0, 1]];
  const [{known, loads}] = loadCurves(metrics, points, bases);
  assert.equal(known.get('base time_to_first_token_seconds').label, 'TTFT, base');
  assert.deepEqual(loads.map(([, values]) => values.get('base time_to_first_token_seconds')), [0.1, undefined]);
  assert.deepEqual(loads.map(([concurrency]) => concurrency), [1, 4]);
});

test('nothing of what is no number, and of a run without servers', () => {
  assert.deepEqual(loadCurves(metrics, [['1', 's/m/cpu/chat@c1', 0, NaN], ['2', 's/m/cpu/chat@c2', 0, null]]), []);
  assert.deepEqual(loadCurves(metrics, []), []);
});

test('labels that would lie on each other are moved apart, between the title and the floor', () => {
  for (const [wanted, got] of [
    [[80, 50, 26], [80, 50, 26]], // far apart: where they want to be
    [[26, 26, 26], [26, 38, 50]], [[108, 107, 106], [106, 94, 82]], [[60, 55, 20], [67, 55, 24]], [[70], [70]]]) {
    assert.deepEqual(labelPlaces(wanted), got);
  }
});

test('no more than eight concurrencies are named, the last one always', () => {
  for (const [count, shown] of [[2, [0, 1]], [8, [0, 1, 2, 3, 4, 5, 6, 7]], [9, [0, 2, 4, 6, 8]], [11, [0, 2, 4, 6, 8, 10]], [12, [1, 3, 5, 7, 9, 11]]]) {
    assert.deepEqual([...Array(count).keys()].filter((i) => hasTick(i, count)), shown);
  }
  assert.ok([...Array(100).keys()].filter((i) => hasTick(i, 100)).length <= 8);
});

test('requests are a point each, of end-to-end latency and of the first token', () => {
  // Ten a second, whose first token comes after 20 ms and whose last after 100; one stalled for a second.
  const latencies = Array.from({length: 50}, (_, i) => [i * 100_000, 20_000, i === 25 ? 1_000_000 : 100_000]).flat();
  const {whole, first} = requestPaths(latencies);
  assert.ok(whole.startsWith('M0.0 90.0h0M20.4 90.0h0'), whole); // a tenth of the height; 1000 / 49 to the right
  assert.ok(whole.includes('M510.2 0.0h0'), whole);
  assert.ok(first.startsWith('M0.0 98.0h0'), first);
});

test('requests of a hostile journal stay within the picture', () => {
  const {whole, first} = requestPaths(Array.from({length: 25}, () => [-(2 ** 63), 2 ** 63, -1]).flat());
  assert.equal(whole, 'M0.0 100.0h0'.repeat(25));
  assert.equal(first, 'M0.0 0.0h0'.repeat(25));
});
