#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::verdict {
namespace {

using profile::Measurement;
using profile::Profile;

std::string threads_word(const Profile* profile) {
  const std::int64_t threads = *profile->cell.threads;
  return threads == 0 ? "all" : std::to_string(threads);
}

// Rates, and counts of a token or a prefill.
bool is_shown(const unit::Metric& metric) {
  if (metric.kind != unit::Kind::count) return metric.better == unit::Better::higher;
  return metric.scope == unit::Scope::per_token || metric.scope == unit::Scope::per_prefill;
}

// Of an exact count on a line: "+29 a thread". How many "all" are is the machine's.
std::string each_thread(const std::vector<const Profile*>& group, const std::string& name) {
  std::vector<profile::ExactPoint> points;
  for (const Profile* one : group) {
    const Measurement& measured = one->metrics.at(name);
    if (*one->cell.threads > 0 && measured.exact) {
      points.push_back({*one->cell.threads, *measured.exact});
    }
  }
  const auto line = points.size() < 2 ? std::nullopt : profile::line_through(points);
  if (!line || line->slope == Rational(0)) return "";
  return fmt::format(" ({}{} a thread)", line->slope > Rational(0) ? "+" : "", line->slope.str());
}

// "futex waits/token 0.1, 37: …"; "" where nothing changes.
std::string over(const std::vector<const Profile*>& group, const std::string& name) {
  constexpr double k_more = 4;
  std::vector<std::string> words;
  std::vector<double> values;
  for (const Profile* one : group) {
    const Measurement* found = look_up(one->metrics, name);
    const auto value = found == nullptr ? std::nullopt : found->value();
    if (!value) return "";
    values.push_back(*value);
    words.push_back(unit::show(found->metric, *value));
  }
  if (std::ranges::adjacent_find(words, std::not_equal_to<>()) == words.end()) return "";
  const unit::Metric& metric = group.front()->metrics.at(name).metric;
  const double most = values.back();
  const bool serialises =
      metric.base == "futex_waits" && most >= 1 && most > k_more * values.front();
  return fmt::format("{} {}{}{}", unit::label(metric), text::join(words), each_thread(group, name),
                     serialises ? ", so that threads wait for each other: a lock serialises" : "");
}

}  // namespace

std::vector<std::string> over_threads(std::span<const Profile> profiles) {
  std::map<std::string, std::vector<const Profile*>> groups;
  for (const Profile& profile : profiles) {
    if (!profile.cell.threads) continue;
    profile::CellKey key = profile.cell;
    key.threads.reset();
    groups[key.str()].push_back(&profile);
  }
  std::vector<std::string> lines;
  for (auto& [cell, group] : groups) {
    std::ranges::stable_sort(group, {}, [](const Profile* one) {
      return std::pair(*one->cell.threads == 0, *one->cell.threads);
    });
    std::vector<std::string> changes;
    for (const auto& [name, measured] : group.front()->metrics) {
      if (!is_shown(measured.metric)) continue;
      if (std::string words = over(group, name); !words.empty())
        changes.push_back(std::move(words));
    }
    if (group.size() < 2 || changes.empty()) continue;
    const auto threads = collect<std::string>(group, threads_word);
    lines.push_back(fmt::format("{} over {} threads: {}", cell, text::join(threads),
                                text::join(changes, "; ")));
  }
  return lines;
}

}  // namespace weir::verdict
