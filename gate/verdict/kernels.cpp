// Kernels and placement, single kernels and ops that limits name, and whether both sides did the
// same work at all.

#include "gate/profile/marginal.hpp"
#include "gate/verdict/kernel_paths.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::verdict {
namespace {

using profile::KernelSet;
using profile::Placement;

Numbers exact_counts(const std::map<std::string, std::int64_t>& counts) {
  return {counts.begin(), counts.end()};
}

// The count that a kernel set adds up to: dispatches, or on the CPU, where kernels are ops, those.
const Judgement* total_of(const KernelSet& kernels, const CellVerdict& cell) {
  return first_of(cell.judgements, [&](const Judgement& metric) {
    return metric.metric.base == (cell.device == "cpu" ? "cpu_ops" : "dispatches") &&
           metric.metric.scope == kernels.scope && metric.metric.length == kernels.length;
  });
}

// Those that belong to the same unit of work as `kernels`; null where they are not known.
const Numbers* graph_ops(const std::optional<KernelSet>& ops, const KernelSet& kernels) {
  return ops && ops->scope == kernels.scope ? &ops->counts : nullptr;
}

// `kernels`: those of the cell that changed.
Ruling changed_kernels(const Question& question, const KernelSet& current, const CellVerdict& cell,
                       std::span<const Changed> kernels) {
  if (only_renamed(kernels)) return {Outcome::pass, "the same kernels by other names"};
  if (question.nearest()) return {Outcome::fail, "other kernels"};
  const Judgement* total = total_of(current, cell);
  if (total == nullptr) {
    // What the multiset itself adds up to: so with ops of an engine whose device no probe sees.
    const auto before = question.base->kernels->sum(), now = current.sum();
    if (before && now && *now < *before && work_stayed(question)) {
      return {Outcome::improved, fmt::format("{} to {} in all, with all work where it was",
                                             before->str(), now->str())};
    }
  }
  if (total == nullptr || !total->current) return {Outcome::fail, "other kernels than before"};
  if (!total->baseline || *total->baseline == *total->current) {
    return {Outcome::fail,
            fmt::format("{} {}", unit::show(total->metric, *total->current),
                        cell.device == "cpu" ? "ops as before, but others"
                                             : "dispatches as before, by other kernels")};
  }
  const Ruling with_total{total->verdict,
                          fmt::format("the kernels changed with {}", unit::label(total->metric))};
  if (cell.device == "cpu") return with_total;  // there kernels are ops themselves
  const bool fell = *total->current < *total->baseline;
  const KernelPaths paths = paths_of(kernels, graph_ops(question.base->graph_ops, current),
                                     graph_ops(question.candidate.graph_ops, current), fell);
  if (!paths.replaced.empty()) {
    std::vector<std::string> works;
    for (const auto& [work, times] : paths.replaced) {
      works.push_back(fmt::format("{} {} times", work, times.str()));
    }
    return {Outcome::fail, "the same work by other kernels: " + text::join(works)};
  }
  if (!paths.unexplained.empty()) {
    return {Outcome::fail, fmt::format("{} fell, and the engine's graph does not explain {}",
                                       unit::label(total->metric), text::join(paths.unexplained))};
  }
  return with_total;
}

// `gated`: a note tells of kernels on both sides that are not compared.
Ruling compare_kernels(const Question& question, bool gated, CellVerdict& cell,
                       std::vector<Changed>& changed) {
  const Ruling nothing{Outcome::info};
  const auto& current = question.candidate.kernels;
  const bool named = current && current->named;  // hashes of code only explain
  if (question.base == nullptr) {
    return named ? Ruling{Outcome::new_, question.choice.reason} : nothing;
  }
  const auto& stored = question.base->kernels;
  if (!stored) return named ? question.fresh(false, "the baseline holds no kernels") : nothing;
  if (!current) {
    const bool counted = question.candidate.errors.empty() && question.candidate.counted_runs > 0;
    if (!stored->named || !counted) return nothing;
    return {Outcome::error, "could not be measured: the baseline holds kernels, this run none"};
  }
  if (stored->varies || current->varies) {
    if (!named) return nothing;
    if (alike(*stored, *current)) changed = differences(stored->counts, current->counts);
    std::string reason = fmt::format(
        "the kernels of {} were not the same in all runs of one length: they are not compared",
        current->varies ? "this run" : "the baseline");
    if (gated) cell.notes.push_back(reason);
    return {Outcome::info, std::move(reason)};
  }
  if (stored->named && !named) {
    return {Outcome::error,
            "cannot be compared: the program named its kernels before and does so no longer"};
  }
  if (!stored->named && named) return {Outcome::new_, "the baseline's kernels have no names"};
  if (!alike(*stored, *current)) {
    if (!named) return nothing;
    if (stored->scope == unit::Scope::at_length || current->scope != unit::Scope::at_length) {
      return {Outcome::new_, "the baseline's kernels were counted over another length"};
    }
    return {Outcome::fail, "the kernels are no longer the same for every token or prefill"};
  }
  changed = differences(stored->counts, current->counts);
  if (!named) return nothing;
  if (changed.empty()) return {};
  std::vector<Changed> others = changed;
  std::vector<std::string> names;
  const Limit by_name = resolve_special(cell.cell, "kernel_names", question.limits);
  if (!by_name.exact || by_name.mode != Mode::gate) {
    for (const auto& [before, now] : renamed_kernels(question, changed)) {
      std::erase_if(others,
                    [&](const Changed& one) { return one.name == before || one.name == now; });
      names.push_back(fmt::format("{} is {} now", before, now));
    }
  }
  if (others.empty()) return {Outcome::pass, "the same code by other names: " + some_of(names)};
  return changed_kernels(question, *current, cell, others);
}

template <class T>
void differ(std::vector<std::string>& parts, std::string_view what, const std::optional<T>& base,
            const std::optional<T>& current) {
  if (base && current && *base != *current) {
    parts.push_back(fmt::format("{} {}, before {}", what, *current, *base));
  }
}

using Calls = Numbers;  // by metric name

std::string_view prefix_of(bool cpu) { return cpu ? "op_calls:" : "kernel_calls:"; }

// "MUL_MAT q8_0,f32->f32 256x64,256->64" is the op MUL_MAT: on the CPU kernels are ops.
std::string metric_of_work(const std::string& name, bool cpu) {
  return unit::work_name(prefix_of(cpu), cpu ? name.substr(0, name.find(' ')) : name);
}

// Nothing where the program does not name its kernels, or they varied.
std::optional<Calls> calls_of(const std::optional<KernelSet>& kernels, bool cpu) {
  if (!kernels || !kernels->named || kernels->varies) return std::nullopt;
  Calls calls;
  for (const auto& [name, count] : kernels->counts) {
    Rational& sum = calls[metric_of_work(name, cpu)];
    sum = sum.plus(count).value_or(sum);
  }
  return calls;
}

void add_named(const Calls& calls, const std::vector<std::string>& patterns,
               std::set<std::string>& names) {
  for (const auto& [name, count] : calls) {
    const bool wanted = std::ranges::any_of(patterns, [&kernel = name](const auto& pattern) {
      return text::glob_match(pattern, kernel);
    });
    // A kernel without a name, in a file from outside, is no metric.
    if (wanted && unit::find_metric(name)) names.insert(name);
  }
}

// What is not among the kernels of a side that names them ran no time: a fact, not an absence.
Measurement measured(const std::string& name, const Calls& calls) {
  const Rational count = look_up(calls, name, Rational(0));
  return profile::exact_measurement(*unit::find_metric(name), "kernels", count);
}

}  // namespace

