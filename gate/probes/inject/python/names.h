// Names of functions: the module and the qualified name, the same in every process and on every
// machine.
#pragma once

#include <stddef.h>

#include "gate/probes/inject/python/api.h"

namespace weir_probe::python {

// A text of limited length.
template <size_t size>
struct Text {
  char text[size];
  size_t length;
};
using Name = Text<160>;  // as weir_probe_function has it

// Names the function that a frame runs: "vllm.v1.core.sched.scheduler.Scheduler.schedule". Python
// 3.10 knows no class of it. Needs the interpreter's lock; keeps an error that is set.
void name_frame(const Api& api, Frame* frame, Object* code, Name* out);
// Names a function written in C: "len", "time.sleep", "torch._C.TensorBase.item".
void name_function(const Api& api, Object* function, const char* short_name, Name* out);

}  // namespace weir_probe::python
