// Turns two profilers' outputs into evidence.
#include <functional>
#include <span>
#include <tuple>

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/evidence.hpp"
#include "gate/explain/timed_together.hpp"
#include "gate/observed/totals.hpp"
#include "gate/profile/kernel_name.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::explain {
namespace {

using observed::is_cpu_name;
using observed::Observed;
using observed::ObservedBuffer;
using observed::ObservedOp;
using observed::Phase;

// Rows that are added up.
struct RowKey {
  Work::Kind kind;
  std::string name, type, shape, backend;
  auto operator<=>(const RowKey&) const = default;
};
struct RowSum {
  Work work;  // sum over all tokens
  std::int64_t calls = 0;
  bool ranged = true;  // every row has a range
};

using RowSums = std::map<RowKey, RowSum>;
const std::string k_nowhere;

// Returns the op's own time. Of several calls the longest is left out, because it may have been
// interrupted.
std::optional<double> steady_time(const ObservedOp& op) {
  constexpr std::int64_t k_several = 4;
  const auto own_time = observed::exclusive_time(op);
  const std::int64_t calls = op.calls.value_or(0);
  if (!own_time || op.seconds_without_nested || !op.max_seconds || calls < k_several)
    return own_time;
  const auto call_count = static_cast<double>(calls);
  return std::max(0.0, *own_time - *op.max_seconds) * call_count / (call_count - 1);
}

struct SideRows {
  Side side;
  RowSums rows{};
  bool kernels = false, backends = false, ops = false;
  bool places = false;              // a row names another backend than that of the whole run
  std::set<std::string> uncounted;  // names of works without a number of calls
};

// Adds a row of a profiler's output to the sum of its key; its time only if `timed`. The range of
// single calls is kept only if every row has one.
void add_row(SideRows& side_rows, const RowKey& key, const ObservedOp& op, bool counts_time) {
  auto& [work, calls, has_range] = side_rows.rows[key];
  add_capped(calls, op.calls.value_or(0));
  if (!op.calls) side_rows.uncounted.insert(key.name);
  const auto own_time = steady_time(op);
  if (counts_time && !own_time) has_range = false;
  if (!counts_time || !own_time) return;
  work.seconds = work.seconds.value_or(0) + *own_time;
  work.labels.insert(op.buffer);
  // The times of single calls include nested ops.
  has_range =
      has_range && op.calls && op.min_seconds && op.max_seconds && !op.seconds_without_nested;
  if (!has_range) return;
  if (!work.range) work.range = TimeRange{*op.min_seconds, *op.max_seconds};
  work.range->min_seconds = std::min(work.range->min_seconds, *op.min_seconds);
  work.range->max_seconds = std::max(work.range->max_seconds, *op.max_seconds);
  work.range->times += static_cast<double>(*op.calls);
}

bool reports_backends(const Observed& observed) {
  return std::ranges::any_of(observed.ops,
                             [](const ObservedOp& op) { return !op.backend.empty(); });
}

// Returns the categories that only this document has, if the formats differ: a trace also lists CPU
// calls, totals of a device do not. Such work is neither new nor gone.
std::set<std::string> unmatched_categories(const Observed& observed,
                                           const Observed& other_observed) {
  std::set<std::string> categories;
  if (observed.format == other_observed.format) return categories;
  for (const ObservedOp& op : observed.ops) {
    if (!is_device_work(op) && op.category != "copy") categories.insert(op.category);
  }
  for (const ObservedOp& op : other_observed.ops) categories.erase(op.category);
  return categories;
}

// Returns the name of a row's kernel. Documents that name kernels by ops ("RMS_NORM_MUL" of
// llama.cpp's perf logger) omit it if an op runs by itself; then it is the op's name.
std::string kernel_name_of_row(const ObservedOp& op, bool kernels_named_by_ops) {
  const bool op_is_kernel = kernels_named_by_ops && op.kernel.empty() &&
                            !profile::op_of(op.op).empty() && is_device_work(op) &&
                            !op.backend.empty() && !is_cpu_name(op.backend);
  return op_is_kernel ? op.op : op.kernel;
}

// Reads the rows of one side. `backends`: both sides report these; else the place of an op is no
// difference. `unmatched`: categories that are left out.
SideRows read_side_rows(const Observed& observed, const Basis& basis, bool backends,
                        const std::set<std::string>& unmatched) {
  SideRows result;
  const RowChoice choice = choose_rows(observed, basis);
  const std::int64_t tokens = choice.tokens;
  const bool kernels_named_by_ops = std::ranges::any_of(
      observed.ops, [](const ObservedOp& op) { return !profile::op_of(op.kernel).empty(); });
  for (const ObservedOp& op : observed.ops) {
    if (!choice.takes(op) || unmatched.contains(op.category)) continue;
    result.backends = result.backends || !op.backend.empty();
    result.places =
        result.places || (!op.backend.empty() && op.backend != observed.context.backend);
    if (const auto own_time = observed::exclusive_time(op); own_time && op.layer) {
      result.side.layers[*op.layer] += *own_time / static_cast<double>(tokens);
    }
    const std::string& backend = backends ? op.backend : k_nowhere;
    const std::string kernel = kernel_name_of_row(op, kernels_named_by_ops);
    if (!kernel.empty()) {
      result.kernels = true;
      add_row(result, {Work::Kind::kernel, kernel, op.type, op.shape, backend}, op, /*timed=*/true);
    }
    if (op.op.empty()) continue;
    result.ops = true;
    add_row(result, {Work::Kind::op, op.op, op.type, op.shape, backend}, op, kernel.empty());
  }
  for (auto& [key, sum] : result.rows) {
    Work& work = result.side.works.emplace_back(std::move(sum.work));
    std::tie(work.kind, work.name, work.type, work.shape, work.backend) =
        std::tie(key.kind, key.name, key.type, key.shape, key.backend);
    work.on_cpu = is_cpu_name(work.backend);
    work.times = Rational::make(sum.calls, tokens).value_or(Rational(sum.calls));
    if (work.seconds) *work.seconds /= static_cast<double>(tokens);
    if (!sum.ranged) work.range.reset();
  }
  for (const observed::ObservedCount& count : observed.counts) {
    const auto mean = count.mean();
    if (!mean) continue;
    MetricValue& value = result.side.metrics[count.metric.name] = {mean, {}};
    if (count.metric.scope != unit::Scope::per_token) continue;
    value.tokens.assign(count.values.begin(), count.values.end());
  }
  for (const observed::ObservedTiming& timing : observed.timings) {
    if (!timing.samples.empty()) result.side.metrics[timing.metric.name] = {{}, timing.samples};
  }
  return result;
}

bool counts_per_token(const Side& side) {
  return std::ranges::any_of(side.metrics, [](const auto& entry) {
    const auto metric = unit::find_metric(entry.first);
    return metric && metric->scope == unit::Scope::per_token;
  });
}

std::string find_device(const Observed& before, const Observed& after) {
  for (const Observed* observed : {&after, &before}) {
    if (observed->context.backend) return is_cpu_name(*observed->context.backend) ? "cpu" : "gpu";
  }
  return "";
}

// Drops the works of a side if the other side reports none at all: all of them would look new or
// gone.
void drop_unmatched_works(Evidence& evidence) {
  for (Side* const side : {&evidence.before, &evidence.after}) {
    Side& other = side == &evidence.before ? evidence.after : evidence.before;
    if (!side->works.empty() || other.works.empty()) continue;
    other.works.clear();
    evidence.warnings.push_back(std::string(side == &evidence.before ? "before" : "after") +
                                ": it reports no op, so what ran is not compared");
  }
}

// Adds command buffers by label, with their number and time per token. If a side does not list all
// labels, only those on both sides are compared, by the time of one buffer.
void add_buffers(const Observed& before, const Observed& after, Evidence& evidence) {
  const observed::BuffersOfTokens before_buffers = observed::buffers_per_token(before);
  const observed::BuffersOfTokens after_buffers = observed::buffers_per_token(after);
  if (before_buffers.labels.empty() || after_buffers.labels.empty()) return;
  const auto make_work = [](const observed::BuffersPerToken& label, std::int64_t tokens) {
    Work work;
    work.kind = Work::Kind::buffers;
    work.name = label.label;
    work.times = label.buffers;
    work.seconds = label.seconds;
    if (label.min_seconds && label.max_seconds) {
      work.range = TimeRange{.min_seconds = *label.min_seconds,
                             .max_seconds = *label.max_seconds,
                             .times = label.buffers.value() * static_cast<double>(tokens)};
    }
    return work;
  };
  if (before_buffers.is_complete && after_buffers.is_complete) {
    for (const auto& label : before_buffers.labels)
      evidence.before.works.push_back(make_work(label, before_buffers.tokens));
    for (const auto& label : after_buffers.labels)
      evidence.after.works.push_back(make_work(label, after_buffers.tokens));
    return;
  }
  for (const observed::BuffersPerToken& label_before : before_buffers.labels) {
    const auto* label_after = find_first(
        after_buffers.labels, [&](const auto& label) { return label.label == label_before.label; });
    if (label_after == nullptr || label_after->buffers.value() <= 0) continue;
    Work work_after = make_work(*label_after, after_buffers.tokens);
    // Both sides get the same number of buffers, so that only the time of one can differ.
    work_after.times = label_before.buffers;
    if (work_after.seconds)
      *work_after.seconds *= label_before.buffers.value() / label_after->buffers.value();
    evidence.before.works.push_back(make_work(label_before, before_buffers.tokens));
    evidence.after.works.push_back(std::move(work_after));
  }
}

// Returns one count of the command buffers (`count`) for each decoded token; empty if a step has
// several tokens.
std::vector<double> counts_of_steps(const Observed& observed,
                                    std::optional<std::int64_t> ObservedBuffer::*count) {
  std::map<std::size_t, double> sums;
  for (const ObservedBuffer& buffer : observed.buffers) {
    if (!buffer.step || *buffer.step >= observed.steps.size() || !(buffer.*count)) continue;
    const observed::ObservedStep& step = observed.steps[*buffer.step];
    if (step.phase != Phase::decode) continue;
    if (step.tokens.value_or(1) != 1) return {};
    sums[*buffer.step] += static_cast<double>(*(buffer.*count));
  }
  return collect<double>(sums, [](const auto& sum) { return sum.second; });
}

// Adds counts per token (dispatches, barriers, syncs) that the profiler's output gives only for
// its command buffers. Nothing unless all labels are listed.
void add_buffer_counts(const Observed& observed, Side& side) {
  using observed::BuffersPerToken;
  const observed::BuffersOfTokens buffers = observed::buffers_per_token(observed);
  if (buffers.labels.empty() || !buffers.is_complete) return;
  // A metric, its count in a buffer per token, and its count in each buffer.
  for (const auto& [name, count, count_in_buffer] :
       {std::tuple{"dispatches_per_token", &BuffersPerToken::dispatches,
                   &ObservedBuffer::dispatches},
        {"barriers_per_token", &BuffersPerToken::barriers, &ObservedBuffer::barriers},
        {"syncs_per_token", &BuffersPerToken::syncs, &ObservedBuffer::syncs}}) {
    std::optional<Rational> sum = Rational(0);
    for (const BuffersPerToken& label : buffers.labels) {
      const auto& label_count = label.*count;
      sum = sum && label_count ? sum->plus(*label_count) : std::nullopt;
    }
    if (sum)
      side.metrics.try_emplace(name,
                               MetricValue{sum, {}, counts_of_steps(observed, count_in_buffer)});
  }
}

// Sets how often the selected works ran to `times` on both sides, so that it is no difference.
void set_times(Evidence& evidence, const std::function<bool(const Work&)>& is_selected,
               const Rational& times) {
  for (Side* side : {&evidence.before, &evidence.after}) {
    for (Work& work : side->works) {
      if (is_selected(work)) work.times = times;
    }
  }
}

std::vector<WorkName> work_names(const std::vector<Work>& works) {
  return collect<WorkName>(works, [](const Work& work) {
    const char* kind = work.kind == Work::Kind::kernel ? "kernel" : "op";
    return WorkName{work.on_cpu ? fmt::format("{} on the CPU", kind) : kind,
                    profile::parse_role(work.name), work.name, work.shape, work.times.value()};
  });
}

// Returns one work in place of those at `indices`, with the sum of their times and no number of
// calls.
Work merge_works(const std::vector<Work>& works, const std::string& name,
                 const std::vector<std::size_t>& indices) {
  Work sum;
  for (const std::size_t index : indices) {
    const Work& work = works[index];
    sum.kind = work.kind;
    sum.on_cpu = work.on_cpu;
    if (work.seconds) sum.seconds = sum.seconds.value_or(0) + *work.seconds;
  }
  sum.name = name;
  return sum;
}

// Removes the works at `indices`.
void erase(std::vector<Work>& works, const std::set<std::size_t>& indices) {
  std::vector<Work> remaining;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!indices.contains(i)) remaining.push_back(std::move(works[i]));
  }
  works = std::move(remaining);
}

