// A small kernel in several forms, for code_changes_test.cpp.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 2) const uint TILE = 32;
layout(constant_id = 3) const float SCALE = 0.5;
layout(constant_id = 4) const bool CAUSAL = false;
layout(set = 0, binding = 0) readonly buffer In { float from[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float to[]; };
#ifdef MASK
layout(set = 0, binding = 2) readonly buffer Mask { float mask[]; };
#endif
#ifdef HALF
#define FLOAT float16_t
#else
#define FLOAT float
#endif
shared FLOAT tile[TILE * 4 + 1];
shared vec3 corners[2];

void main() {
  const uint at = gl_GlobalInvocationID.x;
  tile[gl_LocalInvocationID.x] = FLOAT(from[at]);
  corners[gl_LocalInvocationID.x % 2] = vec3(from[at]);
  barrier();
  FLOAT sum = FLOAT(0);
#ifdef ROLLED
  [[dont_unroll]]
#else
  [[unroll]]
#endif
  for (uint i = 0; i < TILE; ++i) {
#ifdef ADDED
    sum += tile[i] + FLOAT(SCALE);
#else
    sum += tile[i] * FLOAT(SCALE);
#endif
  }
#ifdef MASK
  sum += FLOAT(mask[at]);
#endif
  if (CAUSAL) sum = FLOAT(0);
  to[at] = float(sum) + corners[0].x * LITERAL;
}
