// What a profiler said of two runs, as evidence.
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
#include "gate/verdict/proposal.hpp"

namespace weir::explain {
namespace {

using observed::names_a_cpu;
using observed::Observed;
using observed::ObservedBuffer;
using observed::ObservedOp;
using observed::Phase;

// Rows of one kind together.
struct RowKey {
  Work::Kind kind;
  std::string name, type, shape, backend;
  auto operator<=>(const RowKey&) const = default;
};
struct RowSum {
  Work work;  // of all tokens together
  std::int64_t calls = 0;
  bool ranged = true;  // every row said it
};

using RowSums = std::map<RowKey, RowSum>;
const std::string k_nowhere;

// Without the longest of several calls: one that was interrupted is not the work's time.
std::optional<double> steady_time(const ObservedOp& op) {
  constexpr std::int64_t k_several = 4;
  const auto own = observed::time_of_its_own(op);
  const std::int64_t calls = op.calls.value_or(0);
  if (!own || op.own_seconds || !op.most || calls < k_several) return own;
  const auto n = static_cast<double>(calls);
  return std::max(0.0, *own - *op.most) * n / (n - 1);
}

struct SideRows {
  Side side;
  RowSums rows{};
  bool kernels = false, backends = false, ops = false;
  bool places = false;              // a row names another backend than that of the whole run
  std::set<std::string> uncounted;  // names of works that ran nobody knows how often
};

void add_row(SideRows& into, const RowKey& key, const ObservedOp& op, bool timed) {
  auto& [work, calls, ranged] = into.rows[key];
  add_capped(calls, op.calls.value_or(0));
  if (!op.calls) into.uncounted.insert(key.name);
  const auto own = steady_time(op);
  if (timed && !own) ranged = false;
  if (!timed || !own) return;
  work.seconds = work.seconds.value_or(0) + *own;
  work.labels.insert(op.buffer);
  // What is nested in it is in the times of single calls.
  ranged = ranged && op.calls && op.least && op.most && !op.own_seconds;
  if (!ranged) return;
  if (!work.range) work.range = TimeRange{*op.least, *op.most};
  work.range->least = std::min(work.range->least, *op.least);
  work.range->most = std::max(work.range->most, *op.most);
  work.range->times += static_cast<double>(*op.calls);
}

bool tells_backends(const Observed& observed) {
  return std::ranges::any_of(observed.ops,
                             [](const ObservedOp& op) { return !op.backend.empty(); });
}

// Categories of rows that only one of two formats has: a trace's of the CPU's calls, beside totals
// of a device. Work of that kind is neither new nor gone.
std::set<std::string> categories_alone(const Observed& one, const Observed& other) {
  std::set<std::string> alone;
  if (one.format == other.format) return alone;
  for (const ObservedOp& op : one.ops) {
    if (!is_device_work(op) && op.category != "copy") alone.insert(op.category);
  }
  for (const ObservedOp& op : other.ops) alone.erase(op.category);
  return alone;
}

// The kernel of a row. Documents that name kernels by ops alone ("RMS_NORM_MUL" of llama.cpp's
// perf logger) name none where an op runs by itself: it is a kernel of the op's name.
std::string kernel_of(const ObservedOp& op, bool kernels_told) {
  const bool itself = kernels_told && op.kernel.empty() && !profile::op_of(op.op).empty() &&
                      is_device_work(op) && !op.backend.empty() && !names_a_cpu(op.backend);
  return itself ? op.op : op.kernel;
}

// `backends`: both sides tell them. Else where an op ran is no difference. Rows of the categories
// `alone` are left out.
SideRows rows_of(const Observed& observed, const Shared& shared, bool backends,
                 const std::set<std::string>& alone) {
  SideRows made;
  const RowChoice choice = rows_of_side(observed, shared);
  const std::int64_t tokens = choice.tokens;
  const bool kernels_told = std::ranges::any_of(
      observed.ops, [](const ObservedOp& op) { return !profile::op_of(op.kernel).empty(); });
  for (const ObservedOp& op : observed.ops) {
    if (!choice.takes(op) || alone.contains(op.category)) continue;
    made.backends = made.backends || !op.backend.empty();
    made.places = made.places || (!op.backend.empty() && op.backend != observed.context.backend);
    if (const auto own = observed::time_of_its_own(op); own && op.layer) {
      made.side.layers[*op.layer] += *own / static_cast<double>(tokens);
    }
    const std::string& backend = backends ? op.backend : k_nowhere;
    const std::string kernel = kernel_of(op, kernels_told);
    if (!kernel.empty()) {
      made.kernels = true;
      add_row(made, {Work::Kind::kernel, kernel, op.type, op.shape, backend}, op, true);
    }
    if (op.op.empty()) continue;
    made.ops = true;
    add_row(made, {Work::Kind::op, op.op, op.type, op.shape, backend}, op, kernel.empty());
  }
  for (auto& [key, sum] : made.rows) {
    Work& work = made.side.works.emplace_back(std::move(sum.work));
    std::tie(work.kind, work.name, work.type, work.shape, work.backend) =
        std::tie(key.kind, key.name, key.type, key.shape, key.backend);
    work.on_cpu = names_a_cpu(work.backend);
    work.times = Rational::make(sum.calls, tokens).value_or(Rational(sum.calls));
    if (work.seconds) *work.seconds /= static_cast<double>(tokens);
    if (!sum.ranged) work.range.reset();
  }
  for (const observed::ObservedCount& count : observed.counts) {
    const auto mean = count.mean();
    if (!mean) continue;
    Known& known = made.side.metrics[count.metric.name] = {mean, {}};
    if (count.metric.scope != unit::Scope::per_token) continue;
    known.tokens.assign(count.values.begin(), count.values.end());
  }
  for (const observed::ObservedTiming& timing : observed.timings) {
    if (!timing.samples.empty()) made.side.metrics[timing.metric.name] = {{}, timing.samples};
  }
  return made;
}

bool counts_per_token(const Side& side) {
  return std::ranges::any_of(side.metrics, [](const auto& one) {
    const auto metric = unit::find_metric(one.first);
    return metric && metric->scope == unit::Scope::per_token;
  });
}

std::string device_of(const Observed& before, const Observed& after) {
  for (const Observed* one : {&after, &before}) {
    if (one->context.backend) return names_a_cpu(*one->context.backend) ? "cpu" : "gpu";
  }
  return "";
}

// What a side that tells no work at all would make of the other's: all of it new, or gone.
void drop_one_sided(Evidence& evidence) {
  for (Side* const none : {&evidence.before, &evidence.after}) {
    Side& other = none == &evidence.before ? evidence.after : evidence.before;
    if (!none->works.empty() || other.works.empty()) continue;
    other.works.clear();
    evidence.doubts.push_back(std::string(none == &evidence.before ? "before" : "after") +
                              ": it reports no op, so what ran is not compared");
  }
}

// Command buffers by label. A label that a side does not list may be there: where labels are left
// out, only those of both sides are compared, by the time of each buffer.
void add_buffers(const Observed& before, const Observed& after, Evidence& evidence) {
  const observed::BuffersOfTokens a = observed::buffers_per_token(before);
  const observed::BuffersOfTokens b = observed::buffers_per_token(after);
  if (a.labels.empty() || b.labels.empty()) return;
  const auto work_of = [](const observed::BuffersPerToken& one, std::int64_t tokens) {
    Work work{Work::Kind::buffers, one.label, "", "", "", false, one.buffers, one.seconds};
    if (one.least && one.most) {
      work.range = {*one.least, *one.most, one.buffers.value() * static_cast<double>(tokens)};
    }
    return work;
  };
  if (a.whole && b.whole) {
    for (const auto& one : a.labels) evidence.before.works.push_back(work_of(one, a.tokens));
    for (const auto& one : b.labels) evidence.after.works.push_back(work_of(one, b.tokens));
    return;
  }
  for (const observed::BuffersPerToken& was : a.labels) {
    const auto* is = first_of(b.labels, [&](const auto& one) { return one.label == was.label; });
    if (is == nullptr || is->buffers.value() <= 0) continue;
    Work as_many = work_of(*is, b.tokens);
    as_many.times = was.buffers;
    if (as_many.seconds) *as_many.seconds *= was.buffers.value() / is->buffers.value();
    evidence.before.works.push_back(work_of(was, a.tokens));
    evidence.after.works.push_back(std::move(as_many));
  }
}

// What the command buffers of each token count; nothing where a step is of several.
std::vector<double> of_each_step(const Observed& observed,
                                 std::optional<std::int64_t> ObservedBuffer::*count) {
  std::map<std::size_t, double> sums;
  for (const ObservedBuffer& one : observed.buffers) {
    if (!one.step || *one.step >= observed.steps.size() || !(one.*count)) continue;
    const observed::ObservedStep& step = observed.steps[*one.step];
    if (step.phase != Phase::decode) continue;
    if (step.tokens.value_or(1) != 1) return {};
    sums[*one.step] += static_cast<double>(*(one.*count));
  }
  return collect<double>(sums, [](const auto& sum) { return sum.second; });
}

// Counts of a token that the document gives by its command buffers alone.
void add_counts_of_buffers(const Observed& observed, Side& side) {
  using observed::BuffersPerToken;
  const observed::BuffersOfTokens buffers = observed::buffers_per_token(observed);
  if (buffers.labels.empty() || !buffers.whole) return;
  for (const auto& [name, count, each] :
       {std::tuple{"dispatches_per_token", &BuffersPerToken::dispatches,
                   &ObservedBuffer::dispatches},
        {"barriers_per_token", &BuffersPerToken::barriers, &ObservedBuffer::barriers},
        {"syncs_per_token", &BuffersPerToken::syncs, &ObservedBuffer::syncs}}) {
    std::optional<Rational> sum = Rational(0);
    for (const BuffersPerToken& one : buffers.labels) {
      sum = sum && one.*count ? sum->plus(*(one.*count)) : std::nullopt;
    }
    if (sum) side.metrics.try_emplace(name, Known{sum, {}, of_each_step(observed, each)});
  }
}

// No difference is told of how often these works ran: all of them did `times`.
void drop_times(Evidence& evidence, const std::function<bool(const Work&)>& wanted,
                const Rational& times) {
  for (Side* side : {&evidence.before, &evidence.after}) {
    for (Work& work : side->works) {
      if (wanted(work)) work.times = times;
    }
  }
}

std::vector<WorkName> names_of(const std::vector<Work>& works) {
  return collect<WorkName>(works, [](const Work& work) {
    const char* kind = work.kind == Work::Kind::kernel ? "kernel" : "op";
    return WorkName{work.on_cpu ? fmt::format("{} on the CPU", kind) : kind,
                    profile::role_of(work.name), work.name, work.shape, work.times.value()};
  });
}

// One work in place of those at `indices`, with their time and without how often it ran.
Work together(const std::vector<Work>& works, const std::string& name,
              const std::vector<std::size_t>& indices) {
  Work sum;
  for (const std::size_t index : indices) {
    const Work& one = works[index];
    sum.kind = one.kind;
    sum.on_cpu = one.on_cpu;
    if (one.seconds) sum.seconds = sum.seconds.value_or(0) + *one.seconds;
  }
  sum.name = name;
  return sum;
}

void erase(std::vector<Work>& works, const std::set<std::size_t>& indices) {
  std::vector<Work> kept;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!indices.contains(i)) kept.push_back(std::move(works[i]));
  }
  works = std::move(kept);
}

