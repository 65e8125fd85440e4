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
    const whole = kind === 'name' ? new RegExp(`\\b(${pattern})\\b`, 'g') : new RegExp(`^(${pattern})`);
    rules[kind].push({pattern: whole, advice});
  }
}

// The lines of `text` without comments and literals, and its comments: {line, text, follows}, `follows` where the line
// above is a comment too.
function parts(text) {
  const comments = [];
  const token = /\/\/.*|\/\*[^]*?\*\/|R"([^(\s]*)\([^]*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'/g;
  const code = text.replace(token, (match, _delimiter, at) => {
    if (/^\/[/*]/.test(match)) comments.push({at, text: match});
    return match.replace(/[^\n]/g, ' ');
  }).split('\n');
  let line = 1, from = 0, above = -1;
  for (const comment of comments) {
    line += text.slice(from, comment.at).split('\n').length - 1;
    from = comment.at;
    const alone = code[line - 1].trim() === '';
    comment.line = line;
    comment.follows = alone && comment.text.startsWith('//') && above === line - 1;
    above = alone ? line : -1;
  }
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
  for (const comment of comments.filter(({follows}) => !follows)) {
    const words = comment.text.replace(/^\/[/*]+<?\s*/, '');
    for (const {pattern, advice} of rules.comment) if (pattern.test(words)) report(comment.line, words.match(/^\w+/)[0], advice);
  }
  code.forEach((line, i) => {
    for (const {pattern, advice} of rules.name) for (const [words] of line.matchAll(pattern)) report(i + 1, words, advice);
  });
}
process.exit(count ? 1 : 0);
