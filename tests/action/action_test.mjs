// The Action's steps, run as a runner runs them, with the built weir and an engine of a few lines.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {commands_in, read_yaml, root} from './runner.mjs';
import {World, weir} from './world.mjs';

let world;
before(() => { world = new World(); });
after(() => world.remove());

const push = (sha) => ({event_name: 'push', ref: 'refs/heads/main', sha, event: {before: '0'.repeat(40), after: sha}});

test('a pull request that changes a count fails beside its base, with a checkout of depth 1', () => {
  const pull = world.pull_request('more-syncs', 4);
  const done = world.run(pull.folder, pull.github, {'counts-only': 'true'});
  assert.equal(done.success, false, done.log);
  assert.equal(done.outputs.verdict, 'fail', done.log);
  assert.equal(done.steps.Decide.exit, 1);
  assert.match(done.summary, /syncs/);
  const verdict = JSON.parse(fs.readFileSync(done.outputs['verdict-file']));
  assert.equal(verdict.schema, 'weir.verdict/1');
  assert.match(verdict.base_source, /first parent/);
  assert.match(fs.readFileSync(done.outputs['summary-file'], 'utf8'), /syncs/);
  assert.ok(fs.existsSync(path.join(pull.folder, done.outputs.run, 'run.jsonl')), done.outputs.run);
  // The artifact has verdict.json at its top, where the second stage looks for it, and the run.
  assert.deepEqual(Object.keys(done.artifacts), ['weir-gate']);
  assert.ok(done.artifacts['weir-gate']['verdict.json'] && done.artifacts['weir-gate']['run/run.jsonl']);
});

test('a pull request that changes nothing passes', () => {
  const pull = world.pull_request('same', 3);
  const done = world.run(pull.folder, pull.github, {'counts-only': 'true'});
  assert.equal(done.success, true, done.log);
  assert.equal(done.outputs.verdict, 'pass');
});

test('a checkout of the head in place of the merge commit is held to the merge-base', () => {
  const pull = world.pull_request('head-only', 4);
  const folder = world.checkout(pull.github.event.pull_request.head.sha);
  const done = world.run(folder, pull.github, {'counts-only': 'true'});
  assert.equal(done.outputs.verdict, 'fail', done.log);
  assert.match(JSON.parse(fs.readFileSync(done.outputs['verdict-file'])).base_source, /merge-base/);
});

test('in a container job the checkout belongs to somebody else', {skip: process.getuid() !== 0 && 'takes root'}, () => {
  const pull = world.pull_request('container', 4);
  execFileSync('chown', ['-R', '1001:1001', pull.folder]);
  const done = world.run(pull.folder, pull.github, {'counts-only': 'true'});
  assert.equal(done.outputs.verdict, 'fail', done.log);
});

test('what fails the job is what fail-on names', () => {
  const pull = world.pull_request('let-through', 4);
  for (const [fail_on, success] of [['none', true], ['error inconclusive', true], ['fail', false], ['error,fail', false]]) {
    const done = world.run(pull.folder, pull.github, {'counts-only': 'true', 'fail-on': fail_on});
    assert.equal(done.success, success, `${fail_on}: ${done.log}`);
    assert.equal(done.outputs.verdict, 'fail');
  }
});

test('a push is held to its first parent, a first commit to baselines alone', () => {
  world.git(world.work, 'checkout', '-q', '--detach', 'main');
  const sha = world.commit('slower', 5);
  world.git(world.work, 'push', '-q', 'origin', 'HEAD:refs/heads/pushed');
  world.git(world.work, 'checkout', '-q', 'main');
  const done = world.run(world.checkout(sha), push(sha), {'counts-only': 'true'});
  assert.equal(done.outputs.verdict, 'fail', done.log);
  const first = world.git(world.work, 'rev-list', '--max-parents=0', 'main');
  const start = world.run(world.checkout(first), push(first), {'counts-only': 'true'});
  assert.equal(start.outputs.verdict, 'new', start.log);
  assert.ok(start.log.includes('::notice title=weir::this commit has no parent'));
});

test('a merge group is held to the commit that it was made onto', () => {
  const base = world.git(world.work, 'rev-parse', 'main');
  world.branch('queued', 4);
  const sha = world.merge('queued', 6);
  const done = world.run(world.checkout(sha), {
    event_name: 'merge_group', sha, ref: 'refs/heads/gh-readonly-queue/main/pr-6-' + base,
    event: {merge_group: {base_sha: base, head_sha: sha, base_ref: 'refs/heads/main'}}}, {'counts-only': 'true'});
  assert.equal(done.outputs.verdict, 'fail', done.log);
});