// Replaces works that only one side timed together by one work for each group, which is not
// judged. Only the later side keeps its time, as overlapping parts take less than their sum.
void join_timed_together(Evidence& evidence) {
  std::vector<Work>& works = evidence.after.works;
  std::set<std::size_t> merged_before, merged_after;
  std::set<std::string> names;
  std::vector<Work> sums;
  for (const TimedTogether& group :
       timed_together(work_names(evidence.before.works), work_names(works))) {
    merged_before.insert(group.a.begin(), group.a.end());
    merged_after.insert(group.b.begin(), group.b.end());
    sums.push_back(merge_works(works, group.role, group.b));
    names.insert(group.role);
  }
  if (names.empty()) return;
  erase(evidence.before.works, merged_before);
  erase(works, merged_after);
  std::ranges::move(sums, std::back_inserter(works));
  constexpr std::size_t k_max_names_listed = 4;
  evidence.warnings.push_back(
      fmt::format("only one side timed these together, so they are not judged (weir compare shows "
                  "their times): {}",
                  verdict::list_some({names.begin(), names.end()}, k_max_names_listed)));
}

// Returns true if two times differ by a factor of 1.2 or more.
bool differ_by_a_fifth(double a, double b) {
  constexpr double k_factor = 1.2;
  return a > 0 && b > 0 && std::max(a, b) / std::min(a, b) >= k_factor;
}

