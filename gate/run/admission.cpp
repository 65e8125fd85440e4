#include "gate/run/admission.hpp"

#include <algorithm>
#include <utility>

#include "gate/run/starts.hpp"

namespace weir::run {

std::int64_t Admission::estimate(const PreparedCell& cell) const {
  if (const auto peak = peaks_.find(cell.cell.key.str()); peak != peaks_.end()) {
    return peak->second + peak->second / 5;
  }
  const auto model =
      static_cast<std::int64_t>(std::min<std::uint64_t>(cell.model_bytes, std::uint64_t{1} << 50));
  return model + model / 2 + (std::int64_t{256} << 20);
}

bool counts_alone(const PreparedCell& cell) {
  return cell.facts.sweep == profile::Sweep::overlapping;
}

bool Admission::admits(const PreparedCell& cell, std::optional<std::int64_t> available,
                       bool alone) const {
  if (running_ == 0) return true;
  if (alone || alone_) return false;
  if (running_ >= cores_ || !available) return false;
  if (!cell.on_cpu && devices_.contains(cell.cell.device)) return false;
  if (urls_.contains(only_address(cell))) return false;
  // What runs may not have taken yet what it was promised: `available` still counts it as free. It
  // is subtracted in full, as what it has taken already can not be told apart.
  return promised_ + estimate(cell) <= *available - *available / 5;
}

void Admission::started(const PreparedCell& cell, bool alone) {
  ++running_;
  alone_ = alone;
  const std::int64_t bytes = estimate(cell);
  promised_ += bytes;
  given_.emplace(cell.cell.key.str(), bytes);
  devices_.insert(cell.cell.device);
  if (std::string place = only_address(cell); !place.empty()) urls_.insert(std::move(place));
}

void Admission::ended(const PreparedCell& cell, std::optional<std::int64_t> peak_rss_bytes) {
  const std::string name = cell.cell.key.str();
  --running_;
  alone_ = false;
  if (const auto given = given_.find(name); given != given_.end()) {
    promised_ -= given->second;
    given_.erase(given);
  }
  if (const auto device = devices_.find(cell.cell.device); device != devices_.end()) {
    devices_.erase(device);
  }
  if (const auto place = urls_.find(only_address(cell)); place != urls_.end()) urls_.erase(place);
  if (peak_rss_bytes) peaks_[name] = std::max(peaks_[name], *peak_rss_bytes);
}

}  // namespace weir::run
