// The runs, the newest first.
import {h, hasWords, searchField, wordsOf} from '../dom.js';
import {load} from '../load.js';
import {keep, link} from '../state.js';
import {pagedTable} from '../table.js';
import {counted, moment} from '../units.js';
import {commitLink, verdictBadge} from '../words.js';

export async function runsPage({overview, state}) {
  const {all, runs} = await load('runs');
  const fits = (text) => runs.filter((run) => hasWords([run.commit, run.branch, run.machine, run.verdict ?? '', run.source].join('\n'), wordsOf(text)));
  const find = searchField(state.query.get('find') ?? '', (text) => {
    keep({find: text, at: ''});
    table.show(fits(text));
  }, {placeholder: 'main fail'});
  const table = pagedTable({caption: 'Runs, the newest first', rows: fits(find.value), size: 50, empty: 'No run fits.',
    page: Number.parseInt(state.query.get('at') ?? '0', 10) || 0, onpage: (at) => keep({at: at || ''}), columns: [
      {title: 'measured', cell: (run) => h('a', {href: link(`run/${run.id}`)}, moment(run.time))},
      {title: 'commit', cell: (run) => [commitLink(overview, run.commit), run.dirty ? ' with changes' : '']},
      {title: 'branch', cell: (run) => run.branch || '–'},
      {title: 'verdict', cell: (run) => verdictBadge(run.verdict) ?? '–'},
      {title: 'machine', cell: (run) => run.machine || '–'},
      {title: 'from', cell: (run) => run.source},
      {title: 'points', class: 'number', cell: (run) => String(run.points)},
    ]});
  return {title: 'Runs', nodes: [
    h('h1', {}, 'Runs'),
    h('p', {class: 'soft'}, counted(all, 'run'), all > runs.length ? `, of which ${runs.length} have a page: the newest, and those with a verdict` : ''),
    h('div', {class: 'bar', role: 'search'}, h('label', {class: 'field grow'}, h('span', {}, 'Find runs'), find)),
    table.box,
  ]};
}