// Warns about times of whole runs that differ by a fifth, but have fewer than four samples, so
// that they are not judged.
void report_unjudged_metrics(Evidence& evidence) {
  constexpr std::size_t k_enough_samples = 4;
  for (const auto& [name, before] : evidence.before.metrics) {
    const auto after = evidence.after.metrics.find(name);
    if (after == evidence.after.metrics.end() || before.samples.empty()) continue;
    const bool is_too_few =
        std::min(before.samples.size(), after->second.samples.size()) < k_enough_samples;
    if (!is_too_few || !differ_by_a_fifth(before.value(), after->second.value())) continue;
    evidence.warnings.push_back(fmt::format("{}: {:.3g}, then {:.3g}: not judged: too few runs",
                                            name, before.value(), after->second.value()));
  }
}

// Warns about times of single ops, or of command buffers (`of_buffers`), that differ by a fifth.
// Times are not judged if fewer than five have one on both sides.
void report_unjudged_works(bool of_buffers, Evidence& evidence) {
  constexpr std::size_t k_enough_works = 5;
  const auto key = [](const Work& work) {
    return RowKey{work.kind, work.name, work.type, work.shape, work.backend};
  };
  std::map<RowKey, double> seconds_before;
  for (const Work& work : evidence.before.works) {
    if (work.seconds) seconds_before[key(work)] = *work.seconds;
  }
  std::size_t timed_count = 0, changed_count = 0;
  for (const Work& work : evidence.after.works) {
    const bool is_of_buffers = work.kind == Work::Kind::buffers;
    if (is_of_buffers != of_buffers || !work.seconds) continue;
    const double* before = look_up(seconds_before, key(work));
    if (before == nullptr) continue;
    ++timed_count;
    if (differ_by_a_fifth(*before, *work.seconds)) ++changed_count;
  }
  if (timed_count >= k_enough_works || changed_count == 0) return;
  const char* exception =
      timed_count > 1 ? " but for large changes, and those that each time of one side shows" : "";
  evidence.warnings.push_back(fmt::format(
      "times of single {} are not judged{}: fewer than five have one on both sides (weir compare "
      "shows them)",
      of_buffers ? "command buffers" : "ops", exception));
}

