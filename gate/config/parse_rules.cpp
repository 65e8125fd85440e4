// The sections limits, gate and explain (a team's own rules and usual ranges of counts).
#include <limits>

#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

// Returns the names that a limit may use: metrics of weir, special ones, and those that engines
// declare.
std::vector<std::string> limitable_names(const Settings& settings) {
  std::vector<std::string> names = unit::metric_names();
  names.insert(names.end(), verdict::k_non_metrics.begin(), verdict::k_non_metrics.end());
  for (const EngineSettings& engine : settings.engines) {
    for (const ValueRule& rule : engine.generic.values) {
      if (rule.custom) names.push_back(rule.metric);
    }
  }
  return names;
}

// Reads `metrics` of a limit: names or patterns, 1 to 100. Complains about those that match no
// metric.
void parse_metrics(const Node& node, verdict::LimitEntry& entry, Parsing& parsing) {
  // Each pattern is matched with each name, here and when a gate judges.
  constexpr std::size_t k_max_patterns = 2000;
  const std::vector<std::string>& names = parsing.limitable;
  const auto add_problem = [&](TextPosition at, const std::string& pattern) {
    const bool is_known = unit::find_metric(pattern).has_value() || matches_any(pattern, names);
    if (!is_known) parsing.problems.report_unknown(at, "metric", pattern, names);
  };
  entry.metrics = read_texts(node, "metrics", parsing.problems);
  parsing.limit_patterns += entry.metrics.size();
  if (parsing.limit_patterns > k_max_patterns) {
    parsing.problems.add(node.position,
                         "all limits together name more than {} metrics: use patterns",
                         k_max_patterns);
    return;
  }
  if (node.kind == Node::Kind::list) {
    for (const Node& item : node.items) {
      if (item.kind == Node::Kind::scalar) add_problem(item.position, item.text);
    }
    if (node.items.empty() || node.items.size() > 100) {
      parsing.problems.add(node.position,
                           "metrics must name 1 to 100 metrics: leave it out for all");
    }
  } else if (!entry.metrics.empty()) {
    add_problem(node.position, entry.metrics.front());
  }
}

// Reads the keys of a limit that say how and until when it applies. `at` is the limit's position
// in the file; an expired limit is a problem there.
void parse_mode(Fields& fields, verdict::LimitEntry& entry, TextPosition at, Parsing& parsing) {
  Problems& problems = parsing.problems;
  fields.read({"mode", "gate: fail; report: show only; off: compare nothing.", "report", "gate"},
              entry.mode, OneOf{verdict::k_modes});
  fields.read({"reason", "Reason, shown in reports.", "known regression of the driver"},
              entry.reason, k_text);
  fields.read({"issue", "Issue, shown in reports.", "812"}, entry.issue, k_text);
  const Node* until = fields.read(
      {"until", "Last day of this entry. Later it is an error that names it.", "2027-03-01"},
      entry.until,
      FieldType{read_text, "day",
                R"("type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")"});
  if (!entry.until) return;
  if (!verdict::is_day(*entry.until)) {
    problems.report_expected(*until, "until", "a day such as 2027-03-01");
  } else if (*entry.until < parsing.supported.today) {
    const std::string reason =
        entry.reason ? fmt::format(" (\"{}\")", text::printable(*entry.reason)) : "";
    problems.add(at,
                 "this limit{} expired on {}: decide what holds now, then take \"until\" out or "
                 "give it a later day",
                 reason, *entry.until);
  }
}

