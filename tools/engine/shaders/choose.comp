#version 450
#extension GL_GOOGLE_include_directive : require
// The largest of the logits, the first among equals.
#include "lanes.glsl"
layout(binding = 0) readonly buffer Logits { float logits[]; };
layout(binding = 1) writeonly buffer Chosen { uint token; float share; };
layout(push_constant) uniform Push { uint count; };

shared uint places[k_lanes];

void main() {
  const uint lane = gl_LocalInvocationID.x;
  uint best = min(lane, count - 1);
  for (uint i = best; i < count; i += k_lanes)
    if (logits[i] > logits[best]) best = i;
  places[lane] = best;
  const float largest = largest_of_lanes(logits[best]);
  if (lane != 0) return;
  uint first = count;
  for (uint i = 0; i < k_lanes; ++i)
    if (logits[places[i]] == largest) first = min(first, places[i]);
  token = min(first, count - 1);
}
