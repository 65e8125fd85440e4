#version 450
// Turns pairs of query and key by the angles of their position; key and value go into the cache.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Query { vec2 query[]; };
layout(binding = 1) readonly buffer Key { vec2 key[]; };
layout(binding = 2) readonly buffer Value { vec2 value[]; };
layout(binding = 3) writeonly buffer Keys { vec2 keys[]; };
layout(binding = 4) writeonly buffer Values { vec2 values[]; };
layout(binding = 5) readonly buffer Angles { vec2 angles[]; };  // cos and sin
layout(push_constant) uniform Push { uint query_pairs, key_pairs, head_pairs, position; };

vec2 turned(vec2 pair, uint index) {
  const vec2 angle = angles[position * head_pairs + index % head_pairs];
  return vec2(pair.x * angle.x - pair.y * angle.y, pair.x * angle.y + pair.y * angle.x);
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < query_pairs) query[i] = turned(query[i], i);
  if (i < key_pairs) {
    keys[position * key_pairs + i] = turned(key[i], i);
    values[position * key_pairs + i] = value[i];
  }
}
