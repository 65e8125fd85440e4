// The workflows in docs/ci as they stand there, in a repository as the tutorial makes it: each ends as its page says.
import assert from 'node:assert/strict';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {read_yaml, root} from './runner.mjs';
import {Story, logs} from './story.mjs';

const example = (name) => read_yaml(path.join(root, 'docs/ci', `${name}.yml`));
const results = (done) => Object.fromEntries(Object.entries(done).map(([name, {result}]) => [name, result]));

let story;
before(async () => { story = await Story.begin({times: true}); });
after(() => story.end());

const conclusions = async (sha) => Object.fromEntries((await story.state()).checks.filter(({head_sha}) => head_sha === sha)
    .map(({name, conclusion}) => [name, conclusion]));

test('pull-request.yml: counts and times beside the base, posted as two checks', async () => {
  story.gate = example('pull-request');
  const same = await story.open(1, {});
  assert.deepEqual(results(same), {counts: 'success', throughput: 'success', post: 'success', baselines: 'skipped'}, logs(same));
  assert.deepEqual(await conclusions((await story.pull(1)).head.sha), {'weir (main)': 'success', 'weir: throughput (main)': 'success'}, logs(same));
  const worse = await story.open(2, {syncs: 5});
  assert.equal(worse.counts.result, 'failure', logs(worse));
  assert.equal((await conclusions((await story.pull(2)).head.sha))['weir (main)'], 'failure', logs(worse));
});

test('merge-queue.yml: a group is held to what is before it', async () => {
  const groups = await story.runners.ask('queue', {numbers: [1, 2], way: 'merge'});
  const [good, bad] = [await story.runners.workflow(example('merge-queue'), groups[0]), await story.runners.workflow(example('merge-queue'), groups[1])];
  assert.deepEqual([results(good), results(bad)], [{measure: 'success', post: 'success'}, {measure: 'failure', post: 'success'}], logs(good) + logs(bad));
  assert.deepEqual([await conclusions(groups[0].sha), await conclusions(groups[1].sha)], [{'weir (main)': 'success'}, {'weir (main)': 'failure'}]);
});

test('measure.yml and post.yml: a fork is measured with a token that reads, and judged from the default branch', async () => {
  story.gate = example('measure');
  const measured = await story.open(3, {syncs: 4}, 'stranger/r');
  assert.equal(measured.measure.result, 'failure', logs(measured));
  const pull = await story.pull(3);
  const posted = await story.runners.workflow(example('post'), {
    event_name: 'workflow_run', ref: 'refs/heads/main', sha: pull.base.sha, event: {repository: {full_name: 'o/r', default_branch: 'main'}, workflow_run: {
      id: story.runners.run, run_attempt: 1, event: 'pull_request', conclusion: 'failure', head_sha: pull.head.sha, head_branch: pull.head.ref,
      head_repository: {full_name: 'stranger/r', owner: {login: 'stranger'}}}}});
  assert.equal(posted.post.result, 'success', logs(posted));
  assert.deepEqual(await conclusions(pull.head.sha), {'weir (main)': 'failure'}, logs(posted));
});

test('run.yml: the commit that a comment names is measured and judged by the pull request\'s base', async () => {
  story.comments = example('run');
  const {head} = await story.pull(2);
  const run = await story.comment(2, `/weir run ${head.sha}`);
  assert.deepEqual([run.gpu.result, run.post.result], ['failure', 'success'], logs(run));
  assert.equal((await conclusions(head.sha))['weir: gpu (main)'], 'failure', logs(run));
  const fork = await story.comment(3, `/weir run ${(await story.pull(3)).head.sha}`);
  assert.equal(fork.gpu.result, 'skipped');
  assert.match((await story.state()).comments.at(-1).body, /a fork has code that does not run on a runner of your own/);
});

test('waive.yml: a comment waives what it has seen', async () => {
  story.comments = example('waive');
  story.gate = example('measure');
  const {comments} = await story.state();
  const line = comments.filter(({issue_url}) => issue_url.endsWith('/2')).map(({body}) => /\/weir waive [0-9a-f]{40}/.exec(body)?.[0]).find(Boolean);
  const done = await story.comment(2, `${line} needed`);
  assert.equal(done.waive.result, 'success', logs(done));
});

test('nightly.yml: a night is judged by stored baselines', async () => {
  const stored = await story.store();
  assert.equal(stored.baselines.result, 'success', logs(stored));
  const written = read_yaml(path.join(story.world.work, '.github/workflows/weir-nightly.yml'));
  for (const night of [example('nightly'), written]) {
    const jobs = {gpu: night.jobs.gpu};
    const done = await story.runners.workflow({...night, jobs}, {event_name: 'schedule', ref: 'refs/heads/main', ref_name: 'main', sha: story.main(),
                                                                 event: {schedule: '17 2 * * *', repository: {full_name: 'o/r', default_branch: 'main'}}});
    assert.equal(done.gpu.result, 'success', logs(done));
  }
});