// Warns about times that differ but are too few to be judged.
void report_unjudged_times(Evidence& evidence) {
  report_unjudged_metrics(evidence);
  report_unjudged_works(/*of_buffers=*/false, evidence);
  report_unjudged_works(/*of_buffers=*/true, evidence);
}

// Warns about rates and times of benchmark cases that differ by a fifth, at most six. Cases are
// matched by their name and settings.
void report_case_times(const Observed& before, const Observed& after, Evidence& evidence) {
  constexpr std::size_t k_max_times = 6;
  if (before.cases.size() < 2 && after.cases.size() < 2) return;
  const auto settings = observed::common_case_settings(before, after);
  Observed cases_before, cases_after;  // without the figures of the whole
  cases_before.cases = before.cases;
  cases_after.cases = after.cases;
  std::map<std::string, std::vector<double>> values_before;
  for (const auto& figure : observed::figures_of(cases_before, settings)) {
    if (figure.value && !figure.error) values_before[figure.name].push_back(*figure.value);
  }
  std::map<std::string, std::vector<double>> values_after;
  for (const auto& figure : observed::figures_of(cases_after, settings)) {
    if (figure.value && !figure.error) values_after[figure.name].push_back(*figure.value);
  }
  std::vector<std::string> changes;
  for (const auto& [name, samples] : values_before) {
    const auto match = values_after.find(name);
    if (match == values_after.end()) continue;
    const double before_value = *stats::median(samples),
                 after_value = *stats::median(match->second);
    if (!differ_by_a_fifth(before_value, after_value)) continue;
    changes.push_back(fmt::format("{}: {:.3g}, then {:.3g}", name, before_value, after_value));
  }
  for (std::size_t i = 0; i < std::min(changes.size(), k_max_times); ++i) {
    evidence.warnings.push_back(changes[i] + ": not judged: a gate judges times");
  }
  if (changes.size() > k_max_times) {
    evidence.warnings.push_back(
        fmt::format("and {} more times that differ (weir compare)", changes.size() - k_max_times));
  }
}

