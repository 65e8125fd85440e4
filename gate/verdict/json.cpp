// Writes and reads a GateVerdict as weir.verdict/1: reports are made later from a finished gate,
// too. Every key is always there; an absent value is null.
#include "gate/base/json.hpp"

#include <algorithm>
#include <limits>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {
namespace {

constexpr auto k_outcomes = names_in_order<Outcome>(
    "fail", "error", "inconclusive", "new", "improved", "waived", "pass", "skipped", "info");

Named<Outcome> outcome_field(Outcome& outcome) {
  return {outcome, k_outcomes, "\"verdict\" should be a verdict"};
}

Json amount_to_json(const Amount& amount) {
  return amount.relative ? Json(show(amount)) : number_to_json(amount.value);
}

// A plain number, or "5 %" as amounts are written.
struct AmountField {
  std::optional<Amount>& value;
  void put(Json& slot) const { slot = amount_to_json(*value); }
  void take(const Json& json, Fields& io, const char* key) const {
    if (json.is_number()) {
      value = Amount{json.get<double>(), false};
      return;
    }
    const std::string written = json.is_string() ? json.get<std::string>() : "";
    const std::size_t sign = written.find(" %");
    const auto number = text::to_double(written.substr(0, sign));
    if (!number || sign == std::string::npos) return io.complain_about(key, "should be an amount");
    value = Amount{*number / 100, true};
  }
};

constexpr auto k_exit_codes =
    std::to_array({ExitCode::pass, ExitCode::fail, ExitCode::usage, ExitCode::unmeasured,
                   ExitCode::inconclusive, ExitCode::interrupted});

// Writes a metric, or reads it back. One of weir's own is known by its name; another needs its
// kind, unit and direction.
void metric_fields(Fields& io, unit::Metric& metric) {
  const std::string& name = metric.name;
  std::string kind(to_string(metric.kind)), unit(to_string(metric.unit)),
      better(to_string(metric.better));
  const auto own_metric = io.is_reading() ? unit::find_metric(name) : std::nullopt;
  for (const auto& [key, text] : {std::pair("kind", &kind), {"unit", &unit}, {"better", &better}}) {
    if (own_metric) {
      io.always(key, *text);
    } else {
      io(key, *text);
    }
  }
  if (!io.is_reading()) return;
  const auto declared =
      own_metric ? own_metric
                 : unit::metric_from_json(
                       {{"name", name}, {"kind", kind}, {"unit", unit}, {"better", better}});
  io.check(declared.has_value(), "holds a metric that says too little of itself");
  metric = declared.value_or(unit::Metric{});
}

}  // namespace

static void fields(Fields& io, MaxChange& change) {
  io.write_only("amount", io.is_reading() ? Json() : amount_to_json(change.amount));
  io("value", change.amount.value);
  io("relative", change.amount.relative);
  io("tolerate", change.tolerate.value);
  io("tolerate_relative", change.tolerate.relative);
}

// Only the kinds that are set: {"exact": true}.
static void fields(Fields& io, Limit& limit) {
  io.optional("exact", limit.exact);
  io.optional("repeats_within", limit.allowed_variation);
  io.optional("max_drop", limit.max_drop, " max_drop");
  io.optional("max_increase", limit.max_increase, " max_increase");
  io.optional("max_decrease", limit.max_decrease, " max_decrease");
  io.optional("max", AmountField{limit.max});
  io.optional("min", AmountField{limit.min});
  io.optional("reason", limit.reason);
  io.unless("mode", Named{limit.mode, k_modes, "has a mode that is not known"}, Mode::gate);
}

// Numbers that are not finite are written as null: those runs did not end.
void fields(Fields& io, RunSpread& runs) {
  constexpr double k_never = std::numeric_limits<double>::infinity();
  if (io.is_reading()) runs = {k_never, k_never, k_never, k_never};
  io.always("fast", RoundedNumber{runs.fast});
  io.always("median", RoundedNumber{runs.median});
  io.always("mean", RoundedNumber{runs.mean});
  io.always("slow", RoundedNumber{runs.slow});
}

static void fields(Fields& io, Changed& changed) {
  io("name", changed.name);
  io.always("baseline", changed.baseline);
  io.always("current", changed.current);
}

static void fields(Fields& io, KernelChange::Cost& cost) {
  io("cost", cost.cost);
  io("before", cost.before);
  io("now", cost.now);
}

