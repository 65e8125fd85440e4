#include "gate/report/words.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

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
    {"accepted", "1;32", "\u2705", "notice", "", " changed as allowed", 0},
    {"pass", "32", "\u2705", "notice", "", "", 0},
    // A circle: what was not measured is not green.
    {"skip", "2", "\u26aa", "notice", "skipped", " cannot be measured on this machine", 5},
    {"info", "2", "\u26aa", "notice", "", "", 0},
};
static_assert(std::size(k_looks) == static_cast<std::size_t>(Outcome::info) + 1);

// Names are at most 64 characters a part where weir made them; others are not trusted.
constexpr std::size_t k_longest_name = 96;

std::string minus_sign(std::string text) {
  if (text.starts_with('-')) text = std::string(k_minus) + text.substr(1);
  return text;
}

std::string with_sign(std::string text) {
  return text.starts_with('-') ? minus_sign(std::move(text)) : "+" + text;
}

// "−4.1" of −0.041: inside brackets the unit stands outside once.
std::string percent_number(double ratio) {
  const double hundredths = ratio * 100;
  const int digits = std::fabs(hundredths) >= 99.95 ? 0 : 1;
  const std::string number = fmt::format("{:.{}f}", hundredths, digits);
  if (std::strtod(number.c_str(), nullptr) == 0) return "0.0";
  return with_sign(number);
}

std::string number_words(const unit::Metric& metric, const std::optional<double>& value,
                         const std::optional<std::string>& exact) {
  if (exact && metric.unit == unit::Unit::count) {
    if (const auto rational = Rational::parse(*exact)) return show(*rational);
  }
  if (!value || !std::isfinite(*value)) return "";
  return minus_sign(unit::show(metric, *value));
}

// By their sizes, what grew before what shrank.
std::vector<ChangedWords> largest_first(std::vector<std::pair<double, ChangedWords>> sized) {
  std::ranges::stable_sort(sized, {}, [](const std::pair<double, ChangedWords>& one) {
    return std::tuple(one.first <= 0, -std::fabs(one.first), std::string_view(one.second.name));
  });
  std::vector<ChangedWords> out;
  for (auto& [size, words] : sized) out.push_back(std::move(words));
  return out;
}

std::string relative_change(const Judgement& metric) {
  if (!metric.change || !std::isfinite(*metric.change)) return "";
  const std::string out = percent(*metric.change);
  const auto &low = metric.low, &high = metric.high;
  // Beside a base an end may be open: enough runs did not end.
  const bool shown =
      low && high ? std::isfinite(*low) && std::isfinite(*high) : metric.pairs && (low || high);
  return shown ? fmt::format("{} ({} \u2026 {})", out, low ? percent_number(*low) : "\u2212100",
                             high ? percent_number(*high) : "+\u221e")
               : out;
}

std::string change_words(const Judgement& metric) {
  if (!metric.baseline || !metric.current) return "";
  if (metric.metric.kind != unit::Kind::count) return relative_change(metric);
  if (*metric.baseline == *metric.current) return "";
  // Where a count only nearly repeats, or counts in millions, the difference itself says little.
  const bool large = std::fabs(*metric.baseline) >= 1e6 || std::fabs(*metric.current) >= 1e6;
  if ((metric.nature != profile::Nature::exact || large) && metric.change) {
    return relative_change(metric);
  }
  if (metric.metric.unit == unit::Unit::count && metric.baseline_text && metric.current_text) {
    const auto from = Rational::parse(*metric.baseline_text);
    const auto to = Rational::parse(*metric.current_text);
    if (from && to) {
      if (const auto changed = to->minus(*from)) return signed_show(*changed);
    }
  }
  return signed_show(metric.metric, *metric.current - *metric.baseline);
}

std::string evidence_words(const Judgement& metric) {
  const auto many = [](std::int64_t number, std::string_view one) {
    return plural(static_cast<std::size_t>(std::max<std::int64_t>(number, 0)), one);
  };
  if (metric.metric.kind == unit::Kind::count) return "";
  if (metric.pairs) return many(*metric.pairs, "pair");
  if (!metric.samples) return "";
  std::string out = many(*metric.samples, "run");
  if (metric.baseline_sessions) out += ", " + many(*metric.baseline_sessions, "stored run");
  return out;
}

// As a decimal: in full where that takes at most three digits.
std::string decimal(const Rational& value, bool& exact) {
  std::int64_t rest = value.denominator();
  int twos = 0, fives = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (; rest % 5 == 0; rest /= 5) ++fives;
  const double number = value.value();
  // Of millions, a tenth is more than anybody reads.
  const bool large = std::fabs(number) >= 1e6;
  exact = value.whole() || large || (rest == 1 && std::max(twos, fives) <= 3);
  if (value.whole()) return minus_sign(value.str());
  if (large) return minus_sign(fmt::format("{:.1f}", number));
  if (exact) return minus_sign(fmt::format("{:.{}f}", number, std::max(twos, fives)));
  return minus_sign(std::fabs(number) < 1 ? fmt::format("{:.3g}", number)
                                          : fmt::format("{:.2f}", number));
}

}  // namespace

const OutcomeLook& look_of(Outcome outcome) { return k_looks[static_cast<std::size_t>(outcome)]; }

bool unmeasured(const CellVerdict& cell) {
  return cell.verdict == Outcome::error && !cell.not_compared;
}

std::string show(const Rational& value) {
  bool exact = false;
  const std::string text = decimal(value, exact);
  return exact ? text : fmt::format("{} ({})", text, minus_sign(value.str()));
}

std::string signed_show(const Rational& value) {
  bool exact = false;
  const std::string text = decimal(value, exact);
  return text.starts_with(k_minus) || value == Rational(0) ? text : "+" + text;
}