std::vector<std::string> patterns_of(const Question& question,
                                     std::span<const std::string> prefixes) {
  std::vector<std::string> patterns;
  for (const LimitEntry& entry : question.limits) {
    if (!entry.match.fits(question.candidate.cell)) continue;
    for (const std::string& pattern : entry.metrics) {
      const bool named = std::ranges::any_of(
          prefixes, [&](const std::string& prefix) { return pattern.starts_with(prefix); });
      if (named) patterns.push_back(pattern);
    }
  }
  return patterns;
}

std::vector<Changed> differences(const Numbers& base, const Numbers& current) {
  std::map<std::string, Changed> all;
  for (const auto& [name, count] : base) all[name].baseline = count;
  for (const auto& [name, count] : current) all[name].current = count;
  std::vector<Changed> changed;
  for (auto& [name, one] : all) {
    one.name = name;
    if (one.baseline != one.current) changed.push_back(std::move(one));
  }
  return changed;
}

bool alike(const KernelSet& a, const KernelSet& b) {
  return a.scope == b.scope && a.length == b.length;
}

Judgement judge_kernels(const Question& question, CellVerdict& cell) {
  Judgement made(k_kernels, resolve_special(cell.cell, k_kernels, question.limits));
  const Limit& limit = made.limit;
  Ruling found = compare_kernels(question, limit.exact, cell, made.changed);
  if (found.verdict == Outcome::fail || found.verdict == Outcome::error) {
    new_beside_nearest(question, limit.exact, found);
  }
  if (!limit.exact) return made;  // the changes stay as an explanation
  show_only(limit, found);
  static_cast<Ruling&>(made) = std::move(found);
  return made;
}

