// A lane's part of a row of weights times x, and the whole. Needs lanes.glsl, word(matrix, index) and x[].
// F32 and F16 are as in the file; blocks of Q8_0 and Q4_0 are the scale as a float and then the
// quants (tools/engine/pack.cpp): whole words, where the file has 34 and 18 bytes.
#ifdef F32
float part_of_row(uint matrix, uint row, uint columns, uint lane) {
  float sum = 0;
  for (uint i = lane; i < columns; i += k_lanes)
    sum += uintBitsToFloat(word(matrix, row * columns + i)) * x[i];
  return sum;
}
#endif
#ifdef F16
float part_of_row(uint matrix, uint row, uint columns, uint lane) {
  float sum = 0;
  for (uint i = lane; i < columns / 2; i += k_lanes)
    sum += dot(unpackHalf2x16(word(matrix, row * (columns / 2) + i)), vec2(x[2 * i], x[2 * i + 1]));
  return sum;
}
#endif
#ifdef Q8_0
float part_of_row(uint matrix, uint row, uint columns, uint lane) {
  float sum = 0;
  for (uint i = lane; i < columns / 4; i += k_lanes) {
    const uint block = (row * (columns / 32) + i / 8) * 9;
    const int quants = int(word(matrix, block + 1 + i % 8));
    const vec4 values = vec4(bitfieldExtract(quants, 0, 8), bitfieldExtract(quants, 8, 8),
                             bitfieldExtract(quants, 16, 8), bitfieldExtract(quants, 24, 8));
    sum += uintBitsToFloat(word(matrix, block)) *
           dot(values, vec4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]));
  }
  return sum;
}
#endif
#ifdef Q4_0
float part_of_row(uint matrix, uint row, uint columns, uint lane) {
  float sum = 0;
  // A word has the low halves of 4 values, and above them those of the 4 values 16 further on.
  for (uint i = lane; i < columns / 8; i += k_lanes) {
    const uint block = (row * (columns / 32) + i / 4) * 5;
    const uint quants = word(matrix, block + 1 + i % 4);
    const uint first = i / 4 * 32 + i % 4 * 4;
    float values = 0;
    for (uint at = 0; at < 4; ++at) {
      values += (float(bitfieldExtract(quants, int(8 * at), 4)) - 8) * x[first + at];
      values += (float(bitfieldExtract(quants, int(8 * at + 4), 4)) - 8) * x[first + 16 + at];
    }
    sum += uintBitsToFloat(word(matrix, block)) * values;
  }
  return sum;
}
#endif

#ifdef SERIAL  // --inject slow-kernel: one thread does in turn what 32 do at once, to the same bits
float sum_of_row(uint matrix, uint row, uint columns) {
  float lanes[k_lanes];
  for (uint lane = 0; lane < k_lanes; ++lane) lanes[lane] = part_of_row(matrix, row, columns, lane);
  for (uint half_lanes = k_lanes / 2; half_lanes > 0; half_lanes /= 2) {
    for (uint lane = 0; lane < half_lanes; ++lane) lanes[lane] += lanes[lane + half_lanes];
  }
  return lanes[0];
}
#else
float sum_of_row(uint matrix, uint row, uint columns) {
  return sum_of_lanes(part_of_row(matrix, row, columns, gl_LocalInvocationID.x));
}
#endif
