// Finds metrics in what a program printed, and parses those named on the command line.
#include "gate/config/printed_metrics.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/pattern.hpp"
#include "gate/unit/declared_metric.hpp"

namespace weir::config {
namespace {

constexpr std::string_view k_number = R"(([0-9]+(?:[.][0-9]+)?))";
// "tok/s", "tokens/sec", "t/s", "tokens per second", "tokens-per-sec".
constexpr std::string_view k_rate =
    R"(\b(?:tokens?|toks?|t) ?(?:/|[ -]per[ -]) ?s(?:ec(?:ond)?)?\b)";
constexpr std::string_view k_prompt = R"(\b(?:prompt|prefill|pp)\b)";
constexpr std::string_view k_generation = R"(\b(?:decode|decoding|generat\w+|gen|eval|tg)\b)";

// A form of a line that gives a metric. The value stands in group 1.
struct LineForm {
  PrintedMetric metric;
  // Names of metrics that stand for the same work: with one of them, this one adds nothing.
  std::vector<std::string_view> unless;
};

// Returns the expression of a line where `label` comes before a number and its unit.
std::string value_first(std::string_view label, std::string_view unit) {
  const std::string before = label.empty() ? "" : fmt::format("{}.*?", label);
  return fmt::format("(?i){}{} ?{}", before, k_number, unit);
}

// Returns the expression of a line where the unit comes first: "tokens/s: 41.2".
std::string unit_first(std::string_view label, std::string_view unit) {
  const std::string before = label.empty() ? "" : fmt::format("{}.*?", label);
  return fmt::format("(?i){}{}[)\"']* ?[:=] ?{}", before, unit, k_number);
}

// Returns the forms, surest first: labelled lines, then rates, then times of a token.
std::vector<LineForm> line_forms() {
  constexpr const char *k_decode = "decode_tokens_per_second",
                       *k_prefill = "prefill_tokens_per_second";
  constexpr std::string_view k_time = R"(ms ?(?:/|per) ?tok(?:en)?\b)";
  std::vector<LineForm> forms;
  for (const auto& form : {value_first, unit_first}) {
    forms.push_back({{k_prefill, form(k_prompt, k_rate)}, {k_prefill}});
    forms.push_back({{k_decode, form(k_generation, k_rate)}, {k_decode}});
  }
  for (const auto& form : {value_first, unit_first}) {
    forms.push_back({{k_decode, form("", k_rate)}, {k_decode, k_prefill}});
  }
  for (const auto& form : {value_first, unit_first}) {
    forms.push_back({{"token_ms", form("", k_time)}, {k_decode, k_prefill, "token_ms"}});
  }
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

std::vector<PrintedMetric> find_printed_metrics(std::string_view text) {
  std::vector<PrintedMetric> metrics;
  add_printed_metrics(text, metrics);
  return metrics;
}

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
  if (unit::find_metric(metric.name) || unit::metric_of_name(metric.name)) return metric;
  return fail(Code::usage,
              "{}: weir does not know this metric{}\n"
              "  end its name in what it is: {}\n"
              "  (of a ratio, more is better), or write unit: and better: in weir.yaml",
              place, unit::suggest_metric(metric.name), text::join(unit::metric_name_ends()));
}

}  // namespace weir::config
