#include "gate/observed/totals.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "gate/base/add_capped.hpp"
#include "gate/base/text.hpp"
#include "gate/model/tensor_type.hpp"
#include "gate/profile/counts.hpp"

namespace weir::observed {
namespace {

constexpr std::int64_t k_most_layers = 100'000;

std::string shape_group(const ObservedOp& op, std::string name) {
  for (const std::string* part : {&op.type, &op.shape}) {
    if (!part->empty()) name += " " + *part;
  }
  return name;
}

std::string or_none(const std::string& text, const char* none) {
  return text.empty() ? none : text;
}

std::string group_name(const ObservedOp& op, GroupBy by) {
  const std::string& kernel = op.kernel.empty() ? op.op : op.kernel;
  const std::string& name = op.op.empty() ? op.kernel : op.op;
  if (by == GroupBy::op) return or_none(name, "(no name)");
  if (by == GroupBy::kernel) return or_none(kernel, "(no name)");
  if (by == GroupBy::shape) return or_none(shape_group(op, kernel), "(no name)");
  if (by == GroupBy::op_shape) {
    return or_none(shape_group(op, name), "(no name)") +
           (op.backend.empty() ? "" : " on " + op.backend);
  }
  if (by == GroupBy::backend) return or_none(op.backend, "(no backend)");
  if (by == GroupBy::layer) return op.layer ? fmt::format("layer {}", *op.layer) : "(no layer)";
  if (by == GroupBy::phase) return std::string(to_string(op.phase));
  if (by == GroupBy::buffer) return or_none(op.buffer, "(no label)");
  return or_none(op.category, "(no category)");
}

std::optional<double> of_all(const ObservedOp& op, const std::optional<double>& of_one) {
  if (!of_one || !op.calls) return std::nullopt;
  return *of_one * static_cast<double>(*op.calls);
}

void add_row(OpTotal& total, const ObservedOp& op) {
  const bool first = total.rows++ == 0;
  const auto add = [&](std::optional<double>& sum, bool& partly,
                       const std::optional<double>& more) {
    partly |= !first && sum.has_value() != more.has_value();
    if (more) sum = sum.value_or(0) + *more;
  };
  add(total.seconds, total.partly, time_of_its_own(op));
  add(total.flops, total.flops_partly, of_all(op, op.flops));
  add(total.bytes, total.bytes_partly, of_all(op, op.bytes));
  add(total.peak_seconds, total.peak_partly, op.peak_seconds);
  if (op.calls) {
    if (!total.calls) total.calls = 0;
    add_capped(*total.calls, *op.calls);
  }
  if (op.least) total.least = std::min(total.least.value_or(*op.least), *op.least);
  if (op.most) total.most = std::max(total.most.value_or(*op.most), *op.most);
}

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool wanted(const ObservedOp& op, const Rows& rows) {
  if (op.covers_others || (rows.of_steps && !op.step)) return false;
  if (rows.phase && op.phase != *rows.phase) return false;
  return !rows.step || op.step == rows.step;
}

struct TwoSides {
  std::vector<std::string> sources;
  std::string result;
};

std::optional<TwoSides> sides_of(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  return TwoSides{text::split(std::string_view(text).substr(0, arrow), ','),
                  text.substr(arrow + 2)};
}

std::optional<double> bytes_of(const std::string& type, const std::string& shape) {
  const model::TensorTypeInfo* info = model::find_tensor_type(std::string_view(type));
  const auto dims = profile::sizes_of(shape);
  if (info == nullptr || !dims) return std::nullopt;
  const auto bytes = model::tensor_bytes(*info, *dims);
  return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

std::optional<double> bytes_of_call(const ObservedOp& op) {
  // Which experts of the whole are touched their shapes do not say.
  if (op.op == "MUL_MAT_ID") return std::nullopt;
  auto types = sides_of(op.type);
  auto shapes = sides_of(op.shape);
  if (!types || !shapes || types->sources.size() != shapes->sources.size()) return std::nullopt;
  if (op.op == "SET_ROWS") {
    // Of the table, which is the result and perhaps a source too, as many rows as are set.
    if (shapes->sources.size() < 2) return std::nullopt;
    types->sources.resize(2);
    shapes->sources.resize(2);
    shapes->result = shapes->sources.front();
  }
  auto sum = bytes_of(types->result, shapes->result);
  for (std::size_t i = 0; i < types->sources.size() && sum; ++i) {
    // Of a table as many rows as the result has.
    const bool table = i == 0 && op.op == "GET_ROWS";
    const auto source = bytes_of(types->sources[i], table ? shapes->result : shapes->sources[i]);
    sum = source ? std::optional(*sum + *source) : std::nullopt;
  }
  return sum;
}

double product_of(const std::vector<std::uint64_t>& dims) {
  double out = 1;
  for (const std::uint64_t size : dims) out *= static_cast<double>(size);
  return out;
}

// Of FLASH_ATTN_EXT, whose sources are queries, keys, values and perhaps a mask: each query times
// each key, and what comes of it times each value. A mask's holes count as well.
std::optional<double> flops_of_attention(const TwoSides& shapes) {
  if (shapes.sources.size() < 3) return std::nullopt;
  const auto queries = profile::sizes_of(shapes.sources[0]),
             keys = profile::sizes_of(shapes.sources[1]),
             values = profile::sizes_of(shapes.sources[2]);
  if (!queries || !keys || !values || keys->size() < 2) return std::nullopt;
  const auto each = static_cast<double>(queries->front() + values->front());
  return 2 * product_of(*queries) / static_cast<double>(queries->front()) *
         static_cast<double>((*keys)[1]) * each;
}

// Each value of the result is a sum over a row of the first source: a product and an addition each.
std::optional<double> flops_of_product(const ObservedOp& op) {
  const auto shapes = sides_of(op.shape);
  if (shapes && op.op == "FLASH_ATTN_EXT") return flops_of_attention(*shapes);
  if (op.op != "MUL_MAT" && op.op != "MUL_MAT_ID") return std::nullopt;
  if (!shapes || shapes->sources.empty()) return std::nullopt;
  const auto first = profile::sizes_of(shapes->sources.front());
  const auto result = profile::sizes_of(shapes->result);
  if (!first || !result) return std::nullopt;
  return 2 * static_cast<double>(first->front()) * product_of(*result);
}

// The number at `at`, where nothing that belongs to a name follows it.
std::optional<std::int64_t> number_at(std::string_view name, std::size_t at) {
  std::size_t end = at;
  while (end < name.size() && text::is_digit(name[end])) ++end;
  if (end == at || end - at > 6) return std::nullopt;
  if (end < name.size() && std::string_view(" .:/]()_").find(name[end]) == std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = text::to_int(name.substr(at, end - at));
  return number && *number <= k_most_layers ? number : std::nullopt;
}

// Of the steps that decode and have rows; nothing when there is none.
std::optional<std::int64_t> tokens_of_steps(const Observed& observed) {
  std::vector<bool> used(observed.steps.size(), false);
  for (const ObservedOp& op : observed.ops) {
    if (op.step && *op.step < used.size()) used[*op.step] = true;
  }
  std::int64_t tokens = 0;
  bool any = false;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const ObservedStep& step = observed.steps[i];
    if (!used[i] || step.phase != Phase::decode) continue;
    any = true;
    add_capped(tokens, step.tokens.value_or(1));
  }
  return any ? std::optional(tokens) : std::nullopt;
}

std::vector<OpTotal> sums_of(std::span<const ObservedOp* const> ops, GroupBy by) {
  std::map<std::string, OpTotal> groups;
  for (const ObservedOp* op : ops) {
    OpTotal& total = groups[group_name(*op, by)];
    if (by == GroupBy::layer) total.layer = op->layer;
    add_row(total, *op);
  }
  std::vector<OpTotal> totals;
  totals.reserve(groups.size());
  for (auto& [name, total] : groups) {
    total.name = name;
    totals.push_back(std::move(total));
  }
  // Groups come by name already.
  std::ranges::stable_sort(totals, {}, [&](const OpTotal& one) {
    constexpr auto k_last = std::numeric_limits<std::int64_t>::max();
    if (by == GroupBy::layer) return std::tuple(one.layer.value_or(k_last), 0.0, std::int64_t{0});
    return std::tuple(std::int64_t{one.name == k_not_listed}, -one.seconds.value_or(-1),
                      -one.calls.value_or(0));
  });
  return totals;
}

}  // namespace

std::vector<OpTotal> op_totals(const Observed& observed, const Grouping& by, const Rows& rows) {
  std::vector<const ObservedOp*> ops;
  for (const ObservedOp& op : observed.ops) {
    if (wanted(op, rows)) ops.push_back(&op);
  }
  std::vector<OpTotal> totals = sums_of(ops, by.by);
  if (!by.within) return totals;
  std::map<std::string, std::vector<const ObservedOp*>> groups;
  for (const ObservedOp* op : ops) groups[group_name(*op, by.by)].push_back(op);
  std::vector<OpTotal> out;
  for (OpTotal& outer : totals) {
    std::vector<OpTotal> inner = sums_of(groups[outer.name], *by.within);
    for (OpTotal& one : inner) {
      one.name = fmt::format("{}: {}", outer.name, one.name);
      one.nested = true;
    }
    out.push_back(std::move(outer));
    std::ranges::move(inner, std::back_inserter(out));
  }
  return out;
}

std::vector<OpTotal> cpu_totals(const Observed& observed, GroupBy by) {
  constexpr std::array k_none{GroupBy::backend, GroupBy::layer, GroupBy::phase, GroupBy::buffer};
  if (std::ranges::find(k_none, by) != k_none.end()) return {};
  std::vector<const ObservedOp*> calls;
  for (const ObservedOp& one : observed.cpu_calls) calls.push_back(&one);
  return sums_of(calls, by);
}

std::optional<std::int64_t> decoded_tokens(const Observed& observed) {
  const auto tokens = tokens_of_steps(observed);
  return tokens ? tokens : observed.profiled_tokens;
}

std::optional<double> time_of_its_own(const ObservedOp& op) {
  return op.seconds && op.own_seconds ? op.own_seconds : op.seconds;
}

// A sum of the group's over its time.
static std::optional<double> rate(const OpTotal& total, const std::optional<double>& sum,
                                  bool partly) {
  const double seconds = total.seconds.value_or(0);
  if (sum.value_or(0) <= 0 || seconds <= 0 || partly || total.partly) return std::nullopt;
  return finite(*sum / seconds);
}

std::optional<double> OpTotal::flops_per_second() const { return rate(*this, flops, flops_partly); }

std::optional<double> OpTotal::bytes_per_second() const { return rate(*this, bytes, bytes_partly); }

std::optional<double> OpTotal::share_of_peak() const {
  return rate(*this, peak_seconds, peak_partly);
}

std::vector<OpPerToken> op_totals_per_token(const Observed& observed, const Grouping& by) {
  const auto tokens = decoded_tokens(observed);
  if (!tokens || *tokens <= 0) return {};
  const auto count = static_cast<double>(*tokens);
  const auto each = [&](const std::optional<double>& sum) {
    return sum ? std::optional(*sum / count) : std::nullopt;
  };
  std::vector<OpPerToken> found;
  // Where tokens are counted by steps, rows that belong to none are not of these tokens.
  const bool of_steps = tokens_of_steps(observed).has_value();
  for (const OpTotal& total : op_totals(observed, by, {Phase::decode, std::nullopt, of_steps})) {
    const auto calls =
        total.calls ? std::optional(static_cast<double>(*total.calls)) : std::nullopt;
    // Times of a part of the calls are no time of them all.
    found.push_back({total.name, each(calls), total.partly ? std::nullopt : each(total.seconds),
                     total.flops_partly ? std::nullopt : each(total.flops),
                     total.bytes_partly ? std::nullopt : each(total.bytes)});
  }
  return found;
}

void add_up(ObservedBuffer& sum, const ObservedBuffer& more) {
  const auto add = [](std::optional<std::int64_t>& count, const std::optional<std::int64_t>& by) {
    if (count && by) add_capped(*count, *by);
    if (!by) count.reset();
  };
  add_capped(sum.buffers, more.buffers);
  add(sum.dispatches, more.dispatches);
  add(sum.barriers, more.barriers);
  add(sum.syncs, more.syncs);
  const bool timed = sum.seconds && more.seconds;
  sum.seconds = timed ? finite(*sum.seconds + *more.seconds) : std::nullopt;
  // A row of several without these has no bound.
  const bool bounded = sum.least && more.least && sum.most && more.most;
  sum.least = bounded ? std::optional(std::min(*sum.least, *more.least)) : std::nullopt;
  sum.most = bounded ? std::optional(std::max(*sum.most, *more.most)) : std::nullopt;
}

std::vector<ObservedBuffer> buffer_totals(const Observed& observed) {
  std::map<std::pair<std::string, Phase>, ObservedBuffer> sums;
  for (const ObservedBuffer& one : observed.buffers) {
    const bool known = one.step && *one.step < observed.steps.size();
    const Phase phase = known ? observed.steps[*one.step].phase : Phase::unknown;
    const auto [at, fresh] = sums.try_emplace({one.label, phase}, one);
    if (!fresh) add_up(at->second, one);
  }
  std::vector<ObservedBuffer> out;
  for (auto& [key, sum] : sums) out.push_back(std::move(sum));
  std::ranges::stable_sort(out, std::greater{},
                           [](const ObservedBuffer& one) { return one.seconds.value_or(-1); });
  return out;
}

BuffersOfTokens buffers_per_token(const Observed& observed) {
  BuffersOfTokens made;
  std::map<std::string, ObservedBuffer> sums;
  std::set<std::size_t> steps;
  const bool of_steps = std::ranges::any_of(
      observed.buffers, [](const ObservedBuffer& one) { return one.step.has_value(); });
  for (const ObservedBuffer& one : observed.buffers) {
    if (of_steps) {
      if (!one.step || *one.step >= observed.steps.size()) continue;
      if (observed.steps[*one.step].phase != Phase::decode) continue;
      steps.insert(*one.step);
    }
    const auto [at, fresh] = sums.try_emplace(one.label, one);
    if (!fresh) add_up(at->second, one);
  }
  for (const std::size_t index : steps) {
    add_capped(made.tokens, observed.steps[index].tokens.value_or(1));
    made.whole = made.whole && observed.steps[index].labels_left_out == 0;
  }
  if (!of_steps) made.tokens = observed.profiled_tokens.value_or(0);
  if (made.tokens <= 0) return {};
  for (const auto& [label, sum] : sums) {
    const auto each = Rational::make(sum.buffers, made.tokens);
    if (!each) continue;
    const auto tokens = static_cast<double>(made.tokens);
    const auto of_token = [&](const std::optional<std::int64_t>& count) {
      return count ? Rational::make(*count, made.tokens) : std::nullopt;
    };
    made.labels.push_back(
        {label, *each, sum.seconds ? std::optional(*sum.seconds / tokens) : std::nullopt, sum.least,
         sum.most, of_token(sum.dispatches), of_token(sum.barriers), of_token(sum.syncs)});
  }
  return made;
}

std::optional<std::int64_t> layer_of_node(std::string_view node) {
  if (node.size() > 512) return std::nullopt;
  constexpr std::array k_before{"blk.",   "layers.", "layer.", "layer ",    "layer_",
                                "block.", "blocks.", "h.",     "cache_k_l", "cache_v_l"};
  for (const std::string_view before : k_before) {
    const std::size_t at = node.find(before);
    // "h." and the like begin a part of the name, they do not end one ("with.3").
    if (at == std::string_view::npos || (at > 0 && node[at - 1] != '.' && node[at - 1] != '#')) {
      continue;
    }
    if (const auto layer = number_at(node, at + before.size())) return layer;
  }
  const std::size_t dash = node.find_last_of('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  return number_at(node, dash + 1);
}

void fill_from_shape(ObservedOp& op) {
  if (!op.bytes) op.bytes = bytes_of_call(op);
  if (!op.flops) op.flops = flops_of_product(op);
}

void compare_with_peak(Observed& observed, const Observed& peak) {
  struct Rates {
    double flops = 0, bytes = 0;  // a second
  };
  std::map<std::string, Rates> rates;
  for (const ObservedOp& op : peak.ops) {
    std::optional<double> each = op.least;
    if (!each && op.seconds && op.calls) each = *op.seconds / static_cast<double>(*op.calls);
    if (op.covers_others || !each || !(*each > 0)) continue;
    Rates& best = rates[op.backend];
    best.flops = std::max(best.flops, op.flops.value_or(0) / *each);
    best.bytes = std::max(best.bytes, op.bytes.value_or(0) / *each);
  }
  for (ObservedOp& op : observed.ops) {
    const auto found = rates.find(op.backend);
    if (found == rates.end()) continue;
    const auto& [flops, bytes] = found->second;
    const auto at = [&](const std::optional<double>& work, double rate) {
      return rate > 0 ? of_all(op, work).value_or(0) / rate : 0;
    };
    const double least = std::max(at(op.flops, flops), at(op.bytes, bytes));
    if (least > 0) op.peak_seconds = finite(least);
  }
}

std::optional<double> result_bytes(const ObservedOp& op) {
  const auto types = sides_of(op.type), shapes = sides_of(op.shape);
  return types && shapes ? bytes_of(types->result, shapes->result) : std::nullopt;
}

bool names_a_cpu(std::string_view backend) {
  const std::string name = text::lower(backend);
  return name.starts_with("cpu") || name == "blas" || name == "host";
}

std::string time_text(double seconds) {
  // What rounds to a thousand is one of the next unit.
  if (seconds >= 999.5) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 0.9995) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string figure_name(const ObservedLatency& latency) {
  if (latency.percentile) return fmt::format("p{:g}", *latency.percentile);
  return latency.figure == "median" ? "p50" : latency.figure;
}

std::vector<ObservedFigure> figures_of(const Observed& observed) {
  std::vector<ObservedFigure> list;
  const auto add = [&](std::string name, const unit::Metric& metric, double value) {
    list.push_back({std::move(name), metric, value, std::nullopt});
  };
  for (const auto& timing : observed.timings) {
    if (const auto value = timing.value()) add(timing.metric.name, timing.metric, *value);
  }
  for (const auto& one : observed.latencies) {
    std::string name = fmt::format("{} {}", one.metric.name, figure_name(one));
    // A median and a p50 are one figure.
    const auto same = [&](const ObservedFigure& other) { return other.name == name; };
    if (std::ranges::any_of(list, same)) continue;
    if (one.at_most) {
      list.push_back({std::move(name), one.metric, std::nullopt,
                      "at most " + unit::show(one.metric, one.seconds)});
    } else {
      add(std::move(name), one.metric, one.seconds);
    }
  }
  for (const auto& count : observed.counts) {
    if (const auto mean = count.mean()) add(count.metric.name, count.metric, mean->value());
  }
  for (const auto& one : observed.cases) {
    for (const auto& timing : one.timings) {
      const auto value = timing.value();
      if (!value) continue;
      list.push_back(
          {fmt::format("{} {}", one.name, timing.metric.name), timing.metric, *value, one.error});
    }
    if (one.error) list.push_back({one.name, {}, std::nullopt, one.error});
  }
  return list;
}

namespace {

// As mlx-native has it: dispatches are timed one by one, so their sum is a little more than their
// buffer's time; 5 % is good, more than 10 % is suspicious. A sum that is less is no contradiction:
// between dispatches a device idles, and marks of buffers span that.
constexpr double k_drift_good = 0.05, k_drift_bad = 0.10, k_most_of_it = 0.5;

std::optional<std::string> against_buffers(const Observed& observed) {
  double rows = 0, buffers = 0;
  // Of some of the buffers alone nothing could be said.
  if (std::ranges::any_of(observed.steps, &ObservedStep::labels_left_out)) return std::nullopt;
  for (const auto& op : observed.ops) {
    // In no command buffer: work of the CPU, and its time to write commands.
    const bool on_cpu = names_a_cpu(op.backend) || op.category == "encode";
    if (!op.covers_others && !on_cpu) rows += time_of_its_own(op).value_or(0);
  }
  for (const auto& buffer : observed.buffers) buffers += buffer.seconds.value_or(0);
  if (rows <= 0 || buffers <= 0) return std::nullopt;
  const double drift = rows / buffers - 1;
  if (drift <= k_drift_good && drift >= k_most_of_it - 1) return std::nullopt;
  const std::string sums = fmt::format(
      "dispatches add up to {}, command buffers to {}: ", time_text(rows), time_text(buffers));
  if (drift < 0) return sums + "most of their time is in no dispatch";
  return sums + fmt::format("{:.0f} % apart{}", 100 * drift,
                            drift > k_drift_bad ? ", too much to trust their times" : "");
}

std::optional<double> wall_seconds_per_token(const Observed& observed) {
  for (const auto& timing : observed.timings) {
    const auto value = timing.value();
    if (timing.metric.name == "decode_tokens_per_second" && value && *value > 0) return 1 / *value;
  }
  return std::nullopt;
}

std::optional<std::string> against_the_clock(const Observed& observed) {
  const auto wall = wall_seconds_per_token(observed);
  // Tokens of the prompt that were read one by one are among the ops, and not in the rate.
  const auto& generated = observed.generated_tokens;
  if (!wall || (generated && decoded_tokens(observed) > generated)) return std::nullopt;
  double rows = 0;
  for (const auto& op : op_totals_per_token(observed, GroupBy::op)) {
    rows += op.seconds.value_or(0);
  }
  const double share = rows / *wall;
  if (rows <= 0 || (share >= k_most_of_it && share <= 1 + k_drift_good)) return std::nullopt;
  return fmt::format("ops take {} a token, the token {}: {}", time_text(rows), time_text(*wall),
                     share < k_most_of_it ? "most of its time is in no op"
                                          : "they overlap, or profiling slows them");
}

}  // namespace

std::vector<std::string> cross_checks(const Observed& observed, const std::string& side) {
  std::vector<std::string> doubts;
  for (const auto& doubt : {against_buffers(observed), against_the_clock(observed)}) {
    if (doubt) doubts.push_back((side.empty() ? "" : side + ": ") + *doubt);
  }
  return doubts;
}

}  // namespace weir::observed
