// The way of a change that is meant, from red to main: the pull request fails, a comment waives it, GitHub merges it in
// each of its ways, the push is green, and the next change of the same count is judged against the new level.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {Runners} from './jobs.mjs';
import {read_yaml} from './runner.mjs';
import {World, weir} from './world.mjs';

const config = `version: 1
engines:
  mine:
    command: [./engine, "{model}", "{tokens}"]
    output: generic
    metrics: {syncs_per_token: {regex: '(\\d+) syncs'}, copies_per_token: {regex: '(\\d+) copies'}}
    build: [./build.sh]
models: {m: models/tiny.gguf}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 8}}
`;

// A repository as the tutorial makes it, and the runners of its workflows.
class Story {
  // On main, or as pull request 1 that brings weir along.
  static async begin({along = false} = {}) {
    const story = new Story();
    const world = story.world = new World();
    const {work} = world;
    world.git(work, 'rm', '-q', 'engine', 'model.bin', 'weir.yaml');
    fs.mkdirSync(path.join(work, 'models'));
    story.weir('model', 'make', 'models/tiny.gguf', '--layers', '2', '--embedding', '128');
    world.write('build.sh', '#!/bin/sh\nset -e\nprintf \'#!/bin/sh\\necho "%s syncs, %s copies"\\n\' "$(cat syncs)" "$(cat copies)" >engine\nchmod +x engine\n');
    world.write('.gitignore', 'weir-out/\nengine\nmodels/\n');
    world.write('syncs', '3\n');
    world.write('copies', '1\n');
    spawnSync('./build.sh', {cwd: work});
    world.git(work, 'add', '-A');
    world.git(work, 'commit', '-q', '-m', 'an engine');
    world.git(work, 'push', '-q', 'origin', 'main');
    if (along) world.git(work, 'checkout', '-q', '-b', 'weir');
    world.write('weir.yaml', config);
    story.weir('init', '--ci', 'github', '--comments', '--queue');
    world.git(work, 'add', '-A');
    world.git(work, 'commit', '-q', '-m', 'weir');
    world.git(work, 'push', '-q', 'origin', 'HEAD');
    const written = (name) => read_yaml(path.join(work, '.github/workflows', name));
    [story.gate, story.comments] = [written('weir.yml'), written('weir-waive.yml')];
    if (along) world.git(work, 'checkout', '-q', 'main');
    story.runners = await Runners.start(world);
    return story;
  }
  end() {
    this.runners.stop();
    this.world.remove();
  }
  weir(...words) {
    const done = spawnSync(weir, words, {cwd: this.world.work, encoding: 'utf8', env: {
      PATH: process.env.PATH, HOME: this.world.top, WEIR_LOCK_DIR: path.join(this.world.top, 'locks')}});
    assert.equal(done.status, 0, done.stderr + done.stdout);
  }
  fetch() {
    const {world} = this;
    world.git(world.work, 'checkout', '-q', 'main');
    world.git(world.work, 'fetch', '-q', 'origin', '+main:refs/remotes/origin/main');
    world.git(world.work, 'reset', '-q', '--hard', 'origin/main');
  }
  // Opens pull request `number`, which sets these counts; → what its workflow did, and the line that waives it.
  async open(number, counts) {
    const {world} = this, name = `change-${number}`;
    this.fetch();
    world.git(world.work, 'checkout', '-q', '-B', name, 'main');
    for (const [count, value] of Object.entries(counts)) world.write(count, `${value}\n`);
    world.write(`note-${number}`, name);
    world.git(world.work, 'add', '-A');
    world.git(world.work, 'commit', '-q', '-m', name);
    world.git(world.work, 'push', '-q', '--force', 'origin', name);
    world.git(world.work, 'checkout', '-q', 'main');
    return this.judge(number, name);
  }
  // Opens pull request `number` from a branch; → what its workflow did.
  async judge(number, name) {
    const pull = await this.runners.ask('open', {number, head: name});
    const sha = this.world.merge(name, number);
    return this.runners.workflow(this.gate, {
      event_name: 'pull_request', ref: `refs/pull/${number}/merge`, sha, base_ref: 'main', head_ref: name,
      event: {number, pull_request: pull, repository: {full_name: 'o/r', default_branch: 'main'}}});
  }
  async state() { return this.runners.ask('state'); }
  // The newest check that was posted for `commit`: its conclusion, and its texts.
  async check(commit) {
    const check = (await this.state()).checks.findLast(({head_sha}) => head_sha === commit);
    return {conclusion: check?.conclusion, text: JSON.stringify(check?.output)};
  }
  async pull(number) { return (await this.state()).pulls.find((pull) => pull.number === number); }
  async comment(number, body, author = 'rev') {
    const comment = await this.runners.ask('comment', {number, body, author});
    return this.runners.workflow(this.comments, {event_name: 'issue_comment', ref: 'refs/heads/main', sha: this.world.git(this.world.work, 'rev-parse', 'main'), event: {
      action: 'created', repository: {full_name: 'o/r', default_branch: 'main'}, issue: {number, pull_request: {url: 'x'}},
      comment: {...comment, author_association: 'MEMBER'}}});
  }
  async waive(number, reason) {
    const {comments} = await this.state();
    const line = comments.map(({body}) => /\/weir waive [0-9a-f]{40}/.exec(body)?.[0]).findLast(Boolean);
    return this.comment(number, `${line} ${reason}`);
  }
  stored() {
    const {world} = this;
    const there = world.git(world.origin, 'for-each-ref', '--format=%(refname)', 'refs/heads/perf-baselines');
    return there ? world.git(world.origin, 'ls-tree', '-r', '--name-only', 'perf-baselines').split('\n') : [];
  }
}

