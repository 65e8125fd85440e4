// hollow_whisper.mjs FILE: a model in whisper.cpp's own format with two layers a side, and a hole for its weights.
// Each 30 s of audio become 8 tokens of one letter: all words are equally likely, none ends the text, and a text
// has half the context less 4.
import {closeSync, ftruncateSync, openSync, writeSync} from "node:fs";

const state = 128, heads = 2, layers = 2, audio = 1500, text = 2 * (8 + 4), mels = 80, vocabulary = 51864;
const file = openSync(process.argv[2], "w");
let at = 0;
const write = (...parts) => {
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : Buffer.from(Int32Array.of(part).buffer);
    at += writeSync(file, bytes, 0, bytes.length, at);
  }
};
const f32 = 0, f16 = 1;
const tensor = (name, type, ...sizes) => {
  write(sizes.length, name.length, type, ...sizes, name);
  at += sizes.reduce((a, b) => a * b) * (type === f16 ? 2 : 4);
};
const linear = (name, from, to, bias = true) => {
  tensor(`${name}.weight`, f16, from, to);
  if (bias) tensor(`${name}.bias`, f32, to);
};
const norm = (name) => ["weight", "bias"].forEach((part) => tensor(`${name}.${part}`, f32, state));
const attention = (name) => {
  norm(`${name}_ln`);
  for (const part of ["query", "key", "value", "out"]) linear(`${name}.${part}`, state, state, part !== "key");
};

write(0x67676d6c, vocabulary, audio, state, heads, layers, text, state, heads, layers, mels, f16);
write(mels, 201);
at += mels * 201 * 4;
write(2, 1, "a", 1, " "); // the other words are whisper's own to name
tensor("encoder.positional_embedding", f32, state, audio);
tensor("encoder.conv1.weight", f16, 3, mels, state);
tensor("encoder.conv1.bias", f32, 1, state);
tensor("encoder.conv2.weight", f16, 3, state, state);
tensor("encoder.conv2.bias", f32, 1, state);
tensor("decoder.positional_embedding", f32, state, text);
tensor("decoder.token_embedding.weight", f16, state, vocabulary);
norm("encoder.ln_post");
norm("decoder.ln");
for (const side of ["encoder", "decoder"]) {
  for (let i = 0; i < layers; ++i) {
    const block = `${side}.blocks.${i}`;
    attention(`${block}.attn`);
    if (side === "decoder") attention(`${block}.cross_attn`);
    norm(`${block}.mlp_ln`);
    linear(`${block}.mlp.0`, state, 4 * state);
    linear(`${block}.mlp.2`, 4 * state, state);
  }
}
ftruncateSync(file, at);
closeSync(file);
