#version 450
#extension GL_GOOGLE_include_directive : require
// y = x / sqrt(mean(x * x) + epsilon) * weights
#include "lanes.glsl"
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer W { float weights[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push { uint count; float epsilon; };

void main() {
  float squares = 0;
  for (uint i = gl_LocalInvocationID.x; i < count; i += k_lanes) squares += x[i] * x[i];
  const float scale = inversesqrt(sum_of_lanes(squares) / float(count) + epsilon);
  for (uint i = gl_LocalInvocationID.x; i < count; i += k_lanes) y[i] = x[i] * scale * weights[i];
}
