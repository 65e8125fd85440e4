// The page of a profile in Chromium, opened from a file. What is in it: profile_fixture.cpp.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync, statSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, describe, it} from 'node:test';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {launch, openPage, seriousFaults} from './browser.mjs';

const build = process.env.WEIR_BUILD ?? fileURLToPath(new URL('../../build', import.meta.url));
const HOSTILE = '</script><!--<img src=x onerror="hostile=1">';

function makePage(folder, scene, ...more) {
  const file = join(folder, `${scene}.html`);
  execFileSync(join(build, 'tests/browser/profile_fixture'), [join(build, 'share/weir/web/profile.html'), file, scene, ...more.map(String)]);
  return {address: pathToFileURL(file).href, file};
}

// Rows of the page as {name: [cells]}; the last one is the sum.
const rows = (page) => page.evaluate(() => [...document.querySelectorAll('#stats-title ~ .sorted tbody tr, #stats-title ~ .sorted tfoot tr')]
  .map((row) => [...row.children].map((cell) => cell.textContent.replaceAll('\u202f', ' '))));
const row = async (page, name) => (await rows(page)).find((cells) => cells[0] === name);
const visibleRange = (page) => page.evaluate(() => {
  const {view} = document.getElementById('timeline').weirPage;
  return [view.from, view.to];
});
const chosen = (page) => page.evaluate(() => document.getElementById('timeline').weirPage.timeline.state.chosen);
const reading = (page) => page.locator('#reading').innerText().then((text) => text.replaceAll('\u202f', ' '));
const scope = (page) => page.locator('#scope').innerText().then((text) => text.replaceAll('\u202f', ' '));
const hashHas = (page, text) => page.waitForFunction((part) => location.hash.includes(part), text);
const scopeHas = (page, text) => page.waitForFunction((part) => document.getElementById('scope').textContent.replaceAll('\u202f', ' ').includes(part), text);

// Point on the canvas: a time as a share of what is in view, and a lane of a track.
async function place(page, share, track, lane = 0) {
  const box = await page.locator('.tracks canvas').boundingBox();
  const y = await page.evaluate(([index, number]) => {
    const {layout, scroller} = document.getElementById('timeline').weirPage.timeline;
    return layout.items[index].lanesTop + number * layout.items[index].laneHeight + 8 - scroller.scrollTop;
  }, [track, lane]);
  return [box.x + box.width * share, box.y + y];
}

async function drag(page, [x, y], [toX, toY]) {
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move((x + toX) / 2, (y + toY) / 2, {steps: 3});
  await page.mouse.move(toX, toY, {steps: 3});
  await page.mouse.up();
}

