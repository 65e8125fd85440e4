// Small pieces that every page shows: badges, commits, what a state is called.
import {h} from './dom.js';
import {link} from './state.js';

export const STATES = [
  ['worse', 'worse', 'Its last change is for the worse'],
  ['mixed', 'mixed', 'Some of it is worse, some better'],
  ['changed', 'changed', 'It changed, and which way is good is not known'],
  ['unclear', 'unclear', 'Its last nights lie outside its band, and are too few to tell a change'],
  ['place', 'moved', 'Its last change came with another device, driver or machine'],
  ['better', 'better', 'Its last change is for the better'],
  ['known', 'known', 'Somebody said that its last change is known'],
  ['steady', 'steady', 'Nothing changed'],
];
export const RANK = Object.fromEntries(STATES.map(([state], i) => [state, i])); // the worst first
const KINDS = {step: 'step', drift: 'drift', place: 'other device or machine'};
const GLYPHS = {worse: '▲', changed: '●', place: '◆', mixed: '▲▽', better: '▽', known: '✓', unclear: '?', steady: '–', fail: '✕', error: '!'};

export const kindWord = (kind) => KINDS[kind] ?? 'change';

// `text` in place of the state's own word, which then is for those who listen.
export function stateBadge(state, text) {
  const [, word, why] = STATES.find(([name]) => name === state) ?? STATES.at(-1);
  return h('span', {class: `badge ${word}`, title: text ? null : why}, h('span', {'aria-hidden': 'true'}, `${GLYPHS[state] ?? ''} `), text ?? word, text ? h('span', {class: 'unseen'}, `, ${word}`) : null);
}

export function verdictBadge(verdict) {
  if (!verdict) return null;
  return h('span', {class: `badge verdict ${verdict === 'fail' ? 'fail' : ''}`},
    GLYPHS[verdict] ? h('span', {'aria-hidden': 'true'}, `${GLYPHS[verdict]} `) : null, verdict);
}

// For better or worse, of two levels.
export function stateOf(metric, change) {
  if (change.known) return 'known';
  if (change.kind === 'place') return 'place';
  if (!metric.better || change.before === change.after) return 'changed';
  return (change.after > change.before) === (metric.better === 'higher') ? 'better' : 'worse';
}

export function commitLink(overview, commit) {
  if (!commit) return h('span', {class: 'soft'}, 'no commit');
  const short = commit.slice(0, 10);
  if (!overview.repo || !/^[0-9a-f]{7,64}$/.test(commit)) return h('code', {}, short);
  return h('a', {href: `${overview.repo}/commit/${commit}`, rel: 'noreferrer'}, h('code', {}, short));
}

// Where cells stand in a table: the backend is the column, all else the row; the engine only where some differ in it alone.
// cells: names -> a function of a name to {row, backend}
export function placesOf(cells) {
  const split = (cell) => {
    const parts = cell.split('/');
    if (parts.length !== 4) return {engine: '', row: cell, backend: ''};
    const [engine, variant] = parts[0].split('@');
    return {engine, row: `${parts[1]} / ${parts[3]}${variant ? ` @${variant}` : ''}`, backend: parts[2]};
  };
  const alike = new Set(cells.map((cell) => JSON.stringify({...split(cell), engine: ''}))).size < new Set(cells).size;
  return (cell) => {
    const {engine, row, backend} = split(cell);
    return {row: alike && engine ? `${engine}: ${row}` : row, backend};
  };
}

// Of cells that have a page by their names: its id, and what they are counted per.
export function cellFacts(overview) {
  const prefills = new Set(overview.metrics.flatMap((metric, at) => (metric.name.endsWith('_per_prefill') ? [at] : [])));
  return new Map(overview.cells.map(([id, , name, , , , , metrics]) => [name, {id, per: metrics.some((at) => prefills.has(at)) ? 'prefill' : 'token'}]));
}

// The command that counts a cell again at a commit, to be read; null where the site names none.
export function commandOf(overview, commit, cell) {
  const pattern = overview.changes?.repeat;
  // What a shell would take for more than a word is not offered.
  const plain = [commit, cell].every((word) => /^[A-Za-z0-9._@/+-]+$/.test(word ?? ''));
  return pattern && plain ? h('code', {class: 'command'}, pattern.replaceAll(/\{(commit|cell)\}/g, (_, name) => (name === 'cell' ? cell : commit))) : null;
}

export function cellLink(id, name, parts) {
  return id ? h('a', {href: link(`cell/${id}`, parts)}, name) : h('span', {}, name);
}
