// The parts of ci/atlas that are data: which releases are missing, what a run holds beyond a history, the tables.
//   atlas.mjs missing [VERSION…] | find RELEASE | list | table | causes | picture | refuse VERSION RELEASE STAGE FILE | record VERSION RELEASE RUN.jsonl | explain WEIR RUNS
// cells.jsonl.zst: a line for each release and cell: its kernels per token or prefill, or its last words.
// changes.jsonl.zst: what weir explain says of each cell between a release and the one before it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const home = new URL('.', import.meta.url).pathname;
const run = (program, words, input) => {
  const ended = spawnSync(program, words, { input, encoding: 'utf8', maxBuffer: 1 << 30 });
  if (ended.status !== 0) throw new Error(`${program} ${words.join(' ')} ended with ${ended.status}: ${ended.stderr}`);
  return ended.stdout;
};
const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
const load = (name) => {
  const file = join(home, name);
  return existsSync(file) ? lines(run('zstd', ['-dqc', file])) : [];
};
const store = (name, rows) => {
  const file = join(home, name);
  const fresh = `${file}.new-${process.pid}`;
  writeFileSync(`${fresh}.jsonl`, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  run('zstd', ['-12', '--long', '-q', '--rm', `${fresh}.jsonl`, '-o', fresh]);
  renameSync(fresh, file);
};
const releases = readFileSync(join(home, 'releases.txt'), 'utf8').split('\n').filter((line) => line && line[0] !== '#')
  .map((line) => line.split(/\s+/)).map(([version, release, date, source, vulkan, cuda]) => ({ version, release, date, source, vulkan, cuda }));
const place = Object.fromEntries(releases.map(({ version }, i) => [version, i]));
const put = (name, version, rows) => store(name, [...load(name).filter((row) => row.version !== version), ...rows]
  .sort((a, b) => place[a.version] - place[b.version] || (a.cell < b.cell ? -1 : a.cell > b.cell ? 1 : 0)));

// What a text ends with, short, and without the folders of this machine.
const last_words = (text) => {
  const kept = text.replaceAll(/(?:\/[\w.+-]+)+\//g, '').split('\n').map((line) => line.trim()).filter(Boolean);
  const wrong = kept.filter((line) => !line.startsWith('collect2:') && /error|fail|abort|assert|undefined|unknown|terminate/i.test(line));
  return (wrong.at(-1) ?? kept.at(-1) ?? '').slice(0, 300);
};

// Kernels per token (per prefill): processes of one cell differ in how many steps they take, and a line goes through them.
const kernels_of = (records) => {
  const at = new Map();
  for (const { asked, probes } of records) {
    const kernels = (probes ?? []).find(({ kernels }) => kernels)?.kernels;
    if (kernels) at.set((asked.tokens || 1) * asked.repeats, kernels);
  }
  const steps = [...at.keys()].sort((a, b) => a - b);
  if (steps.length < 2) return undefined;
  const [first, last] = [steps[0], steps.at(-1)];
  const names = new Set([...Object.keys(at.get(first)), ...Object.keys(at.get(last))]);
  return Object.fromEntries([...names].sort().map((name) => [name, ((at.get(last)[name] ?? 0) - (at.get(first)[name] ?? 0)) / (last - first)])
    .filter(([, count]) => count !== 0));
};

const record = (version, release, file) => {
  const cells = new Map();
  for (const row of lines(readFileSync(file, 'utf8'))) {
    if (row.cell) cells.set(row.cell, [...(cells.get(row.cell) ?? []), row]);
  }
  const rows = [...cells].map(([cell, records]) => {
    const bad = records.find((one) => one.error !== undefined || one.ended !== 'exited' || one.exit_code);
    const kernels = kernels_of(records);
    if (kernels && !bad) return { version, release, cell, kernels };
    return { version, release, cell, words: last_words([bad?.stderr_tail, bad?.error].filter(Boolean).join('\n')) };
  });
  put('cells.jsonl.zst', version, rows);
  console.log(rows.some(({ kernels }) => kernels) ? 'counts' : 'none');
};

// Explain needs both runs; where one is no longer in the cache, what is stored stays.
const explain = (weir, runs) => {
  const has = (version) => existsSync(join(runs, version, 'run.jsonl'));
  const counted = new Set(load('cells.jsonl.zst').filter(({ kernels }) => kernels).map(({ version }) => version));
  const order = releases.map(({ version }) => version).filter((version) => counted.has(version));
  const rows = load('changes.jsonl.zst');
  const pairs = order.slice(1).map((version, i) => [order[i], version]);
  const known = new Set(rows.map(({ before, version }) => `${before} ${version}`));
  const kept = rows.filter(({ before, version }) => pairs.some(([a, b]) => a === before && b === version));
  for (const [before, version] of pairs) {
    if (known.has(`${before} ${version}`)) continue;
    if (!has(before) || !has(version)) {
      console.error(`ci/atlas: ${before} to ${version} is not explained: a run is missing in .cache/atlas/runs`);
      continue;
    }
    const { cells } = JSON.parse(run(weir, ['explain', '--json', '-', join(runs, before), join(runs, version)]));
    // A pair without a difference has a line, too: it was looked at.
    kept.push({ version, before, cell: '' });
    for (const { cell, differs, findings } of cells) {
      if (differs || findings.length > 0) {
        kept.push({ version, before, cell, findings: findings.slice(0, 4).map(({ kind, text }) => ({ kind, text })) });
      }
    }
  }
  store('changes.jsonl.zst', kept.sort((a, b) => place[a.version] - place[b.version] || (a.cell < b.cell ? -1 : 1)));
};

// What weir gate says of each release, judged by the counts of the one before it: verdicts.jsonl.zst.
const verdicts = (weir, runs) => {
  const config = join(home, '../../configs/llama.cpp-atlas.yaml');
  const order = releases.map(({ version }) => version).filter((version) => existsSync(join(runs, version, 'run.jsonl')));
  const rows = [];
  for (const [i, version] of order.slice(1).entries()) {
    const folder = mkdtempSync(join(tmpdir(), 'weir-atlas-'));
    spawnSync(weir, ['baseline', 'accept', '-c', config, '--counts-only', '--from-artifact', join(runs, order[i]), '--baselines', folder, '--quiet']);
    const ended = spawnSync(weir, ['gate', '-c', config, '--from', join(runs, version), '--baselines', folder, '--quiet', '--json', '-'],
      { encoding: 'utf8', maxBuffer: 1 << 30 });
    rmSync(folder, { recursive: true });
    for (const { cell, verdict, base, metrics, kernels, placement } of JSON.parse(ended.stdout).cells) {
      if (!base) continue;   // the release before could not run it
      const failed = metrics.filter((one) => one.verdict === 'fail').map(({ metric, baseline, current }) => [metric, baseline, current]);
      const more = [kernels, placement].map((one, at) => one.verdict === 'fail' && ['kernels', 'placement'][at]).filter(Boolean);
      const other = metrics.filter((one) => one.verdict === 'improved').map(({ metric, baseline, current }) => [metric, baseline, current]);
      rows.push({ version, before: order[i], cell, verdict, ...(failed.length && { failed }), ...(more.length && { more }), ...(other.length && { improved: other }) });
    }
  }
  store('verdicts.jsonl.zst', rows);
};

const history = () => {
  const points = new Map();   // date -> cell -> metric -> value
  for (const row of load('data.jsonl.zst')) {
    if (row.type === 'run' || row.points) {
      const cells = new Map();
      for (const { cell, metric, exact, value } of row.points) {
        if (!cells.has(cell)) cells.set(cell, {});
        cells.get(cell)[metric.name ?? metric] = exact ?? value;
      }
      points.set(row.time, cells);
    }
  }
  return releases.map((one) => ({ ...one, cells: points.get(Date.parse(one.date) / 1000) }));
};

const list = () => {
  const cells = load('cells.jsonl.zst');
  for (const { version, release, date } of releases) {
    const mine = cells.filter((row) => row.version === version);
    const bad = mine.filter(({ words }) => words !== undefined);
    const words = [...new Set(bad.map((row) => row.words))];
    console.log(`${version}\t${release}\t${date.slice(0, 10)}\t${mine.length === 0 ? 'not counted' : `${mine.length - bad.length} cells`}${bad.length === 0 ? '' : `, ${bad.length} not: ${words.join(' | ')}`}`);
  }
};

const table = () => {
  const shown = ['rtx4090', 'rx7900', 'a770'];
  const all = history();
  const columns = [['tiny-llama', 'decode'], ['tiny-llama', 'prefill'], ['tiny-gemma3', 'decode']]
    .flatMap(([model, prompt]) => shown.map((device) => ({ model, prompt, device })));
  console.log(`| llama.cpp | source packed | ${columns.map(({ model, prompt, device }) => `${model} ${prompt}, ${device}`).join(' | ')} |`);
  console.log(`| --- | --- | ${columns.map(() => '---:').join(' | ')} |`);
  for (const { version, release, date, cells } of all) {
    if (!cells) continue;
    const row = columns.map(({ model, prompt, device }) => {
      const at = cells.get(`llama.cpp/${model}/${device}/${prompt}`);
      const unit = prompt === 'decode' ? 'token' : 'prefill';
      return at ? `${at[`dispatches_per_${unit}`]} · ${at[`syncs_per_${unit}`]}` : '–';
    });
    console.log(`| ${release} (${version}) | ${date.slice(0, 10)} | ${row.join(' | ')} |`);
  }
  const changes = load('changes.jsonl.zst');
  console.log('\n| release | before | cells with other dispatches | with other syncs | first cause by explain, in how many cells |\n| --- | --- | ---: | ---: | --- |');
  let before;
  for (const one of all.filter(({ cells }) => cells)) {
    if (before) {
      const ways = { dispatches: [0, 0], syncs: [0, 0] };   // cells with more, with fewer
      for (const [cell, now] of one.cells) {
        const then = before.cells.get(cell);
        for (const name of Object.keys(ways)) {
          const metric = `${name}_per_${cell.endsWith('/decode') ? 'token' : 'prefill'}`;
          if (!then || now[metric] === undefined || then[metric] === undefined || now[metric] === then[metric]) continue;
          ++ways[name][now[metric] > then[metric] ? 0 : 1];
        }
      }
      const causes = new Map();
      for (const { findings } of changes.filter((row) => row.version === one.version && row.before === before.version && row.findings?.length > 0)) {
        causes.set(findings[0].kind, (causes.get(findings[0].kind) ?? 0) + 1);
      }
      const said = [...causes].sort((x, y) => y[1] - x[1]).map(([kind, cells]) => `\`${kind}\` ${cells}`).join(', ');
      const way = ([more, fewer]) => [more && `${more} more`, fewer && `${fewer} fewer`].filter(Boolean).join(', ') || '–';
      console.log(`| ${one.release} (${one.version}) | ${before.release} | ${way(ways.dispatches)} | ${way(ways.syncs)} | ${said || '–'} |`);
    }
    before = one;
  }
};

// The causes of causes.jsonl as a table: which counts and kernels of a release they are of, and the pull requests.
const causes = () => {
  const plain = (text) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
  console.log('| release | changed | cause | pull requests |\n| --- | --- | --- | --- |');
  for (const one of readFileSync(join(home, 'causes.jsonl'), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line))) {
    const what = [one.metric, one.kernel].filter(Boolean).map((name) => `\`${plain(name)}\``).join(', ');
    const where = [one.devices && `\`${plain(one.devices)}\``, one.models && `\`${plain(one.models)}\``, one.prompts].filter(Boolean).join(', ');
    const pulls = (one.pulls ?? []).map((number) => `[${number}](https://github.com/ggml-org/llama.cpp/pull/${number})`).join(', ');
    console.log(`| ${one.release} | ${one.way === 'other' ? '' : `${one.way} `}${what}${where && ` (${where})`} | ${plain(one.cause)}${one.sure === 'plausible' ? ' (Plausible.)' : ''} | ${pulls || 'none found'} |`);
  }
};

// Dispatches and syncs per token over the dates of the releases, on three cards: an SVG that follows the reader's colours.
const picture = () => {
  const cards = { rtx4090: 'GeForce RTX 4090', rx7900: 'Radeon RX 7900 XTX', a770: 'Arc A770' };
  const all = history().filter(({ cells }) => cells);
  const [left, right, width] = [44, 172, 800];
  const times = all.map(({ date }) => Date.parse(date));
  const x = (time) => left + ((time - times[0]) / (times.at(-1) - times[0])) * (width - left - right);
  const parts = [];
  const panel = (metric, name, top, height) => {
    const series = Object.keys(cards).map((card) => all.map(({ cells }) => cells.get(`llama.cpp/tiny-llama-q4_0/${card}/decode`)?.[metric]));
    const most = Math.max(...series.flat().filter((value) => value !== undefined));
    const step = most > 20 ? 40 : 1;
    const y = (value) => top + height - (value / (Math.ceil(most / step) * step)) * height;
    parts.push(`<text x="${left}" y="${top - 10}" class="b">${name}</text>`);
    for (let value = 0; value <= Math.ceil(most / step) * step; value += step) {
      parts.push(`<path class="g" d="M${left} ${y(value)}H${width - right}"/><text x="${left - 8}" y="${y(value) + 4}" text-anchor="end" class="d">${value}</text>`);
    }
    // Lines of the same value stand beside each other.
    series.forEach((values, i) => {
      const points = values.flatMap((value, at) => (value === undefined ? [] : [[x(times[at]), y(value) + (i - 1) * 2.5]]));
      const path = points.map(([px, py], at) => (at === 0 ? `M${px.toFixed(1)} ${py.toFixed(1)}` : `H${px.toFixed(1)}V${py.toFixed(1)}`)).join('');
      parts.push(`<path class="s${i}" d="${path}"/>`);
      if (step > 1) parts.push(`<path class="s${i}" d="M${width - right + 10} ${top + 14 + i * 20}h18"/><text x="${width - right + 34}" y="${top + 18 + i * 20}">${Object.values(cards)[i]}</text>`);
    });
  };
  panel('dispatches_per_token', 'Dispatches per token', 40, 150);
  panel('syncs_per_token', 'Syncs per token', 236, 54);
  for (let year = 2025, month = 0; Date.UTC(year, month) < times.at(-1); month += 6) {
    const at = x(Date.UTC(year, month)).toFixed(1);
    const day = new Date(Date.UTC(year, month)).toISOString().slice(0, 7);
    parts.push(`<text x="${at}" y="312" text-anchor="middle" class="d">${day}</text><path class="g" d="M${at} 40V290"/>`);
  }
  const label = `Dispatches and syncs per token of ${all.length} llama.cpp releases, ${all[0].release} to ${all.at(-1).release}, on three simulated GPUs`;
  console.log(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="326" viewBox="0 0 ${width} 326" font-family="-apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif" font-size="12" role="img" aria-label="${label}">
<style>text{fill:#1f2328}.b{font-weight:600}.d{fill:#59636e}path{fill:none;stroke-width:2}.g{stroke:#d0d7de;stroke-width:1}.s0{stroke:#1a7f37}.s1{stroke:#c4262e;stroke-dasharray:7 2}.s2{stroke:#0969da;stroke-dasharray:2 2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.d{fill:#9198a1}.g{stroke:#30363d}.s0{stroke:#3fb950}.s1{stroke:#ff7b72}.s2{stroke:#58a6ff}}</style>
${parts.join('\n')}
</svg>`);
};

const [what, ...words] = process.argv.slice(2);
const verbs = {
  missing: (...wanted) => {
    for (const version of wanted) {
      if (place[version] === undefined) throw new Error(`${version}: not in benchmarks/atlas/releases.txt`);
    }
    const known = new Set(load('cells.jsonl.zst').filter(({ kernels }) => kernels || wanted.length === 0).map(({ version }) => version));
    const chosen = wanted.length > 0 ? wanted.map((version) => releases[place[version]]) : releases;
    for (const one of chosen.filter(({ version }) => !known.has(version))) console.log(Object.values(one).join(' '));
  },
  // The last package of a release, or a version.
  find: (name) => {
    const found = releases.findLast(({ version, release }) => version === name || release === name);
    if (!found) throw new Error(`${name}: not in benchmarks/atlas/releases.txt`);
    console.log(Object.values(found).join(' '));
  },
  refuse: (version, release, stage, file) => put('cells.jsonl.zst', version,
    [{ version, release, cell: '', words: `${stage}: ${last_words(readFileSync(file, 'utf8'))}` }]),
  record, explain, verdicts, list, table, causes, picture,
};
try {
  verbs[what](...words);
} catch (error) {
  console.error(`ci/atlas: ${error.message}`);
  process.exit(1);
}
