// How soon a page with many points is painted, and how smoothly it zooms, in a real Chromium, beside an
// empty page in the same run.
//   node benchmarks/trend_site/measure.mjs [POINTS] [ROUNDS]      (100000, 10; docs/how-to/trend-site.md)
// Needs build/tests/browser/site_fixture, build/share/weir/web and ci/browser.
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {launch, makeSite} from '../../tests/browser/browser.mjs';

const [points, rounds] = [Number(process.argv[2] ?? 100000), Number(process.argv[3] ?? 10)];
const FRAMES = 120;

// Milliseconds from the start of the navigation to the frame after the one that shows the graph.
function painted(empty) {
  return new Promise((done) => {
    const look = () => {
      const chart = empty || document.querySelector('.chart')?.weirChart?.plot.status === 1;
      if (!chart || document.readyState !== 'complete') requestAnimationFrame(look);
      else requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
    };
    look();
  });
}

// Frames a second while every frame zooms: from all points to 200 and out again, around a place that moves.
function frames({count, empty, all}) {
  const chart = document.querySelector('.chart')?.weirChart;
  return new Promise((done) => {
    let at = 0;
    let start = 0;
    const step = (now) => {
      if (at === 0) start = now;
      if (at === count) return done((1000 * count) / (now - start));
      if (!empty) {
        const share = (200 / all) ** (0.5 - 0.5 * Math.cos((2 * Math.PI * at) / 60));
        const middle = all * (0.5 + 0.3 * Math.sin((2 * Math.PI * at) / 97));
        chart.show(middle - (all * share) / 2, middle + (all * share) / 2);
      }
      at += 1;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

const folder = mkdtempSync(join(tmpdir(), 'weir-empty-'));
writeFileSync(join(folder, 'index.html'), '<!doctype html><title>empty</title><p>empty');
const site = makeSite('long', points);
const browser = await launch();
const results = {page: [], empty: [], zoom: [], idle: []};
try {
  const first = await browser.newPage();
  await first.goto(site.address);
  const hash = await first.locator('.matrix th a').first().getAttribute('href');
  await first.close();
  for (let round = 0; round < rounds; ++round) {
    // One order, then the other: neither always has the warmer machine.
    for (const empty of round % 2 ? [true, false] : [false, true]) {
      const page = await browser.newPage({viewport: {width: 1200, height: 900}});
      await page.goto(empty ? pathToFileURL(join(folder, 'index.html')).href : site.address + hash, {waitUntil: 'commit'});
      results[empty ? 'empty' : 'page'].push(await page.evaluate(painted, empty));
      results[empty ? 'idle' : 'zoom'].push(await page.evaluate(frames, {count: FRAMES, empty, all: points}));
      await page.close();
    }
  }
} finally {
  await browser.close();
  site.remove();
  rmSync(folder, {recursive: true});
}
const line = (list, best) => `best ${best(...list).toFixed(0)}, median ${[...list].sort((a, b) => a - b)[list.length >> 1].toFixed(0)}`;
console.log(`${points} points, ${rounds} rounds`);
console.log(`painted after (ms):   ${line(results.page, Math.min)}   empty page: ${line(results.empty, Math.min)}   limit 1000 at best`);
console.log(`zooming (frames/s):   ${line(results.zoom, Math.max)}   empty page: ${line(results.idle, Math.max)}   limit 50 at best`);
