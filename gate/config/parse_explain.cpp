// `explain`: what a team knows of its engine, and what counts are usual for it.
#include <algorithm>
#include <array>
#include <cmath>

#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_most_explain_rules = 200;
constexpr std::size_t k_longest_saying = 2000;

std::optional<double> read_count(const Node& node, std::string_view what, Problems& problems) {
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  const auto value = text::to_double(*text);
  if (value && *value >= 0 && *value <= 1e9) return value;
  problems.add(node.at,
               fmt::format("{} must be a count from 0 to 1e9, not {}", what, describe(node)));
  return std::nullopt;
}

void read_into(Fields& fields, const char* key, std::string& value, Problems& problems) {
  if (const Node* node = fields.take(key)) {
    value = read_text(*node, key, problems).value_or("");
  }
}

void parse_when(const Node& node, explain::Rule& rule, Problems& problems) {
  Fields when(node, "when", problems);
  read_into(when, "kernel", rule.kernel, problems);
  read_into(when, "op", rule.op, problems);
  read_into(when, "metric", rule.metric, problems);
  read_into(when, "cell", rule.cell, problems);
  if (const Node* change = when.take("change")) {
    const auto word = read_choice(*change, "change", explain::change_words(), problems);
    if (word) rule.change = explain::parse_change(*word).value_or(explain::Rule::Change::any);
    using Change = explain::Rule::Change;
    const bool of_time = rule.change == Change::slower || rule.change == Change::faster;
    if (of_time && !(rule.kernel.empty() && rule.op.empty())) {
      problems.add(change->at,
                   fmt::format("change: {} is for a metric of time: kernels and ops are counted "
                               "here (any, more, fewer, appeared, vanished)",
                               *word));
    }
  }
  when.finish();
  if (rule.kernel.empty() && rule.op.empty() && rule.metric.empty()) {
    problems.add(node.at, "a rule says when it holds: kernel, op or metric");
    return;
  }
  const auto& names = unit::metric_names();
  const bool known = rule.metric.empty() || std::any_of(names.begin(), names.end(), [&](auto& one) {
                       return text::glob_match(rule.metric, one);
                     });
  if (!known) {
    problems.add(node.at, fmt::format("unknown metric \"{}\"{}", text::printable(rule.metric),
                                      text::did_you_mean(rule.metric, names)));
  }
}

void parse_explain_rule(const Node& node, Parsing& parsing) {
  Fields fields(node, "a rule", parsing.problems);
  explain::Rule rule;
  if (const Node* when = fields.need("when")) parse_when(*when, rule, parsing.problems);
  if (const Node* say = fields.need("say")) {
    rule.say = read_text(*say, "say", parsing.problems).value_or("");
    if (rule.say.size() > k_longest_saying) {
      parsing.problems.add(say->at,
                           fmt::format("say is longer than {} characters", k_longest_saying));
    }
  }
  fields.finish();
  parsing.settings.explain.rules.push_back(std::move(rule));
}

void parse_rules(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::list) {
    parsing.problems.add(
        node.at, fmt::format("rules must be a list of {{when, say}}, not {}", describe(node)));
    return;
  }
  if (node.items.size() > k_most_explain_rules) {
    parsing.problems.add(node.at, fmt::format("more than {} rules", k_most_explain_rules));
    return;
  }
  for (const Node& item : node.items) parse_explain_rule(item, parsing);
}

explain::Band parse_band(const Node& node, Problems& problems) {
  explain::Band band;
  Fields fields(node, "a band", problems);
  if (const Node* low = fields.take("low")) band.low = read_count(*low, "low", problems);
  if (const Node* high = fields.take("high")) band.high = read_count(*high, "high", problems);
  if (const Node* good = fields.take("good")) {
    if (good->kind != Node::Kind::list || good->items.size() != 2) {
      problems.add(good->at, "good is a list of two counts: [300, 600]");
    } else {
      band.good_from = read_count(good->items[0], "good", problems);
      band.good_to = read_count(good->items[1], "good", problems);
      if (band.good_from && band.good_to && *band.good_from > *band.good_to) {
        problems.add(good->at, "good begins above its end");
      }
    }
  }
  if (band.low && band.high && *band.low > *band.high) {
    problems.add(node.at, "low is above high: every count would be unusual");
  }
  fields.finish();
  return band;
}

std::vector<std::string> count_names() {
  std::vector<std::string> names = unit::metric_names();
  std::erase_if(names, [](const std::string& name) {
    const auto metric = unit::find_metric(name);
    return !metric || metric->kind != unit::Kind::count;
  });
  return names;
}

void parse_bands(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::map) {
    parsing.problems.add(node.at, fmt::format("bands must be a mapping of metrics to their band, "
                                              "not {}",
                                              describe(node)));
    return;
  }
  for (const Entry& entry : node.entries) {
    const auto metric = unit::find_metric(entry.key);
    if (!metric || metric->kind != unit::Kind::count) {
      parsing.problems.add(
          entry.key_at,
          metric ? fmt::format("{} is no count: bands are for counts alone", metric->name)
                 : fmt::format("unknown count \"{}\"{}", text::printable(entry.key),
                               text::did_you_mean(entry.key, count_names())));
      continue;
    }
    parsing.settings.explain.bands[entry.key] = parse_band(entry.value, parsing.problems);
  }
}

}  // namespace

void parse_explain(const Node& node, Parsing& parsing) {
  Fields fields(node, "explain", parsing.problems);
  if (const Node* rules = fields.take("rules")) parse_rules(*rules, parsing);
  if (const Node* bands = fields.take("bands")) parse_bands(*bands, parsing);
  fields.finish();
}

}  // namespace weir::config
