// The ends of names by which users declare metrics.
#include "gate/unit/declared_metric.hpp"

#include <array>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::unit {
namespace {

struct NameEnd {
  std::string_view end, scale;
  Kind kind;
  Better better;
};
constexpr std::array k_name_ends{
    NameEnd{"_tokens_per_second", "tok/s", Kind::time, Better::higher},
    NameEnd{"_requests_per_second", "requests/s", Kind::time, Better::higher},
    NameEnd{"_per_second", "count", Kind::time, Better::higher},
    NameEnd{"_seconds", "s", Kind::time, Better::lower},
    NameEnd{"_ms", "ms", Kind::time, Better::lower},
    NameEnd{"_us", "us", Kind::time, Better::lower},
    NameEnd{"_bytes", "B", Kind::memory, Better::lower},
    NameEnd{"_kb", "kB", Kind::memory, Better::lower},
    NameEnd{"_mb", "MB", Kind::memory, Better::lower},
    NameEnd{"_gb", "GB", Kind::memory, Better::lower},
    NameEnd{"_kib", "KiB", Kind::memory, Better::lower},
    NameEnd{"_mib", "MiB", Kind::memory, Better::lower},
    NameEnd{"_gib", "GiB", Kind::memory, Better::lower},
    NameEnd{"_count", "count", Kind::count, Better::lower},
    NameEnd{"_ratio", "ratio", Kind::quality, Better::higher},
    NameEnd{"_rate", "ratio", Kind::quality, Better::higher},
    NameEnd{"_share", "ratio", Kind::quality, Better::higher},
};

}  // namespace

std::optional<DeclaredMetric> metric_of_name(std::string_view name) {
  const NameEnd* end =
      find_first(k_name_ends, [&](const NameEnd& row) { return name.ends_with(row.end); });
  const auto near = text::nearest(name, metric_names());
  const bool is_misspelt =
      near && near->size() <= name.size() + 1 && name.size() <= near->size() + 1;
  if (end == nullptr || is_misspelt) return std::nullopt;
  const Scale scale = parse_scale(end->scale).value();
  return DeclaredMetric{custom_metric(name, end->kind, scale.unit, end->better), scale};
}

std::string metric_name_ends() {
  std::vector<std::string> more, less, exact;
  for (const NameEnd& row : k_name_ends) {
    std::vector<std::string>& list = row.better == Better::higher ? more : less;
    (row.kind == Kind::count ? exact : list).emplace_back(row.end);
  }
  return fmt::format("{} (more is better), {} (less is better), {} (exact)", text::join(more),
                     text::join(less), text::join(exact));
}

std::string suggest_metric(std::string_view name) {
  const std::string* labeled = find_first(metric_names(), [&](const std::string& metric) {
    return display_name(find_metric(metric).value()) == name;
  });
  std::string meant(labeled == nullptr ? name : *labeled);
  if (std::ranges::find(count_bases(), name) != count_bases().end()) meant += "_per_token";
  return text::did_you_mean(meant, metric_names());
}

}  // namespace weir::unit
