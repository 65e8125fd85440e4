// Fuzz target: any bytes as a file of requests. What is read can be sent: no more than was asked
// for, each with a prompt and tokens, in the order of their times, turns behind those they wait
// for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/adapters/workload.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t k_max_requests = 20;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::int64_t turns : {1, 3}) {
    const auto requests = weir::adapters::read_workload(text, 16, k_max_requests, turns);
    if (!requests) continue;
    if (requests->empty() || requests->size() > k_max_requests) std::abort();
    double last = 0;
    for (std::size_t i = 0; i < requests->size(); ++i) {
      const weir::adapters::WorkloadRequest& request = (*requests)[i];
      if (request.prompt.empty() || request.tokens < 1 || request.at.value_or(last) < last)
        std::abort();
      if (request.after && (turns == 1 || *request.after + 1 != i)) std::abort();
      last = request.at.value_or(last);
    }
  }
  return 0;
}
