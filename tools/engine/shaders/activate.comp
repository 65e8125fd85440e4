#version 450
// gate = silu(gate) * up
layout(local_size_x = 64) in;
layout(binding = 0) buffer Gate { float gate[]; };
layout(binding = 1) readonly buffer Up { float up[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < count) gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
}
