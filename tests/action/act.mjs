// Runs workflows under nektos/act, an interpreter of them that is not weir's (ci/act prepares its network).
//
//   node act.mjs [waive|forks]…    prints a table of each story's steps; exit 1 where one did not end as the docs say
//
// Known of act 0.2.89: it knows no `permissions`, so that the jobs of a run share a token that may what any of them may;
// `concurrency` and `environment` have no effect; its own store of artifacts refuses version 6 of actions/upload-artifact,
// so that they go to the stand-in's.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {token_of} from './github.mjs';
import {Runners} from './jobs.mjs';
import {read_yaml, release, root} from './runner.mjs';
import {Story} from './story.mjs';
import {weir} from './world.mjs';

const {WEIR_ACT_KEYS: keys, WEIR_ACT_LOGS: logs_folder} = process.env;
const cache = path.join(root, '.cache/act');
const from_root = ['action.yml', 'CMakeLists.txt', 'ci'];

// What any job of a run may; a fork's may only read.
function permissions_of(workflow, {event_name, event}) {
  const all = {};
  const from_fork = event_name === 'pull_request' && event.pull_request.head.repo.full_name !== 'o/r';
  for (const {permissions = workflow.permissions} of Object.values(workflow.jobs)) {
    for (const [area, may] of Object.entries(permissions)) all[area] = may === 'write' && !from_fork ? may : all[area] ?? 'read';
  }
  return all;
}

class ActRunners extends Runners {
  static async start(world) {
    const runners = new ActRunners();
    Object.assign(runners, {world, run: 100, api: 'https://api.github.com'});
    const folder = world.fresh('release');
    release(folder, `exec '${weir}' "$@"`);
    await runners.serve(path.join(keys, 'key.pem'), path.join(keys, 'certificate.pem'), path.join(folder, 'weir.tar.gz'));
    // The Action without the rest of the repository: act copies all of it for each job.
    runners.action = world.fresh('weir');
    for (const name of from_root) fs.cpSync(path.join(root, name), path.join(runners.action, name), {recursive: true});
    runners.bin = world.fresh('bin');
    // A hosted runner has sudo; nothing is installed here.
    fs.writeFileSync(path.join(runners.bin, 'sudo'), '#!/bin/sh\ncase "$*" in *apt-get*) exit 0 ;; esac\nexec "$@"\n', {mode: 0o755});
    return runners;
  }

