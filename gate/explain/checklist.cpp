// Hints and the checklist: usual counts per token, and known reasons for a slow engine.

#include "gate/explain/patterns.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::explain {
namespace {

using Answer = Check::Answer;
using verdict::Outcome;

constexpr std::string_view k_no_baseline = "there is no baseline to compare with";

// Everything that a check reads.
struct CheckInput {
  const Evidence& evidence;
  const Options& options;
  const std::vector<Finding>& findings;

  [[nodiscard]] bool has_finding(const char* kind) const {
    return std::ranges::count(findings, kind, &Finding::kind) > 0;
  }
};

// Make an answer without its question: fine, wrong, or unknown.
Check unknown(std::string reason) { return {"", Answer::unknown, std::move(reason)}; }
Check fine(std::string note) { return {"", Answer::fine, std::move(note)}; }
Check wrong(std::string note) { return {"", Answer::wrong, std::move(note)}; }

// Returns the values of a metric of the later side, judged or not: one per token if it was reported
// token by token. Empty if it was not counted.
std::vector<double> values_after(const Evidence& evidence, const std::string& metric) {
  if (const MetricValue* value = look_up(evidence.after.metrics, metric)) {
    return value->tokens.empty() ? std::vector{value->value()} : value->tokens;
  }
  const double* varying_count = look_up(evidence.varying_counts, metric);
  return varying_count == nullptr ? std::vector<double>() : std::vector{*varying_count};
}

// The selected ones of several values.
struct Selection {
  std::vector<double> values;
  std::size_t total = 0;  // values to select from

