#include "gate/serve/meters.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weir::serve {

void Histogram::observe(double seconds) {
  const auto at = std::lower_bound(k_bounds.begin(), k_bounds.end(), seconds);
  ++counts_[static_cast<std::size_t>(at - k_bounds.begin())];
  microseconds_ += static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e6);
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    all += counts_[i].load();
    const std::string bound = i < k_bounds.size() ? fmt::format("{}", k_bounds[i]) : "+Inf";
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, all);
  }
  const double seconds = static_cast<double>(microseconds_.load()) / 1e6;
  return text + fmt::format("{0}_sum {1}\n{0}_count {2}\n", name, seconds, all);
}

}  // namespace weir::serve