// Returns the mean time of a token, over the decode steps that have a time; nothing without any.
std::optional<double> seconds_per_token(const Observed& observed) {
  double seconds = 0, tokens = 0;
  for (const observed::ObservedStep& step : observed.steps) {
    if (step.phase != Phase::decode || !step.seconds) continue;
    seconds += *step.seconds;
    tokens += static_cast<double>(step.tokens.value_or(1));
  }
  return tokens > 0 ? std::optional(seconds / tokens) : std::nullopt;
}

// Warns if a token takes longer or shorter by a fifth. Ops are judged next to each other, so none
// stands out if all are slower, or time between them grew.
void report_token_times(const Observed& before, const Observed& after, Evidence& evidence) {
  const auto has_times = [](const Side& side) {
    return std::ranges::any_of(side.works, [](const Work& work) { return bool(work.seconds); });
  };
  const auto token_before = seconds_per_token(before), token_after = seconds_per_token(after);
  if (!has_times(evidence.before) || !has_times(evidence.after) || !token_before || !token_after ||
      !differ_by_a_fifth(*token_before, *token_after)) {
    return;
  }
  evidence.warnings.push_back(fmt::format(
      "a token took {}, then {}: an op is judged beside the other ops (weir compare has "
      "all times)",
      unit::show_seconds(*token_before), unit::show_seconds(*token_after)));
}