// No difference is told of work that one side alone timed together. A group is several calls of its
// parts, and of what may overlap the time is less than their sum. The later side keeps its time.
void join_timed_together(Evidence& evidence) {
  std::vector<Work>& works = evidence.after.works;
  std::set<std::size_t> before, after;
  std::set<std::string> names;
  std::vector<Work> sums;
  for (const TimedTogether& group :
       timed_together(names_of(evidence.before.works), names_of(works))) {
    before.insert(group.a.begin(), group.a.end());
    after.insert(group.b.begin(), group.b.end());
    sums.push_back(together(works, group.role, group.b));
    names.insert(group.role);
  }
  if (names.empty()) return;
  erase(evidence.before.works, before);
  erase(works, after);
  std::ranges::move(sums, std::back_inserter(works));
  constexpr std::size_t k_most = 4;
  evidence.doubts.push_back(
      fmt::format("only one side timed these together, so they are not judged (weir compare shows "
                  "their times): {}",
                  verdict::some_of({names.begin(), names.end()}, k_most)));
}

// Times that differ by a fifth and more.
bool apart(double a, double b) {
  constexpr double k_apart = 1.2;
  return a > 0 && b > 0 && std::max(a, b) / std::min(a, b) >= k_apart;
}

// Times apart that are too few to be judged: weir compare shows them.
void say_what_is_not_judged(Evidence& evidence) {
  constexpr std::size_t k_enough_samples = 4, k_enough_works = 5;
  for (const auto& [name, before] : evidence.before.metrics) {
    const auto after = evidence.after.metrics.find(name);
    if (after == evidence.after.metrics.end() || before.samples.empty()) continue;
    const bool few =
        std::min(before.samples.size(), after->second.samples.size()) < k_enough_samples;
    if (!few || !apart(before.value(), after->second.value())) continue;
    evidence.doubts.push_back(fmt::format("{}: {:.3g}, then {:.3g}: not judged: too few runs", name,
                                          before.value(), after->second.value()));
  }
  const auto key = [](const Work& work) {
    return RowKey{work.kind, work.name, work.type, work.shape, work.backend};
  };
  std::map<RowKey, double> seconds;
  for (const Work& work : evidence.before.works) {
    if (work.seconds) seconds[key(work)] = *work.seconds;
  }
  for (const bool buffers : {false, true}) {
    std::size_t timed = 0, moved = 0;
    for (const Work& work : evidence.after.works) {
      if (buffers != (work.kind == Work::Kind::buffers)) continue;
      const auto found = work.seconds ? seconds.find(key(work)) : seconds.end();
      if (found == seconds.end()) continue;
      ++timed;
      moved += apart(found->second, *work.seconds) ? 1U : 0U;
    }
    if (timed >= k_enough_works || moved == 0) continue;
    evidence.doubts.push_back(fmt::format(
        "times of single {} are not judged{}: fewer than five have one on both sides (weir compare "
        "shows them)",
        buffers ? "command buffers" : "ops",
        timed > 1 ? " but for large changes, and those that each time of one side shows" : ""));
  }
}