// System calls of the candidate that came or went, where a limit on what the host does is broken.
// What scheduling enters into differs a little in every run.
static void explain_calls(const std::vector<Changed>& changed, CellVerdict& cell) {
  constexpr double k_least = 0.5, k_least_share = 0.25;
  const bool broken = std::ranges::any_of(cell.judgements, [](const Judgement& metric) {
    const bool of_host = metric.source == "host" || metric.metric.kind == unit::Kind::usage;
    return of_host && (metric.verdict == Outcome::fail || metric.verdict == Outcome::improved);
  });
  for (const Changed& one : broken ? changed : std::vector<Changed>()) {
    const double from = one.baseline ? one.baseline->value() : 0;
    const double to = one.current ? one.current->value() : 0;
    const bool whole =
        (!one.baseline || one.baseline->whole()) && (!one.current || one.current->whole());
    const double least = whole ? k_least : std::max(k_least, k_least_share * from);
    if (std::fabs(to - from) >= least) cell.functions.push_back(one);
  }
}

void explain_instructions(const Question& question, CellVerdict& cell) {
  // A function that moved by less than this share of all says nothing about why all moved.
  constexpr double k_least_share = 0.001;
  constexpr std::size_t k_most = 40;
  const Baseline* base = question.base;
  const auto& now = question.candidate.functions;
  if (base == nullptr || !base->functions || !now || base->functions->scope != now->scope) return;
  std::vector<Changed> changed = differences(base->functions->counts, now->counts);
  const auto calls = std::ranges::stable_partition(
      changed, [](const Changed& one) { return !one.name.starts_with(profile::k_system_call); });
  explain_calls({calls.begin(), calls.end()}, cell);
  changed.erase(calls.begin(), calls.end());
  const Judgement* total = first_of(cell.judgements, [&](const Judgement& metric) {
    return metric.metric.base == "instructions" && metric.metric.scope == now->scope;
  });
  if (total == nullptr || !total->baseline || !total->current) return;
  if (total->verdict != Outcome::fail && total->verdict != Outcome::improved) return;
  // Of the larger total: what is smaller on its side may have been too small there to be kept.
  const double least =
      k_least_share * std::max(std::fabs(*total->baseline), std::fabs(*total->current));
  for (Changed& one : changed) {
    const double from = one.baseline ? one.baseline->value() : 0;
    const double to = one.current ? one.current->value() : 0;
    // What is missing on one side may have been just too small there to be kept.
    const double enough = one.baseline && one.current ? least : 2 * least;
    if (std::fabs(to - from) >= enough) cell.functions.push_back(std::move(one));
    if (cell.functions.size() == k_most) return;
  }
}

