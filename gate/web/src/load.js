// Documents by need. Each is a script that calls weirData(name, its JSON as text): from a file, scripts
// are all that a page may load.

const MOST_KEPT = 120;
const kept = new Map(); // name -> Promise, the least recently used first
const waiting = new Map();

// With trusted types (CSP of index.html) only this makes an address a script may come from.
const policy = window.trustedTypes?.createPolicy('weir', {createScriptURL: checked}) ??
  {createScriptURL: checked};

function checked(address) {
  if (!/^data\/[a-z]+(\/[0-9a-z]+)?\.js$/.test(address)) throw new TypeError(`no document: ${address}`);
  return address;
}

window.weirData = (name, text) => {
  const taker = waiting.get(name);
  waiting.delete(name);
  taker?.(JSON.parse(text));
};

function fetchDocument(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = policy.createScriptURL(`data/${name}.js`);
    waiting.set(name, resolve);
    const ended = (why) => {
      script.remove();
      if (waiting.get(name) === resolve) waiting.delete(name); // else another call waits for it
      reject(new Error(`${name}: ${why}`)); // nothing where it has come
    };
    script.onload = () => ended('not what was asked for');
    script.onerror = () => ended('not there (any more)');
    document.head.append(script);
  });
}

export function load(name) {
  let promise = kept.get(name);
  kept.delete(name);
  promise ??= fetchDocument(name).catch((error) => {
    kept.delete(name);
    throw error;
  });
  kept.set(name, promise);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  return promise;
}

// The first line of a commit's message, where the site has it.
export async function subjectOf(overview, commit) {
  if (!commit || !overview.has_commits) return '';
  const file = commit.slice(0, overview.commit_digits) || 'all';
  if (!/^([0-9a-f]{2}|all)$/.test(file)) return '';
  try {
    const lines = await load(`commits/${file}`);
    return lines.find(([name]) => name === commit)?.[1] ?? '';
  } catch {
    return '';
  }
}