static void fields(Fields& io, KernelChange& code) {
  io("kernel", code.kernel);
  io("calls", code.calls);
  io("other_code", code.code_changed);
  io("before", code.hashes_before);
  io("now", code.hashes_now);
  io.optional("groups_before", code.workgroups_before);
  io.optional("groups_now", code.workgroups_now);
  io.optional("costs", code.costs, "cost");
  io.optional("differences", code.metadata_differences);
}

// Writes or reads those keys of a judgement that only metrics have: values, samples, interval and
// pairs.
static void metric_fields(Fields& io, Judgement& judgement) {
  metric_fields(io, judgement.metric);
  io("nature", profile::nature_field(judgement.nature));
  io.always("source", judgement.source);
  io.always("baseline", RoundedNumber{judgement.baseline});
  io.always("current", RoundedNumber{judgement.current});
  io.always("baseline_text", judgement.baseline_text);
  io.always("current_text", judgement.current_text);
  io.always("change", RoundedNumber{judgement.change});
  io.always("low", RoundedNumber{judgement.low});
  io.always("high", RoundedNumber{judgement.high});
  io.always("samples", judgement.samples);
  io.always("baseline_sessions", judgement.baseline_sessions);
  io.always("pairs", judgement.pairs);
  io.always("more_pairs", judgement.more_pairs);
  io.always("more_seconds", RoundedNumber{judgement.more_seconds});
  io.always("ratios", RoundedNumber{judgement.ratios});
  io.always("baseline_runs", judgement.baseline_runs);
  io.always("current_runs", judgement.current_runs);
  io.always("spread_ratio", RoundedNumber{judgement.spread_ratio});
  io.always("warnings", judgement.warnings);
}

// Writes or reads a judgement of any subject: a metric, or kernels, their code or placement. A
// limit that is not set is written as null.
static void fields(Fields& io, Judgement& judgement) {
  io("subject", judgement.metric.name);
  io.write_only("label", io.is_reading() ? "" : unit::display_name(judgement.metric));
  io("verdict", outcome_field(judgement.verdict));
  io.always("reason", judgement.reason);
  if (io.is_reading() || judgement.limit.is_set() || judgement.limit.mode != Mode::gate) {
    io.always("limit", judgement.limit);
  } else {
    io.write_only("limit", Json());
  }
  io.write_only("limit_words", io.is_reading() ? "" : judgement.limit.words());
  if (judgement.is_metric()) return metric_fields(io, judgement);
  judgement.metric.base = judgement.metric.name;
  io.optional("changed", judgement.changed, "=");
  io.optional("code", judgement.code, "kernel");
  io.optional("compiler", judgement.compiler);
}

std::string Finding::text() const {
  std::string all = headline;
  for (const std::string& line : lines) all += "\n" + line;
  return all;
}

// Writes or reads a finding, a change that may explain a failed count. Its text is one string; the
// first line is the headline.
static void fields(Fields& io, FindingNumber& number) {
  io("name", number.name);
  io("delta", number.delta);
  io.always("per_layer", number.per_layer);
  io.always("layers", number.layers);
}

// Writes or reads a finding. The headline is the first line of its text.
void fields(Fields& io, Finding& finding) {
  io("kind", finding.kind);
  io.always("metric", NullIfEmpty{finding.metric});
  io.always("delta", finding.delta);
  io.always("per_layer", finding.per_layer);
  io.always("layers", finding.layers);
  io.always("tensors", finding.tensors);
  io.always("ops", finding.ops);
  io.always("numbers", finding.numbers, "numbers");
  std::string text = io.is_reading() ? "" : finding.text();
  io("text", text);
  io.always("cause", NullIfEmpty{finding.cause});
  io.always("look_at", NullIfEmpty{finding.look_at});
  io.optional("claims", finding.claims);
  io.always("also", finding.also);
  io.always("score", finding.score);
  if (!io.is_reading()) return;
  finding.lines = text::lines(text);
  if (finding.lines.empty()) return;
  finding.headline = finding.lines.front();
  finding.lines.erase(finding.lines.begin());
}

static void fields(Fields& io, TwinDifference& difference) {
  io("name", difference.name);
  io.always("twin", difference.twin);
  io.always("real", difference.real);
}