Judgement judge_placement(const Question& question, CellVerdict& cell) {
  using State = Placement::State;
  Judgement made(k_placement, resolve_special(cell.cell, k_placement, question.limits));
  const Placement& placement = question.candidate.placement;
  Ruling ruling{placement.state == State::refuted   ? Outcome::fail
                : placement.state == State::unknown ? Outcome::info
                                                    : Outcome::pass,
                placement.reason};
  if (placement.state == State::refuted && ruling.reason.empty()) {
    ruling.reason = "the work ran elsewhere than asked";
  }
  // A pass that saw single ops names those that ran on the CPU, or says that all were seen.
  const auto ops_known = [](const Placement& one) {
    return one.state == State::shown || !one.cpu_ops.empty();
  };
  if (question.base != nullptr && ops_known(question.base->placement) && ops_known(placement)) {
    made.changed = differences(exact_counts(question.base->placement.cpu_ops),
                               exact_counts(placement.cpu_ops));
    std::vector<std::string> moved;
    for (const Changed& op : made.changed) {
      if (op.current.value_or(Rational(0)) > op.baseline.value_or(Rational(0))) {
        moved.push_back(op.name);
      }
    }
    // What was refuted already has a reason that says more.
    if (!moved.empty() && ruling.verdict == Outcome::pass) {
      ruling = {Outcome::fail,
                fmt::format("{}: {}",
                            question.nearest() ? "more often on the CPU here" : "moved to the CPU",
                            text::join(moved))};
      new_beside_nearest(question, made.limit.exact, ruling);
    }
  }
  cell.elsewhere = placement.state == State::refuted;
  cell.not_allowed = placement.not_allowed;
  if (!made.limit.exact) return made;
  show_only(made.limit, ruling);
  static_cast<Ruling&>(made) = std::move(ruling);
  return made;
}

// Both sides tell which tokens were likely: that judges an output, not its digest.
static bool by_likely_tokens(const Question& question) {
  return question.base != nullptr &&
         profile::divergence(question.base->work.likely, question.candidate.work.likely);
}

std::optional<std::string> other_work(const Question& question) {
  if (question.base == nullptr) return std::nullopt;
  const profile::WorkDone& before = question.base->work;
  const profile::WorkDone& now = question.candidate.work;
  std::vector<std::string> parts;
  differ(parts, "tokens generated:", before.generated_tokens, now.generated_tokens);
  differ(parts, "prompt tokens:", before.prompt_tokens, now.prompt_tokens);
  differ(parts, "model:", before.model, now.model);
  differ(parts, "load:", before.load, now.load);
  if (!question.nearest() && !by_likely_tokens(question)) {
    differ(parts, "output digest:", before.output_digest, now.output_digest);
  }
  if (parts.empty()) return std::nullopt;
  return fmt::format("the two sides did not do the same work ({})", text::join(parts, "; "));
}

std::optional<std::string> other_output(const Question& question) {
  if (!question.nearest() && !by_likely_tokens(question)) return std::nullopt;
  std::vector<std::string> parts;
  differ(parts, "output digest:", question.base->work.output_digest,
         question.candidate.work.output_digest);
  if (parts.empty()) return std::nullopt;
  return parts.front() + (question.nearest() ? ": another device class may round otherwise"
                                             : ": output_kl judges it");
}

