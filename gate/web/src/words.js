// Small pieces that every page shows: badges, commits, what a state is called.
import {h} from './dom.js';
import {link} from './state.js';

export const STATES = [
  ['worse', 'worse', 'Its last change is for the worse'],
  ['changed', 'changed', 'It changed, and which way is good is not known'],
  ['unclear', 'unclear', 'Its last nights lie outside its band, and are too few to tell a change'],
  ['place', 'moved', 'Its last change came with another device, driver or machine'],
  ['better', 'better', 'Its last change is for the better'],
  ['known', 'known', 'Somebody said that its last change is known'],
  ['steady', 'steady', 'Nothing changed'],
];
export const RANK = Object.fromEntries(STATES.map(([state], i) => [state, i])); // the worst first
const KINDS = {step: 'step', drift: 'drift', place: 'other device or machine'};
const GLYPHS = {worse: '▲', changed: '●', place: '◆', better: '▽', known: '✓', unclear: '?', steady: '–', fail: '✕', error: '!'};

export const kindWord = (kind) => KINDS[kind] ?? 'change';

export function stateBadge(state) {
  const [, word, why] = STATES.find(([name]) => name === state) ?? STATES.at(-1);
  return h('span', {class: `badge ${word}`, title: why}, h('span', {'aria-hidden': 'true'}, `${GLYPHS[state] ?? ''} `), word);
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

export function cellLink(id, name, parts) {
  return id ? h('a', {href: link(`cell/${id}`, parts)}, name) : h('span', {}, name);
}
