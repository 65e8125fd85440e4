// The repository speaks of the product alone, and what it names is there.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {files_of, names_in, read_table, words_in} from './repository.mjs';

const here = fileURLToPath(new URL('.', import.meta.url)), root = path.join(here, '../..');
const table = (name) => read_table(fs.readFileSync(path.join(here, name), 'utf8'));

// A repository of these files: {path: text}.
function tree_of(context, texts) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-repository-'));
  context.after(() => fs.rmSync(folder, {recursive: true}));
  execFileSync('git', ['init', '-q', folder]);
  for (const [file, text] of Object.entries(texts)) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), {recursive: true});
    fs.writeFileSync(path.join(folder, file), text);
  }
  return folder;
}

test('no file speaks of how the project is made', () => {
  const files = files_of(root).filter((file) => file !== 'tests/repository/words.txt');
  assert.ok(files.length > 2000, `${files.length} files`);
  assert.deepEqual(words_in(root, files, table('words.txt')), []);
});

test('files that comments and pages name are there', () => {
  const {missing, unused} = names_in(root, files_of(root), table('names.txt'));
  assert.deepEqual(missing, []);
  assert.deepEqual(unused, [], 'rows of names.txt that nothing needs');
});

test('each row of the table of words refuses its examples, by name and line', (context) => {
  for (const row of table('words.txt')) {
    assert.ok(row.examples.length > 0, row.pattern);
    const folder = tree_of(context, {'docs/a.md': `# A page\n\n${row.examples.join('\n')}\n`, 'docs/picture.bin': `\0${row.examples[0]}`});
    const lines = words_in(folder, files_of(folder), [row]);
    row.examples.forEach((example, i) => assert.ok(lines.some((line) => line.startsWith(`docs/a.md:${3 + i}: `) && line.endsWith(row.reason)), `${row.pattern}: ${example}`));
    assert.ok(lines.every((line) => line.startsWith('docs/a.md:')), 'binary files are not read');
  }
});

test('a name that is not there is found in comments, pages and links', (context) => {
  const folder = tree_of(context, {
    'README.md': '[a page](docs/a.md), [no page](docs/b.md#part), NOTES.md, `ci/run`, `ci/lost`, <img src="docs/no.svg">\n',
    'docs/a.md': '[up](../README.md), [out](https://h/x.md); `x/b.hpp`, `gate/x/lost.hpp`, `y.yaml`\n',
    'gate/x/README.md': '`x/b`, `x/lost`\n',
    'gate/x/b.hpp': '// b_test.cpp, lost_test.cpp. https://h/c.cpp\nconst char* k = "d.cpp, docs/lost.md, docs/a.md";\n',
    'tests/x/b_test.cpp': '/* gate/x/b.hpp */ int b; /* x/lost.cpp */\n',
    'ci/run': '# ci/gone\n. ci/elsewhere\n',
    'tests/golden/a.md': '`gate/x/none.hpp`\n',
  });
  const {missing, unused} = names_in(folder, files_of(folder), read_table('lost_.*  an example\nnever  needed by nothing\n'));
  assert.deepEqual(missing.sort(), [
    'README.md:1: NOTES.md',
    'README.md:1: ci/lost',
    'README.md:1: docs/b.md',
    'README.md:1: docs/no.svg',
    'ci/run:1: ci/gone',
    'docs/a.md:1: gate/x/lost.hpp',
    'gate/x/README.md:1: x/lost',
    'gate/x/b.hpp:2: docs/lost.md',
    'tests/x/b_test.cpp:1: x/lost.cpp',
  ]);
  assert.deepEqual(unused, ['never']);
});