// Reads one entry of `limits`.
void parse_limit(const Node& node, Parsing& parsing) {
  Problems& problems = parsing.problems;
  verdict::LimitEntry entry;
  entry.source = problems.source(node.position);
  Fields fields(node, "a limit", problems);
  parse_match_key(fields, {"match", "Only cells that match.", "{backend: vulkan}", "all cells"},
                  entry.match, parsing);
  const Node* metrics = fields.find(
      {"metrics",
       "Metrics by name or pattern; kernels; kernel_code; placement; op:NAME, kernel:NAME, "
       "buffer:LABEL (times), op_calls:NAME, kernel_calls:NAME, buffers:LABEL.",
       "dispatches_per_token"},
      k_text.form() | list_form(k_text.form(), R"(, "minItems": 1, "maxItems": 100)"));
  if (metrics != nullptr) parse_metrics(*metrics, entry, parsing);
  constexpr AmountType k_change{true}, k_bound{false};
  fields.read({"exact", "The count must not change. false removes that limit.", "false",
               "true for counts per token and per prefill"},
              entry.exact, k_boolean);
  fields.read(
      {"max_drop", "Largest drop, for metrics where higher is better.", "5%", "5% for throughput"},
      entry.max_drop, k_change);
  fields.read({"max_increase", "Largest increase, for metrics where lower is better.", "10%"},
              entry.max_increase, k_change);
  fields.read({"max_decrease", "Largest decrease of a count.", "10%"}, entry.max_decrease,
              k_change);
  fields.read({"tolerate", "Change that is never blamed.", "2%", "half of the limit"},
              entry.tolerate, k_change);
  const Node* max = fields.read(
      {"max",
       "Upper bound of a count in every process, and of the median of times and memory. A number "
       "without a unit has the unit of the metric's name: MB for heap_mb. Of failed_requests also "
       "a share.",
       "3"},
      entry.max, k_change);
  const bool may_be_share = entry.metrics == std::vector{std::string(unit::k_failed_requests)};
  if (entry.max && entry.max->relative && !may_be_share) {
    problems.report_expected(*max, "max",
                             "a number of at least 0 (a share is for failed_requests alone)");
  }
  fields.read({"min", "Lower bound, as max.", "1"}, entry.min, k_bound);
  parse_mode(fields, entry, node.position, parsing);
  fields.finish();
  if (auto bad = verdict::tolerate_problem(entry)) problems.add(node.position, *bad);
  if (entry.max && entry.min && entry.max->value < entry.min->value) {
    problems.add(node.position, "max ({}) is smaller than min ({})", verdict::show(*entry.max),
                 verdict::show(*entry.min));
  }
  const bool says_something = entry.exact || entry.max_drop || entry.max_increase ||
                              entry.max_decrease || entry.max || entry.min || entry.mode;
  if (node.kind == Node::Kind::map && !says_something && !problems.any()) {
    problems.add(node.position,
                 "this limit says nothing: give it exact, max_drop, max_increase, "
                 "max_decrease, max, min or mode");
  }
  parsing.settings.limits.push_back(std::move(entry));
}

constexpr std::size_t k_max_explain_rules = 200;
constexpr std::size_t k_longest_saying = 2000;

// Reads a count from 0 to 1e9.
std::optional<double> read_count(const Node& node, std::string_view what, Problems& problems) {
  const auto text = read_text(node, what, problems);
  const auto value = text ? text::to_double(*text) : std::nullopt;
  if (value && *value >= 0 && *value <= 1e9) return value;
  return text ? problems.report_expected(node, what, "a count from 0 to 1e9") : std::nullopt;
}

