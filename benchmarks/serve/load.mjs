// How long answers of weir serve take while 200 readers and 20 writers ask at once, beside one reader alone,
// in one run; and whether anything that was answered is lost.
//   node benchmarks/serve/load.mjs [SECONDS] [postgres://…]     (build/weir; WEIR_BUILD for another folder)
// Loopback only; each part ends after SECONDS (default 15). Readers ask again at once; a writer uploads a run
// five times a second.
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const weir = join(process.env.WEIR_BUILD ?? 'build', 'weir');
const seconds = Number(process.argv[2] ?? 15);
const READERS = 200, WRITERS = 20, CELLS = 20, NIGHTS = 365;
const folder = mkdtempSync(join(tmpdir(), 'weir-load-'));
const db = process.argv[3] ?? join(folder, 'history.db');

// A year of nights of 20 cells with 3 metrics.
function csv() {
  const rows = ['cell,metric,commit,time,value,machine'];
  for (let night = 0; night < NIGHTS; ++night) {
    for (let cell = 0; cell < CELLS; ++cell) {
      const where = `e/m${cell}/vulkan/decode`, commit = (night + 1).toString(16).padStart(40, '0'), time = 1760000000 + night * 86400;
      rows.push(`${where},dispatches_per_token,${commit},${time},${night < 200 ? 65 : 77},box`);
      rows.push(`${where},decode_tokens_per_second,${commit},${time},${40 + (night * 7 + cell) % 11 / 10},box`);
      rows.push(`${where},peak_rss_bytes,${commit},${time},${1e8 + night % 13 * 4096},box`);
    }
  }
  return rows.join('\n') + '\n';
}

const agents = () => new http.Agent({keepAlive: true, maxSockets: 1});
function ask(origin, path, agent, {method = 'GET', headers = {}, body} = {}) {
  return new Promise((resolve) => {
    const began = performance.now();
    const request = http.request(origin + path, {method, agent, headers}, (answer) => {
      let text = '';
      answer.on('data', (part) => { text += part; });
      answer.on('end', () => resolve({status: answer.statusCode, ms: performance.now() - began, text}));
    });
    request.on('error', (error) => resolve({status: 0, ms: performance.now() - began, text: String(error)}));
    request.end(body);
  });
}

const kinds = {
  'the page': '/',
  'a document of a page': '/data/overview.js',
  'a series': '/api/v1/series?project=default&cell=e/m3/vulkan/decode&metric=decode_tokens_per_second',
  'verdicts': '/api/v1/verdicts?project=default',
  'changes of a cell': '/api/v1/changes?project=default&cell=e/m5/*',
  'a badge': '/badge/default.svg',
};
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
const shown = (times) => {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted.length === 0 ? '–' : `${sorted.length} | ${quantile(sorted, 0.5).toFixed(1)} | ${quantile(sorted, 0.99).toFixed(1)}`;
};

writeFileSync(join(folder, 'series.csv'), csv());
execFileSync(weir, ['trend', 'import', '--csv', join(folder, 'series.csv'), '--db', db], {stdio: 'pipe'});
const runs_before = count_runs();
const token = execFileSync(weir, ['serve', 'token', 'add', '--db', db, '--scope', 'upload'], {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}).trim();
const server = spawn(weir, ['serve', '--listen', '127.0.0.1:0', '--db', db, '--public', '--log', 'none', '--upload-rate', '100000', '--daily-runs', '10000000', '--daily-quota', '100GiB'],
  {stdio: ['ignore', 'ignore', 'pipe']});
const origin = await new Promise((resolve) => {
  let said = '';
  server.stderr.on('data', (text) => {
    said += text;
    const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
    if (found) resolve(found[0]);
  });
});
function count_runs() {
  return execFileSync(weir, ['trend', 'export', '--db', db], {encoding: 'utf8', maxBuffer: 1 << 30})
    .split('\n').filter((line) => line.includes('"type":"run"')).length;
}
const example = execFileSync(weir, ['trend', 'export', '--db', db], {encoding: 'utf8', maxBuffer: 1 << 30}).split('\n');
const first = example[0], line = JSON.parse(example.find((one) => one.includes('"type":"run"')));

line.points = line.points.slice(0, 3); // the metrics of a cell
const upload_of = (writer, number) => {
  line.id = `${(writer + 1).toString(16).padStart(8, '0')}${(number + 1).toString(16).padStart(8, '0')}`;
  line.time = 1795000000 + number;
  return `${first}\n${JSON.stringify(line)}\n`;
};

const alone = {}, under = {}, other = new Map();
const note = (into, kind, answer) => {
  if (answer.status === 200 || answer.status === 201) (into[kind] ??= []).push(answer.ms);
  else if (into === under) other.set(answer.status, (other.get(answer.status) ?? 0) + 1);
};
await ask(origin, '/data/overview.js', agents()); // the first pages are made
{
  const agent = agents(), end = performance.now() + seconds * 1000;
  for (let i = 0; performance.now() < end; ++i) {
    const kind = Object.keys(kinds)[i % Object.keys(kinds).length];
    note(alone, kind, await ask(origin, kinds[kind], agent));
  }
}
let answered = 0;
{
  const end = performance.now() + seconds * 1000;
  const reader = async (number) => {
    const agent = agents();
    for (let i = number; performance.now() < end; ++i) {
      const kind = Object.keys(kinds)[i % Object.keys(kinds).length];
      note(under, kind, await ask(origin, kinds[kind], agent));
    }
  };
  const writer = async (number) => {
    const agent = agents();
    for (let i = 0; performance.now() < end;) {
      const answer = await ask(origin, '/api/v1/runs?project=default', agent, {method: 'POST', body: upload_of(number, i),
        headers: {'content-type': 'application/x-ndjson', authorization: `Bearer ${token}`}});
      note(under, 'an upload', answer);
      if (answer.status === 201) { ++answered; ++i; await new Promise((done) => setTimeout(done, Math.max(0, 200 - answer.ms))); } else await new Promise((done) => setTimeout(done, 50));
    }
  };
  await Promise.all([...Array.from({length: READERS}, (_, i) => reader(i)), ...Array.from({length: WRITERS}, (_, i) => writer(i))]);
}
const ended = new Promise((resolve) => server.on('exit', resolve));
server.kill('SIGTERM');
const code = await ended;
const kept = count_runs() - runs_before;
console.log(`| asked for | alone: answers | median ms | p99 ms | ${READERS} readers, ${WRITERS} writers: answers | median ms | p99 ms |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |`);
for (const kind of [...Object.keys(kinds), 'an upload']) console.log(`| ${kind} | ${shown(alone[kind] ?? [])}${alone[kind] ? '' : ' | – | –'} | ${shown(under[kind] ?? [])} |`);
const all = Object.values(under).flat();
console.log(`\n${all.length} answers in ${seconds} s (p99 ${quantile(all.sort((a, b) => a - b), 0.99).toFixed(0)} ms); other statuses: ` +
  `${[...other].map(([status, times]) => `${status} × ${times}`).join(', ') || 'none'}.`);
console.log(`${answered} uploads answered 201, ${kept} kept; the service ended with ${code}.`);
rmSync(folder, {recursive: true});
process.exitCode = kept >= answered && code === 0 ? 0 : 1;
