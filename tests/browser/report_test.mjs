// Reports in a window of 1000 pixels: each column of their tables is on the page.
import assert from 'node:assert/strict';
import {readdirSync} from 'node:fs';
import {after, before, describe, it} from 'node:test';
import {launch} from './browser.mjs';

const folder = new URL('../golden/report/', import.meta.url);

describe('a report in HTML', () => {
  let browser;
  before(async () => { browser = await launch(); });
  after(() => browser.close());

  for (const name of readdirSync(folder).filter((file) => file.endsWith('.html'))) {
    it(`keeps all columns of ${name} on the page`, async () => {
      const page = await browser.newPage({viewport: {width: 1000, height: 900}});
      await page.goto(new URL(name, folder).href);
      const beyond = await page.evaluate(() => {
        for (const element of document.querySelectorAll('details')) element.open = true;
        return [document.documentElement, ...document.querySelectorAll('.wide')]
          .filter((element) => element.scrollWidth > element.clientWidth)
          .map((element) => `${element.getAttribute('aria-label') ?? 'the page'}: ${element.scrollWidth} > ${element.clientWidth}`);
      });
      assert.deepEqual(beyond, []);
      await page.close();
    });
  }
});
