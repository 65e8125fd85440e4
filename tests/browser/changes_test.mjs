// The pages of changes and of kernels in Chromium, opened from files.
import assert from 'node:assert/strict';
import {after, before, describe, it} from 'node:test';
import {placesOf} from '../../gate/web/src/words.js';
import {cellAddress, goTo, launch, makeSite, openPage, seriousFaults, shown} from './browser.mjs';

describe('changes from commit to commit', () => {
  let browser, site;
  before(async () => {
    site = makeSite('changes');
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    site?.remove();
  });
  const visit = async (hash, act, options) => {
    const page = await openPage(browser, site, hash, options);
    try {
      await act(page);
      assert.deepEqual(page.faults, []);
      assert.equal(await page.evaluate(() => globalThis.hostile), undefined);
      assert.equal(await page.locator('img').count(), 0);
    } finally {
      await page.context().close();
    }
  };
  const hashHas = (page, text) => page.waitForFunction((part) => location.hash.includes(part), text);

  for (const [scheme, width] of [['light', 1200], ['dark', 1200], ['light', 360], ['dark', 360]]) {
    it(`has no fault on any page, ${scheme}, ${width} pixels wide`, async () => visit('#/', async (page) => {
      const cell = encodeURIComponent('llama.cpp/tiny-llama/rx7900/decode');
      for (const hash of ['#/changes', '#/changes/0', '#/changes/1', `#/changes/2?cell=${cell}`, '#/kernels', '#/kernels?kernel=rms_norm_mul_f32']) {
        await goTo(page, hash);
        assert.deepEqual(await seriousFaults(page), [], hash);
        const scrolls = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(scrolls <= width, `${hash} is ${scrolls} pixels wide`);
      }
    }, {scheme, width, bypassCSP: true})); // axe is put there from outside
  }

  it('has no such page where the site has no such data', async () => {
    const small = makeSite('small');
    try {
      const page = await openPage(browser, small, '#/changes');
      assert.match(await page.locator('main').innerText(), /no such page/);
      assert.doesNotMatch(await page.locator('header nav').innerText(), /Changes|Kernels/);
      await page.context().close();
    } finally {
      small.remove();
    }
  });

  it('lists the steps, the newest first, and those that are worse', async () => visit('#/', async (page) => {
    await page.getByRole('link', {name: 'Changes'}).click();
    await page.waitForSelector('main:not([aria-busy]) h1:has-text("Changes")');
    const rows = page.locator('main tbody tr');
    assert.match((await rows.allInnerTexts()).join('|'), /b3 → b4[\s\S]*b2 → b3[\s\S]*mixed 2[\s\S]*syncs\/token: 2 worse[\s\S]*b1 → b2[\s\S]*1 could not run[\s\S]*nothing changed/);
    await page.locator('.filter', {hasText: 'worse'}).click();
    await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 2);
    await page.getByLabel('Metric').selectOption({label: 'syncs/token'});
    await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 1);
    await hashHas(page, 'show=worse&metric=syncs_per_token');
  }));

  it('shows a step as a matrix, what is the same once, and each field in full by keyboard', async () => visit('#/changes/1', async (page) => {
    const text = await page.locator('main').innerText();
    assert.match(text, /2 cells The CPU waits for the GPU more often in a token\./);
    const field = page.locator('.matrix .mark').first();
    assert.match(await field.innerText(), /▲ \+1 sync[\s\S]*▽ −12 dispatches[\s\S]*The CPU waits/);
    await field.focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog[open]');
    await hashHas(page, 'cell=llama.cpp');
    const dialog = await page.locator('dialog').innerText();
    assert.match(dialog, /in full/);
    assert.match(dialog, /count b3 llama\.cpp\/tiny-llama\/rx7900\/decode/);
    await page.reload();
    await page.waitForSelector('dialog[open]'); // a link shows what its maker saw
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog').open && !location.hash.includes('cell='));
    await goTo(page, '#/changes/0');
    assert.match(await page.locator('main').innerText(), /1 cell could not run: <\/script>/);
    await page.getByLabel('row in which nothing changed').check();
    await page.waitForSelector('.matrix td:has-text("same")');
  }));

  it('links the pull requests of a cause', async () => visit('#/changes/2', async (page) => {
    const link = page.getByRole('link', {name: '#123'}).first();
    assert.equal(await link.getAttribute('href'), 'https://github.com/me/engine/pull/123');
    assert.match(await page.locator('main').innerText(), /A norm more\. <\/script>[\s\S]*\(plausible\)/);
    assert.match(await page.locator('.mark', {hasText: '+36 syncs fixed'}).innerText(), /^● \+36 syncs fixed(?![\s\S]*worse)/);
  }));

  it('finds where a kernel is taken', async () => visit('#/kernels', async (page) => {
    assert.doesNotMatch(await page.locator('main tbody').innerText(), /main@/);
    await page.getByLabel('Find kernels').fill('rms_mul');
    await page.waitForSelector('h2 code:has-text("rms_norm_mul_f32")');
    await hashHas(page, 'find=rms_mul');
    const text = await page.locator('main').innerText();
    assert.match(text, /Taken by 3 of 3 cells, b3 – b4 \(newest\)/);
    assert.match(text, /tiny-llama \/ decode[\s\S]*b3 – b4 \(newest\)\s+12 per token\s+vulkan\s+count b4/);
    assert.match(text, /tiny-llama \/ prefill[\s\S]*12 per token or prefill/);
    await page.getByLabel('Find kernels').fill('');
    await page.getByLabel('without names').check();
    await page.waitForSelector('tbody:has-text("main@")');
  }));

  it('says on a cell how it is counted again', async () => visit('#/', async (page) => {
    await goTo(page, await cellAddress(page, 'tiny-llama/vulkan'));
    await page.waitForSelector('.reading .command');
    assert.match(await page.locator('.reading .command').innerText(), /^count [0-9a-f]{12} llama\.cpp\/tiny-llama\/vulkan\/decode$/);
  }));

  it('tells cells apart that differ in their engine alone', () => {
    const placeOf = placesOf(['a/m/vulkan/p', 'a@fa/m/vulkan/p', 'b/m/cuda/p', 'of another form']);
    assert.deepEqual(placeOf('a@fa/m/vulkan/p'), {row: 'm / p @fa', backend: 'vulkan'});
    assert.deepEqual(placeOf('b/m/cuda/p'), {row: 'm / p', backend: 'cuda'});
    assert.deepEqual(placeOf('of another form'), {row: 'of another form', backend: ''});
    const both = placesOf(['a/m/vulkan/p', 'b/m/vulkan/p']);
    assert.deepEqual(both('b/m/vulkan/p'), {row: 'b: m / p', backend: 'vulkan'});
  });

  it('is painted soon', async (test) => visit('#/changes/1', async (page) => {
    await shown(page);
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    test.diagnostic(`first paint after ${Math.round(paint)} ms`);
  }));
});