test('schedules have no base, and say so; a comment has to name one', () => {
  const sha = world.git(world.work, 'rev-parse', 'main');
  const run = (event_name, inputs = {}) => world.run(world.checkout(sha), {event_name, sha, ref: 'refs/heads/main',
      event: {issue: {number: 7}, comment: {body: '/weir waive $(touch x)'}}}, {'counts-only': 'true', ...inputs});
  for (const event_name of ['schedule', 'workflow_dispatch']) {
    const done = run(event_name);
    assert.equal(done.outputs.verdict, 'new', done.log);
    assert.match(done.log, /there is no base/);
  }
  // A comment asks to measure a pull request, which must not be judged by its own rules.
  const comment = run('issue_comment');
  assert.equal(comment.success, false);
  assert.ok(!comment.ran.includes('Gate'));
  assert.match(comment.log, /name the base/);
  const named = run('issue_comment', {against: 'none', 'rules-from': 'HEAD'});
  assert.equal(named.outputs.verdict, 'new', named.log);
});

test('a push is held to what was there before it, not to its last commit but one', () => {
  const before = world.git(world.work, 'rev-parse', 'main');
  world.commit('slower', 9);
  const sha = world.commit('and something else', 9);
  world.git(world.work, 'push', '-q', 'origin', 'main');
  const done = world.run(world.checkout(sha), {event_name: 'push', ref: 'refs/heads/main', sha, event: {before, after: sha}}, {'counts-only': 'true'});
  assert.equal(done.outputs.verdict, 'fail', done.log);
  world.commit('as before', 3);
  world.git(world.work, 'push', '-q', 'origin', 'main');
});

test('pull_request_target is refused before anything is run', () => {
  const pull = world.pull_request('target', 3);
  const done = world.run(pull.folder, {...pull.github, event_name: 'pull_request_target'});
  assert.equal(done.success, false);
  assert.deepEqual(done.ran, ['Look at the inputs']);
});

test('wrong inputs are refused before anything is run', () => {
  const pull = world.pull_request('inputs', 3);
  for (const inputs of [{'fail-on': 'fial'}, {'counts-only': '1'}, {name: 'a b'}, {name: '../x'},
                        {version: 'latest'}, {version: '0.1.0@sha256:0'}, {'working-directory': 'nowhere'}]) {
    const done = world.run(pull.folder, pull.github, inputs);
    assert.equal(done.success, false, JSON.stringify(inputs));
    assert.deepEqual(done.ran, ['Look at the inputs']);
  }
});

test('a configuration error leaves no verdict, and no green', () => {
  const pull = world.pull_request('no-config', 3);
  const done = world.run(pull.folder, pull.github, {config: 'nowhere.yaml'});
  assert.equal(done.success, false);
  assert.equal(done.outputs.verdict, 'none');
  assert.equal(done.outputs['verdict-file'], '');
  assert.equal(done.steps.Decide.exit, 2);
  assert.match(done.summary, /no verdict\*\*\n\n    weir: nowhere\.yaml: /);
  assert.match(done.steps.Decide.log, /::error title=weir::weir: nowhere\.yaml: /);
  assert.match(String(done.artifacts['weir-gate'].why), /^weir: nowhere\.yaml: /);
  // Not even where no verdict shall fail the job.
  assert.equal(world.run(pull.folder, pull.github, {config: 'nowhere.yaml', 'fail-on': 'none'}).success, false);
});

test('an engine that crashes is an error, and a weir that dies is no verdict', () => {
  const pull = world.pull_request('crash', 3, {more: 'kill -SEGV $$'});
  const done = world.run(pull.folder, pull.github, {'counts-only': 'true', against: 'none'});
  assert.equal(done.outputs.verdict, 'error', done.log);
  assert.equal(done.steps.Decide.exit, 3);
  const killed = world.run(pull.folder, pull.github, {}, {
    installed: (prefix) => {
      fs.mkdirSync(path.join(prefix, 'bin'), {recursive: true});
      fs.writeFileSync(path.join(prefix, 'bin/weir'),
                       '#!/bin/sh\ncase "$*" in --version) echo weir 0 ;; *--help) ;; *) kill -KILL $$ ;; esac\n', {mode: 0o755});
    }});
  assert.equal(killed.success, false);
  assert.equal(killed.outputs.verdict, 'none');
  assert.equal(killed.steps.Decide.exit, 137, killed.log);
});