// Seconds of a token, of the steps that have a time.
std::optional<double> seconds_of_token(const Observed& observed) {
  double seconds = 0, tokens = 0;
  for (const observed::ObservedStep& step : observed.steps) {
    if (step.phase != Phase::decode || !step.seconds) continue;
    seconds += *step.seconds;
    tokens += static_cast<double>(step.tokens.value_or(1));
  }
  return tokens > 0 ? std::optional(seconds / tokens) : std::nullopt;
}

// An op is slower beside the others; where all of them are, or what lies between them is, none
// stands out. Of device twins, whose ops have no times, a token's tell nothing.
void say_that_tokens_are_slower(const Observed& before, const Observed& after, Evidence& evidence) {
  const auto timed = [](const Side& side) {
    return std::ranges::any_of(side.works, [](const Work& work) { return bool(work.seconds); });
  };
  const auto a = seconds_of_token(before), b = seconds_of_token(after);
  if (!timed(evidence.before) || !timed(evidence.after) || !a || !b || !apart(*a, *b)) return;
  evidence.doubts.push_back(fmt::format(
      "a token took {}, then {}: an op is judged beside the other ops (weir compare has "
      "all times)",
      observed::time_text(*a), observed::time_text(*b)));
}

// Work in no step is that of no token: how often it ran is told, where that differs.
void say_what_is_in_no_step(const Observed& before, const Observed& after, const Shared& shared,
                            Evidence& evidence) {
  if (!shared.decoding) return;
  const auto calls = [](const Observed& observed) {
    std::int64_t sum = 0;
    for (const ObservedOp& op : observed.ops) {
      if (op.phase == Phase::unknown && is_device_work(op) && !op.covers_others) {
        add_capped(sum, op.calls.value_or(0));
      }
    }
    return sum;
  };
  const std::int64_t a = calls(before), b = calls(after);
  if (a == b) return;
  evidence.doubts.push_back(fmt::format(
      "work of no token and no prompt is not compared: {} calls, then {} (weir profile --by phase)",
      a, b));
}

