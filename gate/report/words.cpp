// Puts judgements into words and numbers: labels, values, changes, evidence and limits.
#include "gate/report/words.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {

using verdict::Changed;

namespace {

// In the order in which outcomes are declared.
constexpr OutcomeLook k_looks[] = {
    {"FAIL", "1;31", "\u274c", "error", "failure", " broke a limit", 1},
    {"error", "1;35", "\u26a0\ufe0f", "error", "error", " could not be measured", 2},
    {"open", "1;33", "\u2753", "warning", "skipped", " {are} inconclusive", 3},
    {"new", "1;36", "\U0001f195", "warning", "skipped", " {are} new: nothing to judge by", 4},
    {"improved", "1;32", "\u2705", "notice", "", " improved", 0},
    {"waived", "1;32", "\u2705", "notice", "", " {are} waived", 0},
    {"pass", "32", "\u2705", "notice", "", "", 0},
    // A circle: what was not measured is not green.
    {"skip", "2", "\u26aa", "notice", "skipped", " {are} not judged", 5},
    {"info", "2", "\u26aa", "notice", "", "", 0},
};
static_assert(std::size(k_looks) == static_cast<std::size_t>(Outcome::info) + 1);

// weir's own names have at most 64 characters a part; names from outside may have more.
constexpr std::size_t k_longest_name = 96;

// Replaces a leading "-" with a typographic minus.
std::string minus_sign(std::string text) {
  if (text.starts_with('-')) text = std::string(k_minus) + text.substr(1);
  return text;
}

// Puts a typographic minus or a plus before the number.
std::string with_sign(std::string text) {
  return text.starts_with('-') ? minus_sign(std::move(text)) : "+" + text;
}

// Returns a metric's value as reports show it; a count from its exact text. "" without a value.
std::string number_text(const unit::Metric& metric, const std::optional<double>& value,
                        const std::optional<std::string>& exact) {
  if (exact && metric.unit == unit::Unit::count) {
    if (const auto rational = Rational::parse(*exact)) return show(*rational);
  }
  if (!value || !std::isfinite(*value)) return "";
  return minus_sign(unit::show(metric, *value));
}

// Orders changes by size, the largest first; what grew comes before what shrank.
std::vector<NamedChange> largest_first(std::vector<std::pair<double, NamedChange>> sized) {
  std::ranges::stable_sort(sized, {}, [](const std::pair<double, NamedChange>& entry) {
    const auto& [size, change] = entry;
    return std::tuple(size <= 0, -std::fabs(size), std::string_view(change.name));
  });
  std::vector<NamedChange> out;
  for (auto& [size, change] : sized) out.push_back(std::move(change));
  return out;
}

// Returns the relative change with its interval: "−2.4 % (−4.1 … −0.6)"; "" without a change.
std::string relative_change(const Judgement& metric) {
  if (!metric.change || !std::isfinite(*metric.change)) return "";
  const std::string change = unit::signed_percent(*metric.change);
  const auto &low = metric.low, &high = metric.high;
  // An interval from pairs may be open at one end, because too many runs did not end.
  const bool has_interval =
      low && high ? std::isfinite(*low) && std::isfinite(*high) : metric.pairs && (low || high);
  if (!has_interval) return change;
  const std::string low_text = low ? unit::signed_percent_number(*low) : "\u2212100";
  const std::string high_text = high ? unit::signed_percent_number(*high) : "+\u221e";
  return fmt::format("{} ({} \u2026 {})", change, low_text, high_text);
}

// Returns the change of a metric: the difference of an exact count ("+12"), else in percent. "" if
// a value is missing or a count is the same.
std::string change_text(const Judgement& metric) {
  if (!metric.baseline || !metric.current) return "";
  if (metric.metric.kind != unit::Kind::count) return relative_change(metric);
  if (*metric.baseline == *metric.current) return "";
  // The difference of a count says little if the count varies or goes into millions.
  const bool is_large = std::fabs(*metric.baseline) >= 1e6 || std::fabs(*metric.current) >= 1e6;
  if ((metric.nature != profile::Nature::exact || is_large) && metric.change) {
    return relative_change(metric);
  }
  if (metric.metric.unit == unit::Unit::count && metric.baseline_text && metric.current_text) {
    const auto base = Rational::parse(*metric.baseline_text);
    const auto candidate = Rational::parse(*metric.current_text);
    if (base && candidate) {
      if (const auto changed = candidate->minus(*base)) return show_change(*changed);
    }
  }
  return show_change(metric.metric, *metric.current - *metric.baseline);
}

// Returns how many pairs or runs a time was judged by: "14 pairs", "10 runs, 3 stored runs". "" for
// counts.
std::string evidence_text(const Judgement& metric) {
  const auto count_text = [](std::int64_t number, std::string_view singular) {
    return text::plural(static_cast<std::size_t>(std::max<std::int64_t>(number, 0)), singular);
  };
  if (metric.metric.kind == unit::Kind::count) return "";
  // An absolute limit is judged by a run where no pair was made.
  const bool has_runs_alone = metric.pairs == 0 && metric.samples.value_or(0) > 0;
  if (metric.pairs && !has_runs_alone) return count_text(*metric.pairs, "pair");
  if (!metric.samples) return "";
  std::string out = count_text(*metric.samples, "run");
  if (metric.baseline_sessions) out += ", " + count_text(*metric.baseline_sessions, "stored run");
  return out;
}

// A rational as a decimal number.
struct Decimal {
  std::string text;
  bool exact;  // in full; or in millions, whose rounding nobody minds
};

// Returns `value` in full if that takes at most three decimals, else rounded, which `exact`
// tells.
Decimal decimal(const Rational& value) {
  std::int64_t rest = value.denominator();
  int twos = 0, fives = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (; rest % 5 == 0; rest /= 5) ++fives;
  const double number = value.value();
  const int decimals = std::max(twos, fives);
  if (value.is_integer()) return {minus_sign(value.str()), true};
  // Nobody reads more than a tenth of millions.
  if (std::fabs(number) >= 1e6) return {minus_sign(fmt::format("{:.1f}", number)), true};
  // A fraction ends as a decimal only if its denominator has no factors but 2 and 5.
  if (rest == 1 && decimals <= 3) {
    return {minus_sign(fmt::format("{:.{}f}", number, decimals)), true};
  }
  const std::string rounded =
      std::fabs(number) < 1 ? fmt::format("{:.3g}", number) : fmt::format("{:.2f}", number);
  return {minus_sign(rounded), false};
}

// Returns the limit of a time that failed in pairs by less than its limit: the pairs prove that the
// change is more than what is tolerated, which is less. "" for any other.
std::string tolerated_text(const Judgement& metric) {
  if (!metric.pairs || metric.verdict != Outcome::fail || !metric.change) return "";
  const bool is_rate = metric.metric.better == unit::Better::higher;
  const auto& limit = is_rate ? metric.limit.max_drop : metric.limit.max_increase;
  if (!limit) return "";
  const double share = limit->amount.relative ? limit->amount.value
                                              : limit->amount.value / metric.baseline.value_or(0);
  if (!(std::fabs(*metric.change) < share)) return "";
  return fmt::format("surely more than the tolerated {} (limit {})", verdict::show(limit->tolerate),
                     verdict::show(limit->amount));
}

// Returns the limit of a metric. Where it fails under limits of both kinds, absolute and on the
// change, the one that broke.
std::string limit_text(const Judgement& metric) {
  verdict::Limit on_change = metric.limit;
  on_change.max.reset();
  on_change.min.reset();
  const bool has_bound = metric.limit.max || metric.limit.min;
  if (metric.verdict != Outcome::fail || !has_bound || !on_change.is_set())
    return metric.limit.words();
  return breaks_plain_limit(metric) && !metric.reason.empty() ? metric.reason : on_change.words();
}

}  // namespace

