// Reads the output of any engine by regular expressions or JSON pointers from the config.

#include <numeric>

#include "gate/adapters/line_number.hpp"
#include "gate/adapters/own_counts.hpp"
#include "gate/adapters/printed.hpp"
#include "gate/adapters/readers.hpp"
#include "gate/base/hash.hpp"
#include "gate/config/pattern.hpp"
#include "gate/config/printed_metrics.hpp"

namespace weir::adapters {
namespace {

using config::ValueRule;

constexpr std::size_t k_longest_line = std::size_t{64} << 10;
constexpr std::size_t k_max_values = 200'000;
constexpr std::size_t k_longest_fact = 200;

// A text that matches a rule.
struct Value {
  std::string text;
  std::string unit{};            // printed with a number
  std::size_t columns = 1;       // numbers in a row with it
  std::string ambiguous_line{};  // has a number that may be read in several ways; "": none
};

// Takes a text that matches a rule. Returns false to end the search.
using ValueHandler = std::function<bool(Value printed)>;

std::string shorten(std::string_view text) {
  std::string result = text::printable(text.substr(0, k_longest_fact));
  std::replace(result.begin(), result.end(), '\n', ' ');
  return result;
}

// Returns the number that a match is the whole or a part of, with the unit behind it, or that in
// its name if it is one of the metric's quantity (`unit`). A part of a duration is no time.
Value find_number(std::string_view line, const config::Pattern& pattern,
                  const config::Pattern::Match& match, std::optional<unit::Unit> unit) {
  constexpr std::size_t k_max_before = 60;
  const LineNumber number = find_line_number(line, pattern, match);
  Value printed{std::string(number.text), std::string(number.unit), number.columns};
  const auto scale_in_name = parse_printed_unit(number.unit_in_name);
  const bool is_quantity = unit == unit::Unit::seconds || unit == unit::Unit::bytes;
  if (number.unit.empty() && scale_in_name && is_quantity && scale_in_name->unit == unit)
    printed.unit = number.unit_in_name;
  const bool is_part = number.is_part_of_duration && unit == unit::Unit::seconds;
  if (!number.is_ambiguous && !is_part) return printed;
  const auto at = static_cast<std::size_t>(number.text.data() - line.data());
  printed.ambiguous_line = shorten(line.substr(at > k_max_before ? at - k_max_before : 0));
  return printed;
}

// Calls `handle` with group 1 of each line that matches, or with the number that it is a part of.
// '\r' ends a line too, as progress bars draw over themselves with it. `unit`: the metric's.
void find_by_pattern(const config::Pattern& pattern, std::string_view text, bool is_number,
                     std::optional<unit::Unit> unit, const ValueHandler& handle) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\r"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find('\x1B') != std::string_view::npos) {
      plain = text::printable(line);
      line = plain;
    }
    if (const auto match = pattern.first_match(line.substr(0, k_longest_line))) {
      Value printed =
          is_number ? find_number(line, pattern, *match, unit) : Value{std::string(match->group)};
      if (!handle(std::move(printed))) return;
    }
  }
}

// Calls `handle` with the value at `pointer` in each JSON document of the text.
void find_by_pointer(const std::string& pointer, std::string_view text,
                     const ValueHandler& handle) {
  for_each_document(text, [&](const Json& document) {
    try {
      const Json::json_pointer path(pointer);
      if (!document.contains(path)) return true;
      const Json& value = document.at(path);
      if (value.is_structured() || value.is_null()) return true;
      return handle({value.is_string() ? value.get<std::string>() : dump_json(value)});
    } catch (const Json::exception&) {
      return true;  // the pointer does not fit this document
    }
  });
}

std::string describe_rule(const ValueRule& rule) {
  return rule.regex.empty() ? fmt::format("pointer {}", rule.pointer)
                            : fmt::format("regex '{}'", rule.regex);
}

// Returns where the rule stands, and that it found nothing.
std::string describe_missing(const ValueRule& rule) {
  return fmt::format("{}{} found nothing in what the engine printed ({})",
                     rule.source.empty() ? "" : rule.source + ": ", rule.metric,
                     describe_rule(rule));
}

// Texts that match a rule. `count` is the number of all that match, whichever the rule picks.
struct Matches {
  std::vector<Value> texts;
  std::int64_t count = 0;
  bool differ = false;  // two that follow each other
};

bool is_number_of_tokens(const ValueRule& rule) {
  return rule.metric == "generated_tokens" || rule.metric == "prompt_tokens";
}

