#include "gate/verdict/limits.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/unit/metric.hpp"

namespace weir::verdict {
namespace {

bool matches(const std::string& glob, std::string_view name) {
  return glob.empty() || text::glob_match(glob, name);
}

MaxChange with_tolerance(const Amount& amount, const std::optional<Amount>& tolerate) {
  return {amount, tolerate.value_or(Amount{amount.value / 2, amount.relative})};
}

bool is_count(const unit::Metric& metric) { return metric.kind == unit::Kind::count; }

// Which kinds make sense for a metric. An entry may cover many metrics ("*"): each takes of it what
// it can be held to.
struct Fitting {
  bool exact, max_drop, max_increase, max_decrease;
};
Fitting fitting(const unit::Metric& metric) {
  const bool higher = metric.better == unit::Better::higher;
  if (is_count(metric)) return {true, false, true, true};
  return {false, higher, !higher, false};
}

void apply(const LimitEntry& entry, const Fitting& fits, Limit& limit) {
  if (entry.exact && fits.exact) limit.exact = *entry.exact;
  if (entry.max_drop && fits.max_drop) {
    limit.max_drop = with_tolerance(*entry.max_drop, entry.tolerate);
  }
  if (entry.max_increase && fits.max_increase) {
    limit.max_increase = with_tolerance(*entry.max_increase, entry.tolerate);
  }
  if (entry.max_decrease && fits.max_decrease) {
    limit.max_decrease = with_tolerance(*entry.max_decrease, entry.tolerate);
  }
  if (entry.max) limit.max = entry.max;
  if (entry.min) limit.min = entry.min;
  if (entry.mode) {
    limit.mode = *entry.mode;
    limit.reason = entry.reason;
  } else if (entry.reason) {
    limit.reason = entry.reason;
  }
}

LimitEntry entry_for(std::vector<std::string> metrics) {
  LimitEntry entry;
  entry.metrics = std::move(metrics);
  entry.source = "default";
  return entry;
}

std::string either_way(const std::optional<MaxChange>& change, std::string_view verb) {
  return change ? fmt::format("may {} {}", verb, show(change->amount)) : std::string();
}

std::optional<std::string> bad_amount(std::string_view kind, const std::optional<Amount>& amount) {
  if (amount && (!std::isfinite(amount->value) || amount->value < 0)) {
    return fmt::format("{} must not be negative", kind);
  }
  return std::nullopt;
}

}  // namespace

bool Match::fits(const profile::CellKey& cell) const {
  return (matches(engine, cell.engine) || matches(engine, cell.engine_part())) &&
         matches(model, cell.model) && matches(backend, cell.backend) &&
         (matches(prompt, cell.prompt) || matches(prompt, cell.prompt_part())) &&
         matches(variant, cell.variant);
}

bool LimitEntry::covers(const profile::CellKey& cell, std::string_view metric_name) const {
  return match.fits(cell) &&
         (metrics.empty() || std::any_of(metrics.begin(), metrics.end(), [&](const auto& glob) {
            return text::glob_match(glob, metric_name);
          }));
}

bool Limit::any() const { return exact || max_drop || max_increase || max_decrease || max || min; }

std::string Limit::words() const {
  std::vector<std::string> parts;
  if (exact) {
    parts.push_back(repeats_within ? fmt::format("may vary by {:.2g} %", 100 * *repeats_within)
                                   : std::string("must not change"));
  }
  for (const auto& part : {either_way(max_drop, "drop"), either_way(max_increase, "rise"),
                           either_way(max_decrease, "fall")}) {
    if (!part.empty()) parts.push_back(part);
  }
  if (min && max) {
    parts.push_back(fmt::format("{} to {}", show(*min), show(*max)));
  } else if (max) {
    parts.push_back(fmt::format("at most {}", show(*max)));
  } else if (min) {
    parts.push_back(fmt::format("at least {}", show(*min)));
  }
  return text::join(parts);
}

const std::vector<LimitEntry>& default_limits() {
  static const auto k_defaults = [] {
    std::vector<LimitEntry> entries;
    LimitEntry counts = entry_for(
        {"*_per_token", "*_per_prefill", "*_at_*", "*_per_context_token", "kernels", "placement"});
    counts.exact = true;
    LimitEntry rates = entry_for({"*tokens_per_second"});
    rates.max_drop = Amount{0.05, true};
    LimitEntry over_a_list = entry_for({"*_at_zero_context", "*_per_context_token"});
    over_a_list.max_increase = Amount{0.10, true};
    // A count over a list is exact, which max_increase beside it would only repeat.
    entries.push_back(std::move(over_a_list));
    entries.push_back(std::move(counts));
    entries.push_back(std::move(rates));
    // Greedy and with a fixed seed an answer is as good each time: little may change.
    LimitEntry worse = entry_for({"perplexity"});
    worse.max_increase = Amount{0.01, true};
    entries.push_back(std::move(worse));
    LimitEntry agreement = entry_for({"greedy_agreement"});
    agreement.max_drop = Amount{0.01, true};
    entries.push_back(std::move(agreement));
    return entries;
  }();
  return k_defaults;
}

Limit resolve_limit(const profile::CellKey& cell, const unit::Metric& metric,
                    std::span<const LimitEntry> entries) {
  Limit limit;
  const Fitting fits = fitting(metric);
  for (const LimitEntry& entry : default_limits()) {
    // A kernel may be called anything, "x_per_token" too.
    if (unit::names_work(metric.name)) break;
    Fitting of_default = fits;
    if (is_count(metric)) of_default.max_increase = false;
    if (entry.covers(cell, metric.name)) apply(entry, of_default, limit);
  }
  for (const LimitEntry& entry : entries) {
    if (entry.covers(cell, metric.name)) apply(entry, fits, limit);
  }
  return limit;
}

Limit resolve_special(const profile::CellKey& cell, std::string_view name,
                      std::span<const LimitEntry> entries) {
  Limit limit;
  const Fitting fits{true, false, false, false};
  const auto apply_special = [&](LimitEntry entry) {
    if (!entry.covers(cell, name)) return;
    entry.max.reset();
    entry.min.reset();
    apply(entry, fits, limit);
  };
  for (const LimitEntry& entry : default_limits()) apply_special(entry);
  for (const LimitEntry& entry : entries) apply_special(entry);
  return limit;
}

std::optional<std::string> bad_tolerate(const LimitEntry& entry) {
  if (!entry.tolerate) return std::nullopt;
  bool beside = false;
  for (const auto* kind : {&entry.max_drop, &entry.max_increase, &entry.max_decrease}) {
    if (!*kind) continue;
    beside = true;
    if ((*kind)->relative != entry.tolerate->relative || entry.tolerate->value >= (*kind)->value) {
      return fmt::format(
          "tolerate ({}) must be smaller than the limit beside it ({}), and of its "
          "kind",
          show(*entry.tolerate), show(**kind));
    }
  }
  if (beside) return std::nullopt;
  return "tolerate goes with max_drop, max_increase or max_decrease";
}

std::optional<std::string> nonsense(const LimitEntry& entry, const unit::Metric& metric) {
  const bool higher = metric.better == unit::Better::higher;
  if (entry.exact.value_or(false) && !is_count(metric)) {
    return fmt::format(
        "exact makes no sense for {}: times and memory vary from run to run "
        "(use {})",
        metric.name, higher ? "max_drop" : "max_increase");
  }
  if (entry.max_drop && is_count(metric)) {
    return fmt::format(
        "max_drop makes no sense for the count {} (use exact, max_increase or "
        "max_decrease)",
        metric.name);
  }
  if (entry.max_drop && !higher) {
    return fmt::format("max_drop makes no sense for {}, where lower is better (use max_increase)",
                       metric.name);
  }
  if (entry.max_increase && !is_count(metric) && higher) {
    return fmt::format("max_increase makes no sense for {}, where higher is better (use max_drop)",
                       metric.name);
  }
  if (entry.max_decrease && !is_count(metric)) {
    return fmt::format("max_decrease is for counts; {} takes {}", metric.name,
                       higher ? "max_drop" : "max_increase");
  }
  for (const auto& [kind, amount] :
       {std::pair{"max_drop", entry.max_drop}, std::pair{"max_increase", entry.max_increase},
        std::pair{"max_decrease", entry.max_decrease}, std::pair{"tolerate", entry.tolerate}}) {
    if (auto bad = bad_amount(kind, amount)) return bad;
  }
  constexpr double k_most = 0.9;
  if (entry.max_drop && entry.max_drop->relative && entry.max_drop->value >= k_most) {
    return std::string("max_drop must be below 90 %");
  }
  if (auto bad = bad_tolerate(entry)) return bad;
  if ((entry.max && entry.max->relative) || (entry.min && entry.min->relative)) {
    return std::string("max and min are plain numbers, not percentages");
  }
  if (entry.max && entry.min && entry.min->value > entry.max->value) {
    return std::string("min is above max");
  }
  return std::nullopt;
}

std::string show(const Amount& amount) {
  return amount.relative ? fmt::format("{:.4g} %", amount.value * 100)
                         : fmt::format("{:.10g}", amount.value);
}

}  // namespace weir::verdict
