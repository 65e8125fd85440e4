// The trend pages behind weir serve, in Chromium: the same pages, and what was uploaded is on them.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, describe, it} from 'node:test';
import {build, cellAddress, goTo, launch, openPage, seriousFaults, shown} from './browser.mjs';

const weir = join(build, 'weir');
const HOSTILE = '</script><img src=x onerror="hostile=1">';
const NIGHTS = 60;

// A series that steps at its 41st night, one that does not, and one with a hostile name.
function csv() {
  const rows = ['cell,metric,commit,time,value,machine'];
  for (let night = 0; night < NIGHTS; ++night) {
    const commit = (night + 1).toString(16).padStart(40, '0');
    const time = 1790000000 + night * 86400;
    rows.push(`e/m/vulkan/decode,dispatches_per_token,${commit},${time},${night < 40 ? 65 : 77},box`);
    rows.push(`e/m/cpu/decode,decode_tokens_per_second,${commit},${time},${40 + (night * 7 % 5) / 10},box`);
    rows.push(`"${HOSTILE.replaceAll('"', '""')}",syncs_per_token,${commit},${time},1,box`);
  }
  return rows.join('\n') + '\n';
}

describe('the pages of weir serve', () => {
  let folder, server, site, browser, token;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-serve-'));
    const db = join(folder, 'history.db');
    writeFileSync(join(folder, 'series.csv'), csv());
    execFileSync(weir, ['trend', 'import', '--csv', join(folder, 'series.csv'), '--db', db], {stdio: 'pipe'});
    const output = execFileSync(weir, ['serve', 'token', 'add', '--db', db, '--scope', 'upload', '--project', 'default'], {encoding: 'utf8'});
    token = /weir_[0-9a-z_]+/.exec(output)[0];
    server = spawn(weir, ['serve', '--listen', '127.0.0.1:0', '--db', db, '--public'], {cwd: folder, stdio: ['ignore', 'ignore', 'pipe']});
    const address = await new Promise((resolve, reject) => {
      let log = '';
      server.stderr.on('data', (text) => {
        log += text;
        const match = /http:\/\/127\.0\.0\.1:\d+/.exec(log);
        if (match) resolve(match[0]);
      });
      server.on('exit', () => reject(new Error(log)));
    });
    site = {address: `${address}/index.html`, origin: address};
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    if (server) {
      const ended = new Promise((resolve) => server.on('exit', resolve));
      server.kill('SIGTERM');
      assert.equal(await ended, 0);
    }
    if (folder) rmSync(folder, {recursive: true});
  });
  const visit = async (hash, act, options) => {
    const page = await openPage(browser, site, hash, options);
    try {
      await act(page);
      assert.deepEqual(page.faults, []);
      assert.equal(await page.evaluate(() => globalThis.hostile), undefined);
    } finally {
      await page.context().close();
    }
  };

  for (const [scheme, width] of [['light', 1200], ['dark', 360]]) {
    it(`have no fault, ${scheme}, ${width} pixels wide`, async () => visit('#/', async (page) => {
      const cell = await cellAddress(page, 'e/m/vulkan');
      for (const hash of ['', cell, '#/runs', '#/compare', '#/baselines', '#/gate']) {
        if (hash) await goTo(page, hash);
        assert.deepEqual(await seriousFaults(page), [], hash);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, hash);
      }
    }, {scheme, width, bypassCSP: true}));
  }

  it('read a point, zoom, go elsewhere, and come back by a link', async () => {
    let address;
    await visit('#/', async (page) => {
      await goTo(page, `${await cellAddress(page, 'e/m/vulkan')}?metric=dispatches_per_token`);
      await page.waitForSelector('.u-over');
      const box = await page.locator('.u-over').boundingBox();
      await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
      await page.waitForFunction((all) => document.querySelector('.reading').textContent.includes(`of ${all}`), NIGHTS);
      assert.match(await page.locator('main').innerText(), /65 → 77/);
      await page.getByRole('button', {name: 'Zoom in'}).click();
      await page.waitForFunction(() => location.hash.includes('range='));
      address = await page.evaluate(() => location.hash);
    });
    await visit(address, async (page) => {
      await page.waitForSelector('.u-over');
      assert.equal(await page.evaluate(() => location.hash), address);
    });
  });

  it('show hostile text as text', async () => visit('#/', async (page) => {
    await goTo(page, await cellAddress(page, HOSTILE));
    assert.ok((await page.locator('h1').innerText()).includes(HOSTILE));
    assert.equal(await page.locator('img').count(), 0);
  }));

  it('show what was uploaded a moment ago', async () => {
    const lines = execFileSync(weir, ['trend', 'export', '--db', join(folder, 'history.db')], {encoding: 'utf8'}).split('\n');
    const run = JSON.parse(lines.find((line) => line.includes('"type":"run"')));
    const text = JSON.stringify(run).replaceAll(/e\/m\/(vulkan|cpu)\/decode/g, 'e/fresh/$1/decode')
      .replaceAll(`"id":"${run.id}"`, '"id":"feedfacefeedface"');
    const answer = await fetch(`${site.origin}/api/v1/runs?project=default`, {
      method: 'POST', body: `${lines[0]}\n${text}\n`,
      headers: {'content-type': 'application/x-ndjson', authorization: `Bearer ${token}`}});
    assert.equal(answer.status, 201, await answer.text());
    await visit('#/', async (page) => {
      const end = Date.now() + 120_000;
      while (await page.locator('.matrix th', {hasText: 'e/fresh/vulkan'}).count() === 0) {
        assert.ok(Date.now() < end, 'it never came');
        await new Promise((done) => setTimeout(done, 500));
        await page.reload();
        await shown(page);
      }
    });
  });

  it('have a badge that is a picture with words', async () => {
    const answer = await fetch(`${site.origin}/badge/default.svg`);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type'), /^image\/svg\+xml/);
    const text = await answer.text();
    assert.match(text, /<title>/);
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    await page.setContent(`<img alt="" src="data:image/svg+xml;base64,${Buffer.from(text).toString('base64')}">`);
    assert.ok(await page.evaluate(() => document.images[0].decode().then(() => document.images[0].width > 40)));
    await page.close();
  });
});