// Finds the texts that match a rule: in standard output, else in standard error. `otherwise` is
// the pick of a rule without one; for Pick::first and Pick::last only that text is returned.
Result<Matches> find_texts(const ValueRule& rule, ValueRule::Pick otherwise, const Output& output) {
  std::optional<config::Pattern> pattern;
  if (rule.pointer.empty()) {
    WEIR_TRY(pattern, config::Pattern::compile(rule.regex));
  }
  using Pick = ValueRule::Pick;
  const Pick pick = rule.pick.value_or(otherwise);
  Matches matches;
  std::vector<Value>& texts = matches.texts;
  // Returns true if more texts may follow.
  const auto metric = rule.find_metric();
  const bool is_number = metric || is_number_of_tokens(rule);
  const auto unit = metric ? std::optional(metric->unit) : std::nullopt;
  const auto add_text = [&](Value printed) {
    ++matches.count;
    matches.differ = matches.differ || (!texts.empty() && (printed.text != texts.back().text ||
                                                           printed.unit != texts.back().unit));
    if (pick == Pick::first && !texts.empty()) return true;
    if (pick == Pick::last) texts.clear();
    // Several values are numbers, so longer text is invalid and may be cut.
    if (pick != Pick::last && printed.text.size() > k_longest_fact)
      printed.text.resize(k_longest_fact);
    texts.push_back(std::move(printed));
    return texts.size() <= k_max_values;
  };
  const auto search = [&](std::string_view stream) {
    if (pattern) {
      find_by_pattern(*pattern, stream, is_number, unit, add_text);
    } else {
      find_by_pointer(rule.pointer, stream, add_text);
    }
  };
  using Stream = ValueRule::Stream;
  if (rule.stream != Stream::err) search(output.out);
  if (rule.stream != Stream::out && texts.empty()) search(output.err);
  if (texts.size() > k_max_values) {
    return fail(Code::data, "{}: more than {} values ({})", rule.metric, k_max_values,
                describe_rule(rule));
  }
  return matches;
}

// Returns the factor of a printed number: the unit's that follows it, else the rule's. Fails if it
// is a unit of another quantity.
Result<double> factor_of(const ValueRule& rule, const unit::Metric* metric, const Value& printed) {
  using unit::Unit;
  const double own = rule.scale ? rule.scale->factor : 1.0;
  const auto scale = parse_printed_unit(printed.unit);
  if (metric == nullptr || !scale) return own;
  const auto is_dimension = [](Unit unit) { return unit == Unit::seconds || unit == Unit::bytes; };
  const bool is_rate =
      metric->unit == Unit::tokens_per_second || metric->unit == Unit::requests_per_second;
  if (scale->unit == metric->unit) return is_dimension(metric->unit) ? scale->factor : own;
  const bool is_other = (is_dimension(metric->unit) && scale->unit != Unit::ratio) ||
                        (is_rate && is_dimension(scale->unit));
  if (!is_other) return own;
  return fail(Code::data, "{}: \"{} {}\" is no {}: let the pattern find a number in {} ({})",
              rule.metric, shorten(printed.text), shorten(printed.unit),
              metric->unit == Unit::seconds ? "time"
              : metric->unit == Unit::bytes ? "size"
                                            : "rate",
              unit::to_string(metric->unit), describe_rule(rule));
}

// Parses a number that a rule found, in the metric's unit. `metric` is null for a number of tokens.
Result<double> parse_number(const ValueRule& rule, const unit::Metric* metric,
                            const Value& printed) {
  if (!printed.ambiguous_line.empty()) {
    return fail(Code::data,
                "{}: \"{}\" may be read in several ways in the line \"{}\": print numbers as "
                "1250.5, with a decimal point, without other separators and in one unit, or name "
                "the columns beside it in the pattern ({})",
                rule.metric, shorten(printed.text), printed.ambiguous_line, describe_rule(rule));
  }
  const auto value = text::to_double(text::trim(printed.text));
  if (!value) {
    return fail(Code::data, "{}: \"{}\" is not a number ({})", rule.metric, shorten(printed.text),
                describe_rule(rule));
  }
  WEIR_TRY(const double factor, factor_of(rule, metric, printed));
  const double scaled = *value * factor;
  if (!std::isfinite(scaled)) {
    return fail(Code::data, "{}: \"{}\" is out of range", rule.metric, shorten(printed.text));
  }
  return scaled;
}

