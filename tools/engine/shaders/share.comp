#version 450
#extension GL_GOOGLE_include_directive : require
// The softmax of the largest of the logits.
#include "lanes.glsl"
layout(binding = 0) readonly buffer Logits { float logits[]; };
layout(binding = 1) writeonly buffer Chosen { uint token; float share; };
layout(push_constant) uniform Push { uint count; };

void main() {
  const uint lane = gl_LocalInvocationID.x;
  float largest = logits[0];
  for (uint i = lane; i < count; i += k_lanes) largest = max(largest, logits[i]);
  largest = largest_of_lanes(largest);
  float part = 0;
  for (uint i = lane; i < count; i += k_lanes) part += exp(logits[i] - largest);
  const float sum = sum_of_lanes(part);
  if (lane == 0) share = 1 / sum;
}
