#version 450
layout(local_size_x_id = 3) in;
layout(set = 0, binding = 0) readonly buffer Input { uint data[]; } from;
layout(set = 0, binding = 1) writeonly buffer Output { uint data[]; } to;
layout(push_constant) uniform Push { uint more; };
void main() {
  to.data[gl_GlobalInvocationID.x] = from.data[gl_GlobalInvocationID.x] + more;
}
