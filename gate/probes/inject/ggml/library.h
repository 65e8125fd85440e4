// Which ggml a call was meant for.
//
// A preloaded function is found before ggml's own by everything in the process, also by libraries
// that were opened privately (Python, Node: RTLD_LOCAL), of which there may be several with a ggml
// each. The call goes on to where it would have gone without the probe: to the ggml of the global
// scope, else to that of the library which called.
#pragma once

#include "gate/probes/inject/ggml/ggml.h"

namespace weir_probe {

// An int and no class: atomic operations take nothing else everywhere.
enum Layout : int { k_unproven, k_fits, k_unknown };

struct Library {
  Functions ggml;
  int layout;        // atomic; a Layout
  int tensors_seen;  // atomic; how many were held against the layout
};

// Whom the innermost of the calls meant that this thread has passed on, or null. What ggml calls
// from within as its last act comes back with a return address of the probe's own: it means the
// same.
extern __thread Library* t_meant __attribute__((tls_model("initial-exec")));

// Null when no ggml can be found, after one line on stderr. `caller` is the return address of the
// interposed function. Without a lock once a call site is known.
Library* library_for(const void* caller);

// The file of the library that `address` lies in, or null.
const char* file_of(const void* address);

void reset_library_locks_after_fork();

// Can the tensor itself be read? Proven with the first tensors; where one does not fit, never
// again.
bool readable(Library* library, const Tensor* tensor);

}  // namespace weir_probe
