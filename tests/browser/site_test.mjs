// The trend site in Chromium, opened from files.
import assert from 'node:assert/strict';
import {after, before, describe, it} from 'node:test';
import {cellAddress, goTo, launch, makeSite, openPage, seriousFaults, serve, shown} from './browser.mjs';

const VULKAN = 'tiny-llama/vulkan';
const CPU = 'tiny-llama/cpu';
const reading = (page) => page.locator('.reading').innerText();
const visibleRange = (page) => page.evaluate(() => {
  const {min, max} = document.querySelector('.chart').weirChart.plot.scales.x;
  return [min, max];
});
// Drags over the graph; `from` and `to` are shares of its width.
async function drag(page, from, to) {
  const box = await page.locator('.u-over').boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * (from + to) / 2, y, {steps: 4});
  await page.mouse.move(box.x + box.width * to, y, {steps: 4});
  await page.mouse.up();
}
const hashHas = (page, text) => page.waitForFunction((part) => location.hash.includes(part), text);

describe('the trend site', () => {
  let browser, site;
  before(async () => {
    site = makeSite('small');
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    site?.remove();
  });
  const open = async (hash, options) => openPage(browser, site, hash, options);
  // Opens a page, tries it, and asks that nothing went wrong besides.
  const visit = async (hash, act, options) => {
    const page = await open(hash, options);
    try {
      await act(page);
      assert.deepEqual(page.faults, []);
      assert.equal(await page.evaluate(() => globalThis.hostile), undefined);
    } finally {
      await page.context().close();
    }
  };
  const onCell = async (name, query, act, options) => visit('#/', async (page) => {
    await goTo(page, (await cellAddress(page, name)) + query);
    await page.waitForSelector('.u-over');
    await act(page);
  }, options);

  for (const [scheme, width] of [['light', 1200], ['dark', 1200], ['light', 360], ['dark', 360]]) {
    it(`has no fault on any page, ${scheme}, ${width} pixels wide`, async () => {
      await visit('#/', async (page) => {
        const cell = await cellAddress(page, VULKAN);
        await goTo(page, '#/runs?find=fail');
        const run = await page.locator('tbody th a').last().getAttribute('href');
        for (const hash of ['#/', cell, '#/runs', run, '#/compare', '#/baselines', '#/gate']) {
          await goTo(page, hash);
          assert.deepEqual(await seriousFaults(page), [], hash);
          const scrolls = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(scrolls <= width, `${hash} is ${scrolls} pixels wide`);
        }
      }, {scheme, width, bypassCSP: true}); // axe is put there from outside
    });
  }

  it('works the same behind a server', async () => {
    const server = await serve(site.folder);
    try {
      const page = await openPage(browser, server);
      await goTo(page, await cellAddress(page, VULKAN));
      await page.waitForSelector('.u-over');
      assert.deepEqual(page.faults, []);
      await page.context().close();
    } finally {
      server.close();
    }
  });

  it('shows hostile text as text', async () => visit('#/', async (page) => {
    const name = '</script><img src=x onerror="hostile=1">';
    assert.equal(await page.locator('img').count(), 0);
    await goTo(page, await cellAddress(page, name));
    assert.ok((await page.locator('h1').innerText()).includes(name));
    await goTo(page, '#/');
    await goTo(page, `${await cellAddress(page, VULKAN)}?metric=dispatches_per_token`);
    await page.waitForFunction(() => document.querySelector('.reading').textContent.includes('onerror')); // the last subject
    await goTo(page, '#/runs?find=fail');
    await goTo(page, await page.locator('tbody th a').last().getAttribute('href'));
    assert.ok((await page.locator('main').innerText()).includes(`mul_f32${name}`));
    assert.equal(await page.locator('img').count(), 0);
  }));

  it('refuses to make markup of text at all', async () => visit('#/', async (page) => {
    const refused = await page.evaluate(() => {
      try {
        document.querySelector('main').innerHTML = '<b>x</b>';
        return 'taken';
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(refused, 'TypeError');
    page.faults = []; // the browser tells of it
  }));

  it('reads a point under the mouse', async () => onCell(VULKAN, '?metric=decode_tokens_per_second', async (page) => {
    const box = await page.locator('.u-over').boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    // The middle of 90 points, and its commit's first line.
    await page.waitForFunction(() => /point 4[56] of 90/.test(document.querySelector('.reading').textContent) && /change number 4[45]/.test(document.querySelector('.reading').textContent));
    const text = await reading(page);
    assert.match(text, /3\d(\.\d+)?\s?tok\/s/);
    assert.match(text, /llvmpipe \(Mesa 24/);
    const commit = page.locator('.reading a').first();
    assert.match(await commit.getAttribute('href'), /^https:\/\/git\.example\/engine\/commit\/[0-9a-f]{12}$/);
  }));

  it('zooms by dragging and shows all after a double click', async () => onCell(VULKAN, '?metric=decode_tokens_per_second', async (page) => {
    assert.deepEqual(await visibleRange(page), [-0.5, 89.5]);
    await drag(page, 0.25, 0.5);
    const [from, to] = await visibleRange(page);
    assert.ok(from > 18 && from < 26 && to > 40 && to < 48, `${from} to ${to}`);
    await hashHas(page, `range=${Math.ceil(from)}-${Math.floor(to)}`);
    await page.locator('.u-over').dblclick();
    await page.waitForFunction(() => !location.hash.includes('range'));
    assert.deepEqual(await visibleRange(page), [-0.5, 89.5]);
  }));

  it('zooms by its buttons, and never beyond its ends', async () => onCell(VULKAN, '', async (page) => {
    for (let i = 0; i < 9; ++i) await page.getByRole('button', {name: 'Zoom in'}).click();
    const [from, to] = await visibleRange(page);
    assert.ok(to - from >= 5 - 1e-9, `${from} to ${to}`);
    for (let i = 0; i < 40; ++i) await page.getByRole('button', {name: 'Earlier'}).click();
    assert.equal((await visibleRange(page))[0], -0.5);
    for (let i = 0; i < 60; ++i) await page.getByRole('button', {name: 'Later'}).click();
    assert.equal((await visibleRange(page))[1], 89.5);
    await page.getByRole('button', {name: 'Show all'}).click();
    assert.deepEqual(await visibleRange(page), [-0.5, 89.5]);
  }));

  it('shows who follows a link what its maker saw', async () => {
    let address;
    await onCell(CPU, '?metric=decode_tokens_per_second&machine=laptop', async (page) => {
      await page.getByLabel('log scale').check();
      await page.getByLabel('interval').uncheck();
      await drag(page, 0.5, 0.75);
      await hashHas(page, 'range=');
      address = await page.evaluate(() => location.hash);
    });
    await visit(address, async (page) => {
      await page.waitForSelector('.u-over');
      assert.ok(await page.getByLabel('log scale').isChecked());
      assert.ok(!(await page.getByLabel('interval').isChecked()));
      assert.equal(await page.getByLabel('Machine').inputValue(), 'laptop');
      const [from, to] = /range=(\d+)-(\d+)/.exec(address).slice(1).map(Number);
      assert.deepEqual(await visibleRange(page), [from - 0.5, to + 0.5]);
      assert.equal(await page.evaluate(() => document.querySelector('.chart').weirChart.plot.scales.y.distr), 3);
    });
  });

  it('goes by keyboard alone', async () => onCell(VULKAN, '?metric=decode_tokens_per_second', async (page) => {
    for (let i = 0; i < 40; ++i) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(() => document.activeElement.classList.contains('chart'))) break;
    }
    assert.ok(await page.evaluate(() => document.activeElement.classList.contains('chart')), 'Tab leads to the graph');
    const at = async (point) => page.waitForFunction((number) => document.querySelector('.reading').textContent.includes(`point ${number} of`), point);
    await page.keyboard.press('ArrowLeft');
    await at(89);
    assert.match(await page.locator('#live').textContent(), /tok\/s.*point 89$/);
    await page.keyboard.press('p'); // the change before: its first changed point is the 63rd
    await at(63);
    await page.keyboard.press('p');
    await at(21);
    await page.keyboard.press('n');
    await at(63);
    await page.keyboard.press('Home');
    await at(1);
    await page.keyboard.press('End');
    await at(90);
    await page.keyboard.press('+');
    const [from, to] = await visibleRange(page);
    assert.ok(Math.abs(to - from - 45) < 1e-6, `${from} to ${to}`);
    await page.keyboard.press('Shift+ArrowLeft');
    assert.ok((await visibleRange(page))[0] < from);
    await page.keyboard.press('0');
    assert.deepEqual(await visibleRange(page), [-0.5, 89.5]);
    // The overview's filters and its search, too.
    await goTo(page, '#/');
    await page.locator('.filter', {hasText: 'fail'}).focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('.matrix tbody tr').length === 1);
    assert.equal(await page.locator('.filter', {hasText: 'fail'}).getAttribute('aria-pressed'), 'true');
  }));

  it('stays where it was when another metric is chosen', async () => onCell(VULKAN, '?metric=decode_tokens_per_second', async (page) => {
    const metric = page.getByRole('combobox', {name: 'Metric'});
    await metric.focus();
    await metric.selectOption({label: 'dispatches/token'});
    await page.waitForFunction(() => location.hash.includes('metric=dispatches_per_token') && !document.querySelector('main').hasAttribute('aria-busy'));
    await page.waitForFunction(() => document.activeElement.tagName === 'SELECT' && /dispatches/.test(document.title));
  }));

  it('leads from a change to its place in the graph', async () => onCell(VULKAN, '?metric=dispatches_per_token', async (page) => {
    const rows = page.locator('h2:has-text("Changes") + .paged tbody tr');
    assert.equal(await rows.count(), 2);
    assert.match(await rows.nth(1).innerText(), /worse[\s\S]*\+12[\s\S]*65 → 77/);
    await rows.nth(1).getByRole('button', {name: 'show'}).click();
    await page.waitForFunction(() => document.querySelector('.reading').textContent.includes('point 63 of 90'));
    assert.ok(await page.evaluate(() => document.activeElement.classList.contains('chart')));
  }));

  it('tells what is known, by whom', async () => onCell(CPU, '?metric=peak_rss_bytes', async (page) => {
    const row = page.locator('h2:has-text("Changes") + .paged tbody tr').first();
    assert.match(await row.innerText(), /known[\s\S]*bigger cache[\s\S]*ada/);
    assert.match(await reading(page), /MiB/);
  }));

  it('finds, filters and orders cells, and keeps that in the address', async () => visit('#/', async (page) => {
    const rows = () => page.locator('.matrix tbody tr').count();
    assert.equal(await rows(), 3);
    // Cells that fail at the gate come first, then those that got worse, then steady ones.
    assert.match(await page.locator('.matrix tbody tr').first().innerText(), /vulkan[\s\S]*fail/);
    assert.match(await page.locator('.matrix tbody tr').last().innerText(), /steady/);
    await page.getByLabel('Find cells').fill('llama CPU');
    await page.waitForFunction(() => document.querySelectorAll('.matrix tbody tr').length === 1);
    await hashHas(page, 'find=llama+CPU');
    await page.getByLabel('Find cells').fill('');
    await page.getByLabel('Machine').selectOption('laptop');
    await page.waitForFunction(() => document.querySelectorAll('.matrix tbody tr').length === 1);
    await page.getByLabel('Machine').selectOption('');
    await page.getByText('Metrics shown').click();
    await page.getByRole('checkbox', {name: 'peak memory'}).check();
    await page.waitForSelector('.matrix thead th:has-text("peak memory")');
    const address = await page.evaluate(() => location.hash);
    await goTo(page, '#/gate');
    await page.goBack();
    await shown(page);
    assert.equal(await page.evaluate(() => location.hash), address);
    await page.waitForSelector('.matrix thead th:has-text("peak memory")');
  }));

  it('shows the worst metric of a cell first, and uses the width', async () => visit('#/', async (page) => {
    await goTo(page, await cellAddress(page, CPU));
    const rows = page.locator('h2:has-text("All metrics") + .paged tbody tr');
    assert.match((await rows.allInnerTexts()).join(), /^decode tok\/s\s+EPYC[\s\S]*worse[\s\S]*known[\s\S]*steady/);
    assert.match(await page.title(), /decode tok\/s/);
    await goTo(page, '#/');
    const [content, table] = await page.evaluate(() => ['.matrix', '.wide'].map((selector) => document.querySelector(selector).scrollWidth));
    assert.ok(table <= content && content <= 1280 - 2 * 16, `${table} in ${content}`);
  }, {width: 1280}));

  it('compares two commits', async () => visit('#/compare', async (page) => {
    const night = async (label, number) => {
      const options = await page.getByLabel(label).locator('option').all();
      await page.getByLabel(label).selectOption({index: options.length - 1 - number});
    };
    await night('Before', 61);
    await night('After', 62);
    await page.getByLabel('Find').fill('dispatches');
    await page.waitForFunction(() => /65[\s\S]*77[\s\S]*\+12/.test(document.querySelector('main tbody')?.innerText ?? ''));
    assert.equal(await page.locator('main tbody tr').count(), 1);
  }));

  it('tells the tally of the gate', async () => visit('#/gate', async (page) => {
    const text = await page.locator('main').innerText();
    assert.match(text, /reverted 2/); // dispatches and kernels of the 62nd night
    assert.match(text, /open 1/);
    await page.locator('.filter', {hasText: 'open'}).click();
    await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 1);
    assert.match(await page.evaluate(() => location.hash), /fate=open/);
  }));

  it('is light or dark as somebody chose, also after a new start', async () => visit('#/', async (page) => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await background(), 'rgb(255, 255, 255)');
    await page.getByLabel('Colours').selectOption('dark');
    assert.equal(await background(), 'rgb(15, 20, 25)');
    await page.reload();
    await shown(page);
    assert.equal(await background(), 'rgb(15, 20, 25)');
    await page.getByLabel('Colours').selectOption('');
    assert.equal(await background(), 'rgb(255, 255, 255)');
  }));

  it('keeps still for whoever asks for less motion', async () => visit('#/', async (page) => {
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('.filter')).transitionDuration), '0s');
  }, {reducedMotion: 'reduce'}));

  it('says what is not there', async () => {
    const page = await open('#/cell/0123456789abcdef');
    assert.match(await page.locator('main').innerText(), /not there/);
    await goTo(page, '#/constructor');
    assert.match(await page.locator('main').innerText(), /no such page/);
    await page.context().close();
  });

  it('shows the first pages of thousands of cells', async () => {
    const wide = makeSite('wide', 2000);
    try {
      const page = await openPage(browser, wide);
      assert.equal(await page.locator('.matrix tbody tr').count(), 25);
      assert.match(await page.locator('.matrix tbody th').first().innerText(), /model-00007/); // it got worse
      await page.getByRole('button', {name: 'Next'}).click();
      await page.waitForSelector('.matrix th:has-text("model-00025")');
      await hashHas(page, 'at=1');
      await page.getByLabel('Find cells').fill('01999');
      await page.waitForFunction(() => document.querySelectorAll('.matrix tbody tr').length === 1);
      await page.getByLabel('Find cells').fill('');
      await page.locator('.filter', {hasText: 'worse'}).click();
      await page.waitForSelector('.matrix th:has-text("model-00007")');
      assert.deepEqual(page.faults, []);
      await page.context().close();
    } finally {
      wide.remove();
    }
  });
});
