// GitHub limits requests: a job that reads from it waits as long as GitHub says, or says that it does not.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, beforeEach, test} from 'node:test';
import {Story, logs} from './story.mjs';

let story, slept, number = 0;
before(async () => {
  story = await Story.begin();
  slept = path.join(story.world.top, 'slept');
  fs.writeFileSync(path.join(story.runners.bin, 'sleep'), `#!/bin/sh\necho "$1" >>'${slept}'\n`, {mode: 0o755});
});
beforeEach(() => fs.writeFileSync(slept, ''));
after(() => story.end());

// The first to ask GitHub is the job that posts: it looks for the artifact.
const waits = [
  {kind: 'secondary', times: 2, seconds: 30, expected: /^30\n30\n$/},
  {kind: 'many', times: 1, seconds: 7, expected: /^7\n$/},
  {kind: 'primary', times: 1, seconds: 500, expected: /^(500|49\d)\n$/},
  {kind: 'silent', times: 2, expected: /^60\n120\n$/},
  {kind: 'down', times: 3, expected: /^2\n4\n8\n$/},
];
for (const {expected, ...limit} of waits) {
  test(`a job that posts waits after a limit that is ${limit.kind}, and posts`, async () => {
    await story.runners.ask('limit', limit);
    const done = await story.open(++number, {});
    assert.equal(done.post.result, 'success', logs(done));
    assert.match(fs.readFileSync(slept, 'utf8'), expected);
    assert.match(done.post.log, /::notice title=weir::GitHub limits requests, or is down: asking again in \d+ s/);
    assert.equal((await story.check((await story.pull(number)).head.sha)).conclusion, 'success');
  });
}

const ends = [
  {kind: 'secondary', times: 1, seconds: 4000, slept: '', why: /GitHub limits requests for another 4000 s: longer than this job waits/},
  {kind: 'down', times: 9, slept: '2\n4\n8\n16\n', why: /Server Error \(HTTP 502\)/},
];
for (const {why, slept: expected, ...limit} of ends) {
  test(`a job that posts ends red and says why where GitHub is ${limit.kind} for too long`, async () => {
    await story.runners.ask('limit', limit);
    const done = await story.open(++number, {});
    await story.runners.ask('limit', {...limit, times: 0});
    assert.equal(done.post.result, 'failure', logs(done));
    assert.match(done.post.log, why);
    assert.match(done.post.log, /::error title=weir::GitHub does not say what run \d+ left/);
    assert.equal(fs.readFileSync(slept, 'utf8'), expected);
  });
}

test('a refusal that is no limit is not asked again', async () => {
  const {actions, ...others} = story.gate.jobs.post.permissions;
  assert.equal(actions, 'read');
  story.gate.jobs.post.permissions = others;
  const done = await story.open(++number, {});
  assert.equal(done.post.result, 'failure', logs(done));
  assert.match(done.post.log, /Resource not accessible by integration \(HTTP 403\)/);
  assert.equal(fs.readFileSync(slept, 'utf8'), '');
});
