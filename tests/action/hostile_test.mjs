// The documented workflows with a hostile engine (hostile_engine) in place of one: in no job that builds or starts an
// engine is anything that writes, whatever the engine does, because such a job has nothing of the kind. Each job runs
// in a process of its own, in whose environment its token stands, as in a runner's memory.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {filled} from './expressions.mjs';
import {read_pairs, read_yaml, root} from './runner.mjs';
import {World, weir} from './world.mjs';

const folder = path.join(root, 'docs/ci');
const workflows = fs.readdirSync(folder).filter((name) => name.endsWith('.yml') && name !== 'gitlab.yml');
const jobs = workflows.flatMap((file) => {
  const workflow = read_yaml(path.join(folder, file));
  return Object.entries(workflow.jobs).map(([name, job]) => {
    const permissions = job.permissions ?? workflow.permissions;
    const steps = job.steps ?? [];
    return {
      file, name, steps,
      // Its own condition may leave out all but pushes, whose commits are on the branch.
      on: /^!cancelled\(\) && github\.event_name == 'push'$/.test(job.if) ? ['push'] : Object.keys(workflow.on),
      writes: typeof permissions !== 'object' || Object.values(permissions).includes('write'),
      secrets: JSON.stringify(job).includes('secrets.') || JSON.stringify(workflow.env ?? {}).includes('secrets.'),
      checks_out: steps.some((step) => step.uses?.startsWith('actions/checkout@')),
      // The Action starts engines; a script of the repository is the repository's.
      runs_code: steps.some((step) => step.uses === 'OWNER/weir@v1' || /(^|\s)\.\//.test(step.run ?? '')),
    };
  });
});
const token = (job) => job.writes ? 'ghs_writes' : 'ghs_reads';

// In a process of its own: the steps of a job, as far as they run something. Prints what the engine found.
function run_job({file, name}) {
  const job = jobs.find((candidate) => candidate.file === file && candidate.name === name);
  const world = new World();
  const loot = path.join(world.top, 'loot');
  const engine = fs.readFileSync(path.join(root, 'tests/action/hostile_engine'), 'utf8').replace('\n', `\nLOOT='${loot}'\n`);
  world.write('build.sh', engine);
  world.git(world.work, 'add', '-A');
  world.git(world.work, 'commit', '-q', '-m', 'how it is built');
  world.git(world.work, 'push', '-q', 'origin', 'main');
  const pull = world.pull_request('hostile', 3, {more: 'exec bash ./build.sh engine >/dev/null'});
  world.git(world.work, 'checkout', '-q', 'hostile');
  const github = {...pull.github, token: token(job), repository: 'o/r', workflow: 'weir', run_id: '77'};
  github.event.repository = {default_branch: 'main'};
  const needs = {asked: {outputs: {sha: github.sha, base: 'main'}}};
  const temp = world.fresh('temp'), home = world.fresh('home');
  let workspace;
  const env = {}, paths = [];
  for (const step of job.steps) {
    const inputs = Object.fromEntries(Object.entries(step.with ?? {}).map(([key, value]) => [key, filled(String(value), {github, needs})]));
    if (step.uses?.startsWith('actions/checkout@')) {
      workspace = world.checkout(github.sha, 0);
      if (inputs['persist-credentials'] !== 'false') {
        world.git(workspace, 'config', 'http.https://github.com/.extraheader', `AUTHORIZATION: basic ${token(job)}`);
      }
    } else if (step.uses === 'OWNER/weir@v1') {
      process.stderr.write(world.run(workspace, github, inputs, {temp, path: paths, env: {...env, HOME: home}}).log);
    } else if (/(^|\s)\.\//.test(step.run ?? '')) {
      const files = {GITHUB_ENV: path.join(temp, 'file-env'), GITHUB_PATH: path.join(temp, 'file-path')};
      for (const place of Object.values(files)) fs.writeFileSync(place, '');
      execFileSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step.run], {
        cwd: workspace, stdio: 'pipe', env: {PATH: process.env.PATH, ...env, ...files, HOME: home, RUNNER_TEMP: temp, GITHUB_WORKSPACE: workspace}});
      Object.assign(env, read_pairs(fs.readFileSync(files.GITHUB_ENV, 'utf8')));
      paths.unshift(...fs.readFileSync(files.GITHUB_PATH, 'utf8').split('\n').filter(Boolean));
    }
  }
  process.stdout.write(fs.existsSync(loot) ? fs.readFileSync(loot) : '');
  world.remove();
}

function find(job) {
  const done = spawnSync(process.execPath, [fileURLToPath(import.meta.url)], {
    encoding: 'utf8', maxBuffer: 1 << 28,
    env: {PATH: process.env.PATH, WEIR_PROGRAM: weir, WEIR_HOSTILE_JOB: JSON.stringify({file: job.file, name: job.name}),
          RUNNER_MEMORY: token(job), ...(job.secrets ? {RUNNER_SECRET: 'a_secret'} : {})}});
  assert.equal(done.status, 0, done.stderr);
  return {output: done.stdout, log: done.stderr};
}

if (process.env.WEIR_HOSTILE_JOB) {
  run_job(JSON.parse(process.env.WEIR_HOSTILE_JOB));
} else {
  for (const job of jobs.filter((candidate) => candidate.runs_code)) {
    test(`an engine finds nothing that writes in ${job.name} of ${job.file}`, () => {
      const {output, log} = find(job);
      assert.match(output, /^== build\.sh/m, log);
      assert.match(output, /^RUNNER_MEMORY=/m, 'it looked into the runner: a job is what protects, not an environment');
      assert.deepEqual(output.match(/^.*(ghs_writes|a_secret).*$/gm) ?? [], []);
    });
  }

  test('the engine that weir starts looks as far, and reaches the steps after it', () => {
    const {output, log} = find(jobs.find((job) => job.file === 'measure.yml' && job.runs_code));
    const by_engine = output.slice(output.indexOf('\n== build.sh engine'));
    assert.match(by_engine, /^== build\.sh engine/m, log);
    assert.match(by_engine, /^RUNNER_MEMORY=ghs_reads$/m);
    assert.match(by_engine, /^== a later step/m, 'BASH_ENV by GITHUB_ENV, and weir replaced');
  });

  test('a job that may write starts no engine, and takes no cache or checkout of a pull request', () => {
    const foreign = ['pull_request', 'pull_request_target', 'merge_group', 'issue_comment', 'workflow_run'];
    for (const job of jobs.filter((candidate) => candidate.writes || candidate.secrets)) {
      assert.ok(!job.runs_code, `${job.file}: ${job.name} runs code of the repository with a token that writes`);
      if (!job.on.some((event) => foreign.includes(event))) continue;
      assert.ok(!job.checks_out, `${job.file}: ${job.name} checks out what a pull request brought`);
      assert.ok(!job.steps.some((step) => step.uses?.startsWith('actions/cache')), `${job.file}: ${job.name} takes a cache`);
    }
  });
}
