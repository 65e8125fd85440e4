// A repository on a stand-in for GitHub, with an engine whose counts are written in a file of it, and
// the checkouts and events that a runner would have.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {root, run_action} from './runner.mjs';

export const weir = process.env.WEIR_PROGRAM ?? path.join(root, 'build/weir');

const config = `version: 1
engines:
  mine:
    command: [./engine, "{model}", "{tokens}"]
    output: generic
    metrics: {syncs_per_token: {regex: '(\\d+) syncs'}}
    build: ["true"]
    timeout: 20s
models: {m: model.bin}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 8}}
`;

export class World {
  constructor() {
    this.top = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-action-'));
    this.origin = path.join(this.top, 'origin.git');
    this.work = path.join(this.top, 'author');
    this.count = 0;
    fs.mkdirSync(this.work);
    this.git(this.top, 'init', '-q', '--bare', '-b', 'main', this.origin);
    this.git(this.origin, 'config', 'uploadpack.allowFilter', 'true');
    this.git(this.origin, 'config', 'uploadpack.allowAnySHA1InWant', 'true');
    this.git(this.work, 'init', '-q', '-b', 'main');
    this.git(this.work, 'remote', 'add', 'origin', this.origin);
    this.write('weir.yaml', config);
    this.write('model.bin', 'no model at all');
    this.write('.gitignore', 'weir-out/\n');
    for (let i = 0; i < 4; ++i) this.commit(`commit ${i}`, 3);
    this.git(this.work, 'push', '-q', 'origin', 'main');
  }
  remove() { fs.rmSync(this.top, {recursive: true, force: true}); }
  write(name, text) { fs.writeFileSync(path.join(this.work, name), text, {mode: 0o755}); }
  git(folder, ...words) {
    return execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', '-c', 'commit.gpgsign=false',
                                '-c', 'advice.detachedHead=false', ...words],
                        {cwd: folder, encoding: 'utf8', env: {...process.env, HOME: this.top}, stdio: 'pipe'}).trim();
  }
  // An engine that says `syncs` a token; `more` goes to its standard error.
  commit(subject, syncs, more = '') {
    this.write('engine', `#!/bin/sh\necho "${syncs} syncs"\n${more}\n# ${subject}\n`);
    this.git(this.work, 'add', '-A');
    this.git(this.work, 'commit', '-q', '-m', subject);
    return this.git(this.work, 'rev-parse', 'HEAD');
  }
  // A branch from main with one commit, pushed; → its commit.
  branch(name, syncs, more = '') {
    this.git(this.work, 'checkout', '-q', '-B', name, 'main');
    const commit = this.commit(`work on ${this.count}`, syncs, more);
    this.git(this.work, 'push', '-q', '--force', 'origin', `refs/heads/${name}`);
    this.git(this.work, 'checkout', '-q', 'main');
    return commit;
  }
  // Merge commit that GitHub builds for a pull request, at refs/pull/N/merge.
  merge(name, number) {
    this.git(this.work, 'checkout', '-q', '--detach', 'main');
    this.git(this.work, 'merge', '-q', '--no-ff', '-m', 'merge', `refs/heads/${name}`);
    const commit = this.git(this.work, 'rev-parse', 'HEAD');
    this.git(this.work, 'push', '-q', '--force', 'origin', `HEAD:refs/pull/${number}/merge`);
    this.git(this.work, 'checkout', '-q', 'main');
    return commit;
  }
  // As actions/checkout leaves it: one commit without history, unless depth says otherwise (0: all).
  checkout(commit, depth = 1) {
    const folder = path.join(this.top, `checkout ${++this.count}`);
    fs.mkdirSync(folder);
    this.git(folder, 'init', '-q');
    this.git(folder, 'remote', 'add', 'origin', `file://${this.origin}`);
    this.git(folder, 'fetch', '-q', '--no-tags', ...(depth ? [`--depth=${depth}`] : []), 'origin', commit,
             ...(depth ? [] : ['+refs/heads/*:refs/remotes/origin/*']));
    this.git(folder, 'checkout', '-q', commit);
    return folder;
  }
  fresh(name) {
    const folder = path.join(this.top, `${name}-${++this.count}`);
    fs.mkdirSync(folder);
    return folder;
  }
  // Runs the Action. `github` is the context; weir lies where it would be installed.
  run(workspace, github, inputs = {}, more = {}) {
    const installed = (prefix) => {
      fs.mkdirSync(path.join(prefix, 'bin'), {recursive: true});
      fs.rmSync(path.join(prefix, 'bin/weir'), {force: true});
      fs.symlinkSync(weir, path.join(prefix, 'bin/weir'));
    };
    return run_action({
      action: root, workspace, temp: this.fresh('temp'), inputs, installed,
      github: {repository: 'o/r', token: 'ghs_reads', action_ref: '', run_attempt: 1, ...github},
      ...more,
      env: {WEIR_CACHE: path.join(this.top, 'cache'), WEIR_LOCK_DIR: path.join(this.top, 'locks'), ...more.env}});
  }
  // A pull request from `name` into main, checked out as its merge commit.
  pull_request(name, syncs, {number = 5, head = 'o/r', more = '', depth = 1} = {}) {
    const commit = this.branch(name, syncs, more);
    const sha = this.merge(name, number);
    return {
      folder: this.checkout(sha, depth),
      github: {event_name: 'pull_request', ref: `refs/pull/${number}/merge`, sha, base_ref: 'main', head_ref: name,
               event: {number, pull_request: {number, title: name,
                       head: {sha: commit, ref: name, repo: {full_name: head}},
                       base: {sha: this.git(this.work, 'rev-parse', 'main'), ref: 'main', repo: {full_name: 'o/r'}}}}}};
  }
}