describe('the page of a profile', () => {
  let browser, folder, small;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-profile-'));
    small = makePage(folder, 'small');
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, {recursive: true});
  });
  const visit = async (hash, act, options, file = small) => {
    const page = await openPage(browser, file, hash, options);
    try {
      await act(page);
      assert.deepEqual(page.faults, []);
      assert.equal(await page.evaluate(() => globalThis.hostile), undefined);
    } finally {
      await page.context().close();
    }
  };

  for (const [scheme, width] of [['light', 1200], ['dark', 1200], ['light', 360], ['dark', 360]]) {
    it(`has no fault, ${scheme}, ${width} pixels wide`, async () => visit('#/?r=100000-300000&find=mul', async (page) => {
      assert.deepEqual(await seriousFaults(page), []);
      const scrolls = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(scrolls <= width, `it is ${scrolls} pixels wide`);
    }, {scheme, width, bypassCSP: true})); // axe is put there from outside
  }

  it('asks for nothing but itself, and could not', async () => visit('#/', async (page) => {
    const resources = await page.evaluate(() => performance.getEntriesByType('resource').map((entry) => entry.name));
    assert.deepEqual(resources, []);
    const answer = await page.evaluate(() => fetch('http://127.0.0.1:9/').then(() => 'taken', (error) => error.name));
    assert.equal(answer, 'TypeError');
    assert.ok(page.faults.every((fault) => /Content Security Policy|127\.0\.0\.1:9/.test(fault)), page.faults.join('\n'));
    page.faults = [];
  }));

  it('shows hostile text as text', async () => visit('#/', async (page) => {
    assert.equal(await page.locator('img').count(), 0);
    assert.ok((await page.locator('.doubts').innerText()).includes(`a doubt ${HOSTILE}`));
    assert.ok((await page.locator('.facts dd').nth(1).innerText()).includes(HOSTILE));
    assert.ok(await row(page, HOSTILE));
    await page.locator('#find').fill(HOSTILE);
    await page.waitForFunction(() => document.querySelector('.found').textContent.startsWith('1 event'));
    await page.keyboard.press('Enter');
    assert.ok((await reading(page)).includes(HOSTILE));
  }));

  it('adds up what the events are', async () => visit('#/', async (page) => {
    // Ten tokens: 10 x 70, 10 x 90 (without 5 and 70 nested: 15), 10 x 30, 10 x 10 microseconds.
    assert.deepEqual((await row(page, 'wait for fence')).slice(2, 5), ['10', '700 µs', '700 µs']);
    assert.deepEqual((await row(page, 'graph')).slice(2, 6), ['10', '900 µs', '150 µs', '16.7 %']); // 150 of 150 + 50 + 700
    assert.deepEqual((await row(page, 'mul_mat')).slice(2), ['10', '300 µs', '300 µs', '75.0 %', '30 µs', '30 µs', '30 µs', '40 KiB', '0.1365', '66.67']); // 4096 B and 2e6 in 30 us
    const all = await rows(page);
    assert.deepEqual(all.at(-1).slice(0, 5), ['9 rows', '', '63', '2.94 ms', '2.19 ms']);
  }));

  it('has the statistics of a stretch that is marked on the ruler', async () => visit('#/', async (page) => {
    const box = await page.locator('.tracks canvas').boundingBox();
    await drag(page, [box.x + box.width * 0.3, box.y + 8], [box.x + box.width * 0.6, box.y + 8]);
    await hashHas(page, 'r=');
    assert.match(await scope(page), /^Of the marked time: /);
    const [from, to] = await page.evaluate(() => document.getElementById('timeline').weirPage.timeline.state.range);
    assert.ok(Math.abs(from - 297_000) < 3000 && Math.abs(to - 594_000) < 3000, `${from} to ${to}`);
    // Every event of the model, one by one.
    const want = await page.evaluate(([low, high]) => {
      const {model} = document.getElementById('timeline').weirPage;
      let total = 0;
      for (let i = 0; i < model.count; ++i) total += Math.max(0, Math.min(high, model.start[i] + model.length[i]) - Math.max(low, model.start[i]));
      return total / 1e9;
    }, [from, to]);
    const got = await page.evaluate(() => document.getElementById('timeline').weirPage.stats.all.reduce((sum, item) => sum + item.total, 0));
    assert.ok(Math.abs(got - want) < 1e-12, `${got} and ${want}`);
    await page.locator('.tracks').focus();
    await page.keyboard.press('Escape');
    await scopeHas(page, 'Of all of it');
  }));

  it('has the statistics of what is in view', async () => visit('#/?v=200000-300000', async (page) => {
    assert.match(await scope(page), /^Of what is in view: 100 µs/);
    assert.deepEqual((await row(page, 'mul_mat')).slice(2, 5), ['1', '30 µs', '30 µs']);
    assert.deepEqual((await row(page, 'request 2')).slice(2, 4), ['1', '100 µs']); // a part of its 400
    await page.getByRole('combobox', {name: 'Of', exact: true}).selectOption('all');
    await scopeHas(page, 'Of all of it');
    await hashHas(page, 'of=all');
  }));

  it('searches names and details, and goes from one found event to the next', async () => visit('#/', async (page) => {
    await page.locator('.tracks').focus();
    await page.keyboard.press('/');
    await page.keyboard.type('MUL qcur-1');
    await page.waitForFunction(() => document.querySelector('.found').textContent.replaceAll('\u202f', ' ') === '5 events, 150 µs together');
    await page.keyboard.press('Enter');
    assert.match(await reading(page), /mul_mat 30 µs from 120 µs on/);
    await page.locator('.tracks').focus();
    await page.keyboard.press('n');
    assert.match(await reading(page), /from 320 µs on/);
    await page.keyboard.press('p');
    await page.keyboard.press('p');
    assert.match(await reading(page), /from 920 µs on/); // around again
    await hashHas(page, 'find=MUL+qcur-1');
  }));

  it('zooms by wheel and keyboard and moves by a drag', async () => visit('#/', async (page) => {
    const [x, y] = await place(page, 0.5, 0);
    await page.mouse.move(x, y);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -300);
    await page.keyboard.up('Control');
    await hashHas(page, 'v=');
    const [from, to] = await visibleRange(page);
    assert.ok(to - from < 600_000 && Math.abs((from + to) / 2 - 495_000) < 5000, `${from} to ${to}`);
    await drag(page, [x, y], [x - 200, y]);
    assert.ok((await visibleRange(page))[0] > from + 10_000);
    await page.locator('.tracks').focus();
    await page.keyboard.press('0');
    assert.deepEqual(await visibleRange(page), [0, 990_000]);
    await page.keyboard.press('w');
    assert.deepEqual(await visibleRange(page), [247_500, 742_500]);
    await page.keyboard.press('d');
    assert.deepEqual(await visibleRange(page), [371_250, 866_250]);
    await page.keyboard.press('s');
    assert.deepEqual(await visibleRange(page), [0, 990_000]);
  }));

  it('reads events and arrows under the mouse', async () => visit('#/?v=200000-300000', async (page) => {
    await page.mouse.move(...await place(page, 0.35, 1));
    assert.match(await reading(page), /mul_mat 30 µs from 220 µs on · vulkan queue 0\.0, GPU/);
    assert.match(await reading(page), /moved\s+4 KiB[\s\S]*node\s+Qcur-0/);
    assert.match(await reading(page), /submit: CPU thread 1 → vulkan queue 0\.0, GPU, 15 µs/);
    // The arrow from the backend at 60 us to the CPU at 80 us, half way.
    const [[x, y], [toX, toY]] = [await place(page, 0.6, 4), await place(page, 0.8, 0, 1)];
    await page.mouse.move(x + (toX - x) * 0.45, y + (toY - y) * 0.45);
    assert.match(await reading(page), /get: backend Vulkan0 → CPU thread 1, 20 µs, 2 KiB/);
  }));

  it('is worked by keyboard alone', async () => visit('#/', async (page) => {
    await page.locator('.tracks').focus();
    await page.keyboard.press('ArrowRight'); // the first event
    assert.match(await reading(page), /^graph 90 µs from 0 on/);
    await page.keyboard.press('ArrowRight');
    assert.match(await reading(page), /^graph 90 µs from 100 µs on/);
    await page.keyboard.press('ArrowDown'); // of the row below, what is nearest to its middle
    assert.match(await reading(page), /^wait for fence/);
    assert.match(await page.locator('#live').innerText(), /^wait for fence, 70/);
    await page.keyboard.press('m');
    await scopeHas(page, 'Of the marked time: 70 µs');
    await page.keyboard.press('Enter');
    assert.deepEqual(await visibleRange(page), [110_000, 180_000]);
    await page.keyboard.press('Escape');
    assert.equal(await chosen(page), -1);
  }));

  it('sorts by any column and filters by words', async () => visit('#/', async (page) => {
    await page.getByRole('button', {name: 'Calls', exact: true}).click();
    assert.equal(await page.locator('#stats-title ~ .sorted th[aria-sort=descending]').innerText(), 'Calls');
    assert.equal((await rows(page))[0][2], '10');
    await page.getByRole('button', {name: 'What', exact: true}).click();
    const names = (await rows(page)).slice(0, -1).map((cells) => cells[0]);
    assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, 'en', {numeric: true})));
    assert.equal(names.length, 9);
    await page.getByLabel('Filter').fill('request');
    assert.deepEqual((await rows(page)).map((cells) => cells[0]).sort(), ['3 rows', HOSTILE, 'request 1', 'request 2'].sort()); // all on "requests"
    await page.getByLabel('Kind').selectOption('cpu');
    assert.match((await rows(page))[0][0], /^Nothing in/);
    await hashHas(page, 'kind=cpu');
  }));

  it('shows the events of a row', async () => visit('#/', async (page) => {
    await page.getByRole('button', {name: 'rms_norm', exact: true}).click();
    await page.waitForFunction(() => document.querySelector('.found').textContent.startsWith('10 events'));
    assert.equal(await page.getByRole('button', {name: 'rms_norm', exact: true}).getAttribute('aria-pressed'), 'true');
    await page.getByRole('button', {name: 'Next', exact: true}).click();
    assert.match(await reading(page), /^rms_norm 10 µs from 50 µs on/);
  }));

  it('shows by its address what its maker saw', async () => visit('#/?v=100000-400000&r=150000-250000&e=12&find=mul&by=track&kind=device&sort=-calls&filter=m', async (page) => {
    assert.deepEqual(await visibleRange(page), [100_000, 400_000]);
    assert.equal(await chosen(page), 12);
    assert.equal(await page.locator('#find').inputValue(), 'mul');
    assert.match(await scope(page), /^Of the marked time: 100 µs, 150 µs to 250 µs/);
    assert.deepEqual((await rows(page)).map((cells) => cells[0]), ['mul_mat', 'rms_norm', '2 rows']);
  }));

  it('takes an address that makes no sense for none', async () => visit('#/?v=9-&r=5-5&e=99999999&sort=%3Cb%3E&kind=x&by=y&of=z', async (page) => {
    assert.deepEqual(await visibleRange(page), [0, 990_000]);
    assert.equal(await chosen(page), -1);
    assert.equal((await rows(page)).length, 10);
  }));

  // Turns what other programs wrote into a page, by the program itself.
  const foreign = (name) => {
    const file = join(folder, `${name}.html`);
    const data = fileURLToPath(new URL(`../adapters/data/${name}`, import.meta.url));
    execFileSync(join(build, 'weir'), ['profile', '--html', file, data]);
    return {address: pathToFileURL(file).href, file};
  };

  it('shows the trace of another program on tracks', async () => visit('#/', async (page) => {
    assert.equal(await page.locator('h1').innerText(), 'constructed-pytorch-trace.json');
    // 20.5 and 19.5 microseconds on stream 7; aten::mm took 50, 10 of it in cudaLaunchKernel.
    assert.deepEqual((await row(page, 'gemv<float>')).slice(2, 5), ['2', '40 µs', '40 µs']);
    assert.deepEqual((await row(page, 'aten::mm')).slice(2, 5), ['1', '50 µs', '40 µs']);
    assert.ok((await page.locator('.facts').innerText()).includes('NVIDIA H200'));
    assert.equal((await page.content()).includes('/home/someone'), false);
    assert.equal(await page.locator('#no-moments').count(), 0);
    assert.deepEqual(await seriousFaults(page), []);
  }, {bypassCSP: true}, foreign('constructed-pytorch-trace.json')));

  for (const width of [1200, 360]) {
    it(`is whole without a timeline, ${width} pixels wide`, async () => visit('#/?v=1-2&r=3-4&e=5&find=x', async (page) => {
      assert.match(await page.locator('#no-moments').innerText(), /totals, no moments/);
      assert.equal(await page.locator('#timeline').count(), 0);
      assert.ok((await page.locator('table').allInnerTexts()).some((text) => text.includes('gemv_qkv')));
      assert.deepEqual(await seriousFaults(page), []);
      const scrolls = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(scrolls <= width, `it is ${scrolls} pixels wide`);
    }, {width, bypassCSP: true}, foreign('agave-profile.stderr.txt')));
  }

  it('says what is wrong with a file that is damaged', async () => {
    const damaged = join(folder, 'damaged.html');
    execFileSync('sh', ['-c', 'sed "s|id=\\"weir-events\\">.*</script>|id=\\"weir-events\\">AAAA</script>|" "$0" >"$1"', small.file, damaged]);
    const damagedPage = await openPage(browser, {address: pathToFileURL(damaged).href}, '#/');
    assert.equal(await damagedPage.locator('h1').innerText(), 'Not shown');
    assert.match(await damagedPage.locator('.missing').innerText(), /cut short or damaged/);
    await damagedPage.context().close();
  });

  it('opens a million events, whose sums match, and which are found and zoomed', async () => {
    const many = makePage(folder, 'many', 1_000_000);
    const size = statSync(many.file).size;
    assert.ok(size <= 16_000_000, `${size} bytes`); // 16 an event
    await visit('#/', async (page) => {
      const sums = await page.evaluate(() => {
        const {model, stats} = document.getElementById('timeline').weirPage;
        let total = 0;
        for (let i = 0; i < model.count; ++i) total += model.length[i];
        const of = (key) => stats.all.reduce((sum, item) => sum + item[key], 0);
        return {count: model.count, calls: of('calls'), total, rows: of('total') * 1e9};
      });
      assert.equal(sums.count, 1_000_000);
      assert.equal(sums.calls, 1_000_000);
      assert.ok(Math.abs(sums.rows / sums.total - 1) < 1e-12, JSON.stringify(sums));
      await page.locator('#find').fill('kernel_7_ blk.3.');
      await page.waitForFunction(() => /^[1-9].* events/.test(document.querySelector('.found').textContent));
      await page.keyboard.press('Enter');
      assert.match(await reading(page), /kernel_7_q7_f32[\s\S]*blk\.3\./);
      await page.locator('.tracks').focus();
      for (let i = 0; i < 20; ++i) await page.keyboard.press('w');
      const [from, to] = await visibleRange(page);
      assert.ok(to - from < 5000, `${to - from} ns`);
    }, {}, many);
  });
});
