// Numbers as the file has them: base64 of varints, column after column. No object is made of an event.

export function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Reads unsigned LEB128 one after the other.
export class Varints {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  next() {
    const {bytes} = this;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let factor = 128;
    do {
      byte = bytes[this.at++];
      if (byte === undefined || factor > 2 ** 49) throw new Error('this file is cut short or damaged');
      value += (byte & 127) * factor; // beyond 32 bits: no shifts
      factor *= 128;
    } while (byte >= 128);
    return value;
  }

  signed() {
    const value = this.next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  // `count` numbers; each at most `most`.
  column(count, most = Infinity) {
    const column = new Float64Array(count);
    for (let i = 0; i < count; ++i) {
      column[i] = this.next();
      if (!(column[i] <= most)) throw new Error('this file is cut short or damaged');
    }
    return column;
  }
}
