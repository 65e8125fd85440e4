// Latency against load in Chromium: in the page of a gate, and on a run's page of the trend site.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {after, before, describe, it} from 'node:test';
import {build, goTo, launch, openPage, seriousFaults} from './browser.mjs';

// Texts of a picture that lie on each other, and what of it goes beyond its box.
const crowded = (page) => page.evaluate(() => [...document.querySelectorAll('svg.load')].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const whole = svg.getBoundingClientRect();
  const beyond = boxes.filter(([, box]) => box.left < whole.left - 1 || box.right > whole.right + 1 || box.bottom > whole.bottom + 1);
  const title = svg.querySelector('title').textContent;
  const found = beyond.map(([text]) => `${title}: ${text} goes beyond it`);
  boxes.forEach(([a, one], i) => boxes.slice(i + 1).forEach(([b, other]) => {
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (across > 0 && down > 2) found.push(`${title}: ${a} lies on ${b}`); // lines are 12 apart, boxes a little higher
  }));
  return found;
}));

describe('latency against load', () => {
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
  const looksWell = async (page, width, name) => {
    assert.equal(await page.locator('figure.load').count(), 2);
    assert.equal(await page.locator('svg.load').count(), 6);
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
  for (const [scheme, width] of [['light', 1280], ['dark', 1280], ['light', 360], ['dark', 360]]) {
    it(`can be read in the page of a gate, ${scheme}, ${width} pixels wide`, async () => {
      const context = await browser.newContext({viewport: {width, height: 900}, colorScheme: scheme, bypassCSP: true});
      context.setDefaultTimeout(120_000);
      const page = await context.newPage();
      page.faults = [];
      const address = pathToFileURL(join(folder, 'gate.html')).href;
      page.on('console', (message) => page.faults.push(`console: ${message.text()}`));
      page.on('request', (request) => request.url() === address || page.faults.push(`request: ${request.url()}`));
      await page.goto(address);
      await page.locator('details').evaluateAll((all) => all.forEach((one) => { one.open = true; }));
      await looksWell(page, width, `gate-${scheme}-${width}`);
      await context.close();
    });

    it(`can be read on the page of a run, ${scheme}, ${width} pixels wide`, async () => {
      const site = {address: pathToFileURL(join(folder, 'index.html')).href};
      const page = await openPage(browser, site, '#/runs', {scheme, width, bypassCSP: true});
      await goTo(page, await page.locator('tbody th a').first().getAttribute('href'));
      await page.waitForSelector('svg.load');
      await looksWell(page, width, `run-${scheme}-${width}`);
      // Of ten thousand requests four hundred are kept in a verdict; those that stalled are among them.
      const marks = await page.locator('svg.requests path.whole').getAttribute('d');
      assert.equal(marks.match(/M/g).length, 400);
      assert.equal(marks.match(/ 0\.0h0/g).length, 100);
      assert.equal(await page.locator('svg.batches rect').count(), 5);
      assert.match(await page.locator('figure.served p').first().innerText(), /^400 of 10000 requests over 49\.88\ss: the fastest and slowest of every few.* up to 400\sms$/);
      await page.context().close();
    });
  }
});
