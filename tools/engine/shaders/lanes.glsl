// One workgroup of 32 threads works on one row, head or vector: each thread takes every 32nd value,
// then all are added up.
#ifdef SERIAL  // a planted fault: see weights.glsl
layout(local_size_x = 1) in;
#else
layout(local_size_x = 32) in;
#endif

const uint k_lanes = 32;
shared float shared_values[k_lanes];

float sum_of_lanes(float mine) {
  const uint lane = gl_LocalInvocationID.x;
  shared_values[lane] = mine;
  barrier();
  for (uint half_lanes = k_lanes / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) shared_values[lane] += shared_values[lane + half_lanes];
    barrier();
  }
  const float all = shared_values[0];
  barrier();
  return all;
}

float largest_of_lanes(float mine) {
  const uint lane = gl_LocalInvocationID.x;
  shared_values[lane] = mine;
  barrier();
  for (uint half_lanes = k_lanes / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes)
      shared_values[lane] = max(shared_values[lane], shared_values[lane + half_lanes]);
    barrier();
  }
  const float all = shared_values[0];
  barrier();
  return all;
}
