// Resolves the limit of one metric of one cell, and checks entries of the configuration.
#include "gate/verdict/limits.hpp"

#include <bit>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/costly_calls.hpp"

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

// Returns how many base units a plain number is, in a limit on the metric: 1e6 for "heap_mb".
double plain_factor(const unit::Metric& metric) {
  if (metric.unit == unit::Unit::bytes && !metric.shown_in.empty()) {
    const auto scale = unit::parse_scale(metric.shown_in);
    return scale ? scale->factor : 1;
  }
  for (const std::string_view unit : {"ms", "us"}) {
    if (metric.unit == unit::Unit::seconds && metric.name.ends_with(fmt::format("_{}", unit)))
      return unit::parse_scale(unit)->factor;
  }
  return 1;
}

// Returns an amount of an entry as the metric's limit has it: in base units, with the unit that the
// metric is shown in.
Amount amount_for(Amount amount, const unit::Metric& metric) {
  const double factor = plain_factor(metric);
  if (amount.relative) return amount;
  if (!amount.unit && factor != 1) {
    amount.value *= factor;
    amount.unit = metric.unit;
  }
  if (amount.unit == unit::Unit::bytes) amount.shown_in = metric.shown_in;
  return amount;
}

// A setting of entries: true where an entry has it, and how it gets into the limit on a metric.
// Null (kernels, placement) takes only `exact`, `mode` and `reason`.
struct Setting {
  bool (*is_set)(const LimitEntry&);
  void (*copy)(const LimitEntry&, const unit::Metric*, Limit&);
};

template <std::size_t Kind>
constexpr Setting change_setting() {
  return {[](const LimitEntry& entry) { return (entry.*k_changes[Kind].in_entry).has_value(); },
          [](const LimitEntry& entry, const unit::Metric* metric, Limit& limit) {
            const ChangeKind& kind = k_changes[Kind];
            if (metric == nullptr || !kind.fits(*metric)) return;
            const Amount amount = amount_for(*(entry.*kind.in_entry), *metric);
            Amount tolerate = amount;
            tolerate.value /= 2;
            if (entry.tolerate) tolerate = amount_for(*entry.tolerate, *metric);
            limit.*kind.in_limit = MaxChange{amount, tolerate};
          }};
}

constexpr Setting k_all_settings[] = {
    {[](const LimitEntry& entry) { return entry.exact.has_value(); },
     [](const LimitEntry& entry, const unit::Metric* metric, Limit& limit) {
       if (metric == nullptr || is_count(*metric)) limit.exact = *entry.exact;
     }},
    change_setting<0>(),
    change_setting<1>(),
    change_setting<2>(),
    {[](const LimitEntry& entry) { return entry.max.has_value(); },
     [](const LimitEntry& entry, const unit::Metric* metric, Limit& limit) {
       if (metric != nullptr) limit.max = amount_for(*entry.max, *metric);
     }},
    {[](const LimitEntry& entry) { return entry.min.has_value(); },
     [](const LimitEntry& entry, const unit::Metric* metric, Limit& limit) {
       if (metric != nullptr) limit.min = amount_for(*entry.min, *metric);
     }},
    {[](const LimitEntry& entry) { return entry.mode.has_value(); },
     [](const LimitEntry& entry, const unit::Metric*, Limit& limit) { limit.mode = *entry.mode; }},
    {[](const LimitEntry& entry) { return entry.mode || entry.reason; },
     [](const LimitEntry& entry, const unit::Metric*, Limit& limit) {
       limit.reason = entry.reason;
     }},
};

constexpr std::size_t k_max_setting = 4, k_min_setting = 5, k_mode_setting = 6;

void apply(const LimitEntry& entry, const unit::Metric* metric, Limit& limit) {
  for (const Setting& setting : k_all_settings) {
    if (setting.is_set(entry)) setting.copy(entry, metric, limit);
  }
}

// Returns the last entry that is in all three sets.
std::optional<std::size_t> last_common(const EntrySet& a, const EntrySet& b, const EntrySet& c) {
  for (std::size_t i = a.size(); i-- > 0;) {
    const std::uint64_t common = a[i] & b[i] & c[i];
    if (common != 0) return i * 64 + 63 - static_cast<std::size_t>(std::countl_zero(common));
  }
  return std::nullopt;
}

