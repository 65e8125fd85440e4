// Adds up the rows of an Observed, and checks sums against each other.
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
#include "gate/unit/metric.hpp"

namespace weir::observed {
namespace {

constexpr std::int64_t k_max_layers = 100'000;

// NAME with the op's type and shape: "MUL_MAT q8_0,f32->f32 256x64,256->64".
std::string append_shape(const ObservedOp& op, std::string name) {
  for (const std::string* part : {&op.type, &op.shape}) {
    if (!part->empty()) name += " " + *part;
  }
  return name;
}

std::string text_or(const std::string& text, const char* none) {
  return text.empty() ? none : text;
}

// Returns the name of the group that a row belongs to: by op, kernel, shape, backend, layer,
// phase, buffer or category. "(no name)" and the like if it has none.
std::string group_name(const ObservedOp& op, GroupBy by) {
  const std::string& kernel = op.kernel.empty() ? op.op : op.kernel;
  const std::string& name = op.op.empty() ? op.kernel : op.op;
  if (by == GroupBy::op) return text_or(name, "(no name)");
  if (by == GroupBy::kernel) return text_or(kernel, "(no name)");
  if (by == GroupBy::shape) return text_or(append_shape(op, kernel), "(no name)");
  if (by == GroupBy::op_shape) {
    return text_or(append_shape(op, name), "(no name)") + text::prefix_if_any(" on ", op.backend);
  }
  if (by == GroupBy::backend) return text_or(op.backend, "(no backend)");
  if (by == GroupBy::layer) return op.layer ? fmt::format("layer {}", *op.layer) : "(no layer)";
  if (by == GroupBy::phase) return std::string(to_string(op.phase));
  if (by == GroupBy::buffer) return text_or(op.buffer, "(no label)");
  return text_or(op.category, "(no category)");
}

// A number per call times the calls; nothing if one is not known.
std::optional<double> times_calls(const ObservedOp& op, const std::optional<double>& per_call) {
  if (!per_call || !op.calls) return std::nullopt;
  return *per_call * static_cast<double>(*op.calls);
}

// Adds a row to a total. A sum that lacks the value of some row is marked as partly known.
void add_row(OpTotal& total, const ObservedOp& op) {
  const bool is_first = total.rows == 0;
  ++total.rows;
  const auto add = [&](std::optional<double>& sum, bool& partly,
                       const std::optional<double>& more) {
    partly |= !is_first && sum.has_value() != more.has_value();
    if (more) sum = sum.value_or(0) + *more;
  };
  add(total.seconds, total.partly, exclusive_time(op));
  add(total.flops, total.flops_partly, times_calls(op, op.flops));
  add(total.bytes, total.bytes_partly, times_calls(op, op.bytes));
  add(total.seconds_at_peak, total.peak_partly, op.seconds_at_peak);
  if (op.calls) {
    if (!total.calls) total.calls = 0;
    add_capped(*total.calls, *op.calls);
  }
  if (op.min_seconds)
    total.min_seconds = std::min(total.min_seconds.value_or(*op.min_seconds), *op.min_seconds);
  if (op.max_seconds)
    total.max_seconds = std::max(total.max_seconds.value_or(*op.max_seconds), *op.max_seconds);
}

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Returns true if a row counts.
bool matches(const ObservedOp& op, const Rows& rows) {
  if (op.includes_other_rows || (rows.of_steps && !op.step)) return false;
  if (rows.phase && op.phase != *rows.phase) return false;
  return !rows.step || op.step == rows.step;
}

// The texts for the sources of a call ("q8_0,f32") and for its result ("f32"), around an arrow.
struct Operands {
  std::vector<std::string> sources;
  std::string result;
};

std::optional<Operands> parse_operands(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  return Operands{text::split(std::string_view(text).substr(0, arrow), ','),
                  text.substr(arrow + 2)};
}

// Returns the bytes of a tensor; nothing if its type or shape is not known.
std::optional<double> tensor_bytes(const std::string& type, const std::string& shape) {
  const model::TensorTypeInfo* info = model::find_tensor_type(std::string_view(type));
  const auto dims = profile::sizes_of(shape);
  if (info == nullptr || !dims) return std::nullopt;
  const auto bytes = model::tensor_bytes(*info, *dims);
  return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

// Returns the bytes that one call reads and writes; nothing if the type or shape of an operand is
// not known, or the op uses only some of its weights.
std::optional<double> call_bytes(const ObservedOp& op) {
  // Shapes do not say which of the experts are used.
  if (op.op == "MUL_MAT_ID") return std::nullopt;
  auto types = parse_operands(op.type);
  auto shapes = parse_operands(op.shape);
  if (!types || !shapes || types->sources.size() != shapes->sources.size()) return std::nullopt;
  if (op.op == "SET_ROWS") {
    // Only as many rows of the table are touched as are set. The table is the result.
    if (shapes->sources.size() < 2) return std::nullopt;
    types->sources.resize(2);
    shapes->sources.resize(2);
    shapes->result = shapes->sources.front();
  }
  auto sum = tensor_bytes(types->result, shapes->result);
  for (std::size_t i = 0; i < types->sources.size() && sum; ++i) {
    // Only as many rows of the table are read as the result has.
    const bool is_table = i == 0 && op.op == "GET_ROWS";
    const auto source =
        tensor_bytes(types->sources[i], is_table ? shapes->result : shapes->sources[i]);
    sum = source ? std::optional(*sum + *source) : std::nullopt;
  }
  return sum;
}

double product(const std::vector<std::uint64_t>& dims) {
  double out = 1;
  for (const std::uint64_t size : dims) out *= static_cast<double>(size);
  return out;
}

// Returns the flops of FLASH_ATTN_EXT, whose sources are queries, keys, values and perhaps a mask:
// each query times each key, and the result times each value. Holes of a mask count as well.
std::optional<double> attention_flops(const Operands& shapes) {
  if (shapes.sources.size() < 3) return std::nullopt;
  const auto queries = profile::sizes_of(shapes.sources[0]),
             keys = profile::sizes_of(shapes.sources[1]),
             values = profile::sizes_of(shapes.sources[2]);
  if (!queries || !keys || !values || keys->size() < 2) return std::nullopt;
  const auto each = static_cast<double>(queries->front() + values->front());
  return 2 * product(*queries) / static_cast<double>(queries->front()) *
         static_cast<double>((*keys)[1]) * each;
}

// Returns the flops of a matrix multiplication: each value of the result is a sum of products over
// a row of the first source.
std::optional<double> matmul_flops(const ObservedOp& op) {
  const auto shapes = parse_operands(op.shape);
  if (shapes && op.op == "FLASH_ATTN_EXT") return attention_flops(*shapes);
  if (op.op != "MUL_MAT" && op.op != "MUL_MAT_ID") return std::nullopt;
  if (!shapes || shapes->sources.empty()) return std::nullopt;
  const auto first = profile::sizes_of(shapes->sources.front());
  const auto result = profile::sizes_of(shapes->result);
  if (!first || !result) return std::nullopt;
  return 2 * static_cast<double>(first->front()) * product(*result);
}

// Returns the layer number at `at`; nothing if a character that belongs to a name follows it.
std::optional<std::int64_t> parse_layer_at(std::string_view name, std::size_t at) {
  std::size_t end = at;
  while (end < name.size() && text::is_digit(name[end])) ++end;
  if (end == at || end - at > 6) return std::nullopt;
  if (end < name.size() && std::string_view(" .:/]()_").find(name[end]) == std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = text::to_int(name.substr(at, end - at));
  return number && *number <= k_max_layers ? number : std::nullopt;
}

// Returns the tokens of all decode steps that have rows; nothing if there is none. A step without
// a number of tokens counts as one.
std::optional<std::int64_t> count_decoded_tokens(const Observed& observed) {
  std::vector<bool> has_rows(observed.steps.size(), false);
  for (const ObservedOp& op : observed.ops) {
    if (op.step && *op.step < has_rows.size()) has_rows[*op.step] = true;
  }
  std::int64_t tokens = 0;
  bool is_any_found = false;
  for (std::size_t i = 0; i < has_rows.size(); ++i) {
    const ObservedStep& step = observed.steps[i];
    if (!has_rows[i] || step.phase != Phase::decode) continue;
    is_any_found = true;
    add_capped(tokens, step.tokens.value_or(1));
  }
  return is_any_found ? std::optional(tokens) : std::nullopt;
}

// Adds up rows by group, most time first. Groups by layer come in the order of layers, work
// without a layer last.
std::vector<OpTotal> sum_by_group(std::span<const ObservedOp* const> ops, GroupBy by) {
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
  // The map sorts groups by name already, so equal ones stay in that order.
  std::ranges::stable_sort(totals, {}, [&](const OpTotal& total) {
    constexpr auto k_last = std::numeric_limits<std::int64_t>::max();
    if (by == GroupBy::layer) return std::tuple(total.layer.value_or(k_last), 0.0, std::int64_t{0});
    return std::tuple(std::int64_t{total.name == k_not_listed}, -total.seconds.value_or(-1),
                      -total.calls.value_or(0));
  });
  return totals;
}

}  // namespace

// Adds up the rows that match by group, and within each group by a second key if there is one. The
// second totals follow their group, with its name in front.
std::vector<OpTotal> op_totals(const Observed& observed, const Grouping& by, const Rows& rows) {
  std::vector<const ObservedOp*> ops;
  for (const ObservedOp& op : observed.ops) {
    if (matches(op, rows)) ops.push_back(&op);
  }
  std::vector<OpTotal> totals = sum_by_group(ops, by.by);
  if (!by.within) return totals;
  std::map<std::string, std::vector<const ObservedOp*>> groups;
  for (const ObservedOp* op : ops) groups[group_name(*op, by.by)].push_back(op);
  std::vector<OpTotal> all;
  for (OpTotal& outer : totals) {
    std::vector<OpTotal> inner = sum_by_group(groups[outer.name], *by.within);
    for (OpTotal& total : inner) {
      total.name = fmt::format("{}: {}", outer.name, total.name);
      total.nested = true;
    }
    all.push_back(std::move(outer));
    std::ranges::move(inner, std::back_inserter(all));
  }
  return all;
}

std::vector<OpTotal> cpu_totals(const Observed& observed, GroupBy by) {
  constexpr std::array k_none{GroupBy::backend, GroupBy::layer, GroupBy::phase, GroupBy::buffer};
  if (std::ranges::find(k_none, by) != k_none.end()) return {};
  std::vector<const ObservedOp*> calls;
  for (const ObservedOp& call : observed.cpu_calls) calls.push_back(&call);
  return sum_by_group(calls, by);
}

std::optional<std::int64_t> decoded_tokens(const Observed& observed) {
  const auto tokens = count_decoded_tokens(observed);
  return tokens ? tokens : observed.profiled_tokens;
}

std::optional<double> exclusive_time(const ObservedOp& op) {
  return op.seconds && op.seconds_without_nested ? op.seconds_without_nested : op.seconds;
}

// A sum of the group a second; nothing if not all of its rows are in both.
static std::optional<double> rate(const OpTotal& total, const std::optional<double>& sum,
                                  bool partly) {
  const double seconds = total.seconds.value_or(0);
  if (sum.value_or(0) <= 0 || seconds <= 0 || partly || total.partly) return std::nullopt;
  return finite(*sum / seconds);
}

std::optional<double> OpTotal::flops_per_second() const { return rate(*this, flops, flops_partly); }

std::optional<double> OpTotal::bytes_per_second() const { return rate(*this, bytes, bytes_partly); }

std::optional<double> OpTotal::share_of_peak() const {
  return rate(*this, seconds_at_peak, peak_partly);
}

// Returns the totals of decode rows by `by`, divided by the number of decoded tokens; empty if that
// number is not known. A total of which some calls lack the value has none per token.
std::vector<OpPerToken> op_totals_per_token(const Observed& observed, const Grouping& by) {
  const auto tokens = decoded_tokens(observed);
  if (!tokens || *tokens <= 0) return {};
  const auto count = static_cast<double>(*tokens);
  const auto per_token = [&](const std::optional<double>& sum) {
    return sum ? std::optional(*sum / count) : std::nullopt;
  };
  std::vector<OpPerToken> totals;
  // If tokens are counted by steps, rows outside of steps belong to other tokens.
  const bool is_counted_by_steps = count_decoded_tokens(observed).has_value();
  const Rows decode_rows{
      .phase = Phase::decode, .step = std::nullopt, .of_steps = is_counted_by_steps};
  for (const OpTotal& total : op_totals(observed, by, decode_rows)) {
    const auto calls =
        total.calls ? std::optional(static_cast<double>(*total.calls)) : std::nullopt;
    // A time of some of the calls is not the time of all.
    totals.push_back({total.name, per_token(calls),
                      total.partly ? std::nullopt : per_token(total.seconds),
                      total.flops_partly ? std::nullopt : per_token(total.flops),
                      total.bytes_partly ? std::nullopt : per_token(total.bytes)});
  }
  return totals;
}

// Adds a row of command buffers to a sum. A value that one of the two lacks becomes absent.
void add_up(ObservedBuffer& sum, const ObservedBuffer& more) {
  const auto add = [](std::optional<std::int64_t>& count,
                      const std::optional<std::int64_t>& addend) {
    if (count && addend) add_capped(*count, *addend);
    if (!addend) count.reset();
  };
  add_capped(sum.buffers, more.buffers);
  add(sum.dispatches, more.dispatches);
  add(sum.barriers, more.barriers);
  add(sum.syncs, more.syncs);
  const bool has_seconds = sum.seconds && more.seconds;
  sum.seconds = has_seconds ? finite(*sum.seconds + *more.seconds) : std::nullopt;
  // If one of several rows lacks these, the sum has no bound.
  const bool has_bounds =
      sum.min_seconds && more.min_seconds && sum.max_seconds && more.max_seconds;
  sum.min_seconds =
      has_bounds ? std::optional(std::min(*sum.min_seconds, *more.min_seconds)) : std::nullopt;
  sum.max_seconds =
      has_bounds ? std::optional(std::max(*sum.max_seconds, *more.max_seconds)) : std::nullopt;
}

// Adds up command buffers by label and phase, most time first. Buffers outside of steps have no
// known phase.
std::vector<ObservedBuffer> buffer_totals(const Observed& observed) {
  std::map<std::pair<std::string, Phase>, ObservedBuffer> sums;
  for (const ObservedBuffer& buffer : observed.buffers) {
    const bool has_step = buffer.step && *buffer.step < observed.steps.size();
    const Phase phase = has_step ? observed.steps[*buffer.step].phase : Phase::unknown;
    const auto [sum, is_new] = sums.try_emplace({buffer.label, phase}, buffer);
    if (!is_new) add_up(sum->second, buffer);
  }
  std::vector<ObservedBuffer> out;
  for (auto& [key, sum] : sums) out.push_back(std::move(sum));
  std::ranges::stable_sort(out, std::greater{},
                           [](const ObservedBuffer& row) { return row.seconds.value_or(-1); });
  return out;
}

// Returns the command buffers of each label per decoded token, with the device's seconds in them.
// Empty if no token is known. Without steps all buffers count as decoded.
BuffersOfTokens buffers_per_token(const Observed& observed) {
  BuffersOfTokens result;
  std::map<std::string, ObservedBuffer> sums;
  std::set<std::size_t> steps;
  const bool has_steps = std::ranges::any_of(
      observed.buffers, [](const ObservedBuffer& buffer) { return buffer.step.has_value(); });
  for (const ObservedBuffer& buffer : observed.buffers) {
    if (has_steps) {
      if (!buffer.step || *buffer.step >= observed.steps.size()) continue;
      if (observed.steps[*buffer.step].phase != Phase::decode) continue;
      steps.insert(*buffer.step);
    }
    const auto [sum, is_new] = sums.try_emplace(buffer.label, buffer);
    if (!is_new) add_up(sum->second, buffer);
  }
  for (const std::size_t index : steps) {
    add_capped(result.tokens, observed.steps[index].tokens.value_or(1));
    result.is_complete = result.is_complete && observed.steps[index].labels_left_out == 0;
  }
  if (!has_steps) result.tokens = observed.profiled_tokens.value_or(0);
  if (result.tokens <= 0) return {};
  for (const auto& [label, sum] : sums) {
    const auto buffers = Rational::make(sum.buffers, result.tokens);
    if (!buffers) continue;
    const auto tokens = static_cast<double>(result.tokens);
    const auto per_token = [&](const std::optional<std::int64_t>& count) {
      return count ? Rational::make(*count, result.tokens) : std::nullopt;
    };
    const auto seconds = sum.seconds ? std::optional(*sum.seconds / tokens) : std::nullopt;
    result.labels.push_back({label, *buffers, seconds, sum.min_seconds, sum.max_seconds,
                             per_token(sum.dispatches), per_token(sum.barriers),
                             per_token(sum.syncs)});
  }
  return result;
}

// Returns the layer in a node's name: 3 for "blk.3.attn_q.weight" and for "Qcur-3". Nothing if
// there is none, or the name is longer than 512 bytes.
std::optional<std::int64_t> layer_of_node(std::string_view node) {
  if (node.size() > 512) return std::nullopt;
  constexpr std::array k_prefixes{"blk.",   "layers.", "layer.", "layer ",    "layer_",
                                  "block.", "blocks.", "h.",     "cache_k_l", "cache_v_l"};
  for (const std::string_view prefix : k_prefixes) {
    const std::size_t at = node.find(prefix);
    // A prefix such as "h." is a part of the name, not the end of one ("with.3").
    if (at == std::string_view::npos || (at > 0 && node[at - 1] != '.' && node[at - 1] != '#')) {
      continue;
    }
    if (const auto layer = parse_layer_at(node, at + prefix.size())) return layer;
  }
  const std::size_t dash = node.find_last_of('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  return parse_layer_at(node, dash + 1);
}

void fill_from_shape(ObservedOp& op) {
  if (!op.bytes) op.bytes = call_bytes(op);
  if (!op.flops) op.flops = matmul_flops(op);
}

// Sets the time that each op would take at the best rates of its backend in `peak`: the longer of
// flops and bytes (the roofline). Unchanged if that backend has no rates.
void compare_with_peak(Observed& observed, const Observed& peak) {
  struct Rates {
    double flops = 0, bytes = 0;  // a second
  };
  std::map<std::string, Rates> rates;
  for (const ObservedOp& op : peak.ops) {
    std::optional<double> call_seconds = op.min_seconds;
    if (!call_seconds && op.seconds && op.calls)
      call_seconds = *op.seconds / static_cast<double>(*op.calls);
    if (op.includes_other_rows || !call_seconds || !(*call_seconds > 0)) continue;
    Rates& best = rates[op.backend];
    best.flops = std::max(best.flops, op.flops.value_or(0) / *call_seconds);
    best.bytes = std::max(best.bytes, op.bytes.value_or(0) / *call_seconds);
  }
  for (ObservedOp& op : observed.ops) {
    const auto rate_of_backend = rates.find(op.backend);
    if (rate_of_backend == rates.end()) continue;
    const auto& [flops, bytes] = rate_of_backend->second;
    const auto seconds_at = [&](const std::optional<double>& work, double rate) {
      return rate > 0 ? times_calls(op, work).value_or(0) / rate : 0;
    };
    const double seconds_at_peak =
        std::max(seconds_at(op.flops, flops), seconds_at(op.bytes, bytes));
    if (seconds_at_peak > 0) op.seconds_at_peak = finite(seconds_at_peak);
  }
}

std::optional<double> result_bytes(const ObservedOp& op) {
  const auto types = parse_operands(op.type), shapes = parse_operands(op.shape);
  return types && shapes ? tensor_bytes(types->result, shapes->result) : std::nullopt;
}

bool is_cpu_name(std::string_view backend) {
  const std::string name = text::lower(backend);
  return name.starts_with("cpu") || name == "blas" || name == "host";
}

std::string figure_name(const ObservedLatency& latency) {
  if (latency.percentile) return fmt::format("p{:g}", *latency.percentile);
  return latency.figure == "median" ? "p50" : latency.figure;
}

// Returns the name of a benchmark case with its values of these settings: "tg128, qwen2 7B,
// flash_attn 1". Settings without a value are left out.
std::string case_name(const ObservedCase& test, const std::vector<std::string>& settings) {
  std::string name = test.name;
  for (const std::string& setting : settings) {
    const std::string* value = look_up(test.facts, setting);
    if (value == nullptr || value->empty()) continue;
    // One form of output has "0", another "false".
    std::string shown = *value;
    if (shown == "false") shown = "0";
    if (shown == "true") shown = "1";
    name += setting.starts_with("model_") ? fmt::format(", {}", shown)
                                          : fmt::format(", {} {}", setting, shown);
  }
  return name;
}

std::vector<std::string> common_case_settings(const Observed& a, const Observed& b) {
  std::vector<std::string> settings = a.case_settings;
  for (const std::string& setting : b.case_settings) {
    if (!holds(settings, setting)) settings.push_back(setting);
  }
  return settings;
}

std::vector<ObservedFigure> figures_of(const Observed& observed) {
  return figures_of(observed, observed.case_settings);
}

// Adds latencies as figures, with `prefix` before their names: that of a benchmark case, or "".
// Equal names are added once. An upper bound becomes text, without a value.
static void add_latencies(const std::vector<ObservedLatency>& latencies, const std::string& prefix,
                          const std::optional<std::string>& error,
                          std::vector<ObservedFigure>& list) {
  std::set<std::string> names;
  for (const auto& latency : latencies) {
    std::string name = fmt::format("{}{} {}", prefix, latency.metric.name, figure_name(latency));
    if (!names.insert(name).second) continue;  // a median and a p50 are one figure
    if (latency.at_most) {
      list.push_back({std::move(name), latency.metric, std::nullopt,
                      "at most " + unit::show(latency.metric, latency.seconds)});
    } else {
      list.push_back({std::move(name), latency.metric, latency.seconds, error});
    }
  }
}

// Lists the single numbers of a profile: timings, latencies, counts, then case by case. A
// benchmark case that failed has an error instead of a value. `settings` become part of a case's
// name.
std::vector<ObservedFigure> figures_of(const Observed& observed,
                                       const std::vector<std::string>& settings) {
  std::vector<ObservedFigure> list;
  const auto add = [&](std::string name, const unit::Metric& metric, double value) {
    list.push_back({std::move(name), metric, value, std::nullopt});
  };
  for (const auto& timing : observed.timings) {
    if (const auto value = timing.value()) add(timing.metric.name, timing.metric, *value);
  }
  add_latencies(observed.latencies, "", std::nullopt, list);
  for (const auto& count : observed.counts) {
    if (const auto mean = count.mean()) add(count.metric.name, count.metric, mean->value());
  }
  for (const auto& test_case : observed.cases) {
    const std::string name = case_name(test_case, settings);
    for (const auto& timing : test_case.timings) {
      const auto value = timing.value();
      if (!value) continue;
      list.push_back(
          {fmt::format("{} {}", name, timing.metric.name), timing.metric, *value, test_case.error});
    }
    add_latencies(test_case.latencies, name + " ", test_case.error, list);
    if (test_case.error) list.push_back({name, {}, std::nullopt, test_case.error});
  }
  return list;
}

namespace {

// Limits as mlx-native has them. Dispatches are timed one by one, so their sum is a little more
// than their buffer's time: 5 % is good, more than 10 % is suspicious. A smaller sum is no
// contradiction: between dispatches a device idles, and marks of buffers span that.
constexpr double k_drift_good = 0.05, k_drift_bad = 0.10, k_main_share = 0.5;

// Returns a warning if the times of dispatches (kernel launches) do not add up to those of their
// command buffers; nothing if they agree or were not both taken.
std::optional<std::string> check_buffer_times(const Observed& observed) {
  double dispatch_seconds = 0, buffer_seconds = 0;
  // Sums over only some of the buffers cannot be compared.
  if (std::ranges::any_of(observed.steps, &ObservedStep::labels_left_out)) return std::nullopt;
  for (const auto& op : observed.ops) {
    // Work of the CPU, and its time to write commands, is in no command buffer.
    const bool on_cpu = is_cpu_name(op.backend) || op.category == "encode";
    if (!op.includes_other_rows && !on_cpu) dispatch_seconds += exclusive_time(op).value_or(0);
  }
  for (const auto& buffer : observed.buffers) buffer_seconds += buffer.seconds.value_or(0);
  if (dispatch_seconds <= 0 || buffer_seconds <= 0) return std::nullopt;
  const double excess = dispatch_seconds / buffer_seconds - 1;
  if (excess <= k_drift_good && excess >= k_main_share - 1) return std::nullopt;
  const std::string sums = fmt::format(
      "dispatches add up to {}, command buffers to {}: ", unit::show_seconds(dispatch_seconds),
      unit::show_seconds(buffer_seconds));
  if (excess < 0) return sums + "most of their time is in no dispatch";
  return sums + fmt::format("{:.0f} % apart{}", 100 * excess,
                            excess > k_drift_bad ? ", too much to trust their times" : "");
}

// Returns the seconds that a token takes, from the engine's rate; nothing if it reports none.
std::optional<double> wall_seconds_per_token(const Observed& observed) {
  for (const auto& timing : observed.timings) {
    const auto value = timing.value();
    if (timing.metric.name == "decode_tokens_per_second" && value && *value > 0) return 1 / *value;
  }
  return std::nullopt;
}

// Returns a warning if the times of ops do not add up to the time of a token; nothing if they
// agree or were not both taken.
std::optional<std::string> check_token_time(const Observed& observed) {
  const auto token_seconds = wall_seconds_per_token(observed);
  // Prompt tokens that were read one by one are among the ops, and not in the rate.
  const auto& generated = observed.generated_tokens;
  if (!token_seconds || (generated && decoded_tokens(observed) > generated)) return std::nullopt;
  double op_seconds = 0;
  for (const auto& op : op_totals_per_token(observed, GroupBy::op)) {
    op_seconds += op.seconds.value_or(0);
  }
  const double share = op_seconds / *token_seconds;
  if (op_seconds <= 0 || (share >= k_main_share && share <= 1 + k_drift_good)) return std::nullopt;
  return fmt::format("ops take {} a token, the token {}: {}", unit::show_seconds(op_seconds),
                     unit::show_seconds(*token_seconds),
                     share < k_main_share ? "most of its time is in no op"
                                          : "they overlap, or profiling slows them");
}

}  // namespace

std::vector<std::string> cross_checks(const Observed& observed, const std::string& side) {
  std::vector<std::string> warnings;
  for (const auto& warning : {check_buffer_times(observed), check_token_time(observed)}) {
    if (warning) warnings.push_back((side.empty() ? "" : side + ": ") + *warning);
  }
  return warnings;
}

}  // namespace weir::observed
