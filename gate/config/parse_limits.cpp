// The `limits` section.
#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

// "5%" is a share of the baseline; a bare number is in the metric's base unit.
std::optional<verdict::Amount> read_amount(const Node& node, const char* what, bool may_be_relative,
                                           Problems& problems) {
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  std::string_view digits = text::trim(*text);
  const bool relative = !digits.empty() && digits.back() == '%';
  if (relative) digits = text::trim(digits.substr(0, digits.size() - 1));
  const auto value = text::to_double(digits);
  if (!value || *value < 0 || (relative && !may_be_relative)) {
    problems.add(node.at,
                 fmt::format("{} must be a number of at least 0{}, not {}", what,
                             may_be_relative ? ", or a share such as 5%" : "", describe(node)));
    return std::nullopt;
  }
  constexpr double k_percent = 100;
  return verdict::Amount{relative ? *value / k_percent : *value, relative};
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto part = [&](std::size_t from, std::size_t size) {
    const std::string_view digits = text.substr(from, size);
    const bool plain = digits.find_first_not_of("0123456789") == std::string_view::npos;
    return plain ? text::to_int(digits).value_or(-1) : -1;
  };
  const long long year = part(0, 4);
  const long long month = part(5, 2);
  const long long day = part(8, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  constexpr std::array<int, 12> k_days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= k_days[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

std::vector<std::string> metric_names(const Settings& settings) {
  std::vector<std::string> names = unit::metric_names();
  names.emplace_back("kernels");
  names.emplace_back("placement");
  for (const EngineSettings& engine : settings.engines) {
    for (const ValueRule& rule : engine.generic.values) {
      if (rule.custom) names.push_back(rule.metric);
    }
  }
  return names;
}

void parse_metrics(const Node& node, verdict::LimitEntry& entry, Parsing& parsing) {
  const auto names = metric_names(parsing.settings);
  const auto complain = [&](Place at, const std::string& pattern) {
    const bool known = unit::find_metric(pattern).has_value() ||
                       std::any_of(names.begin(), names.end(), [&](const auto& name) {
                         return text::glob_match(pattern, name);
                       });
    if (known) return;
    parsing.problems.add(at, fmt::format("unknown metric \"{}\"{}{}", text::printable(pattern),
                                         text::did_you_mean(pattern, names), known_here(names)));
  };
  entry.metrics = read_texts(node, "metrics", parsing.problems);
  if (node.kind == Node::Kind::list) {
    for (const Node& item : node.items) {
      if (item.kind == Node::Kind::scalar) complain(item.at, item.text);
    }
    if (node.items.empty() || node.items.size() > 100) {
      parsing.problems.add(node.at, "metrics must name 1 to 100 metrics: leave it out for all");
    }
  } else if (!entry.metrics.empty()) {
    complain(node.at, entry.metrics.front());
  }
}

void parse_match(const Node& node, verdict::Match& match, Parsing& parsing) {
  const Settings& settings = parsing.settings;
  Fields fields(node, "match", parsing.problems);
  const auto pattern = [&](const char* key, std::string& into,
                           const std::vector<std::string>& names) {
    const Node* value = fields.take(key);
    if (value == nullptr) return;
    into = read_text(*value, key, parsing.problems).value_or("");
    if (!into.empty()) check_pattern(into, value->at, key, names, parsing.problems);
  };
  pattern("engine", match.engine, names_of(settings.engines));
  pattern("model", match.model, names_of(settings.models));
  pattern("backend", match.backend, names_of(settings.backends));
  pattern("prompt", match.prompt, names_of(settings.prompts));
  pattern("variant", match.variant, names_of(settings.variants));
  fields.finish();
}

void parse_mode(Fields& fields, verdict::LimitEntry& entry, Place at, Parsing& parsing) {
  Problems& problems = parsing.problems;
  static const std::vector<std::string> k_modes{"gate", "report", "off"};
  if (const Node* mode = fields.take("mode")) {
    const auto chosen = read_choice(*mode, "mode", k_modes, problems);
    if (chosen == "gate") entry.mode = verdict::Mode::gate;
    if (chosen == "report") entry.mode = verdict::Mode::report;
    if (chosen == "off") entry.mode = verdict::Mode::off;
  }
  if (const Node* reason = fields.take("reason")) {
    entry.reason = read_text(*reason, "reason", problems);
  }
  if (const Node* issue = fields.take("issue")) entry.issue = read_text(*issue, "issue", problems);
  const Node* until = fields.take("until");
  if (until == nullptr) return;
  entry.until = read_text(*until, "until", problems);
  if (!entry.until) return;
  if (!is_date(*entry.until)) {
    problems.add(until->at,
                 fmt::format("until must be a day such as 2027-03-01, not {}", describe(*until)));
  } else if (*entry.until < parsing.known.today) {
    const std::string named =
        entry.reason ? fmt::format(" (\"{}\")", text::printable(*entry.reason)) : "";
    problems.add(at, fmt::format("this limit{} expired on {}: decide what holds now, then take "
                                 "\"until\" out or give it a later day",
                                 named, *entry.until));
  }
}

void parse_limit(const Node& node, Parsing& parsing) {
  Problems& problems = parsing.problems;
  verdict::LimitEntry entry;
  entry.source = problems.source(node.at);
  Fields fields(node, "a limit", problems);
  if (const Node* match = fields.take("match")) parse_match(*match, entry.match, parsing);
  if (const Node* metrics = fields.take("metrics")) parse_metrics(*metrics, entry, parsing);
  if (const Node* exact = fields.take("exact"))
    entry.exact = read_boolean(*exact, "exact", problems);
  const auto amount = [&](const char* key, std::optional<verdict::Amount>& into,
                          bool may_be_relative) {
    if (const Node* value = fields.take(key)) {
      into = read_amount(*value, key, may_be_relative, problems);
    }
  };
  amount("max_drop", entry.max_drop, true);
  amount("max_increase", entry.max_increase, true);
  amount("max_decrease", entry.max_decrease, true);
  amount("tolerate", entry.tolerate, true);
  amount("max", entry.max, false);
  amount("min", entry.min, false);
  parse_mode(fields, entry, node.at, parsing);
  fields.later({"strict", "confirm", "against"});
  fields.finish();
  if (auto bad = verdict::bad_tolerate(entry)) problems.add(node.at, *bad);
  if (entry.max && entry.min && entry.max->value < entry.min->value) {
    problems.add(node.at, fmt::format("max ({}) is smaller than min ({})",
                                      verdict::show(*entry.max), verdict::show(*entry.min)));
  }
  const bool says_something = entry.exact || entry.max_drop || entry.max_increase ||
                              entry.max_decrease || entry.max || entry.min || entry.mode;
  if (node.kind == Node::Kind::map && !says_something && !problems.any()) {
    problems.add(node.at,
                 "this limit says nothing: give it exact, max_drop, max_increase, "
                 "max_decrease, max, min or mode");
  }
  parsing.settings.limits.push_back(std::move(entry));
}

}  // namespace

void parse_limits(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::list || node.items.size() > k_most_entries) {
    parsing.problems.add(node.at, fmt::format("limits must be a list of at most {} entries such as "
                                              "{{metrics: decode_tokens_per_second, max_drop: 5%}}",
                                              k_most_entries));
    return;
  }
  for (const Node& item : node.items) parse_limit(item, parsing);
}

}  // namespace weir::config
