// The command line of weir-engine.
#pragma once

#include <string>

#include "tools/engine/decoder.hpp"
#include "tools/engine/faults.hpp"
#include "tools/engine/generate.hpp"

namespace weir::engine {

struct Options {
  std::string model;
  bool vulkan = false;
  unsigned device = 0;   // among Vulkan's, in the driver's order
  unsigned threads = 1;  // the CPU backend's
  std::uint32_t context = 4096;
  std::uint32_t prompt_tokens = 0;  // length of a made-up prompt, if `work.prompt` is empty
  Work work;
  Switches switches;
  std::vector<Fault> faults;  // each changes something (check_faults)
  bool json = false;
  std::string logits;  // a file; "": none
};

// Code::usage for a wrong command line. --help ends the process.
[[nodiscard]] Result<Options> parse_options(int argc, char** argv);

}  // namespace weir::engine
