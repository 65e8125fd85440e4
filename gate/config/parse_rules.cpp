// The sections limits, gate and explain (what a team knows of its engine, and what counts are usual
// for it).
#include <limits>

#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

std::vector<std::string> metric_names(const Settings& settings) {
  std::vector<std::string> names = unit::metric_names();
  names.insert(names.end(), verdict::k_specials.begin(), verdict::k_specials.end());
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
    const bool known = unit::find_metric(pattern).has_value() || matches_one(pattern, names);
    if (!known) parsing.problems.unknown(at, "metric", pattern, names);
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

void parse_mode(Fields& fields, verdict::LimitEntry& entry, Place at, Parsing& parsing) {
  Problems& problems = parsing.problems;
  fields.choose("mode", entry.mode, verdict::k_modes);
  fields.read("reason", entry.reason, read_text);
  fields.read("issue", entry.issue, read_text);
  const Node* until = fields.read("until", entry.until, read_text);
  if (!entry.until) return;
  if (!verdict::is_day(*entry.until)) {
    problems.expected(*until, "until", "a day such as 2027-03-01");
  } else if (*entry.until < parsing.known.today) {
    const std::string named =
        entry.reason ? fmt::format(" (\"{}\")", text::printable(*entry.reason)) : "";
    problems.add(at,
                 "this limit{} expired on {}: decide what holds now, then take \"until\" out or "
                 "give it a later day",
                 named, *entry.until);
  }
}

void parse_limit(const Node& node, Parsing& parsing) {
  Problems& problems = parsing.problems;
  verdict::LimitEntry entry;
  entry.source = problems.source(node.at);
  Fields fields(node, "a limit", problems);
  parse_match_key(fields, entry.match, parsing);
  if (const Node* metrics = fields.take("metrics")) parse_metrics(*metrics, entry, parsing);
  fields.read("exact", entry.exact, read_boolean);
  fields.read("max_drop", entry.max_drop, read_amount, true);
  fields.read("max_increase", entry.max_increase, read_amount, true);
  fields.read("max_decrease", entry.max_decrease, read_amount, true);
  fields.read("tolerate", entry.tolerate, read_amount, true);
  fields.read("max", entry.max, read_amount, false);
  fields.read("min", entry.min, read_amount, false);
  parse_mode(fields, entry, node.at, parsing);
  fields.finish();
  if (auto bad = verdict::bad_tolerate(entry)) problems.add(node.at, *bad);
  if (entry.max && entry.min && entry.max->value < entry.min->value) {
    problems.add(node.at, "max ({}) is smaller than min ({})", verdict::show(*entry.max),
                 verdict::show(*entry.min));
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

constexpr std::size_t k_most_explain_rules = 200;
constexpr std::size_t k_longest_saying = 2000;

std::optional<double> read_count(const Node& node, std::string_view what, Problems& problems) {
  const auto text = read_text(node, what, problems);
  const auto value = text ? text::to_double(*text) : std::nullopt;
  if (value && *value >= 0 && *value <= 1e9) return value;
  return text ? problems.expected(node, what, "a count from 0 to 1e9") : std::nullopt;
}

void parse_when(const Node& node, explain::Rule& rule, Problems& problems) {
  Fields when(node, "when", problems);
  when.read("kernel", rule.kernel, read_text);
  when.read("op", rule.op, read_text);
  when.read("metric", rule.metric, read_text);
  when.read("cell", rule.cell, read_text);
  using Change = explain::Rule::Change;
  const Node* change = when.choose("change", rule.change, explain::k_changes);
  const bool of_time = rule.change == Change::slower || rule.change == Change::faster;
  if (of_time && !(rule.kernel.empty() && rule.op.empty())) {
    problems.add(change->at,
                 "change: {} is for a metric of time: kernels and ops are counted here (any, "
                 "more, fewer, appeared, vanished)",
                 name_of(explain::k_changes, rule.change));
  }
  if (rule.kernel.empty() && rule.op.empty() && rule.metric.empty()) {
    return void(problems.add(node.at, "a rule says when it holds: kernel, op or metric"));
  }
  const auto& names = unit::metric_names();
  if (!rule.metric.empty() && !matches_one(rule.metric, names)) {
    problems.add(node.at, "unknown metric \"{}\"{}", text::printable(rule.metric),
                 text::did_you_mean(rule.metric, names));
  }
}

void parse_explain_rule(const Node& node, Parsing& parsing) {
  Fields fields(node, "a rule", parsing.problems);
  explain::Rule rule;
  if (const Node* when = fields.need("when")) parse_when(*when, rule, parsing.problems);
  const Node* say = fields.need("say", rule.say, read_text);
  if (rule.say.size() > k_longest_saying) {
    parsing.problems.add(say->at, "say is longer than {} characters", k_longest_saying);
  }
  parsing.settings.explain.rules.push_back(std::move(rule));
}

void parse_rules(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::list) {
    return void(parsing.problems.expected(node, "rules", "a list of {when, say}"));
  }
  if (node.items.size() > k_most_explain_rules) {
    return void(parsing.problems.add(node.at, "more than {} rules", k_most_explain_rules));
  }
  for (const Node& item : node.items) parse_explain_rule(item, parsing);
}

explain::Band parse_band(const Node& node, Problems& problems) {
  explain::Band band;
  Fields fields(node, "a band", problems);
  fields.read("low", band.low, read_count);
  fields.read("high", band.high, read_count);
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
  return band;
}

bool is_count(const std::optional<unit::Metric>& metric) {
  return metric && metric->kind == unit::Kind::count;
}

std::vector<std::string> count_names() {
  std::vector<std::string> names = unit::metric_names();
  std::erase_if(names, [](const auto& name) { return !is_count(unit::find_metric(name)); });
  return names;
}

void parse_bands(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::map) {
    return void(parsing.problems.expected(node, "bands", "a mapping of metrics to their band"));
  }
  for (const Entry& entry : node.entries) {
    const auto metric = unit::find_metric(entry.key);
    if (!is_count(metric)) {
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

void parse_limits(const Node& node, Parsing& parsing) {
  constexpr std::string_view k_example = "{metrics: decode_tokens_per_second, max_drop: 5%}";
  if (!is_entries(node, "limits", k_example, parsing.problems)) return;
  for (const Node& item : node.items) parse_limit(item, parsing);
}

void parse_gate(const Node& node, Parsing& parsing) {
  Problems& problems = parsing.problems;
  GateSettings& gate = parsing.settings.gate;
  constexpr std::int64_t k_most_runs = 1000;
  Fields fields(node, "gate", problems);
  constexpr Name<bool> k_policies[] = {{false, "warn"}, {true, "fail"}};
  fields.read("false_alarm", gate.false_alarm, read_share, 0, 0.5);
  fields.read("missed", gate.missed, read_share, 0, 0.5);
  fields.read("strict", gate.strict, read_boolean);
  fields.read("budget", gate.budget_seconds, read_duration, std::numeric_limits<double>::infinity(),
              "");
  fields.read("runs", gate.runs, read_integer, 1, k_most_runs);
  fields.read("repeats", gate.repeats, read_integer, 1, k_most_runs);
  fields.read("stored_level", gate.stored_level, read_share, 0, 0.5);
  fields.choose("on_inconclusive", gate.fail_on_inconclusive, k_policies);
  fields.choose("on_removed", gate.fail_on_removed, k_policies);
  fields.read("accept_own", gate.accept_own, read_boolean);
  if (const Node* confirm = fields.take("confirm")) {
    const auto text = read_text(*confirm, "confirm", problems);
    gate.confirms = text != "false";
    if (text && text != "false" && text != "true") gate.confirm = text;
    if (text && (text->empty() || text->starts_with("-"))) {
      problems.add(confirm->at, "confirm: a REF of git (origin/main), true or false");
    }
  }
  if (const Node* reference = fields.read("reference", gate.reference, read_text)) {
    gate.reference_source = problems.source(reference->at);
  }
}

void parse_explain(const Node& node, Parsing& parsing) {
  Fields fields(node, "explain", parsing.problems);
  if (const Node* rules = fields.take("rules")) parse_rules(*rules, parsing);
  if (const Node* bands = fields.take("bands")) parse_bands(*bands, parsing);
}

}  // namespace weir::config
