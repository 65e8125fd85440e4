// weir-devices [API...]: prints the devices of this machine as one JSON object (schema
// weir.devices/1), of all APIs ("vulkan", "opencl") or of those named. --describe prints whole
// descriptions of the Vulkan devices (weir.descriptions/1).
//
// A program of its own, so that a driver that crashes while it is asked takes only this down. It
// loads the loaders at run time: a machine without one has no such devices, which is an answer.
// Exit 0 with an answer, 1 where it could not print one, 2 for an API that it does not know.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/devices/print.h"

namespace {

struct List {
  const char* name;
  const char* (*print)();
  bool wanted;
};
List g_lists[] = {{"vulkan", weir_probe::print_vulkan_devices, false},
                  {"opencl", weir_probe::print_opencl_devices, false}};

bool want(const char* name) {
  bool known = false;
  for (List& list : g_lists) {
    if (name != nullptr && strcmp(list.name, name) != 0) continue;
    list.wanted = known = true;
  }
  return known;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "--describe") == 0) {
    printf("{\"schema\": \"weir.descriptions/1\", \"descriptions\": [");
    const char* error = weir_probe::describe_vulkan_devices();
    printf("], \"error\": ");
    if (error == nullptr) {
      printf("null");
    } else {
      weir_probe::print_string(error);
    }
    printf("}\n");
    if (fflush(stdout) != 0) return 1;
    _Exit(0);  // no driver's destructors
  }
  for (int i = 1; i < count; ++i) {
    if (want(arguments[i])) continue;
    fprintf(stderr, "weir-devices: unknown API \"%s\" (vulkan, opencl)\n", arguments[i]);
    return 2;
  }
  if (count <= 1) want(nullptr);
  printf("{\"schema\": \"weir.devices/1\"");
  for (const List& list : g_lists) {
    if (!list.wanted) continue;
    printf(", \"%s\": [", list.name);
    const char* error = list.print();
    printf("], \"%s_error\": ", list.name);
    if (error == nullptr) {
      printf("null");
    } else {
      weir_probe::print_string(error);
    }
  }
  printf("}\n");
  if (fflush(stdout) != 0) return 1;
  _Exit(0);  // no driver's destructors
}