// Warns if work outside of steps ran more or less often. It belongs to no token, so it is not
// compared.
void report_calls_in_no_step(const Observed& before, const Observed& after, const Basis& basis,
                             Evidence& evidence) {
  if (!basis.decoding) return;
  const auto calls_in_no_step = [](const Observed& observed) {
    std::int64_t sum = 0;
    for (const ObservedOp& op : observed.ops) {
      if (op.phase == Phase::unknown && is_device_work(op) && !op.includes_other_rows) {
        add_capped(sum, op.calls.value_or(0));
      }
    }
    return sum;
  };
  const std::int64_t calls_before = calls_in_no_step(before), calls_after = calls_in_no_step(after);
  if (calls_before == calls_after) return;
  evidence.warnings.push_back(fmt::format(
      "work of no token and no prompt is not compared: {} calls, then {} (weir profile --by phase)",
      calls_before, calls_after));
}

// Returns true if the document has rows or counts that causes could be found in.
bool has_work(const Observed& observed) {
  return !observed.ops.empty() || !observed.cpu_calls.empty() || !observed.buffers.empty() ||
         !observed.counts.empty() || !observed.splits.empty();
}

// Copies the warnings of both outputs, up to eight of each, with the side that they are about.
void add_warnings(const Observed& before, const Observed& after, Evidence& evidence) {
  constexpr std::size_t k_max_warnings = 8;  // per side
  const auto first_warnings = [&](const Observed& observed) {
    const std::size_t count = std::min(observed.warnings.size(), k_max_warnings);
    return std::span(observed.warnings).first(count);
  };
  for (const std::string& warning : first_warnings(before)) {
    const char* side = holds(after.warnings, warning) ? "both sides" : "before";
    evidence.warnings.push_back(fmt::format("{}: {}", side, warning));
  }
  for (const std::string& warning : first_warnings(after)) {
    if (holds(before.warnings, warning)) continue;
    evidence.warnings.push_back(fmt::format("after: {}", warning));
  }
}

}  // namespace

// Decides what to compare: decoding alone and per token, if both documents allow that.
Basis common_basis(const Observed& before, const Observed& after) {
  const auto decodes = [](const Observed& observed) {
    return std::ranges::find(observed.ops, Phase::decode, &ObservedOp::phase) != observed.ops.end();
  };
  const auto tells_tokens = [](const Observed& observed) {
    return decoded_tokens(observed).value_or(0) > 0;
  };
  const bool decoding = decodes(before) && decodes(after);
  return {decoding, decoding && tells_tokens(before) && tells_tokens(after)};
}

bool RowChoice::takes(const ObservedOp& op) const {
  if (op.includes_other_rows || (decoding && op.phase != Phase::decode)) return false;
  return !of_steps || op.step.has_value();
}

RowChoice choose_rows(const Observed& observed, const Basis& basis) {
  RowChoice choice;
  choice.decoding = basis.decoding;
  if (!basis.per_token) return choice;
  choice.of_steps = std::ranges::any_of(
      observed.ops, [](const ObservedOp& op) { return op.phase == Phase::decode && op.step; });
  choice.tokens = decoded_tokens(observed).value_or(1);
  return choice;
}

