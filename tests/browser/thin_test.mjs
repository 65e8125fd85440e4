// The drawing of a long series reaches as far as the series does, spikes and all.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {thinner} from '../../gate/web/src/thin.js';
import {changeText, show} from '../../gate/web/src/units.js';

// A generator of the test's own: the same numbers every time.
function numbers(count) {
  let state = 12345;
  return Array.from({length: count}, () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return 1 + state / 2147483648;
  });
}

test('keeps the least and the most of every part, and draws no more than a screen has', () => {
  const value = numbers(10_007);
  value[5_003] = 99; // a spike
  const series = {value, low: value.map((number) => number - 0.5), high: value.map((number, i) => (i % 7 ? number + 0.5 : null))};
  const thin = thinner(series, {positive: false, banded: true});
  for (const [from, to] of [[-0.5, 10_006.5], [17, 9_000], [4_990, 5_020], [5_003, 5_004], [8_000.2, 9_999.7]]) {
    for (const pixels of [50, 300, 1_200]) {
      const drawn = thin(from, to, pixels);
      assert.ok(drawn.at.length <= pixels + 2, `${drawn.at.length} columns on ${pixels} pixels`);
      assert.ok(drawn.x.every((place, i) => i === 0 || place > drawn.x[i - 1]), 'in order');
      assert.ok(drawn.x.every((place, i) => value[place] === drawn.y[i]), 'real points');
      const visible = value.slice(Math.max(0, Math.ceil(from)), Math.floor(to) + 1);
      assert.ok(Math.min(...drawn.min) <= Math.min(...visible) && Math.max(...drawn.max) >= Math.max(...visible));
      assert.ok(drawn.least <= Math.min(...visible) - 0.5 && drawn.most >= Math.max(...visible));
    }
  }
});

test('leaves out what a log scale cannot show', () => {
  const thin = thinner({value: [1, 0, -3, 10]}, {positive: true, banded: false});
  const drawn = thin(-0.5, 3.5, 100);
  assert.deepEqual(drawn.y, [1, null, null, 10]);
  assert.deepEqual([drawn.least, drawn.most], [1, 10]);
});

test('shows base units as people read them', () => {
  const space = '\u202f';
  for (const [unit, value, text] of [
    ['s', 0.0021, `2.1${space}ms`], ['s', 0, `0${space}s`], ['s', 3e-10, `0.3${space}ns`], ['s', 12, `12${space}s`],
    ['B', 2.4e8, `228.9${space}MiB`], ['B', 512, `512${space}B`], ['tok/s', 28.6123, `28.61${space}tok/s`],
    ['count', 65, '65'], ['count', 1234567, `1${space}234${space}567`], [null, -0.5, '\u22120.5'], [null, null, '–']]) {
    assert.equal(show({unit}, value), text);
  }
  assert.equal(show({unit: 'count'}, 66.5, '133/2'), '133/2');
  assert.equal(changeText({unit: 's'}, {relative: true, size: -0.0939}), `\u22129.39${space}%`);
  assert.equal(changeText({unit: 'count'}, {relative: false, size: 12}), '+12');
});