std::string signed_show(const unit::Metric& metric, double change) {
  return with_sign(unit::show(metric, change));
}

std::string percent(double ratio) { return percent_number(ratio) + " %"; }

// "must not change" would read as a reproach.
constexpr std::string_view k_improved = "improved", k_keep = "improved: accept to keep";

Number words(const Judgement& metric, bool to_keep) {
  Number out;
  out.label = one_line(unit::label(metric.metric), k_longest_name);
  out.base = number_words(metric.metric, metric.baseline, metric.baseline_text);
  out.now = number_words(metric.metric, metric.current, metric.current_text);
  out.change = change_words(metric);
  out.evidence = evidence_words(metric);
  out.limit = limit_says_improved(metric) ? std::string(to_keep ? k_keep : k_improved)
                                          : one_line(metric.limit.words(), 200);
  return out;
}

std::string range_words(const std::vector<ValueWords>& values) {
  if (values.empty()) return "";
  const auto [least, most] = std::ranges::minmax(values);
  if (least.second == most.second) return least.second;
  return fmt::format("{} {} {}", least.second, k_ellipsis, most.second);
}

bool limit_says_improved(const Judgement& metric) {
  return metric.verdict == Outcome::improved && metric.metric.kind == unit::Kind::count;
}

bool reason_is_plain(const Judgement& metric) {
  if (!metric.is_metric()) return metric.reason.empty();
  if (metric.verdict == Outcome::pass) return true;
  if (limit_says_improved(metric)) return metric.baseline && metric.current;
  if (metric.verdict == Outcome::info) return !observed_change(metric);
  if (metric.verdict != Outcome::fail || !metric.limit.any()) return false;
  if (metric.pairs) return true;  // the change and its interval say it
  if (metric.limit.max || metric.limit.min) return metric.current.has_value();
  if (!metric.baseline || !metric.current) return false;
  // A count that was one number and is now several.
  if (metric.baseline_text && !metric.current_text) return false;
  // A count that fell fails for a reason that the numbers do not tell: where did the work go?
  return metric.metric.better == unit::Better::lower ? *metric.current > *metric.baseline
                                                     : *metric.current < *metric.baseline;
}

bool observed_change(const Judgement& metric) {
  if (metric.verdict != Outcome::info || metric.limit.mode != verdict::Mode::report) return false;
  if (!metric.limit.any() || !metric.baseline || !metric.current) return false;
  if (metric.low && metric.high) return *metric.low > 0 || *metric.high < 0;
  return *metric.baseline != *metric.current;
}

bool key_metric(const unit::Metric& metric) {
  if (metric.unit == unit::Unit::tokens_per_second) return true;
  return metric.scope != unit::Scope::fixed &&
         (metric.base == "dispatches" || metric.base == "barriers" || metric.base == "syncs");
}

bool adds_up_kernels(const verdict::CellVerdict& cell, const unit::Metric& metric) {
  return metric.base == (cell.device == "cpu" ? "cpu_ops" : "dispatches");
}

bool reason_says_all(const verdict::CellVerdict& cell) {
  return cell.verdict == Outcome::new_ ||
         (cell.verdict == Outcome::error && cell.not_compared.has_value());
}

bool explained_by_functions(const verdict::CellVerdict& cell, const unit::Metric& metric) {
  return !cell.functions.empty() && metric.base == "instructions" &&
         (metric.scope == unit::Scope::per_token || metric.scope == unit::Scope::per_prefill);
}

std::vector<ChangedWords> changed_words(const std::vector<Changed>& changed) {
  std::vector<std::pair<double, ChangedWords>> sized;
  for (const Changed& one : changed) {
    const std::string name = one_line(one.name, k_longest_name);
    const Rational from = one.baseline.value_or(Rational(0));
    const Rational to = one.current.value_or(Rational(0));
    const auto by = to.minus(from);
    sized.push_back({by ? by->value() : to.value() - from.value(),
                     {by ? signed_show(*by) : show(from) + std::string(k_arrow) + show(to), name}});
  }
  return largest_first(std::move(sized));
}

std::vector<ChangedWords> function_words(const std::vector<Changed>& changed) {
  std::vector<std::pair<double, ChangedWords>> sized;
  for (const Changed& one : changed) {
    const double from = one.baseline ? one.baseline->value() : 0;
    const double to = one.current ? one.current->value() : 0;
    const bool exact = one.name.starts_with(profile::k_system_call);
    std::string words =
        exact ? changed_words({one}).front().change : with_sign(fmt::format("{:.0f}", to - from));
    if (from > 0 && to > 0) words += fmt::format(" ({})", percent(to / from - 1));
    sized.push_back({std::fabs(to - from), {words, one_line(one.name, k_longest_name)}});
  }
  return largest_first(std::move(sized));
}

TextTable functions_table(const profile::KernelSet& functions) {
  std::vector<std::pair<std::string, Rational>> sorted(functions.counts.begin(),
                                                       functions.counts.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return b.second < a.second; });
  TextTable table{{}, {true, false}};
  for (const auto& [name, count] : sorted) table.rows.push_back({show(count), one_line(name, 96)});
  return table;
}

std::string show(const profile::ServerFigure& figure) {
  const bool grew = figure.kind == profile::ServerFigure::Kind::counter;
  return fmt::format("{}{:.6g}", grew ? "+" : "", figure.value);
}

std::array<std::string, 4> cell_parts(const profile::CellKey& cell) {
  std::array parts{cell.engine_part(), cell.model, cell.backend, cell.prompt_part()};
  for (std::string& part : parts) part = one_line(part, k_longest_name);
  return parts;
}

std::string cell_title(const profile::CellKey& cell) { return text::join(cell_parts(cell), " / "); }

}  // namespace weir::report
