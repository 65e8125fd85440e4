// man.mjs PROGRAM DATE: writes weir.1, made of what the program says with --help.
import {execFileSync} from 'node:child_process';

const [program, date] = process.argv.slice(2);
const help = (verbs) => execFileSync(program, [...verbs, '--help'], {encoding: 'utf8'}).trimEnd().split('\n');
const version = execFileSync(program, ['--version'], {encoding: 'utf8'}).trim();
const roff = (line) => line.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^([.'])/, '\\&$1');

// The names below "Subcommands:"; a line that is indented further goes on with the one before.
function verbs_of(lines) {
  const at = lines.indexOf('Subcommands:');
  if (at < 0) return [];
  const rest = lines.slice(at + 1);
  const end = rest.indexOf('');
  return rest.slice(0, end < 0 ? undefined : end).map((line) => /^  (\S+)/.exec(line)?.[1]).filter(Boolean);
}
const block = (lines) => ['.nf', ...lines.map(roff), '.fi'].join('\n');

const top = help([]);
const about = top[0].replace(/^weir: /, '');
const out = [
  `.TH WEIR 1 "${date}" "${version}" "User Commands"`,
  '.SH NAME', `weir \\- ${roff(about)}`,
  '.SH SYNOPSIS', '.B weir', '.I verb', '[\\fIoptions\\fR]',
  '.SH VERBS', block(top.slice(top.indexOf('Subcommands:') + 1))];
const describe = (words) => {
  const lines = help(words);
  out.push(`.SS "weir ${words.join(' ')}"`, block(lines));
  for (const below of verbs_of(lines)) describe([...words, below]);
};
out.push('.SH OPTIONS');
for (const verb of verbs_of(top)) describe([verb]);
out.push('.SH FILES', '.TP', '.I weir.yaml', roff('The configuration; share/weir/schemas has its JSON Schema.'),
         '.TP', '.I baselines/', 'What a candidate is held to; belongs into the repository.',
         '.TP', '.I weir\\-out/', 'What was measured.');
console.log(out.join('\n'));