  [[nodiscard]] bool none() const { return values.empty(); }
  [[nodiscard]] double min_value() const { return std::ranges::min(values); }
  [[nodiscard]] double max_value() const { return std::ranges::max(values); }
  // Returns "5" if all are selected, else "5 syncs/token in one of 2 tokens" or "5 to 7 in 3 of 8
  // tokens".
  [[nodiscard]] std::string text(const std::string& unit = "") const {
    std::string result = fmt::format("{:g}", min_value());
    if (max_value() > min_value()) result += fmt::format(" to {:g}", max_value());
    result += text::prefix_if_any(" ", unit);
    if (values.size() == total) return result;
    const std::string tokens = values.size() == 1 ? "one" : std::to_string(values.size());
    return result + fmt::format(" in {} of {} tokens", tokens, total);
  }
};

Selection select_values(const std::vector<double>& values,
                        const std::function<bool(double)>& wanted) {
  Selection result{{}, values.size()};
  std::ranges::copy_if(values, std::back_inserter(result.values), wanted);
  return result;
}

// Checks that a count is, in each token, at most the upper end of its usual range. Unknown if it
// was not counted or has no range.
Check check_limit(const CheckInput& input, const std::string& metric, const std::string& label) {
  const double good_limit = look_up(input.options.bands, metric, Band()).good_to.value_or(0);
  const std::string question = good_limit > 0
                                   ? fmt::format("{}: {:g} a token or fewer", label, good_limit)
                                   : label + " a token";
  const auto values = values_after(input.evidence, metric);
  if (values.empty()) return {question, Answer::unknown, "not counted"};
  if (good_limit <= 0) return {question, Answer::unknown, "no band for it"};
  const Selection too_high =
      select_values(values, [&](double value) { return value > good_limit; });
  if (!too_high.none()) return {question, Answer::wrong, too_high.text()};
  const Selection zero = select_values(values, [](double value) { return value == 0; });
  if (!zero.none() && metric == "syncs_per_token") {
    return {question, Answer::unknown, zero.text() + ", and a token has to be waited for"};
  }
  return {question, Answer::fine, Selection{values, values.size()}.text()};
}

// Names the op that takes most time, with its share of the total. Unknown if no op was timed, or
// unlisted work takes longer.
Check check_slowest_op(const CheckInput& input) {
  std::map<std::string, double> seconds;  // by name, of all its types and shapes
  double total = 0;
  for (const Work& work : input.evidence.after.works) {
    // Buffers contain the other works.
    if (!work.seconds || work.kind == Work::Kind::buffers) continue;
    total += *work.seconds;
    seconds[work.name] += *work.seconds;
  }
  const auto not_listed = seconds.extract(std::string(observed::k_not_listed));
  if (total <= 0 || seconds.empty()) return unknown("no op was timed: weir profile CELL");
  const auto slowest =
      std::ranges::max_element(seconds, {}, [](const auto& entry) { return entry.second; });
  const std::string share_text =
      fmt::format("{} takes {:.0f} % of the time of ops", safe_name(slowest->first),
                  100 * slowest->second / total);
  // The unlisted time may hold an op that takes longer.
  if (!not_listed.empty() && not_listed.mapped() > slowest->second) {
    return unknown(fmt::format("{}, but {:.0f} % is in no op that is listed", share_text,
                               100 * not_listed.mapped() / total));
  }
  return fine(share_text);
}

// Returns the ops on the CPU that are not allowed there, each once regardless of types and shapes.
// From a verdict only those that changed are known.
std::string unallowed_cpu_ops(const CheckInput& input) {
  const AllowedOps& allowed = input.options.cpu_ops_allowed;
  std::set<std::string> names;
  for (const Work& work : input.evidence.after.works) {
    if (!work.on_cpu || work.kind != Work::Kind::op || work.times == k_zero) continue;
    const std::string op = work.name.substr(0, work.name.find(' '));
    if (!allowed || !allowed->contains(op)) names.insert(safe_name(op));
  }
  return text::join(std::vector(names.begin(), names.end()));
}

// Checks that no op of a device's cell runs on the CPU, unless the configuration allows it.
// Unknown if no probe saw ops.
Check check_fallbacks(const CheckInput& input) {
  const Evidence& evidence = input.evidence;
  const auto& gate = evidence.gate;
  if (evidence.device == "cpu") return fine("a cell of the CPU");
  if (input.has_finding(kind::work_moved_to_cpu)) return wrong("work moved there");
  if (gate && gate->placement == Outcome::fail) {
    return wrong("the gate says that work ran elsewhere");
  }
  const std::string names = unallowed_cpu_ops(input);
  if (!names.empty() && !input.options.cpu_ops_allowed) {
    return unknown(names + "; whether that is allowed is not known here");
  }
  if (!names.empty()) return wrong(names);
  const MetricValue* cpu_op_count =
      look_up(evidence.after.metrics, metric_name(evidence, "cpu_ops"));
  if (cpu_op_count != nullptr && cpu_op_count->exact == k_zero) return fine("none does");
  // A verdict lists only ops that changed, but its placement covers all ops that were seen.
  if (gate && cpu_op_count != nullptr && gate->placement == Outcome::pass) {
    return fine("the gate found none");
  }
  if (!gate && evidence.cpu_ops_known) return fine("none does, but for those that are allowed");
  if (gate) return unknown("the verdict does not list every op");
  return unknown(evidence.graph_known ? "nothing tells where each op ran" : "no probe saw ops");
}

Check check_baseline(const CheckInput& input) {
  if (input.evidence.is_alone) return wrong("there is none: weir explain BASE THIS compares two");
  if (!input.evidence.gate) return fine("both sides are here");
  const Outcome outcome = input.evidence.gate->cell;
  if (outcome == Outcome::new_) return wrong("there is none: the cell is new");
  if (outcome == Outcome::error || outcome == Outcome::skipped) {
    return unknown("the cell was not measured");
  }
  return fine("the gate compared them");
}

// Returns "RMS_NORM+MUL 9 times a token, MUL_MAT+ADD 7".
std::string rows_text(const std::vector<Fusible::Row>& rows, unit::Scope scope) {
  constexpr std::size_t k_max_rows_listed = 4;
  const auto row_text = [&](const Fusible::Row& row) {
    return row.ops + " " + frequency_text(row.times, scope);
  };
  return verdict::list_some(collect<std::string>(rows, row_text), k_max_rows_listed);
}

// Checks that sequences of ops that engines can fuse run as one kernel each. Unknown if the names
// of kernels do not tell.
Check check_fusions(const CheckInput& input) {
  const std::string lost_text = input.has_finding(kind::fusion_lost) ? "a fusion was lost" : "";
  const auto& fusible = input.evidence.fusible;
  const unit::Scope scope = input.evidence.scope;
  if (fusible && !fusible->separate.empty()) {
    std::string problem =
        fmt::format("{} ran apart: as one kernel each at least {:g} fewer dispatches",
                    rows_text(fusible->separate, scope), fusible->saved.value());
    if (!lost_text.empty()) problem = lost_text + "; " + problem;
    const std::string unit_text = per_text(scope);
    if (!unit_text.empty()) problem += " " + unit_text;
    return wrong(problem);
  }
  if (!lost_text.empty()) return wrong(lost_text);
  const auto& gate = input.evidence.gate;
  if (fusible && fusible->unknown.empty() && fusible->unclear.empty()) {
    return fine(fusible->joined.empty()
                    ? "none in a row that engines fuse"
                    : rows_text(fusible->joined, scope) + " ran as one kernel each");
  }
  // Names do not show which ops a kernel of the CPU joins.
  const bool kernels_have_names = input.evidence.device != "cpu";
  if (input.evidence.is_alone && !fusible) return unknown(std::string(k_no_baseline));
  if (!input.evidence.is_alone && kernels_have_names &&
      (input.evidence.kernels_known || (gate && gate->kernels == Outcome::pass))) {
    return fine("as much as before");
  }
  if (fusible && !fusible->unclear.empty()) {
    return unknown(rows_text(fusible->unclear, scope) + ": the names of kernels do not tell");
  }
  if (fusible) return unknown(fusible->unknown);
  return unknown(gate ? "kernels were not compared" : "kernels have no names here");
}

Check check_quantizations(const Options& options) {
  const auto& others = options.other_quantizations;
  if (others.empty()) return unknown("no other model of this shape is in the run");
  return fine("in this run: " + text::join(others));
}

Check check_batching(const CheckInput& input) {
  if (input.has_finding(kind::batching_lost)) return wrong("batching was lost");
  if (input.evidence.is_alone) return unknown(std::string(k_no_baseline));
  if (both_sides_count(input.evidence, "barriers")) return fine("as much as before");
  return unknown("barriers were not counted on both sides");
}

Check with_question(std::string question, Check answer) {
  answer.question = std::move(question);
  return answer;
}

}  // namespace

