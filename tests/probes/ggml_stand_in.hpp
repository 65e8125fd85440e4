// The interface of a stand-in ggml (ggml_stand_in.cpp) for scenes, besides ggml's own functions.
#pragma once

#include <cstddef>

enum StandInCall { k_computed, k_synchronized, k_set, k_got, k_copied, k_fail };

struct StandIn {
  void* sched;
  void *cpu, *gpu;
  void *graph_of_1, *graph_of_7;  // kinds of graphs: one row, seven rows
  void* graph_of_many;            // 240 nodes, 200 of which work
  void* graph_of_3;               // three rows, with attention
  float* mask;                    // its mask: 3 rows of 8 places
  void *on_host, *on_gpu;         // tensors
  // Whole numbers, all but the last on the GPU: 3 sorted rows of 8, the first 2 of each row, the
  // largest of a row, none that an op computed; and sorted rows on the host.
  void *sorted, *top, *largest, *given, *sorted_on_host;
  unsigned long long* calls;  // by StandInCall: what reached the library; k_fail may be set
};
extern "C" StandIn stand_in();
