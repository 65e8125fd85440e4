// Finds what makes a workflow unsafe, as far as its text shows it; rules are named as zizmor's where it has one. Each
// has examples, each of whose events and jobs fails it: unsafe/RULE.yml, unsafe/RULE.CASE.yml. A job is privileged where its token may write, or where it sees a
// secret: nothing that a stranger made may run, or be unpacked, in it.

const own = /^(?:\.\/|OWNER\/weir(?:\/ci\/(?:post|waive|baseline|trend))?@v1$)/;
const pinned = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/;
const requests = ['pull_request', 'pull_request_target', 'pull_request_review', 'pull_request_review_comment', 'merge_group'];
const strange = [...requests, 'issues', 'issue_comment', 'workflow_run'];

const as_text = (value) => JSON.stringify(value ?? '');
const events_of = ({on}) => typeof on === 'string' ? [on] : Array.isArray(on) ? on : Object.keys(on ?? {});
const writes = (permissions) => permissions === 'write-all' ? ['all'] : Object.entries(permissions ?? {}).filter(([, may]) => may === 'write').map(([what]) => what);
// Ending a run takes `actions: write`: such a job has no way to a verdict.
const privileged = (job, {env} = {}) => writes(job.permissions).some((what) => what !== 'actions') || /\$\{\{[^}]*\bsecrets\b/.test(as_text([job, env])) || job.secrets !== undefined;
const runs_checkout = (step) => /^(?:\.\/|OWNER\/weir@)/.test(step.uses ?? '') ||
    /(?:^|[\s;&|("'])(?:\.\/|ci\/|make\b|cmake\b|npm (?:ci|i|install|run|test)\b|cargo\b|(?:(?:ba|da|z)?sh|source|\.|python[\d.]*|node|perl|ruby)\s+(?:-\S+\s+)*["']?[\w\/$])/m.test(step.run ?? '');

const rules = {
  'unpinned-uses': ({step, job}) => (step.uses && !own.test(step.uses) && !pinned.test(step.uses)) ||
      [job.container, ...Object.values(job.services ?? {})].some((image) => image && !/@sha256:[0-9a-f]{64}$/.test(image.image ?? image)),
  'excessive-permissions': ({workflow, job}) => workflow.permissions === undefined || writes(workflow.permissions).length > 0 || workflow.permissions === 'read-all' ||
      job.permissions === 'write-all' || job.permissions === 'read-all',
  'template-injection': ({step}) => /\$\{\{/.test(step.run ?? '') || /\$\{\{/.test(step.with?.script ?? ''),
  // The event has a token that writes, and the step takes what a stranger pushed.
  'dangerous-triggers': ({events, step}) => events.includes('pull_request_target') ||
      (events.includes('workflow_run') && step.uses?.startsWith('actions/checkout@')),
  'self-hosted-runner': ({events, job}) => events.some((event) => requests.includes(event)) && /self-hosted/.test(as_text(job['runs-on'])),
  'code-beside-a-token': ({workflow, events, job, step}) => privileged(job, workflow) && events.some((event) => strange.includes(event)) && runs_checkout(step),
  'cache-poisoning': ({workflow, job, step}) => privileged(job, workflow) && (/^actions\/cache/.test(step.uses ?? '') || (/^actions\/setup-/.test(step.uses ?? '') && step.with?.cache)),
  // Into a folder of its own outside of the workspace, where nothing that a later step starts lies.
  'artifact-poisoning': ({workflow, job, step}) => privileged(job, workflow) && /download-artifact|gh run download/.test((step.uses ?? '') + (step.run ?? '')) &&
      !/^\$\{\{ runner\.temp \}\}/.test(step.with?.path ?? ''),
  'persisted-credentials': ({step}) => step.uses?.startsWith('actions/checkout@') && step.with?.['persist-credentials'] !== false,
  'overprovisioned-secrets': ({workflow, job}) => job.secrets === 'inherit' || /toJSON\(secrets\)|secrets\[/.test(as_text([job, workflow.env])),
  // Checks that weir posts are called "weir (BASE)", "weir: NAME (BASE)", "weir", "weir: NAME".
  'name-of-a-posted-check': ({id, job}) => [id, job.name].some((name) => /^\s*weir\s*(?:$|[:(])/i.test(name ?? '')),
};
export const rule_names = Object.keys(rules);

// → the rules that a workflow (parsed) breaks, each with where: [{rule, where}].
export function audit(workflow) {
  const problems = new Map();
  const events = events_of(workflow);
  for (const [id, job] of Object.entries(workflow.jobs ?? {})) {
    const steps = job.steps?.length ? job.steps : [{uses: job.uses}];
    for (const step of steps) {
      for (const [rule, breaks] of Object.entries(rules)) {
        if (!problems.has(rule) && breaks({workflow, events, id, job, step})) problems.set(rule, {rule, where: `${id}: ${step.name ?? step.uses ?? step.run}`});
      }
    }
  }
  return [...problems.values()];
}
