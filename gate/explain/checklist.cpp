// Hints and the checklist: what counts a token usually are, and what is known of a slow engine.

#include "gate/explain/patterns.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::explain {
namespace {

using Answer = Check::Answer;
using verdict::Outcome;

constexpr std::string_view k_no_baseline = "there is no baseline to compare with";

// What a check looks at.
struct Seen {
  const Evidence& evidence;
  const Options& options;
  const std::vector<Finding>& findings;

  [[nodiscard]] bool found(const char* kind) const {
    return std::ranges::count(findings, kind, &Finding::kind) > 0;
  }
};

// What was seen, without the question: fine, wrong, or not known.
Check unknown(std::string why) { return {"", Answer::unknown, std::move(why)}; }
Check fine(std::string note) { return {"", Answer::fine, std::move(note)}; }
Check wrong(std::string note) { return {"", Answer::wrong, std::move(note)}; }

// A number of the later side, judged or not: of each token where they were told one by one. Empty
// where it was not counted.
std::vector<double> later_values(const Evidence& evidence, const std::string& metric) {
  if (const Known* found = look_up(evidence.after.metrics, metric)) {
    return found->tokens.empty() ? std::vector{found->value()} : found->tokens;
  }
  const double* varies = look_up(evidence.unjudged, metric);
  return varies == nullptr ? std::vector<double>() : std::vector{*varies};
}

// Those of the values that one asks for.
struct Part {
  std::vector<double> values;
  std::size_t of = 0;