// Reads the condition of a rule of `explain`: a kernel, op or metric that changed in some way.
void parse_when(const Node& node, explain::Rule& rule, Problems& problems) {
  Fields when(node, "when", problems);
  when.read({"kernel", "A kernel whose name matches the pattern changed.", "'mul_mat_vec*'"},
            rule.kernel, k_text);
  when.read({"op", "An op whose name matches the pattern changed.", "GET_ROWS"}, rule.op, k_text);
  when.read({"metric", "A metric whose name matches the pattern changed.", "syncs_per_token"},
            rule.metric, k_text);
  when.read({"cell", "Only in cells that match the pattern.", "'*/vulkan/*'", "all cells"},
            rule.cell, k_text);
  using Change = explain::Rule::Change;
  const Node* change =
      when.read({"change", "How it changed.", "more"}, rule.change, OneOf{explain::k_changes});
  const bool is_of_time = rule.change == Change::slower || rule.change == Change::faster;
  if (is_of_time && !(rule.kernel.empty() && rule.op.empty())) {
    problems.add(change->position,
                 "change: {} is for a metric of time: kernels and ops are counted here (any, "
                 "more, fewer, appeared, vanished)",
                 name_of(explain::k_changes, rule.change));
  }
  if (rule.kernel.empty() && rule.op.empty() && rule.metric.empty()) {
    return void(problems.add(node.position, "a rule says when it holds: kernel, op or metric"));
  }
  const auto& names = unit::metric_names();
  if (!rule.metric.empty() && !matches_any(rule.metric, names)) {
    problems.add(node.position, "unknown metric \"{}\"{}", text::printable(rule.metric),
                 text::did_you_mean(rule.metric, names));
  }
}

// Reads a rule of `explain`: a condition, and the sentence that reports print if it holds.
void parse_explain_rule(const Node& node, Parsing& parsing) {
  Fields fields(node, "a rule", parsing.problems);
  explain::Rule rule;
  const Key when_key{"when", "All of its parts must hold.", "{op: GET_ROWS, change: more}"};
  if (const Node* when = fields.require(when_key, mapping()))
    parse_when(*when, rule, parsing.problems);
  const Node* say = fields.require(
      {"say", "The sentence to print, of at most 2000 characters.", "See the runbook, chapter 3."},
      rule.say, k_text);
  if (rule.say.size() > k_longest_saying) {
    parsing.problems.add(say->position, "say is longer than {} characters", k_longest_saying);
  }
  parsing.settings.explain.rules.push_back(std::move(rule));
}

void parse_rules(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::list) {
    return void(parsing.problems.report_expected(node, "rules", "a list of {when, say}"));
  }
  if (node.items.size() > k_max_explain_rules) {
    return void(parsing.problems.add(node.position, "more than {} rules", k_max_explain_rules));
  }
  for (const Node& item : node.items) parse_explain_rule(item, parsing);
}

