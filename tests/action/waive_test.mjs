// ci/waive: a command of a comment, and what is answered to one that is refused.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {commands_in, read_yaml, release, root, run_action} from './runner.mjs';
import {World, weir} from './world.mjs';

let world;
before(() => { world = new World(); });
after(() => world.remove());

function waive(text, {body = '/weir waive 3f9c2a71d08be45610aa faster', login = 'ada'} = {}) {
  const built = release(world.fresh('release'), text);
  const user = {login, type: 'User'};
  const event = {action: 'created', issue: {number: 7, pull_request: {}}, repository: {full_name: 'o/r'}, sender: user, comment: {id: 1, body, user}};
  return run_action({
    action: path.join(root, 'ci/waive'), workspace: world.fresh('empty'), temp: world.fresh('temp'), path: [built.bin], inputs: {version: built.version},
    github: {repository: 'o/r', token: 'ghs_writes', action_ref: '', event_name: 'issue_comment', event}});
}
const says = (why) => `[ "$1" != --version ] || { echo weir 0; exit; }
for word; do case $word in --json=*) printf '%s' '${JSON.stringify({why}).replaceAll("'", "'\\''")}' >"\${word#*=}" ;; esac; done
echo command=refused >>"$GITHUB_OUTPUT"
exit 1`;

test('what weir refuses ends red, and its reason is an output', () => {
  const done = waive(`exec '${weir}' "$@"`);  // GitHub lets the token do nothing
  assert.equal(done.success, false);
  assert.equal(done.outputs.command, 'refused', done.log);
  assert.equal(done.outputs.why, 'ada may not write here');
  const none = waive(`exec '${weir}' "$@"`, {body: 'thanks'});
  assert.deepEqual([none.success, none.outputs.command, none.outputs.why], [true, 'nothing', ''], none.log);
});

test('a reason is one inert line of at most 1000 characters, in the output, the log and the comment', () => {
  const done = waive(says('no: @maintainers `x`\n::error::pwned\n```\n\u202e$(touch pwned)' + 'ä'.repeat(2000)));
  const {why} = done.outputs;
  assert.ok(!/[@`\p{Cc}\p{Cf}]/u.test(why), why);
  assert.equal([...why].length, 1000);
  for (const line of commands_in(done.log)) assert.match(line, /^::error title=weir::refused: no: /);
  // The step of the examples, with a "gh" that keeps its words.
  for (const [file, code] of [['waive', 0], ['run', 1]]) {
    const {answer} = read_yaml(path.join(root, `docs/ci/${file}.yml`)).jobs;
    assert.deepEqual(answer.permissions, {'pull-requests': 'write'});
    const bin = world.fresh('bin');
    fs.writeFileSync(path.join(bin, 'gh'), `#!/bin/bash\nprintf '%s\\0' "$@" >'${bin}/words'\n`, {mode: 0o755});
    const ended = spawnSync('bash', ['-e', '-c', answer.steps[0].run], {cwd: bin, env: {PATH: `${bin}:${process.env.PATH}`, GITHUB_REPOSITORY: 'o/r', NUMBER: '7', WHY: why}});
    assert.equal(ended.status, code, String(ended.stderr));
    const words = fs.readFileSync(path.join(bin, 'words'), 'utf8').split('\0');
    assert.ok(words.includes('repos/o/r/issues/7/comments'));
    assert.ok(words.includes(`body=weir refused this:\n\n    ${why}`), words.join('|'));
    assert.ok(!fs.existsSync(path.join(bin, 'pwned')));
  }
});
