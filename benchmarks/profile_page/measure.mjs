// How soon the page of a profile with many events shows them, and its longest frame while it zooms, in a real
// Chromium, beside an empty page in the same run.
//   node benchmarks/profile_page/measure.mjs [EVENTS] [ROUNDS]      (1000000, 10; docs/reference/profile-page.md)
// Needs build/tests/browser/profile_fixture, build/share/weir/web and ci/browser.
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {launch} from '../../tests/browser/browser.mjs';

const [events, rounds] = [Number(process.argv[2] ?? 1_000_000), Number(process.argv[3] ?? 10)];
const STEPS = 40;
const build = process.env.WEIR_BUILD ?? fileURLToPath(new URL('../../build', import.meta.url));

// Milliseconds from the start of the navigation to the frame after the one with the events in it.
function painted(empty) {
  return new Promise((done) => {
    const look = () => {
      const drawn = empty || document.getElementById('timeline')?.weirPage?.timeline.drawn;
      if (!drawn || document.readyState !== 'complete') requestAnimationFrame(look);
      else requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
    };
    look();
  });
}

// The longest time between two frames, in milliseconds, while each of so many zooms: half of them in to a microsecond's
// neighbourhood around a place that moves, half of them out; then the frames in which the table follows.
function longest({count, empty}) {
  const page = document.getElementById('timeline')?.weirPage;
  return new Promise((done) => {
    let at = 0;
    let last = null;
    let most = 0;
    const step = (now) => {
      if (last !== null) most = Math.max(most, now - last);
      last = now;
      if (at === count + 30) return done(most);
      if (at < count && !empty) {
        const {view, model} = page;
        const share = (20_000 / model.end) ** (0.5 - 0.5 * Math.cos((2 * Math.PI * (at + 1)) / count));
        const middle = model.end * (0.5 + 0.3 * Math.sin(at / 9));
        view.show(middle - (model.end * share) / 2, middle + (model.end * share) / 2);
      }
      at += 1;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

const folder = mkdtempSync(join(tmpdir(), 'weir-profile-'));
const [file, none] = [join(folder, 'many.html'), join(folder, 'empty.html')];
writeFileSync(none, '<!doctype html><title>empty</title><p>empty');
execFileSync(join(build, 'tests/browser/profile_fixture'), [join(build, 'share/weir/web/profile.html'), file, 'many', String(events)]);
const bytes = statSync(file).size;
const browser = await launch();
const results = {page: [], empty: [], zoom: [], idle: []};
try {
  for (let round = 0; round < rounds; ++round) {
    // One order, then the other: neither always has the warmer machine.
    for (const empty of round % 2 ? [true, false] : [false, true]) {
      const page = await browser.newPage({viewport: {width: 1200, height: 900}});
      await page.goto(pathToFileURL(empty ? none : file).href, {waitUntil: 'commit'});
      results[empty ? 'empty' : 'page'].push(await page.evaluate(painted, empty));
      results[empty ? 'idle' : 'zoom'].push(await page.evaluate(longest, {count: STEPS, empty}));
      await page.close();
    }
  }
} finally {
  await browser.close();
  rmSync(folder, {recursive: true});
}
const line = (list) => `best ${Math.min(...list).toFixed(0)}, median ${[...list].sort((a, b) => a - b)[list.length >> 1].toFixed(0)}`;
console.log(`${events} events, ${(bytes / 1e6).toFixed(1)} MB (${(bytes / events).toFixed(1)} bytes an event), ${rounds} rounds`);
console.log(`shown after (ms):               ${line(results.page)}   empty page: ${line(results.empty)}   limit 3000`);
console.log(`longest frame of ${STEPS} zooms (ms): ${line(results.zoom)}   empty page: ${line(results.idle)}   limit 100`);
