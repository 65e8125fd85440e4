// Finds metrics in what a program printed, and parses those named on the command line.
#include "gate/config/printed_metrics.hpp"

#include <array>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/pattern.hpp"
#include "gate/profile/usage.hpp"
#include "gate/unit/declared_metric.hpp"

namespace weir::config {
namespace {

constexpr std::string_view k_number = R"(([0-9]+(?:[.][0-9]+)?))";
// "tok/s", "tokens/sec", "t/s", "tokens per second", "tokens-per-sec".
constexpr std::string_view k_rate =
    R"(\b(?:tokens?|toks?|t) ?(?:/|[ -]per[ -]) ?s(?:ec(?:ond)?)?\b)";
constexpr std::string_view k_time = R"(ms ?(?:/|per) ?tok(?:en)?\b)";
constexpr std::string_view k_prompt = R"(\b(?:prompts?|prefill\w*|pp\d*)\b)";
constexpr std::string_view k_generation = R"(\b(?:decode|decoding|generat\w+|gen|eval|tg\d*)\b)";
// Lines that are not read, in two strengths: "total" is taken if no other line is.
constexpr std::string_view k_prompt_or_total = R"(\b(?:prompts?|prefill\w*|pp\d*|total)\b)";
// The same for labelled lines, which may speak of the prompt besides.
constexpr std::string_view k_prompt_eval =
    R"(\b(?:prompts?|pp) (?:eval|decode|decoding|generat\w+|gen)\b)";
constexpr std::string_view k_prompt_eval_or_total =
    R"(\b(?:(?:prompts?|pp) (?:eval|decode|decoding|generat\w+|gen)|total)\b)";

// A form of a line that gives a metric. The value stands in group 1.
struct LineForm {
  PrintedMetric metric;
  // Names of metrics that stand for the same work: with one of them, this one adds nothing.
  std::vector<std::string_view> unless;
};

// Returns the expression of a line with `label` before a number and its unit. A line with `never`
// matches without a number.
std::string line_expression(std::string_view never, std::string_view label,
                            std::string_view number) {
  const std::string excluded = never.empty() ? "" : fmt::format(".*{}.*|", never);
  const std::string before = label.empty() ? "" : fmt::format("{}.*?", label);
  return fmt::format("(?i)^(?:{}.*?{}{})", excluded, before, number);
}

// Returns a number with its unit: "41.2 tok/s", then "tokens/s: 41.2".
std::array<std::string, 2> numbers_with(std::string_view unit) {
  return {fmt::format("{} ?{}", k_number, unit),
          fmt::format("{}[)\"']* ?[:=] ?{}", unit, k_number)};
}

// Returns the forms of printed speeds, surest first: labelled lines, then rates, then times of a
// token. Each is skipped if a metric in its `unless` is found already.
std::vector<LineForm> line_forms() {
  constexpr const char *k_decode = "decode_tokens_per_second",
                       *k_prefill = "prefill_tokens_per_second";
  std::vector<LineForm> forms;
  const auto add_forms = [&](const char* name, std::vector<std::string_view> unless,
                             std::string_view never, std::string_view label,
                             std::string_view unit) {
    for (const std::string& number : numbers_with(unit))
      forms.push_back({{name, line_expression(never, label, number)}, unless});
  };
  for (const std::string_view never : {k_prompt_eval_or_total, k_prompt_eval})
    add_forms(k_decode, {k_decode}, never, k_generation, k_rate);
  for (const std::string_view never : {k_prompt_or_total, k_prompt})
    add_forms(k_decode, {k_decode, k_prefill}, never, "", k_rate);
  add_forms(k_prefill, {k_prefill}, "", k_prompt, k_rate);
  for (const std::string_view never : {k_prompt_or_total, k_prompt})
    add_forms("token_ms", {k_decode, "token_ms"}, never, "", k_time);
  return forms;
}

// Returns true if a line of the text gives a value above 0.
bool is_in(std::string_view text, const Pattern& pattern) {
  return std::ranges::any_of(text::lines(text), [&](std::string_view line) {
    const auto group = pattern.first_group(line);
    return group && text::to_double(*group).value_or(0) > 0;
  });
}

}  // namespace

void add_printed_metrics(std::string_view text, std::vector<PrintedMetric>& metrics) {
  for (const LineForm& form : line_forms()) {
    const bool has_same_work = std::ranges::any_of(metrics, [&](const PrintedMetric& metric) {
      return holds(form.unless, std::string_view(metric.name));
    });
    if (has_same_work) continue;
    const auto pattern = Pattern::compile(form.metric.regex);
    if (pattern && is_in(text, *pattern)) metrics.push_back(form.metric);
  }
}

// Returns up to four numbers with labels ("accepted: 12") that no pattern of `metrics` reads, one a
// line of the text.
std::vector<std::string> find_unread_numbers(std::string_view text,
                                             const std::vector<PrintedMetric>& metrics) {
  constexpr std::size_t k_most = 4;
  std::vector<Pattern> patterns;
  for (const PrintedMetric& metric : metrics) {
    if (auto pattern = Pattern::compile(metric.regex)) patterns.push_back(*std::move(pattern));
  }
  const auto labelled = Pattern::compile(
      R"((?i)\b([a-z][a-z0-9_ ./-]{0,30} ?[:=] ?[+-]?[0-9]+(?:[.][0-9]+)?(?: ?[a-z%][a-z/%]*)?))");
  std::vector<std::string> numbers;
  for (const std::string_view line : text::lines(text)) {
    if (numbers.size() == k_most || !labelled) break;
    const auto is_read = [&](const Pattern& pattern) {
      return pattern.first_group(line).has_value();
    };
    const auto number = labelled->first_group(line);
    if (!number || std::ranges::any_of(patterns, is_read)) continue;
    std::string shown = text::printable(text::trim(*number));
    if (!holds(numbers, shown)) numbers.push_back(std::move(shown));
  }
  return numbers;
}

std::vector<PrintedMetric> find_printed_metrics(std::string_view text) {
  std::vector<PrintedMetric> metrics;
  add_printed_metrics(text, metrics);
  return metrics;
}

// Parses "NAME=REGEX", a metric and the pattern that finds its value in the output. Fails for an
// unknown metric or a bad pattern.
Result<PrintedMetric> parse_printed_metric(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string place = fmt::format("--metric {}", text::printable(assignment));
  if (equals == 0 || equals == assignment.npos) {
    return fail(Code::usage, "{}: expected NAME=REGEX, such as '{}'", place,
                "decode_tokens_per_second=speed: ([0-9.]+)");
  }
  PrintedMetric metric{assignment.substr(0, equals), assignment.substr(equals + 1)};
  if (const auto pattern = Pattern::compile(metric.regex); !pattern) {
    return fail(Code::usage, "{}: {}", place, pattern.error().message);
  }
  if (profile::is_measured_by_weir(metric.name)) {
    return fail(Code::usage, "{}: weir measures {} itself: give this metric another name", place,
                metric.name);
  }
  if (unit::find_metric(metric.name) || unit::metric_of_name(metric.name)) return metric;
  // A name of one word is the user's own, however near one of weir's is.
  const bool may_be_misspelt = metric.name.find('_') != std::string::npos;
  return fail(Code::usage,
              "{}: weir does not know this metric{}\n"
              "  end its name in what it is, such as {}_count: {}",
              place, may_be_misspelt ? unit::suggest_metric(metric.name) : "",
              text::printable(metric.name), unit::metric_name_ends());
}

}  // namespace weir::config