// Notes the unit of a value and the numbers in a row with it: the base's are compared.
void note_form(profile::EngineReport& report, const unit::Metric& metric, const Value& printed) {
  constexpr std::size_t k_max_entries = 256;  // forms come from the engine
  const auto note = [&](const std::string& form) {
    if (report.printed_values.size() < k_max_entries)
      report.printed_values[profile::printed_form(metric.name, form)] = 1;
  };
  const auto scale = parse_printed_unit(printed.unit);
  if (scale && scale->unit == metric.unit && metric.unit != unit::Unit::ratio) {
    note(std::string(unit::to_string(metric.unit)));
  } else if (!printed.unit.empty()) {
    note(printed.unit);
  }
  if (printed.columns > 1) note(fmt::format("a row of {} numbers", printed.columns));
}

// Fails if `value` is no integer of at least 0.
Result<std::int64_t> to_count(const ValueRule& rule, double value) {
  constexpr double k_exact = 9007199254740992.0;  // 2^53: above it a double skips whole numbers
  if (value < 0 || value > k_exact || value != std::floor(value)) {
    return fail(Code::data, "{}: {} is not a count: it must be a whole number of at least 0 ({})",
                rule.metric, value, describe_rule(rule));
  }
  return static_cast<std::int64_t>(value);
}

// Reduces `values` to the one that a rule with max or median picks. Other rules keep them all.
template <class T>
void reduce_values(std::optional<ValueRule::Pick> pick, std::vector<T>& values) {
  using Pick = ValueRule::Pick;
  if (pick != Pick::max && pick != Pick::median) return;
  std::ranges::sort(values);
  values = {pick == Pick::max ? values.back() : values[values.size() / 2]};
}

// Adds a share, such as that of accepted drafts, from the last value that was found. Fails unless
// it is from 0 to 1. It is kept in millionths.
Result<void> add_share(profile::EngineReport& report, const ValueRule& rule,
                       const unit::Metric& metric, const Value& printed) {
  constexpr double k_millionths = 1e6;
  WEIR_TRY(const double value, parse_number(rule, &metric, printed));
  if (value < 0 || value > 1) {
    return fail(Code::data, "{}: {} is not a ratio: it must be between 0 and 1 ({})", rule.metric,
                value, describe_rule(rule));
  }
  const auto share = Rational::make(std::llround(value * k_millionths), std::llround(k_millionths));
  if (share) report.shares[metric.name] = *share;
  return {};
}

// Adds a count of the rule's values to the report. Returns false, and notes the reason in
// report.uncounted, if the values cannot be divided by a number of tokens.
Result<bool> add_count(profile::EngineReport& report, const ValueRule& rule,
                       const unit::Metric& metric, const std::vector<Value>& texts,
                       const profile::RunParameters& parameters) {
  std::vector<std::int64_t> values;
  for (const Value& printed : texts) {
    WEIR_TRY(const double value, parse_number(rule, &metric, printed));
    WEIR_TRY(const std::int64_t count, to_count(rule, value));
    values.push_back(count);
  }
  if (rule.custom) report.count_metrics[metric.name] = metric;
  reduce_values(rule.pick, values);
  const bool is_sum = rule.pick == ValueRule::Pick::sum;
  return add_own_count(report, metric, values, /*of_all_tokens=*/is_sum, parameters);
}

// Adds a series of times or rates to the report.
Result<void> add_times(profile::EngineReport& report, const ValueRule& rule,
                       const unit::Metric& metric, const std::vector<Value>& texts) {
  profile::EngineReport::Series series{metric, {}};
  for (const Value& printed : texts) {
    WEIR_TRY(const double value, parse_number(rule, &metric, printed));
    if (value <= 0) {
      return fail(Code::data, "{}: {} is not above 0 ({})", rule.metric, shorten(printed.text),
                  describe_rule(rule));
    }
    series.samples.push_back(value);
  }
  reduce_values(rule.pick, series.samples);
  if (rule.pick == ValueRule::Pick::sum) {
    series.samples = {std::accumulate(series.samples.begin(), series.samples.end(), 0.0)};
  }
  report.times.push_back(std::move(series));
  return {};
}