const OutcomeLook& outcome_look(Outcome outcome) {
  return k_looks[static_cast<std::size_t>(outcome)];
}

bool breaks_plain_limit(const Judgement& judgement) {
  if (judgement.verdict != Outcome::fail || !judgement.current) return false;
  const verdict::Limit& limit = judgement.limit;
  return (limit.max && *judgement.current > limit.max->value) ||
         (limit.min && *judgement.current < limit.min->value);
}

bool is_unmeasured(const CellVerdict& cell) {
  return cell.verdict == Outcome::error && !cell.not_compared;
}

std::string show(const Rational& value) {
  const Decimal number = decimal(value);
  if (number.exact) return number.text;
  return fmt::format("{} ({})", number.text, minus_sign(value.str()));
}

std::string show_change(const Rational& value) {
  const std::string text = decimal(value).text;
  return text.starts_with(k_minus) || value == Rational(0) ? text : "+" + text;
}

std::string show_change(const unit::Metric& metric, double change) {
  return with_sign(unit::show(metric, change));
}

// Shown in place of a limit: "must not change" would read as a reproach for an improvement.
constexpr std::string_view k_improved = "improved", k_keep = "improved: accept to keep";

// Returns a judgement as the texts of a table's row: label, values, change, evidence and limit.
// `to_keep`: the limit of an improvement says that it is to be kept.
Number words(const Judgement& metric, bool to_keep) {
  Number out;
  out.label = printable_line(unit::display_name(metric.metric), k_longest_name);
  out.base = number_text(metric.metric, metric.baseline, metric.baseline_text);
  out.candidate = number_text(metric.metric, metric.current, metric.current_text);
  out.change = change_text(metric);
  out.evidence = evidence_text(metric);
  const std::string tolerated = tolerated_text(metric);
  out.limit = printable_line(tolerated.empty() ? limit_text(metric) : tolerated, 200);
  if (limit_says_improved(metric)) out.limit = to_keep ? k_keep : k_improved;
  return out;
}