std::vector<Judgement> judge_likely_tokens(const Question& question) {
  const profile::Likely& now = question.candidate.work.likely;
  const auto far = question.base == nullptr ? std::nullopt
                                            : profile::divergence(question.base->work.likely, now);
  Measurement measured;
  measured.metric = *unit::find_metric(unit::k_divergence);
  measured.nature = profile::Nature::nearly_exact;  // greedy, one request at a time
  measured.source = "requests";
  if (far) measured.samples = {*far};
  Judgement made = judge_count(question, measured, std::nullopt);
  if (now.empty()) {
    // Nothing passes in silence that was judged before.
    const Profile& candidate = question.candidate;
    const bool was_judged = question.base != nullptr && !question.base->work.likely.empty();
    const bool ran = candidate.errors.empty() && candidate.counted_runs + candidate.timed_runs > 0;
    if (!was_judged || !ran || !made.limit.any() || made.limit.mode == Mode::off) return {};
    static_cast<Ruling&>(made) = {
        Outcome::error,
        "the server reported no probabilities of tokens: nothing judges its output"};
    show_only(made.limit, made);
  } else if (!far && made.limit.any()) {
    static_cast<Ruling&>(made) = question.fresh(
        false, question.base == nullptr ? question.choice.reason
                                        : "the baseline holds no likely tokens: accept it");
  }
  return {made};
}

std::vector<Judgement> judge_works(const Question& question, std::vector<std::string>& not_judged) {
  const std::array prefixes{std::string(prefix_of(question.candidate.device == "cpu"))};
  std::vector<std::string> patterns = patterns_of(question, prefixes);
  if (patterns.empty()) return {};
  const auto& kernels = question.candidate.kernels;
  const bool cpu = question.candidate.device == "cpu";
  const auto now = calls_of(kernels, cpu);
  if (!now) {
    // What the engine's own profile counted is judged as any count.
    std::erase_if(patterns, [&](const std::string& pattern) {
      return std::ranges::any_of(question.candidate.metrics, [&](const auto& metric) {
        return text::glob_match(pattern, metric.first);
      });
    });
    if (patterns.empty()) return {};
    // A pass that ended in an error, or none, has said so already.
    if (question.candidate.errors.empty() && question.candidate.counted_runs > 0) {
      not_judged.push_back(
          fmt::format("{}: not judged, no probe named {} here, or they varied from run to run",
                      text::join(patterns), cpu ? "ops" : "kernels"));
    }
    return {};
  }
  const bool held = question.base != nullptr && question.base->kernels &&
                    alike(*question.base->kernels, *kernels);
  const auto before = held ? calls_of(question.base->kernels, cpu) : std::nullopt;
  std::set<std::string> names;
  add_named(*now, patterns, names);
  if (before) add_named(*before, patterns, names);
  for (const std::string& pattern : patterns) {
    const bool one = pattern.find('*') == std::string::npos;
    if (one && unit::find_metric(pattern)) names.insert(pattern);
  }
  std::vector<Judgement> made;
  for (const std::string& name : names) {
    made.push_back(judge_count(question, measured(name, *now),
                               before ? std::optional(measured(name, *before)) : std::nullopt));
  }
  return made;
}

std::vector<std::string> limits_on_nothing(std::span<const CellVerdict> cells,
                                           std::span<const LimitEntry> limits,
                                           const Policy& policy) {
  std::vector<std::string> lines;
  for (const LimitEntry& entry : limits) {
    for (const std::string& pattern : entry.metrics) {
      if (!unit::names_work(pattern)) continue;
      const bool time = pattern.starts_with("op:") || pattern.starts_with("kernel:") ||
                        pattern.starts_with("buffer:");
      if (time && policy.counts_only) continue;
      bool measured = false, seen = false;
      for (const CellVerdict& cell : cells) {
        if (!entry.match.fits(cell.cell)) continue;
        if (cell.verdict == Outcome::error || cell.verdict == Outcome::skipped) {
          seen = true;  // what it would have shown is not known
          break;
        }
        for (const Judgement& metric : cell.metrics()) {
          measured = measured || (metric.metric.kind == unit::Kind::count) != time;
          if (!entry.covers(cell.cell, metric.metric.name)) continue;
          seen = seen || text::glob_match(pattern, metric.metric.name);
        }
      }
      if (measured && !seen) {
        lines.push_back(
            fmt::format("\"{}\": nothing by that name was measured ({})", pattern, entry.source));
      }
    }
  }
  return lines;
}

}  // namespace weir::verdict
