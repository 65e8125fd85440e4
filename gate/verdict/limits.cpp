// Resolves the limit of one metric of one cell, and checks entries of the configuration.
#include "gate/verdict/limits.hpp"

#include <cmath>

#include "gate/base/text.hpp"

namespace weir::verdict {
namespace {

bool matches_glob(const std::string& glob, std::string_view name) {
  return glob.empty() || text::glob_match(glob, name);
}

bool is_count(const unit::Metric& metric) { return metric.kind == unit::Kind::count; }

bool is_rate(const unit::Metric& metric) {
  return !is_count(metric) && metric.better == unit::Better::higher;
}

// A limit on a change: its key, its verb in texts, its members, and the metrics that it applies to.
struct ChangeKind {
  const char* name;
  const char* verb;
  std::optional<Amount> LimitEntry::*in_entry;
  std::optional<MaxChange> Limit::*in_limit;
  bool (*fits)(const unit::Metric&);
};
constexpr ChangeKind k_changes[] = {
    {"max_drop", "drop", &LimitEntry::max_drop, &Limit::max_drop, is_rate},
    {"max_increase", "rise", &LimitEntry::max_increase, &Limit::max_increase,
     [](const unit::Metric& metric) { return !is_rate(metric); }},
    {"max_decrease", "fall", &LimitEntry::max_decrease, &Limit::max_decrease, is_count},
};

// Copies those settings of `entry` that make sense for `metric`; null (kernels, placement) takes
// only `exact`, `mode` and `reason`.
void apply(const LimitEntry& entry, const unit::Metric* metric, Limit& limit) {
  if (entry.exact && (metric == nullptr || is_count(*metric))) limit.exact = *entry.exact;
  for (const ChangeKind& kind : k_changes) {
    const auto& amount = entry.*kind.in_entry;
    if (!amount || metric == nullptr || !kind.fits(*metric)) continue;
    limit.*kind.in_limit =
        MaxChange{*amount, entry.tolerate.value_or(Amount{amount->value / 2, amount->relative})};
  }
  if (entry.max && metric != nullptr) limit.max = entry.max;
  if (entry.min && metric != nullptr) limit.min = entry.min;
  if (entry.mode) limit.mode = *entry.mode;
  if (entry.mode || entry.reason) limit.reason = entry.reason;
}

// An entry that stands for a default: a limit on a change by `share`, or without `kind` exact.
LimitEntry default_entry(std::vector<std::string> metrics,
                         std::optional<Amount> LimitEntry::*kind = nullptr, double share = 0) {
  LimitEntry entry;
  entry.metrics = std::move(metrics);
  entry.source = "default";
  if (kind != nullptr) {
    entry.*kind = Amount{share, true};
  } else {
    entry.exact = true;
  }
  return entry;
}

LimitEntry at_most(std::vector<std::string> metrics, double value) {
  LimitEntry entry = default_entry(std::move(metrics));
  entry.exact.reset();
  entry.max = Amount{value, false};
  return entry;
}

LimitEntry shown_only(std::vector<std::string> metrics) {
  LimitEntry entry = default_entry(std::move(metrics));
  entry.exact = false;
  return entry;
}

// The defaults of docs/reference/configuration.md (Limits, Quality). They come before the entries
// of the configuration.
const std::vector<LimitEntry>& default_limits() {
  static const std::vector<LimitEntry> k_defaults = {
      // Over a list of depths a count is exact as well: max_increase changes nothing for it.
      default_entry({"*_at_zero_context", "*_per_context_token"}, &LimitEntry::max_increase, 0.10),
      default_entry({"*_per_token", "*_per_prefill", "*_per_request", "*_at_*",
                     "*_per_context_token", "kernels", "placement", "fits"}),
      default_entry({"draft_acceptance", "cached_prompt_share"}),
      at_most({"*_drift"}, 0.02),
      shown_only({"device_memory_bytes_*", "uploaded_bytes_*"}),
      default_entry({"device_memory_peak_bytes"}, &LimitEntry::max_increase, 0.01),
      // How often these would fail without a reason is not known yet.
      shown_only({"estimated_cycles_*", "spilled_registers_*", "kernel_instructions_*"}),
      // Only those that pairs judge: the others depend on what else the machine does.
      default_entry({"process_cpu_seconds", "voluntary_switches"}, &LimitEntry::max_increase, 0.50),
      default_entry({"minor_faults"}, &LimitEntry::max_increase, 0.10),
      default_entry({"*tokens_per_second"}, &LimitEntry::max_drop, 0.05),
      // Greedy and with a fixed seed an answer is equally good each time: little may change.
      default_entry({"perplexity"}, &LimitEntry::max_increase, 0.01),
      default_entry({"greedy_agreement"}, &LimitEntry::max_drop, 0.01),
  };
  return k_defaults;
}

}  // namespace

bool Match::fits(const profile::CellKey& cell) const {
  return (matches_glob(engine, cell.engine) || matches_glob(engine, cell.engine_part())) &&
         matches_glob(model, cell.model) && matches_glob(backend, cell.backend) &&
         (matches_glob(prompt, cell.prompt) || matches_glob(prompt, cell.prompt_part())) &&
         matches_glob(variant, cell.variant);
}

bool LimitEntry::covers(const profile::CellKey& cell, std::string_view metric_name) const {
  return match.fits(cell) &&
         (metrics.empty() || std::ranges::any_of(metrics, [&](const auto& glob) {
            return text::glob_match(glob, metric_name);
          }));
}

bool Limit::any() const { return exact || max_drop || max_increase || max_decrease || max || min; }

// The limit in words: "must not change", "may drop 5 %, at least 20".
std::string Limit::words() const {
  std::vector<std::string> parts;
  if (exact) {
    parts.push_back(repeats_within ? fmt::format("may vary by {:.2g} %", 100 * *repeats_within)
                                   : std::string("must not change"));
  }
  for (const ChangeKind& kind : k_changes) {
    const auto& change = this->*kind.in_limit;
    if (change) parts.push_back(fmt::format("may {} {}", kind.verb, show(change->amount)));
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

// Applies the defaults, then the entries that cover the metric; later ones win.
Limit resolve_limit(const profile::CellKey& cell, const unit::Metric& metric,
                    std::span<const LimitEntry> entries) {
  Limit limit;
  // A kernel or a label may be called anything, "x_per_token" too.
  if (unit::buffer_label(metric.name)) {
    limit.exact = true;
  } else if (!unit::is_op_or_kernel_metric(metric.name)) {
    for (const LimitEntry& entry : default_limits()) {
      if (entry.covers(cell, metric.name)) apply(entry, &metric, limit);
    }
    const bool is_level = metric.scope == unit::Scope::whole_run;
    if (is_count(metric) && !is_level) limit.max_increase.reset();
  }
  for (const LimitEntry& entry : entries) {
    if (entry.covers(cell, metric.name)) apply(entry, &metric, limit);
  }
  return limit;
}

Limit resolve_non_metric_limit(const profile::CellKey& cell, std::string_view name,
                               std::span<const LimitEntry> entries) {
  Limit limit;
  for (const std::span<const LimitEntry> list : {std::span(default_limits()), entries}) {
    for (const LimitEntry& entry : list) {
      if (entry.covers(cell, name)) apply(entry, nullptr, limit);
    }
  }
  return limit;
}

// Returns why `tolerate` does not go with the entry's limits; nothing when fine.
std::optional<std::string> tolerate_problem(const LimitEntry& entry) {
  if (!entry.tolerate) return std::nullopt;
  bool has_change = false;
  for (const ChangeKind& kind : k_changes) {
    const auto& amount = entry.*kind.in_entry;
    if (!amount) continue;
    has_change = true;
    if (amount->relative != entry.tolerate->relative || entry.tolerate->value >= amount->value) {
      return fmt::format(
          "tolerate ({}) must be smaller than the limit beside it ({}), and of its kind",
          show(*entry.tolerate), show(*amount));
    }
  }
  if (has_change) return std::nullopt;
  return "tolerate goes with max_drop, max_increase or max_decrease";
}

// Returns why the entry makes no sense for this metric; nothing when fine.
std::optional<std::string> nonsense(const LimitEntry& entry, const unit::Metric& metric) {
  const bool higher = metric.better == unit::Better::higher;
  if (entry.exact.value_or(false) && !is_count(metric)) {
    return fmt::format(
        "exact makes no sense for {}: times and memory vary from run to run (use {})", metric.name,
        higher ? "max_drop" : "max_increase");
  }
  if (entry.max_drop && is_count(metric)) {
    return fmt::format(
        "max_drop makes no sense for the count {} (use exact, max_increase or max_decrease)",
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
    if (amount && (!std::isfinite(amount->value) || amount->value < 0)) {
      return fmt::format("{} must not be negative", kind);
    }
  }
  constexpr double k_most = 0.9;
  if (entry.max_drop && entry.max_drop->relative && entry.max_drop->value >= k_most) {
    return std::string("max_drop must be below 90 %");
  }
  if (auto bad = tolerate_problem(entry)) return bad;
  if ((entry.max && entry.max->relative) || (entry.min && entry.min->relative)) {
    return std::string("max and min are plain numbers, not percentages");
  }
  if (entry.max && entry.min && entry.min->value > entry.max->value) {
    return std::string("min is above max");
  }
  return std::nullopt;
}

bool is_day(std::string_view text) {
  if (!text::has_form(text, "0000-00-00")) return false;
  const auto part = [&](std::size_t from, std::size_t size) {
    return text::to_int(text.substr(from, size)).value_or(0);
  };
  const long long year = part(0, 4), month = part(5, 2), day = part(8, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  constexpr std::array<int, 12> k_days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= k_days[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

std::string show(const Amount& amount) {
  return amount.relative ? fmt::format("{:.4g} %", amount.value * 100)
                         : fmt::format("{:.10g}", amount.value);
}

}  // namespace weir::verdict
