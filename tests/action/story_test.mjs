// The way of a change that is meant, from red to main: the pull request fails, a comment waives it, GitHub merges it in
// each of its ways, the push is green, and the next change of the same count is judged against the new level.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {test} from 'node:test';
import {Story, logs} from './story.mjs';

const said = (done) => Object.entries(done).map(([name, {result}]) => `${name}: ${result}`).join(', ');

for (const way of ['merge', 'squash', 'rebase', 'queue']) {
  for (const stored of [false, true]) {
    test(`a waived change is green at its merge (${way}), ${stored ? 'and its level is stored' : 'without stored baselines'}`, async () => {
      const story = await Story.begin();
      try {
        if (stored) {
          const by_hand = await story.store();
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
          const other = await story.check(second.sha);
          assert.equal(other.conclusion, 'failure');
          if (stored) assert.match(other.text, /waived for pull request 1 by rev/, 'what is before it in the queue stays waived');
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

test('baselines in the tree are no edits of their rules, and the merge of a waived change tells that they keep the level from before', async () => {
  const story = await Story.begin({tree: true});
  const {world} = story;
  // A branch that brings this engine's baselines along, as a pull request.
  const accept = async (number, name, syncs) => {
    story.fetch();
    world.git(world.work, 'checkout', '-q', '-b', name);
    world.write('syncs', `${syncs}\n`);
    spawnSync('./build.sh', {cwd: world.work});
    story.weir('baseline', 'accept', '--counts-only');
    world.git(world.work, 'commit', '-q', '-a', '-m', name);
    world.git(world.work, 'push', '-q', 'origin', name);
    const done = await story.judge(number, name);
    return {done, check: await story.check((await story.pull(number)).head.sha)};
  };
  const said_no_edits = async (done, commit) => {
    const {text} = await story.check(commit);
    for (const said of [text, done.measure.summary]) assert.doesNotMatch(said, /edits? to the rules|looser|baselines it edits/);
  };
  try {
    const along = await accept(2, 'along', 5);
    assert.equal(along.check.conclusion, 'failure', logs(along.done));
    assert.match(along.check.text, /1 edit to the rules[^]*3 \u2192 5: looser/);

    const red = await story.open(1, {syncs: 5});
    assert.equal(red.measure.result, 'failure', logs(red));
    await said_no_edits(red, (await story.pull(1)).head.sha);
    assert.equal((await story.waive(1, 'needed')).waive.result, 'success');
    const push = await story.runners.ask('merge', {number: 1, way: 'squash'});
    const main = await story.runners.workflow(story.gate, push);
    assert.equal(main.measure.result, 'success', logs(main));
    await said_no_edits(main, push.sha);
    assert.match(main.baselines.log, /::warning title=weir::baselines in the tree keep the level from before.*weir baseline accept --counts-only/);

    story.fetch();
    spawnSync('./build.sh', {cwd: world.work});
    assert.throws(() => story.weir('gate', '--counts-only'), /must not change/);
    const level = await accept(3, 'level', 5);
    assert.equal(level.check.conclusion, 'success', logs(level.done));
    world.git(world.work, 'checkout', '-q', 'level');
    story.weir('gate', '--counts-only');
  } finally {
    story.end();
  }
});

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
