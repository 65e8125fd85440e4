// Runs jobs of workflows as runners do: a fresh machine each, a token with the job's own permissions, artifacts and the
// API of a stand-in for GitHub (github.mjs).
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {filled, holds} from './expressions.mjs';
import {token_of} from './github.mjs';
import {read_pairs, release, root, run_action} from './runner.mjs';
import {weir} from './world.mjs';
import {zip} from './zip.mjs';

// `gh api` as scripts call it: a path or a method with fields, --jq, and --include, which writes headers before the body.
const k_gh = `#!/usr/bin/env node
const {spawnSync} = require('child_process');
const words = process.argv.slice(2), fields = {};
if (words.shift() !== 'api') throw new Error('only gh api is known');
let place, method, filter, silent = false, include = false;
while (words.length) {
  const word = words.shift();
  if (word === '--method') method = words.shift();
  else if (word === '--jq') filter = words.shift();
  else if (word === '--silent') silent = true;
  else if (word === '--include') include = true;
  else if (word === '-f' || word === '-F') {
    const [, name, value] = /^([^=]*)=([^]*)$/.exec(words.shift());
    fields[name] = value;
  } else place = word;
}
method ??= Object.keys(fields).length ? 'POST' : 'GET';
const url = new URL(process.env.GITHUB_API_URL + '/' + place);
if (method === 'GET') for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
fetch(url, {method, headers: {authorization: 'token ' + process.env.GH_TOKEN}, ...(method === 'GET' ? {} : {body: JSON.stringify(fields)})})
  .then(async (answer) => {
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (include) {
      const lines = [...answer.headers].map(([name, value]) => name + ': ' + value + '\\r\\n');
      process.stdout.write('HTTP/2.0 ' + answer.status + ' ' + answer.statusText + '\\n' + lines.join('') + '\\r\\n');
    }
    if (!answer.ok) {
      process.stdout.write(bytes);
      console.error('gh: ' + JSON.parse(bytes).message + ' (HTTP ' + answer.status + ')');
      process.exit(1);
    }
    if (silent) return;
    if (!filter) return process.stdout.write(bytes);
    process.stdout.write(spawnSync('jq', ['-r', filter], {input: bytes}).stdout);
  });
`;

export class Runners {
  static async start(world) {
    const runners = new Runners();
    runners.world = world;
    runners.run = 100;
    const port = await runners.serve();
    runners.api = `http://127.0.0.1:${port}`;
    // Nobody else posts here: a poster need not look for seven seconds whether somebody did.
    runners.weir = release(world.fresh('release'), `[ "$1" != post ] || set -- "$@" --settle=10ms\nexec '${weir}' "$@"`);
    runners.bin = world.fresh('bin');
    fs.writeFileSync(path.join(runners.bin, 'gh'), k_gh, {mode: 0o755});
    fs.mkdirSync(path.join(world.top, 'o'), {recursive: true});
    fs.symlinkSync(world.origin, path.join(world.top, 'o/r'));
    return runners;
  }
  // Starts the stand-in for GitHub; → its port.
  async serve(...words) {
    this.server = spawn(process.execPath, [path.join(root, 'tests/action/github.mjs'), this.world.origin, ...words], {stdio: ['pipe', 'pipe', 'inherit']});
    const port = await new Promise((done) => this.server.stdout.once('data', done));
    return String(port).trim();
  }
  stop() { this.server.stdin.end(); }
  async ask(what, body) {
    const answer = await fetch(`${this.api}/test/${what}`, {method: 'POST', body: body === undefined ? undefined : JSON.stringify(body)});
    const result = await answer.json();
    assert.equal(answer.status, 200, `${what}: ${result.message}`);
    return result;
  }

