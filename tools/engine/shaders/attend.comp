#version 450
#extension GL_GOOGLE_include_directive : require
// attended = softmax(query . keys / sqrt(size)) . values; a workgroup for each head.
#include "lanes.glsl"
layout(binding = 0) readonly buffer Query { float query[]; };
layout(binding = 1) readonly buffer Keys { float keys[]; };
layout(binding = 2) readonly buffer Values { float values[]; };
layout(binding = 3) coherent buffer Scores { float scores[]; };
layout(binding = 4) writeonly buffer Attended { float attended[]; };
layout(push_constant) uniform Push { uint size, kv_size, heads_per_kv, count, context; };

void main() {
  const uint head = gl_WorkGroupID.x, lane = gl_LocalInvocationID.x;
  const uint kv = head / heads_per_kv * size, own = head * context;
  float largest = uintBitsToFloat(0xff800000u);  // minus infinity
  for (uint at = lane; at < count; at += k_lanes) {
    float sum = 0;
    for (uint i = 0; i < size; ++i) sum += query[head * size + i] * keys[at * kv_size + kv + i];
    scores[own + at] = sum * inversesqrt(float(size));
    largest = max(largest, scores[own + at]);
  }
  largest = largest_of_lanes(largest);
  float part = 0;
  for (uint at = lane; at < count; at += k_lanes) {
    scores[own + at] = exp(scores[own + at] - largest);
    part += scores[own + at];
  }
  memoryBarrierBuffer();
  const float total = sum_of_lanes(part);  // all threads see all scores from here on
  for (uint i = lane; i < size; i += k_lanes) {
    float sum = 0;
    for (uint at = 0; at < count; ++at) sum += scores[own + at] * values[at * kv_size + kv + i];
    attended[head * size + i] = sum / total;
  }
}
