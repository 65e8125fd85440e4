// A burst of requests that are all queued before the server computes the first: what batches it
// makes of them is then the same in every run, whatever else the machine does. Sees what the server
// has read, and which of its threads sleep.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/load/load.hpp"
#include "gate/probes/read/hold.hpp"
#include "gate/sys/resting.hpp"

namespace weir::run {

// Error for "hold: all" at a prompt.
inline constexpr std::string_view k_hold_unsupported =
    "hold: all: no probe can hold this server; that takes the ggml probe (or on a Vulkan device "
    "the "
    "vulkan probe) in a server that weir starts on this machine, under Linux\n"
    "  write \"hold: none\", or leave it out, to count requests as they happen to meet";

class ServerHold final : public load::Queue {
 public:
  // For the server at `url` (a port of this machine), whose probes write into `folder`.
  ServerHold(const sys::Files& files, const std::string& folder, const std::string& url,
             const sys::Stop& stop);

  // True if anything in the server can be held back.
  [[nodiscard]] bool can_hold() const { return !pages_.processes().empty(); }
  [[nodiscard]] bool hold() override;
  [[nodiscard]] bool has_queued(std::int64_t requests) override;
  void release() override { pages_.release(); }
  [[nodiscard]] std::string why() const override { return reason_; }

 private:
  probes::Hold pages_;
  sys::Resting threads_;
  std::optional<int> port_;
  const sys::Stop& stop_;
  std::int64_t connections_before_ = 0, last_read_ = 0;
  std::string reason_;
};

// Returns how many tokens each request of a burst asks for: from half of `tokens` to one and a
// half, `tokens` on average, and neither rising nor falling, so that some end while others are
// under way.
[[nodiscard]] std::vector<std::int64_t> burst_token_counts(std::int64_t tokens,
                                                           std::int64_t requests);

}  // namespace weir::run
