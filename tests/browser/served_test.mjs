// Figures of a verdict in Chromium: in the page of a gate, and on a run's page of the trend site.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {after, before, describe, it} from 'node:test';
import {build, goTo, launch, openPage, seriousFaults} from './browser.mjs';

// Texts of a picture that lie on each other, and what of it goes beyond its box.
const crowded = (page) => page.evaluate(() => [...document.querySelectorAll('svg.load, svg.ratios')].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const frame = svg.getBoundingClientRect();
  const beyond = boxes.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1);
  const title = svg.querySelector('title').textContent;
  const problems = beyond.map(([text]) => `${title}: ${text} goes beyond it`);
  boxes.forEach(([a, first], i) => boxes.slice(i + 1).forEach(([b, second]) => {
    const across = Math.min(first.right, second.right) - Math.max(first.left, second.left);
    const down = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
    if (across > 0 && down > 2) problems.push(`${title}: ${a} lies on ${b}`); // lines are 12 apart, boxes a little higher
  }));
  return problems;
}));

describe('figures of a verdict', () => {
  let browser, folder;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-served-'));
    execFileSync(join(build, 'tests/browser/served_fixture'), [join(build, 'share/weir/web'), folder]);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, {recursive: true});
  });
  const looksWell = async (page, width, name, curves = 2) => {
    assert.equal(await page.locator('figure.load').count(), curves);
    assert.equal(await page.locator('svg.load').count(), 3 * curves);
    assert.deepEqual(await crowded(page), []);
    assert.deepEqual(await seriousFaults(page), []);
    const scrolls = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(scrolls <= width, `${scrolls} pixels wide`);
    assert.deepEqual(page.faults, []);
    assert.equal(await page.evaluate(() => globalThis.hostile), undefined);
    if (process.env.WEIR_SHOTS) {
      await page.screenshot({path: join(process.env.WEIR_SHOTS, `${name}.png`), fullPage: true});
    }
  };
  // The page of a gate as a file, with what it should not do: say anything on the console, or load anything.
  const openGate = async (name, {scheme = 'light', width = 1000, ...more} = {}) => {
    const context = await browser.newContext({viewport: {width, height: 900}, colorScheme: scheme, ...more});
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    page.faults = [];
    const address = pathToFileURL(join(folder, `${name}.html`)).href;
    page.on('console', (message) => page.faults.push(`console: ${message.text()}`));
    page.on('pageerror', (error) => page.faults.push(`error: ${error.stack}`));
    page.on('request', (request) => request.url() === address || page.faults.push(`request: ${request.url()}`));
    await page.goto(address);
    await page.locator('details').evaluateAll((all) => all.forEach((element) => { element.open = true; }));
    return page;
  };
  for (const [scheme, width] of [['light', 1280], ['dark', 1280], ['light', 360], ['dark', 360]]) {
    it(`can be read in the page of a gate, ${scheme}, ${width} pixels wide`, async () => {
      const page = await openGate('gate', {scheme, width, bypassCSP: true});
      await looksWell(page, width, `gate-${scheme}-${width}`);
      await page.context().close();
    });

    it(`shows the ratios of pairs, ${scheme}, ${width} pixels wide`, async () => {
      const page = await openGate('ratios', {scheme, width, bypassCSP: true});
      assert.equal(await page.locator('svg.ratios').count(), 3);
      await looksWell(page, width, `ratios-${scheme}-${width}`, 0);
      await page.context().close();
    });

    it(`can be read on the page of a run, ${scheme}, ${width} pixels wide`, async () => {
      const site = {address: pathToFileURL(join(folder, 'index.html')).href};
      const page = await openPage(browser, site, '#/runs', {scheme, width, bypassCSP: true});
      await goTo(page, await page.locator('tbody th a').first().getAttribute('href'));
      await page.waitForSelector('svg.load');
      await looksWell(page, width, `run-${scheme}-${width}`);
      // A verdict keeps four hundred of ten thousand requests; those that stalled are among them.
      const marks = await page.locator('svg.requests path.whole').getAttribute('d');
      assert.equal(marks.match(/M/g).length, 400);
      assert.equal(marks.match(/ 0\.0h0/g).length, 100);
      assert.equal(await page.locator('svg.batches rect').count(), 5);
      assert.match(await page.locator('figure.served p').first().innerText(), /^400 of 10000 requests over 49\.9 s: the fastest and slowest of every few.* up to 400 ms$/);
      await page.context().close();
    });
  }

  it('draws in the page of a gate what its data says, with the policy that forbids all else', async () => {
    const page = await openGate('gate');
    assert.deepEqual(page.faults, []);
    const marks = await page.locator('svg.requests path.whole').getAttribute('d');
    assert.equal(marks.match(/M/g).length, 10_000);
    assert.equal(marks.match(/ 0\.0h0/g).length, 100); // those that stalled
    // Graphs of 1, 2, 3, 4 and 36 tokens at once, 70 of them of 4: bars in shares of the highest.
    assert.deepEqual(await page.locator('svg.batches rect').evaluateAll((bars) => bars.map((bar) => Math.round(0.7 * bar.getAttribute('height')))), [3, 8, 5, 70, 2]);
    const words = await page.locator('figure.load', {hasText: '/ chat:'}).locator('desc').first().textContent();
    assert.match(words, /^p50: 18.ms at 1, 72.ms at 4, 288.ms at 16; .*base: 14\.4.ms at 1, 57\.6.ms at 4, 230\.4.ms at 16$/);
    assert.ok((await page.locator('tr', {hasText: /chat@c4/}).first().innerText()).includes('72.0 ms'));
    await page.context().close();
  });

  it('draws ratios where they lie: those that broke the limit in red, the interval below', async () => {
    const page = await openGate('ratios');
    const [rate] = await page.locator('svg.ratios').all();
    // All twelve pairs dropped by more than the limit of 5 %.
    assert.equal(await rate.locator('rect.bar').count(), 0);
    assert.ok(await rate.locator('rect.beyond').count() > 1);
    const place = async (mark, name) => parseFloat(await rate.locator(mark).getAttribute(name));
    assert.ok(await place('.interval', 'x1') < await place('.estimate', 'cx'));
    assert.ok(await place('.estimate', 'cx') < await place('.limit', 'x1'));
    assert.ok(await place('.limit', 'x1') < await place('.tolerated', 'x1'));
    assert.ok(await place('.tolerated', 'x1') < await place('.zero', 'x1'));
    assert.match(await rate.locator('desc').textContent(), /^12 pairs from .* 12 beyond the limit of −5.%$/);
    await page.context().close();
  });

  it('keeps all columns of a page with figures on it', async () => {
    for (const name of ['gate', 'ratios', 'hostile']) {
      const page = await openGate(name);
      const beyond = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll('.wide')]
        .filter((element) => element.scrollWidth > element.clientWidth).map((element) => `${element.getAttribute('aria-label')}: ${element.scrollWidth}`));
      assert.deepEqual(beyond, [], name);
      await page.context().close();
    }
  });

  it('shows hostile names as text', async () => {
    const page = await openGate('hostile');
    assert.deepEqual(page.faults, []);
    assert.equal(await page.evaluate(() => globalThis.hostile), undefined);
    assert.equal(await page.locator('img').count(), 0);
    const hostile = '</script><img src=x onerror="hostile=1">';
    assert.ok((await page.locator('figure.load figcaption').textContent()).includes(hostile));
    assert.ok((await page.locator('svg.ratios title').allTextContents()).some((title) => title.includes(hostile)));
    await page.context().close();
  });

  it('says the same in words and tables where scripts are off', async () => {
    const page = await openGate('gate', {javaScriptEnabled: false});
    assert.equal(await page.locator('svg').count(), 0);
    assert.deepEqual(page.faults, []);
    const [requests, batches] = await page.locator('figure p').allInnerTexts();
    assert.equal(requests, '10000 requests over 50.0 s; end-to-end latency up to 400 ms');
    assert.equal(batches, '1: 3 · 2: 8 · 3: 5 · 4: 70 · 36: 2 (tokens: graphs)');
    assert.match(await page.locator('tr', {hasText: /chat@c16/}).first().innerText(), /288 ms\s+432 ms\s+518 ms/);
    await page.context().close();
  });
});