std::string_view to_string(Check::Answer answer) {
  constexpr std::string_view k_names[] = {"fine", "wrong", "unknown"};
  return k_names[static_cast<std::size_t>(answer)];
}

const Bands& default_bands() {
  static const Bands k_bands = {
      {"dispatches_per_token", {100, 300, 600, 1000}},
      {"barriers_per_token", {100, 300, 700, 1000}},
      {"syncs_per_token", {1, 1, 3, 10}},
  };
  return k_bands;
}

// Returns hints about counts per token, of the later side, that are outside of their usual range
// (`bands`) for a GPU. None for a cell of the CPU.
std::vector<Hint> find_hints(const Evidence& evidence, const Bands& bands) {
  std::vector<Hint> hints;
  if (evidence.device == "cpu") return hints;
  for (const auto& [name, band] : bands) {
    const auto values = values_after(evidence, name);
    const auto metric = unit::find_metric(name);
    if (values.empty() || !metric) continue;
    const std::string label = unit::display_name(*metric);
    const Selection high =
        select_values(values, [&](double value) { return band.high && value > *band.high; });
    if (!high.none()) {
      const std::string usual =
          band.good_from && band.good_to
              ? fmt::format("; {:g} to {:g} are usual", *band.good_from, *band.good_to)
              : "";
      hints.push_back(
          {name, high.max_value(),
           fmt::format("{} is high (more than {:g}){}.", high.text(label), *band.high, usual)});
    }
    const Selection low =
        select_values(values, [&](double value) { return band.low && value < *band.low; });
    if (low.none()) continue;
    const bool no_syncs = low.min_value() == 0 && metric->base == "syncs";
    const char* reasons = metric->base == "barriers"
                              ? "well fused, a small model, work that runs elsewhere, or "
                                "synchronization that is missing"
                              : "well fused, a small model, or work that runs elsewhere";
    hints.push_back({name, low.min_value(),
                     no_syncs ? low.text(label) + ": suspicious, for a token has to be waited for."
                              : fmt::format("{} is low (less than {:g}): {}.", low.text(label),
                                            *band.low, reasons)});
  }
  return hints;
}

// Answers all questions of the checklist for a slow engine, in its order: fine, wrong or unknown,
// each with a reason.
std::vector<Check> fill_checklist(const Evidence& evidence, const Options& options,
                                  const std::vector<Finding>& findings) {
  const CheckInput input{evidence, options, findings};
  return {
      with_question("Profiled with a baseline", check_baseline(input)),
      check_limit(input, "syncs_per_token", "Syncs"),
      check_limit(input, "dispatches_per_token", "Dispatches"),
      with_question("The slowest operation is known", check_slowest_op(input)),
      with_question("Compared with other quantizations of the model", check_quantizations(options)),
      with_question("No op runs on the CPU unasked", check_fallbacks(input)),
      with_question("Work that may overlap is batched", check_batching(input)),
      with_question("Ops in a row are fused", check_fusions(input)),
  };
}

}  // namespace weir::explain
