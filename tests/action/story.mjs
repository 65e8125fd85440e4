// A repository on the stand-in for GitHub as the tutorial makes it, with its engine, model and workflows, and what people do
// with it: pull requests, comments, merges.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
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

export class Story {
  // On main, or as pull request 1 that brings weir along. Its engine states a speed, if it shall; `tree`: with baselines in
  // the tree; `init` are words of weir init --ci github, `kind` runs its workflows.
  static async begin({along = false, times = false, tree = false, init = ['--comments', '--queue', '--nightly'], kind = Runners} = {}) {
    const story = new Story();
    const world = story.world = new World();
    const {work} = world;
    world.git(work, 'rm', '-q', 'engine', 'model.bin', 'weir.yaml');
    fs.mkdirSync(path.join(work, 'models'));
    story.weir('model', 'make', 'models/tiny.gguf', '--layers', '2', '--embedding', '128');
    world.write('build.sh', '#!/bin/sh\nset -e\nprintf \'#!/bin/sh\\necho "%s syncs, %s copies%s"\\n\' "$(cat syncs)" "$(cat copies)" "$(cat speed)" >engine\nchmod +x engine\n');
    world.write('.gitignore', 'weir-out/\nengine\nmodels/\n');
    world.write('syncs', '3\n');
    world.write('copies', '1\n');
    world.write('speed', times ? ', speed: 41.2' : '');
    spawnSync('./build.sh', {cwd: work});
    world.git(work, 'add', '-A');
    world.git(work, 'commit', '-q', '-m', 'an engine');
    world.git(work, 'push', '-q', 'origin', 'main');
    if (along) world.git(work, 'checkout', '-q', '-b', 'weir');
    const speed = "decode_tokens_per_second: {regex: 'speed: ([0-9.]+)'}, ";
    world.write('weir.yaml', times ? config.replace('metrics: {', `metrics: {${speed}`) : config);
    story.weir('init', '--ci', 'github', ...init);
    if (tree) story.weir('baseline', 'accept', '--counts-only');
    world.git(work, 'add', '-A');
    world.git(work, 'commit', '-q', '-m', 'weir');
    world.git(work, 'push', '-q', 'origin', 'HEAD');
    const written = (name) => read_yaml(path.join(work, '.github/workflows', name));
    story.gate = written('weir.yml');
    if (init.includes('--comments')) story.comments = written('weir-waive.yml');
    if (init.includes('--forks')) story.posts = written('weir-post.yml');
    if (along) world.git(work, 'checkout', '-q', 'main');
    story.runners = await kind.start(world);
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
  async open(number, counts, from = 'o/r') {
    const {world} = this, name = `change-${number}`;
    this.fetch();
    world.git(world.work, 'checkout', '-q', '-B', name, 'main');
    for (const [count, value] of Object.entries(counts)) world.write(count, `${value}\n`);
    world.write(`note-${number}`, name);
    world.git(world.work, 'add', '-A');
    world.git(world.work, 'commit', '-q', '-m', name);
    world.git(world.work, 'push', '-q', '--force', 'origin', name);
    world.git(world.work, 'checkout', '-q', 'main');
    return this.judge(number, name, from);
  }
  // Opens pull request `number` from a branch; → what its workflow did.
  async judge(number, name, from = 'o/r') {
    const pull = await this.runners.ask('open', {number, head: name, from});
    const sha = this.world.merge(name, number);
    return this.runners.workflow(this.gate, {
      event_name: 'pull_request', ref: `refs/pull/${number}/merge`, sha, base_ref: 'main', head_ref: name,
      event: {number, pull_request: pull, repository: {full_name: 'o/r', default_branch: 'main'}}});
  }
  main() { return this.world.git(this.world.origin, 'rev-parse', 'main'); }
  // Runs the workflow by hand, which stores baselines.
  async store() {
    return this.runners.workflow(read_yaml(path.join(this.world.work, '.github/workflows/weir.yml')), {
      event_name: 'workflow_dispatch', ref: 'refs/heads/main', ref_name: 'main', sha: this.main(),
      event: {repository: {full_name: 'o/r', default_branch: 'main'}}});
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
    return this.runners.workflow(this.comments, {event_name: 'issue_comment', ref: 'refs/heads/main', sha: this.main(), event: {
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

export const logs = (done) => Object.values(done).map(({log}) => log).join('\n');