  // Runs the jobs of a workflow that the event starts, each after those that it needs; → by name {success, log, outputs, summary}.
  async workflow(workflow, event) {
    const run = ++this.run, done = {};
    const github = {repository: 'o/r', action_ref: '', run_attempt: 1, run_id: String(run), workflow: workflow.name, actor: 'dev',
                    ...event};
    for (const [name, job] of Object.entries(workflow.jobs)) {
      const needs = Object.fromEntries([job.needs ?? []].flat().map((needed) => [needed, done[needed]]));
      const ok = Object.values(needs).every(({result}) => result === 'success');
      if (!holds(job.if, {github, needs}, ok)) {
        done[name] = {result: 'skipped', outputs: {}, log: ''};
        continue;
      }
      done[name] = this.job(job, {...github, token: token_of(job.permissions ?? workflow.permissions)}, needs);
      for (const [artifact, files] of Object.entries(done[name].artifacts)) {
        await this.ask('artifact', {run, name: artifact, zip: zip(files).toString('base64')});
      }
    }
    return done;
  }

  job(job, github, needs) {
    const {world} = this;
    const home = world.fresh('home'), place = path.join(world.top, 'runner', 'r');
    const env = {HOME: home, WEIR_CACHE: path.join(home, '.cache/weir'), GITHUB_API_URL: this.api, GITHUB_RUN_ID: github.run_id, GITHUB_RUN_ATTEMPT: '1'};
    // Its git finds the repository there.
    fs.writeFileSync(path.join(home, '.gitconfig'), `[url "file://${world.top}/"]\n\tinsteadOf = https://github.example/\n`);
    const contexts = {github, needs, steps: {}};
    const done = {result: 'success', success: true, log: '', summary: '', outputs: {}, artifacts: {}};
    fs.rmSync(place, {recursive: true, force: true});
    fs.mkdirSync(place, {recursive: true});
    for (const step of job.steps) {
      if (!holds(step.if, contexts, done.success)) continue;
      const inputs = Object.fromEntries(Object.entries(step.with ?? {}).map(([key, value]) => [key, filled(String(value), contexts)]));
      const ended = this.step(step, inputs, {github, env, place, contexts});
      done.log += ended.log;
      done.summary += ended.summary ?? '';
      Object.assign(done.artifacts, ended.artifacts);
      if (step.id) contexts.steps[step.id] = {outputs: ended.outputs ?? {}};
      if (!ended.success) Object.assign(done, {success: false, result: 'failure'});
    }
    for (const [name, value] of Object.entries(job.outputs ?? {})) done.outputs[name] = filled(value, contexts);
    return done;
  }

  step(step, inputs, {github, env, place, contexts}) {
    const {world} = this;
    if (step.uses?.startsWith('actions/checkout@')) {
      fs.rmSync(place, {recursive: true, force: true});
      fs.renameSync(world.checkout(inputs.ref ?? github.sha, Number(inputs['fetch-depth'] ?? 1)), place);
      return {success: true, log: ''};
    }
    if (step.uses === 'OWNER/weir@v1') return world.run(place, github, inputs, {env, path: [this.bin]});
    const own = /^OWNER\/weir\/(ci\/[a-z]+)@v1$/.exec(step.uses ?? '');
    if (own) {
      return run_action({action: path.join(root, own[1]), workspace: place, temp: world.fresh('temp'), inputs: {...inputs, version: this.weir.version},
                         github, env, path: [this.bin, this.weir.bin]});
    }
    assert.ok(step.run && !step.uses, JSON.stringify(step));
    if (step.run.includes('apt-get')) return {success: true, log: ''};
    const output = path.join(world.fresh('output'), 'pairs');
    fs.writeFileSync(output, '');
    const own_env = Object.fromEntries(Object.entries(step.env ?? {}).map(([key, value]) => [key, filled(String(value), contexts)]));
    const ended = spawnSync('bash', ['-eo', 'pipefail', '-c', filled(step.run, contexts)], {
      cwd: place, encoding: 'utf8',
      env: {...process.env, ...env, GITHUB_REPOSITORY: 'o/r', GITHUB_OUTPUT: output, ...own_env, PATH: `${this.bin}:${process.env.PATH}`}});
    return {success: ended.status === 0, log: ended.stdout + ended.stderr, outputs: read_pairs(fs.readFileSync(output, 'utf8'))};
  }
}
