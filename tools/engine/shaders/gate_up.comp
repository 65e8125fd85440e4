#version 450
#extension GL_GOOGLE_include_directive : require
// The first half of a feed-forward network in one kernel: y = silu(gate x) * (up x).
#include "lanes.glsl"
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Gate { uint gate[]; };
layout(binding = 2) readonly buffer Up { uint up[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push { uint columns, rows; };

uint word(uint matrix, uint index) { return matrix == 0 ? gate[index] : up[index]; }
#include "weights.glsl"

void main() {
  for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
    const float g = sum_of_row(0, row, columns);
    const float u = sum_of_row(1, row, columns);
    if (gl_LocalInvocationID.x == 0) y[row] = g / (1 + exp(-g)) * u;
  }
}
