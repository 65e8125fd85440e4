// onnx_model.mjs FILE [LAYERS [CHANGE]]: a small transformer in ONNX with fixed weights, as tests need one: in each layer a norm, query, key
// and value (MatMul and Add), attention over 16 tokens, and a feed-forward of two products. Its input x and output y
// are [16, 64]. Nothing is downloaded and nothing but Node is needed. CHANGE, as a commit would: "scale" adds a product
// with a number to each layer, "no-norm" leaves a norm out, "cpu" adds an op that WebGPU has no kernel for (Hardmax).
import {writeFileSync} from "node:fs";

const [tokens, width, wide] = [16, 64, 128];
const varint = value => {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
};
// Fields of a protobuf message, by onnx.proto's numbers.
const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, value) => {
  const body = Buffer.from(value);
  return Buffer.concat([varint(field * 8 + 2), varint(body.length), body]);
};
const all = (...parts) => Buffer.concat(parts.flat());

const k_float = 1, k_int64 = 7;
const tensor = (name, shape, values, type = k_float) => {
  const raw = type === k_float ? new Float32Array(values) : new BigInt64Array(values.map(BigInt));
  return bytes(5, all(shape.map(size => number(1, size)), number(2, type), bytes(8, name), bytes(9, Buffer.from(raw.buffer))));
};
const port = (field, name) => {
  const shape = all([tokens, width].map(size => bytes(1, number(1, size))));
  return bytes(field, all(bytes(1, name), bytes(2, bytes(1, all(number(1, k_float), bytes(2, shape))))));
};
const attribute = (name, value) => bytes(5, Array.isArray(value)
  ? all(bytes(1, name), value.map(one => number(8, one)), number(20, 7))
  : all(bytes(1, name), number(3, value), number(20, 2)));

export function make_model(layers, change) {
  const nodes = [], weights = [];
  let seed = 1;
  const weight = (name, shape) => {
    const values = Array.from({length: shape.reduce((a, b) => a * b)}, () => {
      seed = (seed * 48271) % 2147483647;
      return (seed / 2147483647 - 0.5) / 4;
    });
    weights.push(tensor(name, shape, values));
    return name;
  };
  const op = (type, inputs, output, attributes = {}) => {
    nodes.push(bytes(1, all(inputs.map(one => bytes(1, one)), bytes(2, output), bytes(3, output), bytes(4, type),
                            Object.entries(attributes).map(([name, value]) => attribute(name, value)))));
    return output;
  };
  const product = (input, output, from, to) => {
    const result = op("MatMul", [input, weight(`${output}.weight`, [from, to])], `${output}.product`);
    return op("Add", [result, weight(`${output}.bias`, [to])], output);
  };
  let x = "x";
  for (let layer = 0; layer < layers; ++layer) {
    const name = what => `layer${layer}.${what}`;
    const norm = (input, output) => op("LayerNormalization", [input, weight(`${output}.weight`, [width]), weight(`${output}.bias`, [width])], output);
    const seen = norm(x, name("norm"));
    const [q, k, v] = ["q", "k", "v"].map(one => product(seen, name(one), width, width));
    const scores = op("MatMul", [q, op("Transpose", [k], name("k_t"), {perm: [1, 0]})], name("scores"));
    const attended = op("MatMul", [op("Softmax", [scores], name("softmax"), {axis: 1}), v], name("attended"));
    x = op("Add", [x, product(attended, name("out"), width, width)], name("sum"));
    if (change === "scale") x = op("Mul", [x, weight(name("scale"), [1])], name("scaled"));
    if (change === "cpu") x = op("Hardmax", [x], name("hardmax"), {axis: 1});
    const seen2 = change === "no-norm" ? x : norm(x, name("norm2"));
    const up = op("Relu", [product(seen2, name("up"), width, wide)], name("relu"));
    x = op("Add", [x, product(up, name("down"), wide, width)], layer === layers - 1 ? "y" : name("sum2"));
  }
  const graph = all(nodes, bytes(2, "weir"), weights, port(11, "x"), port(12, "y"));
  return all(number(1, 8), bytes(2, "weir"), bytes(7, graph), bytes(8, all(bytes(1, ""), number(2, 17))));
}

if (process.argv[1]?.endsWith("onnx_model.mjs")) writeFileSync(process.argv[2], make_model(Number(process.argv[3] ?? 4), process.argv[4]));