  // Runs a workflow that a checkout has by the name of `workflow`; → by job {result, log}, with `conclusion`.
  async workflow(workflow, event) {
    const run = ++this.run, {world} = this;
    const folder = world.checkout(event.sha, 0), home = world.fresh('home'), file = world.fresh('event');
    const text = path.join(file, 'workflow.yml');
    fs.writeFileSync(text, workflow.text ?? this.text_of(folder, workflow.name));
    fs.writeFileSync(path.join(file, 'event.json'), JSON.stringify(event.event));
    fs.writeFileSync(path.join(home, '.actrc'), '');
    const environment = {
      HOME: home, WEIR_LOCK_DIR: path.join(world.top, 'locks'), NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS,
      GITHUB_RUN_ID: run, GITHUB_RUN_ATTEMPT: 1, GITHUB_REPOSITORY: 'o/r', GITHUB_REPOSITORY_OWNER: 'o', SHA_REF: event.sha, GITHUB_REF: event.ref,
      GITHUB_REF_NAME: event.ref_name ?? event.ref.replace(/^refs\/(heads|pull)\//, ''), GITHUB_BASE_REF: event.base_ref ?? '', GITHUB_HEAD_REF: event.head_ref ?? ''};
    const actions = fs.readdirSync(path.join(cache, 'actions')).map((name) => `actions/${name}=${path.join(cache, 'actions', name)}`);
    const words = [
      event.event_name, '--json', '-e', path.join(file, 'event.json'), '-W', text, '-s', `GITHUB_TOKEN=${token_of(permissions_of(workflow, event))}`,
      ...['ubuntu-24.04', 'self-hosted'].flatMap((label) => ['-P', `${label}=-self-hosted`]),
      ...[`OWNER/weir@v1=${this.action}`, ...actions].flatMap((local) => ['--local-repository', local]),
      ...Object.entries(environment).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      '--artifact-server-addr', '127.0.0.1', '--artifact-server-path', path.join(home, 'artifacts'),
      '--cache-server-addr', '127.0.0.1', '--cache-server-path', path.join(home, 'cache'), '--action-cache-path', path.join(home, 'actions'),
      '--no-skip-checkout', '--action-offline-mode', '--defaultbranch', 'main', '--actor', 'dev'];
    const act = spawn(path.join(cache, 'bin/act'), words, {cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: {
      ...process.env, HOME: home, XDG_CACHE_HOME: path.join(home, '.cache'), XDG_CONFIG_HOME: path.join(home, '.config'),
      PATH: `${this.bin}:${process.env.PATH}`, ACTIONS_RUNTIME_URL: 'https://results.example/'}});
    let printed = '';
    for (const stream of [act.stdout, act.stderr]) stream.on('data', (part) => { printed += part; });
    const code = await new Promise((done) => act.on('close', done));
    fs.writeFileSync(path.join(logs_folder, `${run}-${workflow.name}.jsonl`), printed);
    const done = this.jobs(workflow, printed);
    Object.defineProperty(done, 'conclusion', {value: code === 0 ? 'success' : 'failure'});
    return done;
  }
  text_of(folder, name) {
    const place = path.join(folder, '.github/workflows');
    const file = fs.readdirSync(place).map((one) => path.join(place, one)).find((one) => read_yaml(one).name === name);
    return fs.readFileSync(file, 'utf8');
  }
  jobs(workflow, printed) {
    const done = Object.fromEntries(Object.keys(workflow.jobs).map((name) => [name, {result: 'skipped', log: ''}]));
    for (const line of printed.split('\n').filter((one) => one.startsWith('{'))) {
      const {jobID, msg, jobResult} = JSON.parse(line);
      if (!done[jobID]) continue;
      done[jobID].log += `${msg}\n`;
      if (jobResult) done[jobID].result = jobResult;
    }
    return done;
  }
}

// One row a step; a step's words are compared with what GitHub has afterwards.
class Table {
  rows = [];
  is_as_expected = true;
  constructor(story) { this.story = story; }

  // expected: jobs {name: result}, commit with check ("NAME: CONCLUSION") and status, shows (an expression that the check's
  // text has), comment (one that the newest comment has), more (triples of what, got and wanted).
  async step(name, workflow, act, expected) {
    const from = Date.now();
    const done = await act();
    const seconds = Math.round((Date.now() - from) / 1000);
    const {checks, statuses, comments} = await this.story.state();
    const commit = await expected.commit?.();
    const check = checks.findLast(({head_sha}) => head_sha === commit), status = statuses.findLast(({sha}) => sha === commit);
    const jobs = Object.fromEntries(Object.entries(done).map(([job, {result}]) => [job, result]));
    const differences = [];
    const compare = (what, got, wanted) => {
      try {
        if (wanted instanceof RegExp) assert.match(got, wanted);
        else assert.deepEqual(got, wanted);
      } catch {
        differences.push(`${what}: ${JSON.stringify(got)}, expected ${wanted instanceof RegExp ? wanted : JSON.stringify(wanted)}`);
      }
    };
    compare('jobs', jobs, expected.jobs);
    compare('check', check && `${check.name}: ${check.conclusion}`, expected.check);
    compare('status', status?.state, expected.status);
    if (expected.shows) compare('text of the check', JSON.stringify(check?.output), expected.shows);
    if (expected.comment) compare('comment', comments.at(-1)?.body ?? '', expected.comment);
    for (const [what, got, wanted] of expected.more?.() ?? []) compare(what, got, wanted);
    this.rows.push([name, workflow.name, done.conclusion, check ? `${check.name}: ${check.conclusion}` : '-', status?.state ?? '-',
                    String(comments.length), String(seconds)]);
    for (const difference of differences) console.error(`${name}: ${difference}`);
    if (differences.length) this.is_as_expected = false;
    return done;
  }
  print() {
    const rows = [['step', 'workflow', 'conclusion', 'check', 'status', 'comments', 'seconds'], ...this.rows];
    const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
    for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
  }
}

// docs/how-to/waive.md.
async function waive(story, table) {
  const head = (number) => async () => (await story.pull(number)).head.sha;
  const waiver = 'waivers/1.json';
  const gate = (jobs) => ({measure: 'success', post: 'success', baselines: 'skipped', ...jobs});
  const stored = () => ['waiver', story.stored().includes(waiver), true];
  const gone = () => ['waiver', story.stored().includes(waiver), false];
  await table.step('by hand', story.gate, () => story.store(), {jobs: {measure: 'success', post: 'skipped', baselines: 'success'}});
  await table.step('red', story.gate, () => story.open(1, {syncs: 5}), {
    jobs: gate({measure: 'failure'}), commit: head(1), check: 'weir (main): failure', status: 'failure', comment: /\/weir waive [0-9a-f]{40}/});
  await table.step('waive', story.comments, () => story.waive(1, 'two syncs are needed here'), {
    jobs: {waive: 'success', answer: 'skipped'}, commit: head(1), check: 'weir (main): success', status: 'success',
    shows: /waived by rev until [0-9-]+: two syncs are needed here/, more: () => [stored()]});
  let group, push;
  await table.step('queue', story.gate, async () => {
    [group] = await story.runners.ask('queue', {numbers: [1], way: 'squash'});
    return story.runners.workflow(story.gate, group);
  }, {jobs: gate(), commit: () => group.sha, check: 'weir (main): success', status: 'success', shows: /waived for pull request 1 by rev until [0-9-]+: two syncs/});
  await table.step('main', story.gate, async () => {
    push = await story.runners.ask('dequeue', {number: 1});
    return story.runners.workflow(story.gate, push);
  }, {jobs: gate({baselines: 'success'}), commit: () => push.sha, check: 'weir: success', status: 'success',
      shows: /waived for pull request 1 by rev until [0-9-]+: two syncs/, more: () => [gone()]});
  const nightly_file = path.join(root, 'docs/ci/nightly.yml');
  const nightly = {...read_yaml(nightly_file), text: fs.readFileSync(nightly_file, 'utf8')};
  await table.step('nightly', nightly, () => story.runners.workflow(nightly, {
    event_name: 'schedule', ref: 'refs/heads/main', ref_name: 'main', sha: story.main(),
    event: {schedule: '17 2 * * *', repository: {full_name: 'o/r', default_branch: 'main'}}}),
                   {jobs: {gpu: 'success', watchdog: 'success', trend: 'success', gate: 'success'}});
  await table.step('the same level', story.gate, () => story.open(2, {}), {jobs: gate(), commit: head(2), check: 'weir (main): success', status: 'success'});
  await table.step('the next change', story.gate, () => story.open(3, {syncs: 7}), {
    jobs: gate({measure: 'failure'}), commit: head(3), check: 'weir (main): failure', status: 'failure', shows: /5\u00a0\u2192\u00a0\*\*7\*\*/});
}

// docs/how-to/forks.md.
async function forks(story, table) {
  const head = (number) => async () => (await story.pull(number)).head.sha;
  const post = async (number, conclusion) => {
    const pull = await story.pull(number);
    return story.runners.workflow(story.posts, {event_name: 'workflow_run', ref: 'refs/heads/main', sha: story.main(), event: {
      action: 'completed', repository: {full_name: 'o/r', default_branch: 'main'}, workflow_run: {
        id: conclusion === 'cancelled' ? 1 : story.runners.run, run_attempt: 1, event: 'pull_request', conclusion, head_sha: pull.head.sha, head_branch: pull.head.ref,
        head_repository: {full_name: 'stranger/r', owner: {login: 'stranger'}}}}});
  };
  const measured = (measure) => ({measure, baselines: 'skipped'});
  await table.step('a fork, worse', story.gate, () => story.open(1, {syncs: 5}, 'stranger/r'), {jobs: measured('failure'), commit: head(1)});
  await table.step('its verdict', story.posts, () => post(1, 'failure'), {
    jobs: {post: 'success'}, commit: head(1), check: 'weir (main): failure', status: 'failure', shows: /3\u00a0\u2192\u00a0\*\*5\*\*/, comment: /syncs\/token/});
  await table.step('a fork, as before', story.gate, () => story.open(2, {}, 'stranger/r'), {jobs: measured('success'), commit: head(2)});
  let limited;
  await table.step('its verdict, limited', story.posts, async () => {
    await story.runners.ask('limit', {kind: 'secondary', times: 1, seconds: 1});
    return limited = await post(2, 'success');
  }, {more: () => [['log', limited.post.log, /GitHub limits requests, or is down: asking again in 1 s/]], jobs: {post: 'success'}, commit: head(2), check: 'weir (main): success', status: 'success'});
  await table.step('a fork, cancelled', story.posts, async () => {
    const push = await story.runners.ask('merge', {number: 2, way: 'squash'});
    assert.ok(push.sha);
    story.fetch();
    const {world} = story;
    world.git(world.work, 'push', '-q', '--force', 'origin', 'main:change-3');
    await story.runners.ask('open', {number: 3, head: 'change-3', from: 'stranger/r'});
    return post(3, 'cancelled');
  }, {jobs: {post: 'success'}, commit: head(3), check: 'weir (main): cancelled', status: 'error'});
}

const stories = {waive: {tell: waive, init: ['--comments', '--queue']}, forks: {tell: forks, init: ['--forks']}};
const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(stories);
for (const name of chosen) {
  if (!stories[name]) throw new Error(`"${name}" is none of ${Object.keys(stories).join(', ')}`);
  const {tell, init} = stories[name];
  const story = await Story.begin({init, kind: ActRunners});
  const table = new Table(story);
  try {
    await tell(story, table);
  } finally {
    table.print();
    story.end();
  }
  if (!table.is_as_expected) process.exitCode = 1;
}