// Reads a band of one count: its usual range, and the range of the best values known.
explain::Band parse_band(const Node& node, Problems& problems) {
  explain::Band band;
  Fields fields(node, "a band", problems);
  constexpr FieldType k_count{read_count, "number", R"("type": "number", "minimum": 0)"};
  fields.read({"low", "Lowest usual value.", "1"}, band.low, k_count);
  fields.read({"high", "Highest usual value.", "2"}, band.high, k_count);
  const Node* good =
      fields.find({"good", "Best values known: the pair of a lowest and a highest.", "[300, 600]"},
                  list_form(k_count.form(), R"(, "minItems": 2, "maxItems": 2)"));
  if (good != nullptr) {
    if (good->kind != Node::Kind::list || good->items.size() != 2) {
      problems.add(good->position, "good is a list of two counts: [300, 600]");
    } else {
      band.good_from = read_count(good->items[0], "good", problems);
      band.good_to = read_count(good->items[1], "good", problems);
      if (band.good_from && band.good_to && *band.good_from > *band.good_to) {
        problems.add(good->position, "good begins above its end");
      }
    }
  }
  if (band.low && band.high && *band.low > *band.high) {
    problems.add(node.position, "low is above high: every count would be unusual");
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

// Reads `bands` of `explain`: usual ranges by the name of a count.
void parse_bands(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::map) {
    return void(
        parsing.problems.report_expected(node, "bands", "a mapping of metrics to their band"));
  }
  for (const Entry& entry : node.entries) {
    const auto metric = unit::find_metric(entry.key);
    if (!is_count(metric)) {
      parsing.problems.add(
          entry.key_position,
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
  parsing.limitable = limitable_names(parsing.settings);
  for (const Node& item : node.items) parse_limit(item, parsing);
}

void parse_gate(const Node& node, Parsing& parsing) {
  Problems& problems = parsing.problems;
  GateSettings& gate = parsing.settings.gate;
  constexpr WholeNumber k_runs{1, 1000};
  constexpr Name<bool> k_policies[] = {{false, "warn"}, {true, "fail"}};
  Fields fields(node, "gate", problems);
  fields.read({"false_alarm",
               "Probability that a gate fails although nothing changed, over all its cells, with "
               "--against.",
               "0.01"},
              gate.false_alarm, Share{});
  fields.read(
      {"missed", "Probability that a drop of max_drop or more passes, with --against.", "0.05"},
      gate.missed, Share{});
  fields.read({"strict",
               "Hold false_alarm for every drop up to tolerate, not only for none at all.", "true"},
              gate.strict, k_boolean);
  fields.read({"budget", "Time for pairs of one gate.", "20m"}, gate.budget_seconds,
              Duration{std::numeric_limits<double>::infinity(), ""});
  fields.read({"runs", "Timed processes per cell without a base build.", "20"}, gate.runs, k_runs);
  fields.read(
      {"repeats", "Repeats within one process; the process counts as one number, the best.", "5"},
      gate.repeats, k_runs);
  fields.read({"stored_level", "Level of the interval of a comparison with stored runs.", "0.01"},
              gate.stored_level, Share{});
  fields.read({"on_inconclusive",
               "What becomes of an inconclusive gate: exit code 0 (warn) or 4 (fail).", "fail"},
              gate.fail_on_inconclusive, OneOf{k_policies});
  fields.read({"on_removed",
               "With --rules-from: what becomes of a cell or metric that REF holds and the pull "
               "request does not have any more.",
               "warn"},
              gate.fail_on_removed, OneOf{k_policies});
  fields.read({"comment",
               "When weir post makes a comment on the pull request: changed (unless the verdict is "
               "a pass and no rule is edited), always or never. A comment that is there is edited, "
               "except with never.",
               "always"},
              gate.comment, OneOf{verdict::k_comments});
  fields.read({"waive_own",
               "Let the author of a pull request waive its changes by /weir waive, where the "
               "target branch says so.",
               "true"},
              gate.waive_own, k_boolean);
  const Node* confirm = fields.find(
      {"confirm",
       "REF for paired runs that confirm a drop against stored samples before it fails; false for "
       "never.",
       "refs/remotes/origin/main", "the target branch of a pull request"},
      k_boolean.form() | Form{"text", R"("type": "string", "minLength": 1, "pattern": "^[^-]")"});
  if (confirm != nullptr) {
    const auto text = read_text(*confirm, "confirm", problems);
    gate.confirms = text != "false";
    if (text && text != "false" && text != "true") gate.confirm = text;
    if (text && (text->empty() || text->starts_with("-"))) {
      problems.add(confirm->position, "confirm: a REF of git (origin/main), true or false");
    }
  }
  const Node* reference = fields.read(
      {"reference", "Cell of a pinned engine and model. Stored times are scaled to its speed.",
       "pinned/tiny/cpu/decode"},
      gate.reference, k_text);
  if (reference != nullptr) gate.reference_source = problems.source(reference->position);
}

// Reads the section `explain`: rules with sentences, and usual ranges of counts.
void parse_explain(const Node& node, Parsing& parsing) {
  Fields fields(node, "explain", parsing.problems);
  const Node* rules = fields.find({"rules", "Sentences to print when something changed.",
                                   "[{when: {op: GET_ROWS}, say: See chapter 3.}]"},
                                  list_form(mapping(), R"(, "maxItems": 200)"));
  if (rules != nullptr) parse_rules(*rules, parsing);
  const Node* bands = fields.find(
      {"bands", "Usual ranges of counts; weir explain --checklist lists what is outside.",
       "{syncs_per_token: {low: 1, high: 2}}"},
      named(mapping(), ".", "syncs_per_token"));
  if (bands != nullptr) parse_bands(*bands, parsing);
}

}  // namespace weir::config
