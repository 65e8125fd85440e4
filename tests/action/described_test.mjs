// The stand-in for GitHub asks and answers as GitHub's own description of its API says, on the whole way from red to main.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import {before, test} from 'node:test';
import {Description, description_file} from './described.mjs';
import {Story, logs} from './story.mjs';

const skip = !fs.existsSync(description_file) && 'ci/github-api gets the description';
let description;
before(() => { if (!skip) description = new Description(); });

test('each request from red to main, and each answer to it, fits the description', {skip}, async () => {
  const story = await Story.begin();
  try {
    await story.store();
    await story.open(1, {syncs: 5});
    const waived = await story.waive(1, 'needed');
    assert.equal(waived.waive.result, 'success', logs(waived));
    const [group] = await story.runners.ask('queue', {numbers: [1], way: 'squash'});
    await story.runners.workflow(story.gate, group);
    const main = await story.runners.workflow(story.gate, await story.runners.ask('dequeue', {number: 1}));
    assert.equal(main.baselines.result, 'success', logs(main));
    const requests = (await story.state()).requests.filter(({target}) => target.startsWith('/repos/'));
    const kinds = new Set(requests.map(({method, target}) => `${method} ${target.split('?')[0].replace(/[0-9a-f]{40}|\d+/g, 'N')}`));
    for (const kind of ['POST /repos/o/r/check-runs', 'PUT /repos/o/r/contents/waivers/N.json', 'GET /repos/o/r/actions/artifacts/N/zip']) assert.ok(kinds.has(kind), [...kinds].join('\n'));
    assert.deepEqual([...new Set(requests.flatMap((one) => description.of_request(one)))], []);
  } finally {
    story.end();
  }
});

const base = {method: 'GET', target: '/repos/o/r/pulls/1', body: '', status: 200};
const wrong = [
  [{...base, answer: {number: '1'}}, /number: string, not integer/],
  [{...base, answer: {nummer: 1}}, /nummer: unknown/],
  [{...base, answer: {state: 'ajar'}}, /ajar is none of open,closed/],
  [{...base, target: '/repos/o/r/pull/1'}, /no such place/],
  [{...base, target: '/repos/o/r/pulls?stat=open'}, /parameter stat is unknown/],
  [{...base, status: 418}, /no such status/],
  [{...base, method: 'POST', target: '/repos/o/r/issues/1/comments', body: '{"text": "x"}', status: 201}, /text: unknown/],
];
for (const [request, expected] of wrong) {
  test(`what does not fit is found: ${expected.source}`, {skip}, () => {
    assert.match(description.of_request(request).join('\n'), expected);
  });
}
