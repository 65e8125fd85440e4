// What the events of a stretch of time add up to, by name and track.
import {firstReaching} from './model.js';
import {entryOf} from '../state.js';

// Of [from, to]: for each row of the model how many calls reach into it (`calls`), their time within it (`total`) and that without
// what is nested in them (`own`); of whole calls their time (`whole`), the least and the most. Nanoseconds.
export function addUp(model, from, to) {
  const rows = model.rows.length;
  const column = () => new Float64Array(rows);
  const out = {calls: column(), total: column(), own: column(), whole: column(), least: column().fill(Infinity), most: column(), bytes: column(), flops: column(), bytesTime: column(), flopsTime: column()};
  const bytes = Float64Array.from([0, ...model.details.map((one) => one.bytes ?? 0)]);
  const flops = Float64Array.from([0, ...model.details.map((one) => one.flops ?? 0)]);
  const {start, length, row, parent, detail} = model;
  for (const lane of model.lanes) {
    for (let i = firstReaching(model, lane, from); i < lane.to && start[i] <= to; ++i) {
      const end = start[i] + length[i];
      if (length[i] > 0 ? end <= from || start[i] >= to : start[i] < from || (start[i] === to && to < model.end)) continue;
      const at = row[i];
      const part = Math.min(end, to) - Math.max(start[i], from);
      out.calls[at] += 1;
      out.total[at] += part;
      out.own[at] += part;
      if (parent[i] >= 0) out.own[row[parent[i]]] -= part;
      out.whole[at] += length[i];
      if (length[i] < out.least[at]) out.least[at] = length[i];
      if (length[i] > out.most[at]) out.most[at] = length[i];
      if (detail[i] === 0) continue;
      out.bytes[at] += bytes[detail[i]];
      out.flops[at] += flops[detail[i]];
      if (bytes[detail[i]]) out.bytesTime[at] += length[i];
      if (flops[detail[i]]) out.flopsTime[at] += length[i];
    }
  }
  return out;
}

export const KINDS = [['cpu', 'CPU'], ['device', 'devices'], ['copy', 'copies'], ['marks', 'the engine’s marks'], ['async', 'other']];

// Rows for people: [{key, name, where, kind, rows, calls, total, own, share, average, least, most, bytes, rate, speed}]; what is not known is
// null. by: "track" (a row for each name on each track) or "name". Times are seconds.
export function tableRows(model, sums, by, kind) {
  const grouped = new Map();
  const kindTime = {};
  model.rows.forEach(({track, name}, index) => {
    const of = model.tracks[track].kind;
    kindTime[of] = (kindTime[of] ?? 0) + sums.own[index];
    if (!sums.calls[index] || (kind && of !== kind)) return;
    const key = by === 'name' ? `${of} ${name}` : `${track} ${name}`;
    entryOf(grouped, key, () => ({key, name, kind: of, rows: []})).rows.push(index);
  });
  return [...grouped.values()].map((row) => filled(model, sums, row, kindTime[row.kind]));
}

function filled(model, sums, row, kindTime) {
  const sum = (column) => row.rows.reduce((all, index) => all + sums[column][index], 0);
  const calls = sum('calls');
  const [bytes, flops] = [sum('bytes'), sum('flops')];
  return {
    key: row.key, rows: row.rows, kind: row.kind, name: model.names[row.name],
    where: row.rows.length > 1 ? `${row.rows.length} tracks` : model.tracks[model.rows[row.rows[0]].track].name,
    calls, total: sum('total') / 1e9, own: sum('own') / 1e9,
    share: kindTime > 0 ? sum('own') / kindTime : null, average: sum('whole') / calls / 1e9,
    least: row.rows.reduce((least, index) => Math.min(least, sums.least[index]), Infinity) / 1e9,
    most: row.rows.reduce((most, index) => Math.max(most, sums.most[index]), 0) / 1e9,
    bytes: bytes || null,
    rate: sum('bytesTime') ? bytes / (sum('bytesTime') / 1e9) : null,
    speed: sum('flopsTime') ? flops / (sum('flopsTime') / 1e9) : null,
  };
}