bool is_device_work(const ObservedOp& op) {
  const std::string category = text::lower(op.category);
  return category.empty() || category == "kernel" || category == "device" ||
         category == "compute";  // the last one is ggml's
}

Evidence make_evidence(const Observed& before, const Observed& after) {
  Evidence evidence;
  evidence.cell = after.context.model.value_or(after.format);
  evidence.device = find_device(before, after);
  const Basis basis = common_basis(before, after);
  const bool per_token = basis.per_token;
  const bool backends = reports_backends(before) && reports_backends(after);
  const auto unmatched_before = unmatched_categories(before, after),
             unmatched_after = unmatched_categories(after, before);
  const SideRows rows_before = read_side_rows(before, basis, backends, unmatched_before);
  const SideRows rows_after = read_side_rows(after, basis, backends, unmatched_after);
  evidence.before = rows_before.side;
  evidence.after = rows_after.side;
  const auto is_uncounted = [&](const Work& work) {
    return rows_before.uncounted.contains(work.name) || rows_after.uncounted.contains(work.name);
  };
  set_times(evidence, is_uncounted, Rational(0));
  drop_unmatched_works(evidence);
  // test-backend-ops repeats each op as often as it likes.
  constexpr std::string_view k_repeats_at_will = "test-backend-ops";
  if (before.format == k_repeats_at_will || after.format == k_repeats_at_will) {
    set_times(
        evidence, [](const Work&) { return true; }, Rational(1));
  }
  join_timed_together(evidence);
  const bool has_works = !rows_before.side.works.empty() || !rows_after.side.works.empty();
  if (!per_token && (has_works || !counts_per_token(rows_after.side))) {
    evidence.scope = unit::Scope::whole_run;
  }
  evidence.kernels_known = rows_before.kernels && rows_after.kernels;
  evidence.graph_known = rows_before.ops && rows_after.ops && !before.truncated && !after.truncated;
  // If all rows have the backend of the run, it names the device, not the place of each.
  evidence.cpu_ops_known = evidence.graph_known && rows_before.backends && rows_after.backends &&
                           (rows_before.places || rows_after.places);
  for (const auto& [observed, side] : {std::pair(&before, "before"), std::pair(&after, "after")}) {
    if (!observed->errors.empty()) {  // the first says why
      evidence.warnings.push_back(
          fmt::format("{}: the engine reports: {}", side, observed->errors.front()));
    }
    std::ranges::move(observed::cross_checks(*observed, side),
                      std::back_inserter(evidence.warnings));
    if (observed->truncated) {
      evidence.warnings.push_back(std::string(side) +
                                  ": it ends in the middle: sums are of its whole parts");
    }
  }
  evidence.has_work = has_work(before) || has_work(after);
  if (!evidence.has_work) {
    evidence.warnings.emplace_back(
        "no op, kernel or count is in it, so there is none to explain: weir profile lists its "
        "figures, and weir compare those of two");
  }
  for (const auto& [categories, side] :
       {std::pair(&unmatched_before, "before"), std::pair(&unmatched_after, "after")}) {
    if (categories->empty()) continue;
    evidence.warnings.push_back(fmt::format(
        "{}: its rows of category {} have no counterpart in the other format: not compared", side,
        fmt::join(*categories, ", ")));
  }
  report_calls_in_no_step(before, after, basis, evidence);
  report_token_times(before, after, evidence);
  add_warnings(before, after, evidence);
  add_buffers(before, after, evidence);
  add_buffer_counts(before, evidence.before);
  add_buffer_counts(after, evidence.after);
  report_unjudged_times(evidence);
  report_case_times(before, after, evidence);
  return evidence;
}

}  // namespace weir::explain
