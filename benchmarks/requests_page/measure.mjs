// How soon the page of a gate with 10 000 requests of a server's load is painted, in a real Chromium, beside an empty
// page in the same run.
//   node benchmarks/requests_page/measure.mjs [ROUNDS]      (10; docs/reference/servers.md)
// Needs build/tests/browser/served_fixture, build/share/weir/web and ci/browser.
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {launch} from '../../tests/browser/browser.mjs';

const rounds = Number(process.argv[2] ?? 10);
const build = process.env.WEIR_BUILD ?? fileURLToPath(new URL('../../build', import.meta.url));

// Milliseconds from the start of the navigation to the first paint with content, and to the frame after the whole page.
function painted() {
  return new Promise((done) => {
    const look = () => {
      const [first] = performance.getEntriesByName('first-contentful-paint');
      if (!first || document.readyState !== 'complete') requestAnimationFrame(look);
      else requestAnimationFrame(() => requestAnimationFrame(() => done([first.startTime, performance.now()])));
    };
    look();
  });
}

const folder = mkdtempSync(join(tmpdir(), 'weir-requests-'));
execFileSync(join(build, 'tests/browser/served_fixture'), [join(build, 'share/weir/web'), folder]);
const [file, open, none] = ['gate.html', 'open.html', 'empty.html'].map((name) => join(folder, name));
writeFileSync(open, readFileSync(file, 'utf8').replaceAll('<details', '<details open')); // the points are seen at once
writeFileSync(none, '<!doctype html><title>empty</title><p>empty');
const files = {'as written': file, 'all opened': open, 'empty page': none};
const results = Object.fromEntries(Object.keys(files).map((name) => [name, []]));
const browser = await launch();
try {
  for (let round = 0; round < rounds; ++round) {
    const order = Object.keys(files);
    for (const name of round % 2 ? order.reverse() : order) { // neither always has the warmer machine
      const page = await browser.newPage({viewport: {width: 1200, height: 900}});
      await page.goto(pathToFileURL(files[name]).href, {waitUntil: 'commit'});
      results[name].push(await page.evaluate(painted));
      await page.close();
    }
  }
} finally {
  await browser.close();
}
const points = JSON.parse(/"latencies":(\[[^\]]*\])/.exec(readFileSync(file, 'utf8'))?.[1] ?? '[]').length / 3;
console.log(`${points} requests, ${(statSync(file).size / 1e6).toFixed(2)} MB, ${rounds} rounds`);
rmSync(folder, {recursive: true});
const line = (list) => `best ${Math.min(...list).toFixed(0)}, median ${[...list].sort((a, b) => a - b)[list.length >> 1].toFixed(0)}`;
for (const [name, list] of Object.entries(results)) {
  console.log(`${name}: first paint (ms) ${line(list.map(([first]) => first))}; whole page ${line(list.map(([, whole]) => whole))}; limit 1000`);
}
