// The expressions of action.yml, as far as it has them: contexts with dots, strings, == != && || !
// and the functions of `if:`. What is missing is an error, never an empty string.

function tokens(text) {
  const list = [];
  const pattern = /\s*(?:('(?:[^']|'')*')|([A-Za-z_][\w-]*(?:\.[\w-]+)*)|(==|!=|&&|\|\||[!(),]))/gy;
  let end = 0;
  for (let match; end < text.trimEnd().length && (match = pattern.exec(text)); end = pattern.lastIndex) {
    list.push(match[1] ? {value: match[1].slice(1, -1).replaceAll("''", "'")}
                        : match[2] ? {name: match[2]} : {sign: match[3]});
  }
  if (end < text.trimEnd().length) throw new Error(`unread: ${text.slice(end)}`);
  return list;
}

const k_functions = {
  contains: (list, item) => list.includes(item),
  fromJSON: (text) => JSON.parse(text),
  startsWith: (text, start) => String(text).startsWith(start),
};

const truthy = (value) => value !== '' && value !== false && value !== null && value !== undefined;

// The value of `text`, given `contexts` ({github, inputs, steps}) and `functions` ({always, ...}).
export function evaluate(text, contexts, functions = {}) {
  const list = tokens(text);
  let at = 0;
  const take = (sign) => list[at]?.sign === sign && (at++, true);
  const primary = () => {
    if (take('!')) return !truthy(primary());
    if (take('(')) {
      const value = either();
      if (!take(')')) throw new Error(`no ")": ${text}`);
      return value;
    }
    const token = list[at++];
    if (token && 'value' in token) return token.value;
    if (!token?.name) throw new Error(`unread: ${text}`);
    if (take('(')) {
      const words = [];
      while (!take(')')) {
        words.push(either());
        take(',');
      }
      const called = {...k_functions, ...functions}[token.name];
      if (!called) throw new Error(`unknown: ${token.name}()`);
      return called(...words);
    }
    const [first, ...rest] = token.name.split('.');
    if (!(first in contexts)) throw new Error(`unknown context: ${token.name}`);
    return rest.reduce((value, key) => (value === null || typeof value !== 'object' ? '' : value[key] ?? ''),
                       contexts[first]);
  };
  const compared = () => {
    const left = primary();
    if (take('==')) return left === primary();
    if (take('!=')) return left !== primary();
    return left;
  };
  const both = () => {
    let value = compared();
    while (take('&&')) {
      const right = compared();
      value = truthy(value) ? right : value;
    }
    return value;
  };
  const either = () => {
    let value = both();
    while (take('||')) {
      const right = both();
      value = truthy(value) ? value : right;
    }
    return value;
  };
  const value = either();
  if (at !== list.length) throw new Error(`unread: ${text}`);
  return value;
}

// `text` with every ${{ … }} replaced.
export const filled = (text, contexts) =>
    String(text).replace(/\$\{\{(.*?)\}\}/gs, (_, inner) => String(evaluate(inner, contexts) ?? ''));

// `if:` of a step: without one of the status functions it also wants success.
export function holds(condition, contexts, ok) {
  if (condition === undefined) return ok;
  const text = String(condition).replace(/^\s*\$\{\{(.*)\}\}\s*$/s, '$1');
  const value = truthy(evaluate(text, contexts, {
    always: () => true, success: () => ok, failure: () => !ok, cancelled: () => false}));
  return /\b(always|success|failure|cancelled)\(\)/.test(text) ? value : ok && value;
}