  [[nodiscard]] bool none() const { return values.empty(); }
  [[nodiscard]] double least() const { return std::ranges::min(values); }
  [[nodiscard]] double most() const { return std::ranges::max(values); }
  // "5" of all, "5 syncs/token in one of 2 tokens", "5 to 7 in 3 of 8 tokens".
  [[nodiscard]] std::string words(const std::string& unit = "") const {
    std::string text = fmt::format("{:g}", least());
    if (most() > least()) text += fmt::format(" to {:g}", most());
    text += unit.empty() ? "" : " " + unit;
    if (values.size() == of) return text;
    const std::string tokens = values.size() == 1 ? "one" : std::to_string(values.size());
    return text + fmt::format(" in {} of {} tokens", tokens, of);
  }
};

Part part_of(const std::vector<double>& values, const std::function<bool(double)>& wanted) {
  Part part{{}, values.size()};
  std::ranges::copy_if(values, std::back_inserter(part.values), wanted);
  return part;
}

// A count of the later side held to "not more than", in each token.
Check at_most(const Seen& seen, const std::string& metric, const std::string& what) {
  const double most = look_up(seen.options.bands, metric, Band()).good_to.value_or(0);
  const std::string question =
      most > 0 ? fmt::format("{}: {:g} a token or fewer", what, most) : what + " a token";
  const auto values = later_values(seen.evidence, metric);
  if (values.empty()) return {question, Answer::unknown, "not counted"};
  if (most <= 0) return {question, Answer::unknown, "no band for it"};
  const Part over = part_of(values, [&](double value) { return value > most; });
  if (!over.none()) return {question, Answer::wrong, over.words()};
  const Part zero = part_of(values, [](double value) { return value == 0; });
  if (!zero.none() && metric == "syncs_per_token") {
    return {question, Answer::unknown, zero.words() + ", and a token has to be waited for"};
  }
  return {question, Answer::fine, Part{values, values.size()}.words()};
}

Check slowest(const Seen& seen) {
  std::map<std::string, double> seconds;  // by name, of all its types and shapes
  double whole = 0;
  for (const Work& work : seen.evidence.after.works) {
    if (!work.seconds || work.kind == Work::Kind::buffers) continue;  // these hold the others
    whole += *work.seconds;
    seconds[work.name] += *work.seconds;
  }
  const auto not_listed = seconds.extract(std::string(observed::k_not_listed));
  if (whole <= 0 || seconds.empty()) return unknown("no op was timed: weir profile CELL");
  const auto most =
      std::ranges::max_element(seconds, {}, [](const auto& one) { return one.second; });
  const std::string takes = fmt::format("{} takes {:.0f} % of the time of ops", safe(most->first),
                                        100 * most->second / whole);
  // An op that takes longer may be in there.
  if (!not_listed.empty() && not_listed.mapped() > most->second) {
    return unknown(fmt::format("{}, but {:.0f} % is in no op that is listed", takes,
                               100 * not_listed.mapped() / whole));
  }
  return fine(takes);
}

// Ops on the CPU that are not allowed there, each once whatever its types and shapes; of a verdict
// only those that changed.
std::string cpu_ops(const Seen& seen) {
  const AllowedOps& allowed = seen.options.cpu_ops_allowed;
  std::set<std::string> names;
  for (const Work& work : seen.evidence.after.works) {
    if (!work.on_cpu || work.kind != Work::Kind::op || work.times == k_none) continue;
    const std::string op = work.name.substr(0, work.name.find(' '));
    if (!allowed || !allowed->contains(op)) names.insert(safe(op));
  }
  return text::join(std::vector(names.begin(), names.end()));
}

Check fallbacks(const Seen& seen) {
  const Evidence& evidence = seen.evidence;
  const auto& gate = evidence.gate;
  if (evidence.device == "cpu") return fine("a cell of the CPU");
  if (seen.found(kind::work_moved_to_cpu)) return wrong("work moved there");
  if (gate && gate->placement == Outcome::fail) {
    return wrong("the gate says that work ran elsewhere");
  }
  const std::string names = cpu_ops(seen);
  if (!names.empty() && !seen.options.cpu_ops_allowed) {
    return unknown(names + "; whether that is allowed is not known here");
  }
  if (!names.empty()) return wrong(names);
  const Known* counted = look_up(evidence.after.metrics, metric_name(evidence, "cpu_ops"));
  if (counted != nullptr && counted->exact == k_none) return fine("none does");
  // A verdict holds only the ops that changed; its placement has looked at all that were seen.
  if (gate && counted != nullptr && gate->placement == Outcome::pass)
    return fine("the gate found none");
  if (!gate && evidence.cpu_ops_known) return fine("none does, but for those that are allowed");
  if (gate) return unknown("the verdict does not list every op");
  return unknown(evidence.graph_known ? "nothing tells where each op ran" : "no probe saw ops");
}

Check beside_a_baseline(const Seen& seen) {
  if (seen.evidence.alone) return wrong("there is none: weir explain BASE THIS compares two");
  if (!seen.evidence.gate) return fine("both sides are here");
  const Outcome outcome = seen.evidence.gate->cell;
  if (outcome == Outcome::new_) return wrong("there is none: the cell is new");
  if (outcome == Outcome::error || outcome == Outcome::skipped) {
    return unknown("the cell was not measured");
  }
  return fine("the gate compared them");
}

// "RMS_NORM+MUL 9 times a token, MUL_MAT+ADD 7"
std::string rows_text(const std::vector<Fusible::Row>& rows, unit::Scope scope) {
  constexpr std::size_t k_most = 4;
  const auto text = [&](const Fusible::Row& row) {
    return row.ops + " " + times_words(row.times, scope);
  };
  return verdict::some_of(collect<std::string>(rows, text), k_most);
}

Check fusions(const Seen& seen) {
  const std::string lost = seen.found(kind::fusion_lost) ? "a fusion was lost" : "";
  const auto& fusible = seen.evidence.fusible;
  const unit::Scope scope = seen.evidence.scope;
  if (fusible && !fusible->apart.empty()) {
    const std::string per = per_words(scope);
    return wrong(fmt::format("{}{} ran apart: as one kernel each at least {:g} fewer dispatches{}",
                             lost.empty() ? "" : lost + "; ", rows_text(fusible->apart, scope),
                             fusible->saved.value(), per.empty() ? "" : " " + per));
  }
  if (!lost.empty()) return wrong(lost);
  const auto& gate = seen.evidence.gate;
  if (fusible && fusible->unknown.empty() && fusible->unclear.empty()) {
    return fine(fusible->joined.empty()
                    ? "none in a row that engines fuse"
                    : rows_text(fusible->joined, scope) + " ran as one kernel each");
  }
  // What a CPU's kernel joins no name tells.
  const bool told = seen.evidence.device != "cpu";
  if (seen.evidence.alone && !fusible) return unknown(std::string(k_no_baseline));
  if (!seen.evidence.alone && told &&
      (seen.evidence.kernels_known || (gate && gate->kernels == Outcome::pass))) {
    return fine("as much as before");
  }
  if (fusible && !fusible->unclear.empty()) {
    return unknown(rows_text(fusible->unclear, scope) + ": the names of kernels do not tell");
  }
  if (fusible) return unknown(fusible->unknown);
  return unknown(gate ? "kernels were not compared" : "kernels have no names here");
}

Check quantizations(const Options& options) {
  const auto& others = options.other_quantizations;
  if (others.empty()) return unknown("no other model of this shape is in the run");
  return fine("in this run: " + text::join(others));
}

Check batching(const Seen& seen) {
  if (seen.found(kind::batching_lost)) return wrong("batching was lost");
  if (seen.evidence.alone) return unknown(std::string(k_no_baseline));
  if (counted(seen.evidence, "barriers")) return fine("as much as before");
  return unknown("barriers were not counted on both sides");
}

Check check(std::string question, Check seen) {
  seen.question = std::move(question);
  return seen;
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

std::vector<Hint> hints_of(const Evidence& evidence, const Bands& bands) {
  std::vector<Hint> hints;
  if (evidence.device == "cpu") return hints;
  for (const auto& [name, band] : bands) {
    const auto values = later_values(evidence, name);
    const auto metric = unit::find_metric(name);
    if (values.empty() || !metric) continue;
    const std::string label = unit::label(*metric);
    const Part high =
        part_of(values, [&](double value) { return band.high && value > *band.high; });
    if (!high.none()) {
      const std::string usual =
          band.good_from && band.good_to
              ? fmt::format("; {:g} to {:g} are usual", *band.good_from, *band.good_to)
              : "";
      hints.push_back(
          {name, high.most(),
           fmt::format("{} is high (more than {:g}){}.", high.words(label), *band.high, usual)});
    }
    const Part low = part_of(values, [&](double value) { return band.low && value < *band.low; });
    if (low.none()) continue;
    const bool none = low.least() == 0 && metric->base == "syncs";
    const char* why = metric->base == "barriers"
                          ? "well fused, a small model, work that runs elsewhere, or "
                            "synchronization that is missing"
                          : "well fused, a small model, or work that runs elsewhere";
    hints.push_back(
        {name, low.least(),
         none ? low.words(label) + ": suspicious, for a token has to be waited for."
              : fmt::format("{} is low (less than {:g}): {}.", low.words(label), *band.low, why)});
  }
  return hints;
}

std::vector<Check> checklist_of(const Evidence& evidence, const Options& options,
                                const std::vector<Finding>& findings) {
  const Seen seen{evidence, options, findings};
  return {
      check("Profiled with a baseline", beside_a_baseline(seen)),
      at_most(seen, "syncs_per_token", "Syncs"),
      at_most(seen, "dispatches_per_token", "Dispatches"),
      check("The slowest operation is known", slowest(seen)),
      check("Compared with other quantizations of the model", quantizations(options)),
      check("No op runs on the CPU unasked", fallbacks(seen)),
      check("Work that may overlap is batched", batching(seen)),
      check("Ops in a row are fused", fusions(seen)),
  };
}

}  // namespace weir::explain