std::string value_range(const std::vector<ShownValue>& values) {
  if (values.empty()) return "";
  const auto [min_value, max_value] = std::ranges::minmax(values);
  if (min_value.second == max_value.second) return min_value.second;
  return fmt::format("{} {} {}", min_value.second, k_ellipsis, max_value.second);
}

bool limit_says_improved(const Judgement& metric) {
  return metric.verdict == Outcome::improved && metric.metric.kind == unit::Kind::count;
}

// Returns true if the numbers and the limit alone say why, as with an exact count that grew.
bool reason_is_plain(const Judgement& metric) {
  if (!metric.is_metric()) return metric.reason.empty();
  // The baseline's range says why, or that the count varied there.
  const bool varied = metric.metric.kind == unit::Kind::count && metric.limit.exact &&
                      metric.nature == profile::Nature::nearly_exact &&
                      !metric.limit.allowed_variation;
  if (varied) return metric.reason.empty();
  if (metric.verdict == Outcome::pass) return true;
  if (limit_says_improved(metric)) return metric.baseline && metric.current;
  if (metric.verdict == Outcome::info) return !has_observed_change(metric);
  if (metric.verdict != Outcome::fail || !metric.limit.is_set()) return false;
  if (metric.pairs) return true;  // the change and its interval say it
  if (metric.limit.max || metric.limit.min) return metric.current.has_value();
  if (!metric.baseline || !metric.current) return false;
  // The count was one number and varies now.
  if (metric.baseline_text && !(metric.current_text && Rational::parse(*metric.current_text)))
    return false;
  // The numbers don't say why a count that fell is a fail: where did the work go?
  return metric.metric.better == unit::Better::lower ? *metric.current > *metric.baseline
                                                     : *metric.current < *metric.baseline;
}

