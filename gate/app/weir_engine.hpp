// Where weir-engine is, the reference engine (docs/engine.md).
#pragma once

#include <string>

#include "gate/base/result.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

// `given` where it names one (--engine), else the engine as a build leaves it or an installation
// has it, below the folder of `program` (weir itself, absolute) or the one above. Code::usage where
// there is none at `given`, Code::unavailable with where it was looked for and how to get it; `who`
// needs it: "the demo".
[[nodiscard]] Result<std::string> find_weir_engine(const sys::Files& files,
                                                   const std::string& given,
                                                   const std::string& program,
                                                   const std::string& who);

}  // namespace weir::app
