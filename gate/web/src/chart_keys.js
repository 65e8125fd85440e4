// A graph under the keyboard.

// of: {series, chart(), at(), point(i)} -> a listener for keydown.
export function keysOf(of) {
  const last = of.series.value.length - 1;
  const held = (i) => Math.min(last, Math.max(0, i));
  const change = (way) => {
    const places = of.series.changes.map((one) => one.index);
    const next = way > 0 ? places.find((i) => i > of.at()) : places.findLast((i) => i < of.at());
    if (next !== undefined) of.point(next);
  };
  const acts = {
    ArrowLeft: () => of.point(held(of.at() - 1)),
    ArrowRight: () => of.point(held(of.at() + 1)),
    PageUp: () => of.point(held(of.at() - Math.max(10, Math.round(last / 20)))),
    PageDown: () => of.point(held(of.at() + Math.max(10, Math.round(last / 20)))),
    Home: () => of.point(0),
    End: () => of.point(last),
    '+': () => of.chart().zoom(0.5),
    '=': () => of.chart().zoom(0.5),
    '-': () => of.chart().zoom(2),
    0: () => of.chart().showAll(),
    n: () => change(1),
    p: () => change(-1),
    'Shift+ArrowLeft': () => of.chart().pan(-0.25),
    'Shift+ArrowRight': () => of.chart().pan(0.25),
  };
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const name = event.shiftKey && event.key.startsWith('Arrow') ? `Shift+${event.key}` : event.key;
    if (!Object.hasOwn(acts, name)) return;
    event.preventDefault();
    acts[name]();
  };
}
