// The way of a change that is meant on GitLab, from red to main, by docs/ci/gitlab.yml: the pipeline fails, a note waives
// it, GitLab merges it in each of its ways, the push is green, and the next change is judged against the new level.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {GitLab, k_token} from './gitlab.mjs';
import {read_yaml, root} from './runner.mjs';
import {World, weir} from './world.mjs';

const jobs = read_yaml(path.join(root, 'docs/ci/gitlab.yml'));
// One file a change, so that changes of one count do not conflict.
const engine = '#!/bin/sh\ncd "$(dirname "$0")"\nsum=0\nfor file in syncs/*; do sum=$((sum + $(cat "$file"))); done\necho "$sum syncs"\n';

class Story {
  // With weir's example, or with what weir init has written.
  static async begin({stored, written = false}) {
    const story = new Story(), world = story.world = new World();
    world.write('engine', engine);
    spawnSync('mkdir', ['-p', path.join(world.work, 'syncs')]);
    world.write('syncs/first', '3\n');
    world.git(world.work, 'add', '-A');
    world.git(world.work, 'commit', '-q', '-m', 'an engine');
    world.git(world.work, 'push', '-q', 'origin', 'main');
    if (stored) {
      const done = spawnSync(weir, ['baseline', 'accept', '--counts-only', '--baselines-ref', 'perf-baselines'], {
        cwd: world.work, encoding: 'utf8', env: {PATH: process.env.PATH, HOME: world.top, WEIR_LOCK_DIR: path.join(world.top, 'locks'),
                                                 GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b'}});
      assert.equal(done.status, 0, done.stderr);
      world.git(world.work, 'push', '-q', 'origin', 'perf-baselines');
    }
    if (written) {
      const done = spawnSync(weir, ['init', '--ci', 'gitlab'], {
        cwd: world.work, encoding: 'utf8', env: {PATH: process.env.PATH, HOME: world.top, WEIR_LOCK_DIR: path.join(world.top, 'locks')}});
      assert.equal(done.status, 0, done.stderr + done.stdout);
    }
    story.gitlab = await GitLab.start(world, written ? read_yaml(path.join(world.work, '.gitlab-ci.yml')) : jobs);
    return story;
  }
  end() {
    this.gitlab.stop();
    this.world.remove();
  }
  // Opens merge request `iid`, which adds so many syncs; → what its pipeline did.
  async open(iid, syncs) {
    const {world} = this;
    world.git(world.work, 'fetch', '-q', 'origin');
    world.git(world.work, 'checkout', '-q', '-B', `change-${iid}`, 'origin/main');
    if (syncs) world.write(`syncs/change-${iid}`, `${syncs}\n`);
    world.write(`note-${iid}`, 'x');
    world.git(world.work, 'add', '-A');
    world.git(world.work, 'commit', '-q', '-m', `change ${iid}`);
    world.git(world.work, 'push', '-q', 'origin', `change-${iid}`);
    this.gitlab.open(iid, `change-${iid}`);
    return this.gitlab.measure(iid);
  }
  line(iid) { return /\/weir waive [0-9a-f]{40}/.exec(this.gitlab.own_note(iid).body)?.[0]; }
  async post() {
    const done = await this.gitlab.post();
    assert.equal(done.status, 0, done.log);
    assert.ok(!done.log.includes(k_token));
    return done;
  }
  state(iid) { return this.gitlab.statuses.findLast(({name}) => name === `weir (main !${iid})`)?.state; }
  // Waives what fails in merge request `iid` by a note, and runs its job again.
  async waive(iid) {
    await this.post();
    assert.equal(this.state(iid), 'failed');
    this.gitlab.note(iid, `${this.line(iid)} two syncs are needed here`, 22);
    const done = await this.post();
    assert.equal(this.state(iid), 'success', done.log + this.gitlab.own_note(iid).body);
    assert.ok(this.gitlab.runs.at(-1).is_retried, done.log);
    return this.gitlab.measure(iid);
  }
  stored() {
    const {origin} = this.world;
    const there = this.world.git(origin, 'for-each-ref', '--format=%(refname)', 'refs/heads/perf-baselines');
    return there ? this.world.git(origin, 'ls-tree', '-r', '--name-only', 'perf-baselines').split('\n') : [];
  }
}

for (const way of ['merge', 'squash', 'fast-forward', 'train']) {
  for (const stored of [false, true]) {
    test(`a waived change is green at its merge (${way}), ${stored ? 'and its level is stored' : 'without stored baselines'}`, async () => {
      const story = await Story.begin({stored, written: way === 'squash'});
      const {gitlab} = story;
      try {
        const red = await story.open(1, 2);
        assert.equal(red.status, 1, red.log);
        const green = await story.waive(1);
        assert.equal(green.status, 0, green.log);
        assert.match(green.log, /waived for pull request 1 by rev/);
        assert.ok(story.stored().includes('waivers/1.json'));

        let push;
        if (way === 'train') {
          await story.open(2, 2);
          const [first, second] = gitlab.train([1, 2]);
          const car = await gitlab.measure(1, first);
          assert.equal(car.status, 0, car.log);
          const worse = await gitlab.measure(2, second);
          assert.equal(worse.status, 1, `a second change of the same count is red: ${worse.log}`);
          gitlab.request(2).state = 'closed';
          push = gitlab.land(1, 'merge', first.commit);
        } else {
          push = gitlab.land(1, way);
        }
        // A waiver of a merge request that GitLab does not have.
        const {world} = story;
        const folder = world.checkout('perf-baselines', 0);
        assert.match(fs.readFileSync(path.join(folder, 'waivers/1.json'), 'utf8'), /"base": *"main"/, 'for this target branch alone');
        fs.writeFileSync(path.join(folder, 'waivers/9.json'), '{}');
        world.git(folder, 'add', '-A');
        world.git(folder, 'commit', '-q', '-m', 'nobody\'s');
        world.git(folder, 'push', '-q', 'origin', 'HEAD:perf-baselines');
        const main = await gitlab.push(push);
        assert.match(main.merged.log, /GitLab does not answer for !9, so its waivers do not hold/);
        assert.match(main.held, /^--merged-pr=1@[0-9a-f]{40}\n$/, main.merged.log);
        assert.equal(main.measured.status, 0, main.measured.log);
        assert.match(main.measured.log, /waived for pull request 1 by rev/);
        assert.equal(main.store.status, 0, main.store.log);
        assert.ok(!story.stored().includes('waivers/1.json'), 'it ends there');
        if (stored) {
          const file = story.stored().find((name) => name.startsWith('baselines/'));
          assert.match(story.world.git(story.world.origin, 'show', `perf-baselines:${file}`), /"syncs_per_token"[^}]*5/);
        }
        const level = await story.open(3, 0);
        assert.equal(level.status, 0, level.log);
        const next = await story.open(4, 2);
        assert.equal(next.status, 1, 'the next change is judged against the new level');
        assert.match(next.log, /5 → 7/);
      } finally {
        story.end();
      }
    });
  }
}

test('a note waives nothing if its author may not, or if it is about another commit, and the answer says why once', async () => {
  const story = await Story.begin({stored: false});
  const {gitlab} = story;
  try {
    await story.open(1, 2);
    // More notes than a page has.
    for (let i = 0; i < 130; ++i) gitlab.note(1, 'talk', 22);
    await story.post();
    const line = story.line(1);
    for (const user of [21, 23, 24]) gitlab.note(1, `${line} because`, user);
    gitlab.note(1, `> ${line} because`, 22);
    gitlab.note(1, `/weir waive ${'a'.repeat(40)} because`, 22);
    Object.assign(gitlab.note(1, `${line} because`, 22), {system: true});
    for (let i = 0; i < 2; ++i) await story.post();
    assert.deepEqual(gitlab.notes.filter(({body}) => body.includes('weir refused')).map(({body}) => body.split('\n')[1]), [
      'weir refused this: whoever wrote the merge request may not waive what it changes',
      'weir refused this: it takes the role Developer, or more', 'weir refused this: it takes the role Developer, or more']);
    assert.deepEqual([story.state(1), story.stored()], ['failed', []]);
    // Allowed now, but about the commit before.
    const {world} = story;
    world.git(world.work, 'checkout', '-q', 'change-1');
    world.write('note-1', 'y');
    world.git(world.work, 'commit', '-q', '-a', '-m', 'more');
    world.git(world.work, 'push', '-q', 'origin', 'change-1');
    gitlab.requests = [];
    gitlab.open(1, 'change-1');
    await gitlab.measure(1);
    gitlab.note(1, `${line} because`, 22);
    await story.post();
    assert.notEqual(story.line(1), line);
    assert.deepEqual([story.state(1), story.stored()], ['failed', []]);
  } finally {
    story.end();
  }
});

test('a token that may not push to the branch waives nothing, and its pipeline says so until it may', async () => {
  const story = await Story.begin({stored: true});
  const {gitlab} = story;
  try {
    await story.open(1, 2);
    await story.post();
    gitlab.note(1, `${story.line(1)} needed`, 22);
    gitlab.role = 30;
    const denied = await gitlab.post();
    assert.equal(denied.status, 1, denied.log);
    assert.match(denied.log, /not allowed to push[\s\S]*perf-baselines could not be written to: may the token push to it\?/);
    assert.ok(!story.stored().includes('waivers/1.json'));
    assert.equal(story.state(1), 'failed');
    gitlab.role = 40;
    await story.post();
    assert.equal(story.state(1), 'success');
  } finally {
    story.end();
  }
});

test('no pipeline of a merge request has a use for the token', () => {
  for (const name of ['weir-merged', 'weir-store', 'weir-post']) {
    for (const {if: condition} of jobs[name].rules) {
      for (const part of ['$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH', '$CI_COMMIT_REF_PROTECTED == "true"', '$WEIR_GITLAB_TOKEN']) assert.ok(condition.includes(part), name);
    }
    assert.deepEqual(jobs[name].cache, []);
  }
  assert.ok(!JSON.stringify([jobs['weir-measure'], jobs['.weir-base']]).includes('TOKEN'));
});
