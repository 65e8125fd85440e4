// The columns of a profile's page without a browser: read, laid in lanes, added up, found. Each is held to a slow way that
// looks at every event.
import assert from 'node:assert/strict';
import {describe, it} from 'node:test';
import {bytesOf, Varints} from '../../gate/web/src/profile/decode.js';
import {findWords, step} from '../../gate/web/src/profile/find.js';
import {eventAt, longestIn, MOST_LANES, readModel} from '../../gate/web/src/profile/model.js';
import {addUp} from '../../gate/web/src/profile/stats.js';

// As timeline_document.cpp writes it. tracks: [[kind, [[start, length, name], …]]].
function written(tracks, names) {
  const bytes = [];
  const add = (value) => {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  };
  for (const [, events] of tracks) {
    events.forEach(([start], i) => add(start - (i ? events[i - 1][0] : 0)));
    events.forEach(([, length]) => add(length));
    events.forEach(([, , name]) => add(name));
    events.forEach(() => add(0));
  }
  const head = {schema: 'weir.profile-page/1', names, details: [], arrows: 0, counters: [], tables: [],
    tracks: tracks.map(([kind, events], i) => ({name: `track ${i}`, kind, process: 0, events: events.length}))};
  return readModel(head, Buffer.from(bytes).toString('base64'));
}

// Numbers without end, the same ones each time.
function* random(most) {
  for (let seed = 7; ; seed = (seed * 48271) % 2147483647) yield seed % most;
}

function several(count) {
  const of = random(1000);
  const next = () => of.next().value;
  const list = (overlap) => {
    let at = 0;
    const events = [];
    for (let i = 0; i < count; ++i) {
      at += next() % 40;
      events.push([at, next() % (overlap ? 400 : 50), next() % 5]);
    }
    return events.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  };
  return written([['cpu', list(true)], ['device', list(false)], ['copy', list(true)]], ['mul', 'add', 'copy', 'norm', 'mul add']);
}

describe('the columns of a profile', () => {
  it('are read from base64 where the browser has no way of its own', () => {
    for (const length of [0, 1, 2, 3, 4, 5, 300]) {
      const bytes = Uint8Array.from({length}, (_, i) => (i * 37) & 255);
      assert.deepEqual(bytesOf(Buffer.from(bytes).toString('base64')), bytes, `${length} bytes`);
    }
  });

  it('hold numbers beyond 32 bits', () => {
    // 2^53 - 1 is seven bytes of 127 with the bit that goes on, and one of 15.
    assert.equal(new Varints(Uint8Array.from([...Array(7).fill(255), 15])).next(), Number.MAX_SAFE_INTEGER);
    assert.equal(new Varints(Uint8Array.from([128, 1])).next(), 128);
    assert.equal(new Varints(Uint8Array.from([3])).signed(), -2);
  });

  it('are refused when they are cut short', () => {
    assert.throws(() => new Varints(Uint8Array.from([255])).next(), /cut short or damaged/);
    const head = {schema: 'weir.profile-page/1', names: ['a'], details: [], arrows: 0, counters: [], tracks: [{name: 't', kind: 'cpu', process: 0, events: 5}]};
    assert.throws(() => readModel(head, ''), /cut short or damaged/);
    assert.throws(() => readModel({...head, schema: 'weir.profile-page/2'}, ''), /another version/);
  });

  it('lie in lanes whose events do not overlap, children below what holds them', () => {
    const model = several(2000);
    for (const lane of model.lanes.filter((candidate) => !candidate.loose)) {
      for (let i = lane.from + 1; i < lane.to; ++i) assert.ok(model.start[i] >= model.start[i - 1] + model.length[i - 1], `event ${i}`);
    }
    let nested = 0;
    for (let i = 0; i < model.count; ++i) {
      const parent = model.parent[i];
      if (parent < 0) continue;
      nested += 1;
      assert.ok(model.start[parent] <= model.start[i] && model.start[parent] + model.length[parent] >= model.start[i] + model.length[i]);
    }
    assert.ok(nested > 100, `${nested} are nested`);
  });

  it('take a thousand events at one time into so many lanes and no more', () => {
    const model = written([['async', Array.from({length: 1000}, (_, i) => [i, 5000, 0])]], ['request']);
    assert.equal(model.tracks[0].lanes.length, MOST_LANES);
    assert.equal(addUp(model, 0, model.end).calls[0], 1000);
  });

  it('know the longest event of any stretch', () => {
    const model = several(1500);
    const of = random(model.count);
    for (let i = 0; i < 300; ++i) {
      const [a, b] = [of.next().value, of.next().value];
      const [from, to] = [Math.min(a, b), Math.max(a, b) + 1];
      const most = Math.max(...model.length.subarray(from, to));
      assert.equal(model.length[longestIn(model, from, to)], most, `${from} to ${to}`);
    }
  });

  it('add up to what every event adds, for any stretch of time', () => {
    const model = several(1500);
    for (const [from, to] of [[0, model.end], [1000, 1001], [500.5, 9000.25], [model.end - 10, model.end]]) {
      const sums = addUp(model, from, to);
      const want = new Float64Array(model.rows.length);
      for (let i = 0; i < model.count; ++i) want[model.row[i]] += Math.max(0, Math.min(to, model.start[i] + model.length[i]) - Math.max(from, model.start[i]));
      want.forEach((total, row) => assert.ok(Math.abs(total - sums.total[row]) < 1e-6, `row ${row} of ${from} to ${to}`));
      assert.ok(sums.own.every((own, row) => own <= sums.total[row] + 1e-6));
    }
  });

  it('have an own time without what is nested in them', () => {
    // 100 long with 10 and 20 within it, of which 20 has 5 of its own.
    const model = written([['cpu', [[0, 100, 0], [10, 10, 1], [50, 20, 2], [55, 5, 1]]]], ['outer', 'inner', 'middle']);
    const sums = addUp(model, 0, 100);
    assert.deepEqual(model.rows.map(({name}) => name), [0, 1, 2]);
    assert.deepEqual([...sums.own], [70, 15, 15]);
    assert.deepEqual([...addUp(model, 15, 60).own], [45 - 5 - 10, 5 + 5, 10 - 5]); // cut at both ends
  });

  it('are found by all words of a search, and visited in order of time, around again', () => {
    const model = several(300);
    const matches = findWords(model, 'ADD mul');
    const wanted = [...Array(model.count).keys()].filter((i) => model.names[model.name[i]] === 'mul add').sort((a, b) => model.start[a] - model.start[b] || a - b);
    assert.equal(matches.count, wanted.length);
    assert.equal(matches.time, wanted.reduce((sum, i) => sum + model.length[i], 0));
    let at = -1;
    for (const event of [...wanted, wanted[0]]) assert.equal(at = step(model, matches, at, 1), event);
    for (const event of [...wanted].reverse()) assert.equal(at = step(model, matches, at, -1), event);
    assert.equal(findWords(model, '  '), null);
    assert.equal(step(model, findWords(model, 'nothing like it'), -1, 1), null);
  });

  it('tell the event at a time, or the nearest one', () => {
    const model = written([['cpu', [[10, 5, 0], [20, 5, 0]]]], ['a']);
    const at = (time, slack) => eventAt(model, model.lanes[0], time, slack);
    assert.deepEqual([at(12, 0), at(17, 0), at(17, 2), at(19, 2), at(22, 0), at(99, Infinity)], [0, -1, 0, 1, 1, 1]);
  });
});
