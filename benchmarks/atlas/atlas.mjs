// The parts of ci/atlas that are data: which releases are missing, what a run holds beyond a history, the tables.
//   atlas.mjs missing [VERSION…] | find RELEASE | list | table | causes | picture | changes | show VERSION RELEASE RUN.jsonl DATA.jsonl | verdicts WEIR RUNS |
//     refuse VERSION RELEASE STAGE FILE | counts|record VERSION RELEASE RUN.jsonl | explain WEIR RUNS
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

// Each cell of a run: its kernels, or its last words.
const cells_of = (version, release, file) => {
  const cells = new Map();
  for (const row of lines(readFileSync(file, 'utf8'))) {
    if (row.cell) cells.set(row.cell, [...(cells.get(row.cell) ?? []), row]);
  }
  return [...cells].map(([cell, records]) => {
    const bad = records.find((one) => one.error !== undefined || one.ended !== 'exited' || one.exit_code);
    const kernels = kernels_of(records);
    if (kernels && !bad) return { version, release, cell, kernels };
    return { version, release, cell, words: last_words([bad?.stderr_tail, bad?.error].filter(Boolean).join('\n')) };
  });
};

const counts = (...run) => console.log(cells_of(...run).some(({ kernels }) => kernels) ? 'counts' : 'none');
const record = (version, release, file) => put('cells.jsonl.zst', version, cells_of(version, release, file));

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
    for (const { cell, verdict, base, judgements } of JSON.parse(ended.stdout).cells) {
      if (!base) continue;   // the release before could not run it
      const of = (subject) => judgements.find((one) => one.subject === subject);
      const metrics = (outcome) => judgements.filter((one) => one.kind && one.verdict === outcome).map((one) => [one.subject, one.baseline, one.current]);
      const failed = metrics('fail'), other = metrics('improved');
      const more = ['kernels', 'placement'].filter((subject) => of(subject)?.verdict === 'fail');
      const code = of('kernel_code')?.code;
      rows.push({ version, before: order[i], cell, verdict, ...(failed.length && { failed }), ...(more.length && { more }), ...(other.length && { improved: other }),
        ...(of('kernels')?.reason.startsWith('the same code') && { renamed: true }),
        ...(code && { code: code.filter((one) => one.other_code).length }) });
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

const known_causes = () => lines(readFileSync(join(home, 'causes.jsonl'), 'utf8'));

// The causes of causes.jsonl as a table: which counts and kernels of a release they are of, and the pull requests.
const causes = () => {
  const plain = (text) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
  console.log('| release | changed | cause | pull requests |\n| --- | --- | --- | --- |');
  for (const one of known_causes()) {
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

// Causes that people found (causes.jsonl): those of a step that name nothing else than what changed there. They were looked for on Vulkan; of CUDA
// are those alone that name its devices.
const causes_by_cell = () => {
  const known = known_causes();
  const part = (pattern, name) => !pattern || new RegExp(`^(?:${pattern})$`).test(name);
  const ways = { more: (a, b) => a < b, fewer: (a, b) => a > b };
  return ({ before, commit, cell, values, kernels: [then = {}, now = {}] }) => {
    const other = Object.keys({ ...then, ...now }).filter((name) => then[name] !== now[name]);
    const [, model, device, prompt] = cell.split('/');
    return known.filter((one) => one.release === commit && one.before === before && part(one.models, model) && (one.devices ? part(one.devices, device) : !device.startsWith('cuda-')) && part(one.prompts, prompt) &&
      (!one.kernel || other.some((name) => new RegExp(one.kernel).test(name))) &&
      (!one.metric || Object.entries(values).some(([name, [a, b]]) => new RegExp(one.metric).test(name) && (ways[one.way]?.(a, b) ?? true))))
      .map(({ cause, pulls, sure }) => ({ text: cause, pulls, sure }));
  };
};

// What `weir trend site --changes` reads. The second package of a release goes by its version, and only where it differs.
const changes = () => {
  const say = (row) => console.log(JSON.stringify(row));
  const by_version = (name) => {
    const all = new Map();
    for (const row of load(name)) all.set(row.version, [...(all.get(row.version) ?? []), row]);
    return all;
  };
  const counted = by_version('cells.jsonl.zst');
  const explained = by_version('changes.jsonl.zst');
  const causes_of = causes_by_cell();
  say({ schema: 'weir.changes/1', repeat: 'ci/atlas --cell {commit} {cell}' });
  const taken = new Set();
  let before;
  for (const one of history().filter(({ version }) => counted.has(version))) {
    const cells = counted.get(one.version);
    const kernels = new Map(cells.map((row) => [row.cell, row.kernels]));
    const told = new Map((before ? explained.get(one.version) ?? [] : []).filter((row) => row.before === before.version).map((row) => [row.cell, row.findings]));
    const changed = [...(before ? one.cells ?? [] : [])].flatMap(([cell, now]) => {
      const then = before.cells?.get(cell) ?? {};
      const values = Object.fromEntries(Object.keys(now).sort().filter((name) => then[name] !== undefined && then[name] !== now[name]).map((name) => [name, [then[name], now[name]]]));
      return Object.keys(values).length > 0 || told.get(cell) ? [{ cell, values, findings: told.get(cell) }] : [];
    });
    const again = taken.has(one.release);
    if (again && changed.length === 0) continue;
    const commit = again ? one.version : one.release;
    taken.add(commit);
    for (const { cell, values, findings } of changed) {
      say({ commit, before: before.commit, cell, values, findings, causes: causes_of({ commit, before: before.commit, cell, values, kernels: [before.kernels.get(cell), kernels.get(cell)] }) });
    }
    for (const { cell, kernels, words } of cells.filter(({ cell }) => cell)) say({ commit, cell, kernels, words });
    before = { ...one, commit, kernels };
  }
};

const show = (version, release, file, data) => {
  const points = lines(readFileSync(data, 'utf8')).flatMap((row) => row.points ?? []);
  for (const { cell, kernels, words } of cells_of(version, release, file)) {
    console.log(`${cell}, llama.cpp ${release} (${version})`);
    for (const point of points.filter((one) => one.cell === cell)) console.log(`  ${point.metric.name ?? point.metric}  ${point.exact ?? point.value}`);
    const times = Object.entries(kernels ?? {}).map(([name, count]) => `  ${count} ${name}`);
    console.log(words === undefined ? ['kernels per token or prefill:', ...times].join('\n') : `could not run: ${words}`);
  }
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
  // The first package of a release, or a version.
  find: (name) => {
    const found = releases.find(({ version, release }) => version === name || release === name);
    if (!found) throw new Error(`${name}: not in benchmarks/atlas/releases.txt`);
    console.log(Object.values(found).join(' '));
  },
  refuse: (version, release, stage, file) => put('cells.jsonl.zst', version,
    [{ version, release, cell: '', words: `${stage}: ${last_words(readFileSync(file, 'utf8'))}` }]),
  counts, record, explain, verdicts, list, table, causes, picture, changes, show,
};
try {
  verbs[what](...words);
} catch (error) {
  console.error(`ci/atlas: ${error.message}`);
  process.exit(1);
}
