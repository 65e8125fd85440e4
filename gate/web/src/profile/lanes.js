// Which row of its track an event lies in: what begins while another goes on lies one below it.

// start: ascending; of events that begin together the longer one first. -> {lane, parent, lanes}: for each event its row and
// the event that it lies within wholly (-1: none), and how many rows there are. Rows beyond `most` are the last one.
export function laneOf(start, length, most) {
  const count = start.length;
  const lane = new Uint8Array(count);
  const parent = new Int32Array(count).fill(-1);
  const last = [];   // the event that each row ends with
  const ends = [];
  for (let i = 0; i < count; ++i) {
    const end = start[i] + length[i];
    let row = 0;
    while (row < ends.length && ends[row] > start[i]) ++row;
    row = Math.min(row, most - 1);
    lane[i] = row;
    const above = row > 0 ? last[row - 1] : -1;
    if (above >= 0 && ends[row - 1] >= end && ends[row - 1] > start[i]) parent[i] = above;
    last[row] = i;
    ends[row] = Math.max(end, row === most - 1 ? ends[row] ?? 0 : 0);
  }
  return {lane, parent, lanes: ends.length};
}
