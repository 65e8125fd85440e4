// Base units as people read them. A metric says its unit; nothing is guessed from a name.

const TIMES = [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']];
const SIZES = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];
const MINUS = '\u2212';
const SPACE = '\u202f';

// The factor and name of a unit fit for numbers as large as `value`.
export function scaleFor(metric, value) {
  const steps = metric.unit === 's' ? TIMES : metric.unit === 'B' ? SIZES : null;
  if (!steps) return [1, metric.unit === 'tok/s' ? 'tok/s' : ''];
  return steps.find(([factor]) => Math.abs(value) >= factor) ?? steps[value === 0 ? 0 : steps.length - 1];
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  let text;
  if (Number.isInteger(value) && size < 1e15) text = String(size);
  else if (size !== 0 && (size >= 1e12 || size < 1e-6)) text = size.toExponential(digits - 1);
  else text = String(Number(size.toPrecision(size >= 10 ** digits ? String(Math.trunc(size)).length : digits)));
  const [whole, rest] = text.split('.');
  const grouped = /^\d{5,}$/.test(whole) ? whole.replace(/\B(?=(\d{3})+$)/g, SPACE) : whole;
  return (value < 0 ? MINUS : '') + grouped + (rest ? `.${rest}` : '');
}

export function show(metric, value, exact) {
  if (exact) return exact;
  if (value === null || value === undefined) return '–';
  const [factor, unit] = scaleFor(metric, value);
  return number(value / factor) + (unit ? `${SPACE}${unit}` : '');
}

// Numbers of an axis, all in one unit.
export function axisValues(metric, values) {
  const largest = Math.max(...values.filter((one) => one !== null).map(Math.abs), 0);
  const [factor, unit] = scaleFor(metric, largest);
  return values.map((one) => (one === null ? '' : number(one / factor) + (unit && unit !== 'tok/s' ? SPACE + unit : '')));
}

export function signed(text, value) {
  return value > 0 ? `+${text}` : text;
}

function percent(value) {
  return signed(number(Number((value * 100).toPrecision(3)), 3), value);
}

// "+4.1 %" or "+12": how much a change is.
export function changeText(metric, change) {
  if (change.relative) return `${percent(change.size)}${SPACE}%`;
  return signed(show(metric, change.size), change.size);
}

export function intervalText(metric, change) {
  if (change.low === change.high) return '';
  const of = (value) => (change.relative ? percent(value) : signed(show(metric, value), value));
  return `${of(change.low)} … ${of(change.high)}${change.relative ? `${SPACE}%` : ''}`;
}

// From one number to another: of counts the difference, else the ratio.
export function betweenText(metric, before, after) {
  if (before === after) return 'same';
  if (!before || metric.kind === 'count') return signed(show(metric, after - before), after - before);
  return `${percent(after / before - 1)}${SPACE}%`;
}

export function day(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

export function moment(seconds) {
  return `${new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

export function age(seconds) {
  const days = Math.floor((Date.now() / 1000 - seconds) / 86400);
  if (days < 1) return 'today';
  if (days < 60) return `${days} day${days === 1 ? '' : 's'}`;
  return days < 730 ? `${Math.floor(days / 30.4)} months` : `${Math.floor(days / 365.25)} years`;
}

export function counted(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}