bool has_observed_change(const Judgement& metric) {
  if (metric.verdict != Outcome::info || metric.limit.mode != verdict::Mode::report) return false;
  if (!metric.limit.is_set() || !metric.baseline || !metric.current) return false;
  if (metric.low && metric.high) return *metric.low > 0 || *metric.high < 0;
  return *metric.baseline != *metric.current;
}

bool is_key_metric(const unit::Metric& metric) {
  if (metric.unit == unit::Unit::tokens_per_second) return true;
  return metric.scope != unit::Scope::fixed &&
         (metric.base == "dispatches" || metric.base == "barriers" || metric.base == "syncs");
}

bool is_kernel_total(const verdict::CellVerdict& cell, const unit::Metric& metric) {
  return metric.base == (cell.device == "cpu" ? "cpu_ops" : "dispatches");
}

bool reason_is_all(const verdict::CellVerdict& cell) {
  return cell.verdict == Outcome::new_ ||
         (cell.verdict == Outcome::error && cell.not_compared.has_value());
}

bool explained_by_functions(const verdict::CellVerdict& cell, const unit::Metric& metric) {
  return !cell.functions.empty() && metric.base == "instructions" &&
         (metric.scope == unit::Scope::per_token || metric.scope == unit::Scope::per_prefill);
}

// Returns the changes of kernels or ops, the largest first; those that grew come before those that
// shrank.
std::vector<NamedChange> named_changes(const std::vector<Changed>& changed) {
  std::vector<std::pair<double, NamedChange>> sized;
  for (const Changed& kernel : changed) {
    const std::string name = printable_line(kernel.name, k_longest_name);
    const Rational from = kernel.baseline.value_or(Rational(0));
    const Rational to = kernel.current.value_or(Rational(0));
    if (const auto by = to.minus(from)) {
      sized.push_back({by->value(), {show_change(*by), name}});
    } else {  // the difference does not fit a fraction
      const std::string change = show(from) + std::string(k_arrow) + show(to);
      sized.push_back({to.value() - from.value(), {change, name}});
    }
  }
  return largest_first(std::move(sized));
}

// Returns the changes of functions, the largest first: "+312040 (+12.0 %)".
std::vector<NamedChange> named_function_changes(const std::vector<Changed>& changed) {
  std::vector<std::pair<double, NamedChange>> sized;
  for (const Changed& function : changed) {
    const double from = function.baseline ? function.baseline->value() : 0;
    const double to = function.current ? function.current->value() : 0;
    const bool is_exact = function.name.starts_with(profile::k_system_call);
    std::string change = is_exact ? named_changes({function}).front().change
                                  : with_sign(fmt::format("{:.0f}", to - from));
    if (from > 0 && to > 0) change += fmt::format(" ({})", unit::signed_percent(to / from - 1));
    sized.push_back(
        {std::fabs(to - from), {change, printable_line(function.name, k_longest_name)}});
  }
  return largest_first(std::move(sized));
}

TextTable functions_table(const profile::KernelSet& functions) {
  std::vector<std::pair<std::string, Rational>> sorted(functions.counts.begin(),
                                                       functions.counts.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return b.second < a.second; });
  TextTable table{.right_aligned = {true, false}};
  for (const auto& [name, count] : sorted)
    table.rows.push_back({show(count), printable_line(name, 96)});
  return table;
}

std::string show(const profile::ServerFigure& figure) {
  const bool grew = figure.kind == profile::ServerFigure::Kind::counter;
  return fmt::format("{}{:.6g}", grew ? "+" : "", figure.value);
}

std::array<std::string, 4> cell_parts(const profile::CellKey& cell) {
  std::array parts{cell.engine_part(), cell.model, cell.backend, cell.prompt_part()};
  for (std::string& part : parts) part = printable_line(part, k_longest_name);
  return parts;
}

std::string cell_title(const profile::CellKey& cell) { return text::join(cell_parts(cell), " / "); }

}  // namespace weir::report