// What the documents themselves say is doubtful.
void add_warnings(const Observed& before, const Observed& after, Evidence& evidence) {
  constexpr std::size_t k_most = 8;  // of a side
  for (const auto& [one, other, side] :
       {std::tuple(&before, &after, "before"), std::tuple(&after, &before, "after")}) {
    for (const std::string& warning :
         std::span(one->warnings).first(std::min(one->warnings.size(), k_most))) {
      const bool both = holds(other->warnings, warning);
      if (both && one == &after) continue;
      evidence.doubts.push_back(fmt::format("{}: {}", both ? "both sides" : side, warning));
    }
  }
}

}  // namespace

Shared shared_of(const Observed& before, const Observed& after) {
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
  if (op.covers_others || (decoding && op.phase != Phase::decode)) return false;
  return !of_steps || op.step.has_value();
}

RowChoice rows_of_side(const Observed& observed, const Shared& shared) {
  RowChoice choice;
  choice.decoding = shared.decoding;
  if (!shared.per_token) return choice;
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

Evidence evidence_of(const Observed& before, const Observed& after) {
  Evidence evidence;
  evidence.cell = after.context.model.value_or(after.format);
  evidence.device = device_of(before, after);
  const Shared shared = shared_of(before, after);
  const bool per_token = shared.per_token;
  const bool backends = tells_backends(before) && tells_backends(after);
  const auto alone_a = categories_alone(before, after), alone_b = categories_alone(after, before);
  const SideRows a = rows_of(before, shared, backends, alone_a);
  const SideRows b = rows_of(after, shared, backends, alone_b);
  evidence.before = a.side;
  evidence.after = b.side;
  const auto uncounted = [&](const Work& work) {
    return a.uncounted.contains(work.name) || b.uncounted.contains(work.name);
  };
  drop_times(evidence, uncounted, Rational(0));
  drop_one_sided(evidence);
  // A tool that runs each op as often as it likes.
  constexpr std::string_view k_repeats_at_will = "test-backend-ops";
  if (before.format == k_repeats_at_will || after.format == k_repeats_at_will) {
    drop_times(
        evidence, [](const Work&) { return true; }, Rational(1));
  }
  join_timed_together(evidence);
  const bool works = !a.side.works.empty() || !b.side.works.empty();
  if (!per_token && (works || !counts_per_token(b.side))) evidence.scope = unit::Scope::whole;
  evidence.kernels_known = a.kernels && b.kernels;
  evidence.graph_known = a.ops && b.ops && !before.truncated && !after.truncated;
  // Rows that all have the backend of the run name its device, not where each of them ran.
  evidence.cpu_ops_known =
      evidence.graph_known && a.backends && b.backends && (a.places || b.places);
  for (const auto& [observed, side] : {std::pair(&before, "before"), std::pair(&after, "after")}) {
    if (!observed->errors.empty()) {  // the first says why
      evidence.doubts.push_back(
          fmt::format("{}: the engine reports: {}", side, observed->errors.front()));
    }
    std::ranges::move(observed::cross_checks(*observed, side), std::back_inserter(evidence.doubts));
    if (observed->truncated) {
      evidence.doubts.push_back(std::string(side) +
                                ": it ends in the middle: sums are of its whole parts");
    }
  }
  for (const auto& [alone, side] : {std::pair(&alone_a, "before"), std::pair(&alone_b, "after")}) {
    if (alone->empty()) continue;
    evidence.doubts.push_back(fmt::format(
        "{}: its rows of category {} have no counterpart in the other format: not compared", side,
        fmt::join(*alone, ", ")));
  }
  say_what_is_in_no_step(before, after, shared, evidence);
  say_that_tokens_are_slower(before, after, evidence);
  add_warnings(before, after, evidence);
  add_buffers(before, after, evidence);
  add_counts_of_buffers(before, evidence.before);
  add_counts_of_buffers(after, evidence.after);
  say_what_is_not_judged(evidence);
  return evidence;
}

}  // namespace weir::explain