static void fields(Fields& io, TwinCheck& check) {
  io("twin", check.twin);
  io("device", check.device);
  io("against", check.against);
  io.always("about", check.about);
  io.write_only("equal", check.equal());
  io("compared", check.compared);
  io("kernels_compared", check.kernels_compared);
  io("differences", check.differences, "=");
  io("kernels", check.kernels, "=");
}

static void fields(Fields& io, CellVerdict& cell) {
  io("cell", cell.cell);
  const std::string name = cell.cell.str();
  io.set_path(name + ": cells");
  io.write_only("engine", cell.cell.engine);
  io.write_only("variant", cell.cell.variant);
  io.write_only("model", cell.cell.model);
  io.write_only("backend", cell.cell.backend);
  io.write_only("prompt", cell.cell.prompt);
  io.write_only("depth", cell.cell.depth);
  io.write_only("concurrency", cell.cell.concurrency);
  io.write_only("threads", cell.cell.threads);
  io.always("device", cell.device);
  io("verdict", outcome_field(cell.verdict));
  io.always("reason", cell.reason);
  io.always("device_class", cell.device_class);
  io.always("device_name", cell.device_name);
  io.always("machine_class", cell.machine_class);
  io.always("machine_name", cell.machine_name);
  io.always("base", cell.base);
  io.always("not_compared", cell.not_compared);
  io("judgements", cell.judgements, "judgements");
  if (io.is_reading()) std::ranges::stable_partition(cell.judgements, &Judgement::is_metric);
  io.check(worst(cell.verdict, fold(cell.judgements)) == cell.verdict,
           "has a verdict that is better than its judgements");
  io.optional("elsewhere", cell.ran_elsewhere);
  io.optional("not_allowed", cell.not_allowed);
  io.always("functions", cell.functions, "=");
  io.always("server_metrics", cell.server, "server's metric");
  io.optional("requests", cell.requests);
  io.check(cell.requests.value_or(0) >= 0, "needs requests of at least 0");
  io.limit_items("latencies", profile::k_max_requests_in_file * profile::k_latencies_of_request,
                 "has the latencies of too many requests");
  if (io.is_reading()) {
    io.optional("latencies", cell.latencies);
  } else {
    io.optional("latencies",
                profile::thin_latencies(cell.latencies, profile::k_max_requests_in_file));
  }
  io.limit_items("batches", profile::k_max_batch_bars, "has too many sizes of batches");
  io.optional("batches", cell.batches, "batches");
  io.always("stderr_tail", cell.stderr_tail);
  io.always("warnings", cell.warnings);
  io.always("notes", cell.notes);
  io.always("findings", cell.findings, "findings");
  io.always("twin_check", cell.twin_check);
  io.always("counts_skipped", cell.counts_skip_reason);
  io.always("instructions_skipped", cell.instructions_skip_reason);
  io.optional("host_skipped", cell.host_skip_reason);
  io.always("profiling_cost", RoundedNumber{cell.profiling_cost});
}

static void fields(Fields& io, NotCompared& cells) {
  io("reason", cells.reason);
  io("cells", cells.cells);
}

static void fields(Fields& io, Carrier& carrier) {
  io("metric", carrier.metric);
  io("least", RoundedNumber{carrier.min_change});
  io("most", RoundedNumber{carrier.max_change});
  io("cells", carrier.cells);
}

static void fields(Fields& io, Cause& cause) {
  io("kind", cause.kind);
  io("headline", cause.headline);
  io("ops", cause.ops);
  io("cells", cause.cells);
  io("carriers", cause.carriers);
  io("follow", cause.follow);
  io.always("cause", NullIfEmpty{cause.cause});
  io.always("look_at", NullIfEmpty{cause.look_at});
  io.optional("beside", cause.beside);
}

static void fields(Fields& io, Unexplained& unexplained) {
  io("what", unexplained.what);
  io("cells", unexplained.cells);
}

static void fields(Fields& io, Against& against) {
  if (io.is_reading() || against.command.empty()) io.always("spec", NullIfEmpty{against.spec});
  io.optional("command", against.command);
}

void fields(Fields& io, RulesFrom& rules) {
  io("ref", rules.ref);
  io("commit", rules.commit);
  io.optional("text_hash", rules.text_hash);
  io.optional("waive_own", rules.waive_own);
}

