// Lists comments and names of C++ files that code.txt refuses, as FILE:LINE: TEXT: what to write.
//   node ci/textlint/code.mjs FILE…        exit code 1: there are some
import {readFileSync} from 'node:fs';

const lines = readFileSync(new URL('code.txt', import.meta.url), 'utf8').split('\n');
const rules = {comment: [], name: []};
const exceptions = new Map();
for (const line of lines.filter((line) => line && !line.startsWith('#'))) {
  const [, kind, pattern, advice] = line.match(/^(\w+) (.*?)  (.*)$/);
  if (kind === 'except') {
    const [file, ...words] = pattern.split(' ');
    exceptions.set(file, new Set(words));
  } else {
    rules[kind].push({pattern: new RegExp(kind === 'name' ? `\\b(${pattern})\\b` : `^(${pattern})`, kind === 'name' ? 'g' : ''), advice});
  }
}

// Comments, and all else with literals emptied, each as text by line.
function parts(text) {
  const code = [], comments = [];
  const token = /\/\/.*|\/\*[^]*?\*\/|R"([^(\s]*)\([^]*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'/g;
  const rest = text.replace(token, (found, _delimiter, at) => {
    if (/^\/[/*]/.test(found)) comments.push({at, text: found});
    return found.replace(/[^\n]/g, ' ');
  });
  rest.split('\n').forEach((line) => code.push(line));
  return {code, comments};
}

let count = 0;
for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, 'utf8');
  const report = (line, words, advice) => {
    if (exceptions.get(file)?.has(words)) return;
    count++;
    console.log(`${file}:${line}: ${words}: ${advice}`);
  };
  const {code, comments} = parts(text);
  let last = -1;
  for (const {at, text: comment} of comments) {
    const line = text.slice(0, at).split('\n').length;
    const follows = line === last + 1 && comment.startsWith('//') && code[line - 1].trim() === '';
    last = code[line - 1].trim() === '' ? line : -1;
    const words = comment.replace(/^\/[/*]+<?\s*/, '');
    if (!follows) for (const {pattern, advice} of rules.comment) if (pattern.test(words)) report(line, words.match(/^\w+/)[0], advice);
  }
  code.forEach((line, i) => {
    for (const {pattern, advice} of rules.name) for (const [words] of line.matchAll(pattern)) report(i + 1, words, advice);
  });
}
process.exit(count ? 1 : 0);