// Sets the fact that a rule names: a number of tokens, a digest of the output, the model, or the
// engine's build. Fails if the number is no count. The configuration allows no other names.
Result<void> add_fact(profile::EngineReport& report, const ValueRule& rule, const Value& printed) {
  const std::string& text = printed.text;
  if (is_number_of_tokens(rule)) {
    WEIR_TRY(const double value, parse_number(rule, nullptr, printed));
    WEIR_TRY(const std::int64_t count, to_count(rule, value));
    if (rule.metric == "prompt_tokens") {
      report.prompt_tokens = count;
    } else {
      report.generated_tokens = count;
    }
    return {};
  }
  if (rule.metric == "output_digest") {
    // A pattern may match the whole output. A text longer than a hash is replaced by its hash.
    constexpr std::size_t k_sha256_digits = 64;
    report.output_digest = text.size() > k_sha256_digits ? hash_hex(text) : shorten(text);
  } else if (rule.metric == "model") {
    report.model = shorten(text);
  } else if (rule.metric == "engine_build") {
    report.engine_build = shorten(text);
  }
  return {};
}

// Returns true if this pass must have values of this kind.
bool is_needed(unit::Kind kind, const std::optional<profile::Pass>& pass) {
  if (!pass) return false;
  const bool is_count = kind == unit::Kind::count;
  return *pass == profile::Pass::counted ? is_count : !is_count;
}