// Writes or reads the whole verdict (weir.verdict/1).
void fields(Fields& io, GateVerdict& gate) {
  io.schema_of_document("weir.verdict/1", "not a verdict: ");
  io("verdict", outcome_field(gate.verdict));
  auto code = static_cast<int>(gate.exit_code);
  io("exit_code", code);
  if (io.is_reading()) gate.exit_code = static_cast<ExitCode>(code);
  io.check(holds(k_exit_codes, gate.exit_code), "has an exit code that weir does not use");
  io.check(gate.exit_code != ExitCode::pass || gate.verdict > Outcome::error,
           "has an exit code that is better than its verdict");
  io.always("weir_version", gate.weir_version);
  io.always("config", gate.config);
  io.always("some_cells", gate.is_selection);
  io.optional("options", gate.options);
  io.always("counts_only", gate.counts_only);
  io.always("commit", gate.commit);
  io.always("base_commit", gate.base_commit);
  io.always("base_source", gate.base_origin);
  io.always("against", gate.against);
  io.optional("runs", gate.runs);
  io.always("rules", gate.rules);
  io.always("proposals", gate.proposals, "proposals");
  if (io.is_reading() && gate.proposals.size() > k_max_proposals)
    gate.proposals.resize(k_max_proposals);
  io("cells", gate.cells, "cells");
  io.check(std::ranges::all_of(gate.cells,
                               [&](const CellVerdict& cell) {
                                 return worst(gate.verdict, cell.verdict) == gate.verdict;
                               }),
           "has a verdict that is better than that of one of its cells");
  io.optional("causes", gate.causes, "causes");
  io.optional("unexplained", gate.unexplained, "unexplained");
  io.always("totals", gate.totals);
  io.always("metrics_judged", gate.metrics_judged);
  io.always("compared", gate.compared);
  io.always("not_compared", gate.not_compared, "not_compared");
  io.always("unjudged", gate.nothing_judged_reason);
  io.always("fail_on_inconclusive", gate.fail_on_inconclusive);
  io.unless("comment", Named{gate.comment, k_comments, "has a comment that is not known"},
            Comment::changed);
  io.always("not_judged", gate.not_judged);
  io.always("notes", gate.notes);
  io.always("decision_rule", gate.decision_rule);
  io.always("seconds", RoundedNumber{gate.seconds});
  io.always("budget_seconds", RoundedNumber{gate.budget_seconds});
  io.always("profiling_cost", RoundedNumber{gate.profiling_cost});
  io.always("run", gate.run);
}

namespace {

constexpr int k_indent = 1;

// Writes `object` as JSON, and puts `items` into its list `key`, which must be empty in it.
// `item_text` returns an item's JSON, without the indent that is added here.
std::string write_with_list(const Json& object, std::string_view key, auto& items,
                            const auto& item_text) {
  // A line break within a string is escaped, so this is the list's place.
  const std::string list = fmt::format("\n \"{}\": [", key);
  const std::string text = dump_json(object, k_indent);
  const std::size_t place = text.find(list + "]");
  if (items.empty() || place == std::string::npos) return text;
  std::string result = text.substr(0, place) + list;
  const char* separator = "\n";
  for (auto& item : items) {
    result += separator;
    const std::string lines = item_text(item);
    std::string_view rest = lines;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      result.append(2, ' ').append(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    separator = ",\n";
  }
  return result + "\n ]" + text.substr(place + list.size() + 1);
}

}  // namespace

// Returns a verdict's JSON, one key a line. Converts one judgement at a time, as JSON objects take
// much more memory than text.
std::string to_text(GateVerdict& gate) {
  std::vector<CellVerdict> cells = std::move(gate.cells);
  gate.cells.clear();
  const Json without_cells = write_fields(gate);
  gate.cells = std::move(cells);
  const auto judgement_text = [](const Judgement& judgement) {
    return dump_json(write_fields(judgement), k_indent);
  };
  const auto cell_text = [&](CellVerdict& cell) {
    std::vector<Judgement> judgements = std::move(cell.judgements);
    cell.judgements.clear();
    const Json without_judgements = write_fields(cell);
    cell.judgements = std::move(judgements);
    return write_with_list(without_judgements, "judgements", cell.judgements, judgement_text);
  };
  return write_with_list(without_cells, "cells", gate.cells, cell_text) + "\n";
}

std::string_view to_string(Outcome outcome) { return name_of(k_outcomes, outcome); }
std::optional<Outcome> parse_outcome(std::string_view text) { return value_of(k_outcomes, text); }
std::string_view to_string(Mode mode) { return name_of(k_modes, mode); }

}  // namespace weir::verdict