const said = (done) => Object.entries(done).map(([name, {result}]) => `${name}: ${result}`).join(', ');
const logs = (done) => Object.values(done).map(({log}) => log).join('\n');

for (const way of ['merge', 'squash', 'rebase', 'queue']) {
  for (const stored of [false, true]) {
    test(`a waived change is green at its merge (${way}), ${stored ? 'and its level is stored' : 'without stored baselines'}`, async () => {
      const story = await Story.begin();
      try {
        if (stored) {
          const by_hand = await story.runners.workflow(story.gate, {
            event_name: 'workflow_dispatch', ref: 'refs/heads/main', ref_name: 'main', sha: story.world.git(story.world.work, 'rev-parse', 'main'),
            event: {repository: {full_name: 'o/r', default_branch: 'main'}}});
          assert.equal(by_hand.baselines.result, 'success', logs(by_hand));
        }
        const red = await story.open(1, {syncs: 5});
        assert.equal(red.measure.result, 'failure', logs(red));
        const head = (await story.pull(1)).head.sha;
        assert.equal((await story.check(head)).conclusion, 'failure', logs(red));

        const waived = await story.waive(1, 'two syncs are needed here');
        assert.equal(waived.waive.result, 'success', logs(waived));
        assert.equal((await story.check(head)).conclusion, 'success', logs(waived));

        let push;
        if (way === 'queue') {
          await story.open(2, {copies: 4});
          const [first, second] = await story.runners.ask('queue', {numbers: [1, 2], way: 'squash'});
          const group = await story.runners.workflow(story.gate, first);
          assert.equal(group.measure.result, 'success', logs(group));
          assert.match(group.measure.summary, /waived for pull request 1 by rev/);
          assert.equal((await story.check(first.sha)).conclusion, 'success', logs(group));
          const worse = await story.runners.workflow(story.gate, second);
          assert.equal(worse.measure.result, 'failure', 'another change in the same queue is judged');
          if (stored) assert.match(worse.measure.summary, /waived for pull request 1 by rev/, 'what is before it in the queue stays waived');
          assert.equal((await story.check(second.sha)).conclusion, 'failure');
          push = await story.runners.ask('dequeue', {number: 1});
        } else {
          push = await story.runners.ask('merge', {number: 1, way});
        }
        const main = await story.runners.workflow(story.gate, push);
        assert.equal(main.measure.result, 'success', logs(main));
        assert.match(main.measure.summary, /waived for pull request 1 by rev.*two syncs are needed here/);
        const check = await story.check(push.sha);
        assert.equal(check.conclusion, 'success', logs(main));
        assert.match(check.text, /waived for pull request 1 by rev/);
        assert.equal(main.baselines.result, 'success', logs(main));
        assert.ok(!story.stored().some((file) => file.startsWith('waivers/')), 'it ends there');
        if (stored) {
          const file = story.stored().find((name) => name.startsWith('baselines/') || name.endsWith('.json'));
          assert.match(story.world.git(story.world.origin, 'show', `perf-baselines:${file}`), /"syncs_per_token"[^}]*5/);
        }

        const level = await story.open(3, {});
        assert.equal(level.measure.result, 'success', logs(level));
        const next = await story.open(4, {syncs: 7});
        assert.equal(next.measure.result, 'failure', 'the next change is judged against the new level');
        assert.match(next.measure.summary, /5\u00a0\u2192\u00a0\*\*7\*\*/, next.measure.summary);
        assert.match(said(main), /post: success/);
      } finally {
        story.end();
      }
    });
  }
}

test('a pull request that brings weir along is neutral, and the next one is judged', async () => {
  const story = await Story.begin({along: true});
  try {
    const first = await story.judge(1, 'weir');
    assert.equal(first.measure.result, 'success', logs(first));
    const check = await story.check((await story.pull(1)).head.sha);
    assert.equal(check.conclusion, 'neutral', logs(first));
    for (const words of ['brings weir along; merge it, and the next one is judged', 'syncs/token', 'copies/token']) {
      assert.ok(check.text.includes(words), check.text);
      assert.ok(first.measure.summary.includes(words), first.measure.summary);
    }
    assert.match((await story.state()).comments.at(-1).body, /brings weir along/);
    const push = await story.runners.ask('merge', {number: 1, way: 'squash'});
    const main = await story.runners.workflow(story.gate, push);
    assert.equal(main.measure.result, 'success', logs(main));
    const next = await story.open(2, {syncs: 5});
    assert.equal((await story.check((await story.pull(2)).head.sha)).conclusion, 'failure', logs(next));
  } finally {
    story.end();
  }
});

test('a comment that cannot be carried out is answered on the pull request, with what helps', async () => {
  const story = await Story.begin();
  try {
    await story.open(1, {syncs: 5});
    const wrong = await story.comment(1, '/weir waive abc because');
    assert.equal(wrong.waive.result, 'failure');
    assert.match((await story.state()).comments.at(-1).body, /weir refused this:\n\n {4}that is no code of what stands there now.*\/weir waive [0-9a-f]{40} REASON/);
    // A token that may not write contents: GitHub's own word, not "see above".
    story.comments.jobs.waive.permissions.contents = 'read';
    const denied = await story.waive(1, 'because');
    assert.equal(denied.waive.result, 'failure');
    assert.match((await story.state()).comments.at(-1).body, /weir refused this:\n\n {4}weir: .*perf-baselines could not be written: .*Resource not accessible by integration/);
  } finally {
    story.end();
  }
});