// Returns `text` as a regular expression that matches it alone.
std::string escape_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view(R"(\.[]{}()*+?^$|)").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// Returns an expression for the words around a number. Other numbers among them match any number,
// as they may differ from run to run; those within a word, as in "p99", match themselves.
std::string context_pattern(std::string_view text) {
  constexpr const char* k_digits = "0123456789";
  constexpr const char* k_word = "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string pattern;
  while (!text.empty()) {
    const std::size_t word_end = std::min(text.find_first_not_of(k_word), text.size());
    if (word_end > 0 && text.find_first_not_of(k_digits) >= word_end) {
      const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
      pattern += "[0-9.]+";
      text.remove_prefix(end);
      continue;
    }
    const std::size_t size = std::max<std::size_t>(word_end, 1);
    pattern += escape_pattern(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pattern;
}

// Returns an expression for a number in a line: the words before it, else those after it.
std::string pattern_around(std::string_view line, std::string_view number) {
  constexpr std::size_t k_max_context = 24;
  constexpr std::string_view k_number = "([0-9.]+)";
  const std::size_t begin = static_cast<std::size_t>(number.data() - line.data());
  std::string_view before = line.substr(0, begin);
  before.remove_prefix(std::min(before.find_first_not_of(" \t"), before.size()));
  if (before.size() > k_max_context) before.remove_prefix(before.size() - k_max_context);
  if (!before.empty()) return context_pattern(before) + std::string(k_number);
  const std::string_view after = line.substr(begin + number.size());
  return std::string(k_number) + context_pattern(after.substr(0, k_max_context));
}

// Returns an expression for the number that follows the first word of a metric's name in a line:
// "loaded in 1.5 s" for "load_seconds"; "" if there is none.
std::string pattern_by_name(const std::string& metric, std::string_view printed) {
  constexpr std::size_t k_shortest_word = 3;
  const std::string word = text::lower(text::split(metric, '_').front());
  const auto pattern =
      config::Pattern::compile("(?i)" + escape_pattern(word) + "[^0-9]*([0-9]+(?:[.][0-9]+)?)");
  if (word.size() < k_shortest_word || !pattern) return "";
  for (const std::string_view line : text::lines(printed)) {
    if (const auto number = pattern->first_group(line)) return pattern_around(line, *number);
  }
  return "";
}

}  // namespace

bool matches_a_line(const config::Pattern& pattern, std::string_view printed) {
  bool is_found = false;
  find_by_pattern(pattern, printed, /*is_number=*/false, std::nullopt, [&](const Value&) {
    is_found = true;
    return false;
  });
  return is_found;
}

std::string suggest_pattern(const std::string& metric, std::string_view printed) {
  for (const config::PrintedMetric& printed_metric : config::find_printed_metrics(printed)) {
    const auto pattern = config::Pattern::compile(printed_metric.regex);
    if (printed_metric.name != metric || !pattern) continue;
    for (const std::string_view line : text::lines(printed)) {
      if (const auto number = pattern->first_group(line)) return pattern_around(line, *number);
    }
  }
  return pattern_by_name(metric, printed);
}

namespace {

// Returns the last lines that an engine printed, and what would find the missing metrics in them.
std::string describe_printed(const Output& output, const std::vector<std::string>& missing_names) {
  constexpr std::size_t k_lines = 3, k_max_shown = 100, k_max_searched = 16 << 10;
  std::string_view printed = text::trim(output.out).empty() ? output.err : output.out;
  if (printed.size() > k_max_searched) printed.remove_prefix(printed.size() - k_max_searched);
  std::string text = "\n  it printed last:";
  for (const std::string& line : text::last_lines(printed, k_lines))
    text += "\n  | " + display_text(line, k_max_shown);
  for (const std::string& metric : missing_names) {
    const std::string pattern = suggest_pattern(metric, printed);
    if (!pattern.empty()) text += fmt::format("\n  {}: '{}' would match", metric, pattern);
  }
  return text;
}

}  // namespace

Result<profile::EngineReport> read_generic(const Output& output) {
  profile::EngineReport report;
  if (output.generic == nullptr) {
    return fail(Code::internal, "the generic adapter was given no rules");
  }
  for (const ValueRule& rule : output.generic->facts) {
    WEIR_TRY(const Matches matches, find_texts(rule, ValueRule::Pick::last, output));
    if (matches.texts.empty()) {
      report.warnings.push_back(
          fmt::format("the output has no {} ({})", rule.metric, describe_rule(rule)));
    } else {
      WEIR_CHECK(add_fact(report, rule, matches.texts.back()));
    }
  }
  std::vector<std::string> missing, missing_names;
  std::vector<std::string> missing_and_needed;
  for (const ValueRule& rule : output.generic->values) {
    const auto metric = rule.find_metric();
    if (!metric) return fail(Code::internal, "\"{}\" is not a metric", rule.metric);
    const bool counts = metric->kind == unit::Kind::count;
    WEIR_TRY(const Matches matches,
             find_texts(rule, counts ? ValueRule::Pick::all : ValueRule::Pick::last, output));
    const std::vector<Value>& texts = matches.texts;
    // A slower engine prints its progress more often: of such times the last counts.
    const bool is_last_time =
        !counts && rule.pick.value_or(ValueRule::Pick::last) == ValueRule::Pick::last;
    if (matches.count > 0 && !is_last_time) report.printed_values[metric->name] = matches.count;
    for (const Value& printed : texts) note_form(report, *metric, printed);
    if (matches.differ && is_last_time && !rule.pick) {
      report.warnings.push_back(
          fmt::format("{} was printed in several lines with different values, and the last is "
                      "taken: pick: last says that it is meant, all, sum, max, median or first "
                      "takes others ({})",
                      rule.metric, describe_rule(rule)));
    }
    if (texts.empty()) {
      missing.push_back(describe_missing(rule));
      missing_names.push_back(rule.metric);
      if (is_needed(metric->kind, output.pass)) missing_and_needed.push_back(missing.back());
    } else if (counts && metric->unit == unit::Unit::ratio) {
      WEIR_CHECK(add_share(report, rule, *metric, texts.back()));
    } else if (counts) {
      WEIR_TRY(const bool added, add_count(report, rule, *metric, texts, output.parameters));
      if (!added && is_needed(metric->kind, output.pass)) {
        const std::string_view cure =
            rule.pick == ValueRule::Pick::sum && metric->scope == unit::Scope::per_token
                ? "facts: {generated_tokens: {regex: '(\\d+) tokens'}} beside metrics reads how "
                  "many "
                  "were generated"
                : "pick: sum says that they cover all tokens together, first, last, max or median "
                  "takes one";
        missing_and_needed.push_back(
            fmt::format("{}: {}; {}", metric->name, report.uncounted.at(metric->name), cure));
      }
    } else {
      WEIR_CHECK(add_times(report, rule, *metric, texts).map_error([&](Error error) {
        error.message += describe_printed(output, {rule.metric});
        return error;
      }));
    }
  }
  // Rules for facts only are fine: then probes count.
  if (!missing.empty() && report.times.empty() && report.counts.empty() && report.shares.empty() &&
      report.uncounted.empty()) {
    const bool is_silent = text::trim(output.out).empty() && text::trim(output.err).empty();
    return fail(Code::data, "{}{}", text::join(missing, "\n"),
                is_silent ? "\n  it printed nothing" : describe_printed(output, missing_names));
  }
  if (!missing_and_needed.empty()) {
    return fail(Code::data, "{}{}", text::join(missing_and_needed, "\n"),
                describe_printed(output, missing_names));
  }
  return report;
}

}  // namespace weir::adapters
