#include "gate/serve/rate.hpp"

#include <algorithm>
#include <vector>

namespace weir::serve {

std::optional<double> Rates::take(const std::string& key, double now) {
  const std::lock_guard lock(mutex_);
  auto found = buckets_.find(key);
  if (found == buckets_.end()) {
    if (buckets_.size() >= rate_.keys) make_room(now);
    found = buckets_.emplace(key, Bucket{rate_.burst, now}).first;
  }
  Bucket& bucket = found->second;
  bucket.left = std::min(rate_.burst, bucket.left + (now - bucket.at) * rate_.a_second);
  bucket.at = now;
  if (bucket.left >= 1) {
    bucket.left -= 1;
    return std::nullopt;
  }
  return (1 - bucket.left) / rate_.a_second;
}

// Full buckets say nothing. Of the others those go that nobody asked for longest, an eighth of all
// at once: to look at all of them for each key that comes would be work that strangers can order.
void Rates::make_room(double now) {
  std::erase_if(buckets_, [&](const auto& one) {
    return one.second.left + (now - one.second.at) * rate_.a_second >= rate_.burst;
  });
  const std::size_t batch = std::max<std::size_t>(rate_.keys / 8, 1);
  const std::size_t kept = rate_.keys - std::min(rate_.keys, batch);
  if (buckets_.size() <= kept) return;
  std::size_t many = buckets_.size() - kept;
  std::vector<double> times;
  times.reserve(buckets_.size());
  for (const auto& [key, bucket] : buckets_) times.push_back(bucket.at);
  const auto last = times.begin() + static_cast<std::ptrdiff_t>(many - 1);
  std::nth_element(times.begin(), last, times.end());
  std::erase_if(buckets_, [&](const auto& one) {
    const bool goes = many > 0 && one.second.at <= *last;
    if (goes) --many;
    return goes;
  });
}

}  // namespace weir::serve
