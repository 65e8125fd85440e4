#version 450
#extension GL_GOOGLE_include_directive : require
// Products of up to three matrices with one vector: y = W x, or y += W x.
#include "lanes.glsl"
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer W0 { uint w0[]; };
layout(binding = 2) readonly buffer W1 { uint w1[]; };
layout(binding = 3) readonly buffer W2 { uint w2[]; };
layout(binding = 4) buffer Y0 { float y0[]; };
layout(binding = 5) buffer Y1 { float y1[]; };
layout(binding = 6) buffer Y2 { float y2[]; };
layout(push_constant) uniform Push { uint columns, rows0, rows1, rows2, add; };

uint word(uint matrix, uint index) {
  return matrix == 0 ? w0[index] : matrix == 1 ? w1[index] : w2[index];
}
#include "weights.glsl"

void main() {
  const uint rows = rows0 + rows1 + rows2;
  for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
    const uint matrix = row < rows0 ? 0 : row < rows0 + rows1 ? 1 : 2;
    const uint own = row - (matrix == 0 ? 0 : matrix == 1 ? rows0 : rows0 + rows1);
    const float sum = sum_of_row(matrix, own, columns);
    if (gl_LocalInvocationID.x != 0) continue;
    if (matrix == 0) y0[own] = add != 0 ? y0[own] + sum : sum;
    if (matrix == 1) y1[own] = add != 0 ? y1[own] + sum : sum;
    if (matrix == 2) y2[own] = add != 0 ? y2[own] + sum : sum;
  }
}