// Returns a default limit on `metrics`: the change `kind` by at most `share`, or without `kind` an
// exact limit (no change at all).
LimitEntry default_entry(std::vector<std::string> metrics,
                         std::optional<Amount> LimitEntry::*kind = nullptr, double share = 0) {
  LimitEntry entry;
  entry.metrics = std::move(metrics);
  entry.source = k_default_source;
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

// Patterns of the counts of the host's work in Python.
std::vector<std::string> python_counts() {
  std::vector<std::string> patterns;
  for (const char* base : profile::k_host_counts) {
    for (const char* scope :
         {"per_token", "per_prefill", "per_request", "at_*", "per_context_token"})
      patterns.push_back(fmt::format("{}_{}", base, scope));
  }
  return patterns;
}

// Returns weir's default limits, which docs/reference/configuration.md lists. Entries of the
// configuration follow them, and later entries win.
const std::vector<LimitEntry>& default_limits() {
  static const std::vector<LimitEntry> k_defaults = {
      // Over a list of depths a count is exact as well: max_increase changes nothing for it.
      default_entry({"*_at_zero_context", "*_per_context_token"}, &LimitEntry::max_increase, 0.10),
      default_entry({"*_per_token", "*_per_prefill", "*_per_request", "*_at_*",
                     "*_per_context_token", "kernels", "placement", "fits"}),
      default_entry({"draft_acceptance", "cached_prompt_share"}),
      default_entry({"*_count"}),  // a plain count of the user's own
      default_entry({"processes", "*:processes", "unseen_threads"}),
      at_most({"*_drift"}, 0.02),
      at_most({std::string(unit::k_failed_requests)}, 0),
      shown_only({"device_memory_bytes_*", "uploaded_bytes_*"}),
      // Reads of pipes, sockets and logs go with time and place, not with the work.
      shown_only({"opened_files_*", "read_bytes_*", "mapped_file_bytes_*"}),
      // A call is no time: another version of a library may make a few more.
      shown_only(python_counts()),
      default_entry(python_counts(), &LimitEntry::max_increase, 0.02),
      shown_only({"python_thread_calls_*", "import_calls_*"}),
      default_entry({"import_calls_per_token", "import_calls_per_prefill"},
                    &LimitEntry::max_increase, 0.02),
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

bool Match::fits_engine(const Match& match, const profile::CellKey& cell) {
  return matches_glob(match.engine, cell.engine) || matches_glob(match.engine, cell.engine_part());
}
bool Match::fits_model(const Match& match, const profile::CellKey& cell) {
  return matches_glob(match.model, cell.model);
}
bool Match::fits_backend(const Match& match, const profile::CellKey& cell) {
  return matches_glob(match.backend, cell.backend);
}
bool Match::fits_prompt(const Match& match, const profile::CellKey& cell) {
  return matches_glob(match.prompt, cell.prompt) || matches_glob(match.prompt, cell.prompt_part());
}
bool Match::fits_variant(const Match& match, const profile::CellKey& cell) {
  return matches_glob(match.variant, cell.variant);
}

bool Match::fits(const profile::CellKey& cell) const {
  return fits_engine(*this, cell) && fits_model(*this, cell) && fits_backend(*this, cell) &&
         fits_prompt(*this, cell) && fits_variant(*this, cell);
}

bool LimitEntry::covers(const profile::CellKey& cell, std::string_view metric_name) const {
  return match.fits(cell) && covers_name(metric_name);
}

bool LimitEntry::covers_name(std::string_view metric_name) const {
  return metrics.empty() || std::ranges::any_of(metrics, [&](const auto& glob) {
           return text::glob_match(glob, metric_name);
         });
}

bool Limit::is_set() const {
  return exact || max_drop || max_increase || max_decrease || max || min;
}

// Returns the limit in words: "must not change", "may drop 5 %, at least 20".
std::string Limit::words() const {
  std::vector<std::string> parts;
  if (exact) {
    const double percent = 100 * allowed_variation.value_or(0);
    parts.push_back(allowed_variation ? fmt::format("may vary by {:.2g} %", percent)
                                      : std::string("must not change"));
  }
  // Returns true if `exact` allows no more than the change, so that it decides.
  const auto is_decided_by_exact = [&](const Amount& amount) {
    return exact && (!allowed_variation || (amount.relative && amount.value >= *allowed_variation));
  };
  for (const ChangeKind& kind : k_changes) {
    const auto& change = this->*kind.in_limit;
    if (change && !is_decided_by_exact(change->amount))
      parts.push_back(fmt::format("may {} {}", kind.verb, show(change->amount)));
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

LimitTable::LimitTable(std::span<const LimitEntry> entries)
    : entries_(entries), matches_(make_match_table(entries)), without_patterns_(none()) {
  static_assert(std::size(k_all_settings) == k_settings);
  with_setting_.fill(none());
  patterns_of_entry_.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (std::size_t k = 0; k < k_settings; ++k) {
      if (k_all_settings[k].is_set(entries[i])) insert(with_setting_[k], i);
    }
    if (entries[i].metrics.empty()) insert(without_patterns_, i);
    for (const std::string& pattern : entries[i].metrics) {
      const auto [place, is_new] = places_.try_emplace(pattern, patterns_.size());
      if (is_new) {
        if (pattern.find('*') != std::string::npos) globs_.push_back(patterns_.size());
        patterns_.emplace_back(pattern);
        entries_of_pattern_.push_back(none());
      }
      insert(entries_of_pattern_[place->second], i);
      patterns_of_entry_[i].push_back(place->second);
    }
  }
}

// Returns the entries whose match fits every part of the cell's name: engine, model, backend,
// prompt and variant. Results are cached by part, as cells share most parts.
EntrySet MatchTable::fitting(const profile::CellKey& cell) const {
  // Each part of the name with the entries that it fits, found at its first use.
  struct Part {
    std::string text;
    bool (*fits)(const Match&, const profile::CellKey&);
  };
  const std::array<Part, std::tuple_size_v<decltype(parts_)>> parts{
      Part{cell.engine_part(), &Match::fits_engine}, Part{cell.model, &Match::fits_model},
      Part{cell.backend, &Match::fits_backend}, Part{cell.prompt_part(), &Match::fits_prompt},
      Part{cell.variant, &Match::fits_variant}};
  EntrySet fitting;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const auto [cached, is_new] = parts_[part].try_emplace(parts[part].text);
    EntrySet& entries = cached->second;
    if (is_new) {
      entries = none();
      compared_ += matches_.size();
      for (std::size_t i = 0; i < matches_.size(); ++i) {
        if (parts[part].fits(*matches_[i], cell)) insert(entries, i);
      }
    }
    if (part == 0) {
      fitting = entries;
      continue;
    }
    for (std::size_t i = 0; i < fitting.size(); ++i) fitting[i] &= entries[i];
  }
  return fitting;
}

// Returns the limits and patterns that cover a metric's name, cached by name. Stops trying
// patterns with `*` after k_max_compared comparisons, and then has_given_up_ is true.
const LimitTable::Name& LimitTable::find_name(std::string_view metric_name) const {
  if (const Name* cached = look_up(names_, metric_name)) return *cached;
  EntrySet covering = without_patterns_;
  PatternSet matching = no_patterns();
  const auto add_pattern = [&](std::size_t pattern) {
    insert(matching, pattern);
    insert_all(covering, entries_of_pattern_[pattern]);
  };
  if (const std::size_t* same_pattern = look_up(places_, metric_name)) add_pattern(*same_pattern);
  has_given_up_ = has_given_up_ || compared_ + globs_.size() > k_max_compared;
  if (!has_given_up_) {
    compared_ += globs_.size();
    for (const std::size_t glob : globs_) {
      if (text::glob_match(patterns_[glob], metric_name)) add_pattern(glob);
    }
  }
  std::vector<const LimitEntry*> defaults;
  for (const LimitEntry& entry : default_limits()) {
    if (entry.covers_name(metric_name)) defaults.push_back(&entry);
  }
  return names_[std::string(metric_name)] = {&*sets_.insert(std::move(covering)).first,
                                             &*sets_.insert(std::move(matching)).first,
                                             &*default_sets_.insert(std::move(defaults)).first};
}

const PatternSet& LimitTable::matching(std::string_view metric_name) const {
  return *find_name(metric_name).matching;
}

// Copies each setting from the last entry that fits the cell and covers the metric. Under `mode:
// off` later settings still hold, and max and min of the entry that says so.
void LimitTable::apply_entries(const EntrySet& fitting_cell, const EntrySet& covering_name,
                               const unit::Metric* metric, Limit& limit) const {
  std::array<std::optional<std::size_t>, k_settings> last_with_setting;
  for (std::size_t setting = 0; setting < k_settings; ++setting) {
    last_with_setting[setting] = last_common(fitting_cell, covering_name, with_setting_[setting]);
    if (last_with_setting[setting])
      k_all_settings[setting].copy(entries_[*last_with_setting[setting]], metric, limit);
  }
  if (limit.mode != Mode::off) return;

  const std::size_t switched_off = last_with_setting[k_mode_setting].value();
  Limit kept;
  for (std::size_t setting = 0; setting < k_mode_setting; ++setting) {
    const bool is_bound = setting == k_max_setting || setting == k_min_setting;
    const bool is_kept =
        last_with_setting[setting] && (is_bound ? *last_with_setting[setting] >= switched_off
                                                : *last_with_setting[setting] > switched_off);
    if (is_kept) k_all_settings[setting].copy(entries_[*last_with_setting[setting]], metric, kept);
  }
  if (!kept.is_set()) return;
  kept.reason = std::move(limit.reason);
  limit = std::move(kept);
}

// Returns the limit on a metric: the defaults, then the entries of the configuration that cover
// it; later ones win. Defaults are never applied to names that engines choose.
Limit LimitTable::resolve(const EntrySet& fitting_cell, const unit::Metric& metric) const {
  Limit limit;
  const Name& name = find_name(metric.name);
  // A kernel or a label may be called anything, "x_per_token" too.
  if (unit::buffer_label(metric.name)) {
    limit.exact = true;
  } else if (!unit::is_op_or_kernel_metric(metric.name)) {
    for (const LimitEntry* entry : *name.defaults) apply(*entry, &metric, limit);
    const bool is_whole_run = metric.scope == unit::Scope::whole_run;
    // Over depths the default is a limit of times.
    const bool has_time_default = limit.exact || unit::is_over_context(metric);
    if (has_time_default && is_count(metric) && !is_whole_run) limit.max_increase.reset();
  }
  apply_entries(fitting_cell, *name.covering, &metric, limit);
  return limit;
}

Limit LimitTable::resolve_non_metric(const EntrySet& fitting_cell, std::string_view name) const {
  Limit limit;
  const Name& special = find_name(name);
  for (const LimitEntry* entry : *special.defaults) apply(*entry, nullptr, limit);
  apply_entries(fitting_cell, *special.covering, nullptr, limit);
  return limit;
}

// Returns a limit for a metric that an engine declares: it may get 5 % worse. Nothing if weir's
// own default limits cover it.
std::optional<LimitEntry> limit_of_declared(const unit::Metric& metric, const std::string& engine) {
  const Limit built_in = LimitTable().resolve({}, metric);
  const bool is_own_metric = unit::find_metric(metric.name).has_value();
  // A pattern for weir's own metrics may cover another one's name by chance: "read_bytes_*".
  if (built_in.exact || (is_own_metric && built_in.is_set())) return std::nullopt;
  auto kind = &LimitEntry::max_increase;
  if (metric.better == unit::Better::higher)
    kind = is_count(metric) ? &LimitEntry::max_decrease : &LimitEntry::max_drop;
  LimitEntry entry = default_entry({metric.name}, kind, 0.05);
  entry.match.engine = engine;
  return entry;
}

Limit resolve_limit(const profile::CellKey& cell, const unit::Metric& metric,
                    const LimitTable& limits) {
  return limits.resolve(limits.fitting(cell), metric);
}

Limit resolve_non_metric_limit(const profile::CellKey& cell, std::string_view name,
                               const LimitTable& limits) {
  return limits.resolve_non_metric(limits.fitting(cell), name);
}

// Returns why an entry's `tolerate`, the change that is never blamed, does not go with its limits;
// nothing if it does or is absent.
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
  for (const auto& [key, amount] :
       {std::pair{"max_drop", entry.max_drop}, std::pair{"max_increase", entry.max_increase},
        std::pair{"max_decrease", entry.max_decrease}, std::pair{"tolerate", entry.tolerate},
        std::pair{"max", entry.max}, std::pair{"min", entry.min}}) {
    if (!amount) continue;
    if (!std::isfinite(amount->value) || amount->value < 0)
      return fmt::format("{} must not be negative", key);
    if (amount->unit && *amount->unit != metric.unit) {
      return fmt::format("{} is in {}, which makes no sense for {} (in {})", key,
                         to_string(*amount->unit), metric.name, to_string(metric.unit));
    }
  }
  constexpr double k_max_relative_drop = 0.9;
  if (entry.max_drop && entry.max_drop->relative && entry.max_drop->value >= k_max_relative_drop) {
    return std::string("max_drop must be below 90 %");
  }
  if (auto bad = tolerate_problem(entry)) return bad;
  const bool takes_share = metric.name == unit::k_failed_requests;
  if ((entry.max && entry.max->relative && !takes_share) || (entry.min && entry.min->relative)) {
    return std::string("max and min are plain numbers, not percentages");
  }
  if (entry.max && entry.min && entry.min->value > entry.max->value) {
    return std::string("min is above max");
  }
  return std::nullopt;
}

// Returns true for a date of the calendar, "2027-03-01", from the year 1 on.
bool is_day(std::string_view text) {
  if (!text::has_form(text, "0000-00-00")) return false;
  const auto part = [&](std::size_t from, std::size_t size) {
    return text::to_int(text.substr(from, size)).value_or(0);
  };
  const long long year = part(0, 4), month = part(5, 2), day = part(8, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  constexpr std::array<int, 12> k_days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool is_leap_year = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  if (month == 2 && is_leap_year) return day <= 29;
  return day <= k_days[static_cast<std::size_t>(month - 1)];
}

std::string show(const Amount& amount) {
  if (amount.relative) return fmt::format("{:.4g} %", amount.value * 100);
  if (amount.unit == unit::Unit::seconds) return unit::show_seconds(amount.value);
  if (amount.unit == unit::Unit::bytes) {
    unit::Metric bytes;
    bytes.unit = unit::Unit::bytes;
    bytes.shown_in = amount.shown_in;
    return unit::show(bytes, amount.value);
  }
  return fmt::format("{:.10g}", amount.value);
}

}  // namespace weir::verdict