test('a run that is attempted again takes nothing over from the first', () => {
  const pull = world.pull_request('again', 4);
  const temp = world.fresh('kept-temp');
  assert.equal(world.run(pull.folder, pull.github, {'counts-only': 'true'}, {temp}).outputs.verdict, 'fail');
  const again = world.run(pull.folder, {...pull.github, run_attempt: 2}, {config: 'nowhere.yaml'}, {temp});
  assert.equal(again.outputs.verdict, 'none');
  assert.equal(again.success, false);
});

test('a base that cannot be fetched fails the job and is not left out', () => {
  const pull = world.pull_request('no-origin', 3);
  world.git(pull.folder, 'remote', 'set-url', 'origin', 'file:///nowhere');
  const done = world.run(pull.folder, pull.github, {'counts-only': 'true'});
  assert.equal(done.success, false);
  assert.ok(!done.ran.includes('Gate'));
  assert.match(done.log, /fetch-depth: 0/);
  assert.equal(world.run(pull.folder, pull.github, {'counts-only': 'true', against: 'none', 'rules-from': 'HEAD'}).outputs.verdict, 'new');
  const pushed = world.run(pull.folder, push(pull.github.sha), {'counts-only': 'true'});
  assert.equal(pushed.success, false);
  assert.ok(!pushed.ran.includes('Gate'));
});

test('hostile names are text: they run nothing, and command the runner to nothing', () => {
  const name = 'x/$(touch${IFS}pwned)`touch${IFS}pwned`;touch${IFS}pwned;%0A##{error}pwned';
  const pull = world.pull_request(name, 3);
  pull.github.event.pull_request.title = '"; touch pwned #\n::error::pwned';
  const hostile = {
    against: 'origin/$(touch pwned)', cells: '*\n$(touch pwned)*\n--json=pwned', config: '$(touch pwned)\n::error::pwned',
    baselines: '--html=pwned', 'baselines-ref': '`touch pwned`', 'working-directory': '.', 'fail-on': '* $(touch pwned)'};
  for (const inputs of [{}, ...Object.entries(hostile).map(([key, value]) => ({[key]: value})), hostile]) {
    const done = world.run(pull.folder, pull.github, {'counts-only': 'true', ...inputs}, {env: {GITHUB_ACTOR: '$(touch pwned)'}});
    for (const place of [pull.folder, path.dirname(pull.folder)]) assert.ok(!fs.existsSync(path.join(place, 'pwned')), JSON.stringify(inputs));
    for (const line of commands_in(done.log)) {
      assert.match(line, /^::(error|warning|notice) (title=weir|file=)/, JSON.stringify(inputs));
      assert.ok(!/^::error::/.test(line));
    }
  }
  const base = {...pull.github, base_ref: 'main\n::error::pwned$(touch pwned)'};
  assert.equal(world.run(pull.folder, base, {'counts-only': 'true'}).success, false);
  assert.ok(!fs.existsSync(path.join(pull.folder, 'pwned')));
});

test('outputs hold what they were given, line breaks and marks of their own included', () => {
  const folder = world.fresh('strange $(touch pwned)\nverdict=pass');
  fs.cpSync(world.work, folder, {recursive: true});
  const sha = world.git(world.work, 'rev-parse', 'main');
  const done = world.run(path.dirname(folder), {event_name: 'schedule', sha, ref: 'refs/heads/main'},
                         {'counts-only': 'true', 'working-directory': path.basename(folder)});
  assert.equal(done.outputs.verdict, 'new', done.log);
  assert.ok(done.outputs.run.startsWith(path.basename(folder) + '/weir-out/'));
});

test('a job that measures is given no token; its own one, which reads, is with the step before an engine runs', () => {
  const {inputs, runs} = read_yaml(path.join(root, 'action.yml'));
  assert.ok(!('token' in inputs));
  const names = runs.steps.map(({name}) => name);
  const with_token = runs.steps.filter((step) => /token/i.test(JSON.stringify(step))).map(({name}) => name);
  assert.deepEqual(with_token, ['Find the base']);
  assert.ok(names.indexOf('Find the base') < names.indexOf('Gate'));
});
