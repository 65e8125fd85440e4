// Subtracts two readings of a process's counts.
#include "gate/profile/counts.hpp"

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/unit/device_api.hpp"
#include "gate/unit/metric.hpp"

namespace weir::profile {
namespace {

using Counts = std::map<std::string, std::int64_t>;

// Returns true for counts that are a level or a peak, and not a number of events since the start.
// Names that are no metrics count as well: "kv_cache_in_vulkan0_bytes".
bool is_level_or_peak(std::string_view base) {
  return unit::is_level(base) || base.ends_with("_peak_bytes") ||
         (base.ends_with("_bytes") && base.find("_in_") != std::string_view::npos);
}

// Identifies a kind of graph: its numbers and its ops. Shapes and list positions are left out,
// because both change as a context grows.
struct GraphKey {
  std::int64_t rows = 0, ops = 0, cpu_ops = 0, splits = 0;
  std::map<std::pair<std::string, std::string>, std::int64_t> made_of;  // op, backend -> each time
  friend auto operator<=>(const GraphKey&, const GraphKey&) = default;
};

// Counts of all graphs of one kind, with their ops.
struct GraphKind {
  GraphCount sum;
  std::map<OpKey, std::int64_t> ops;
};

// Adds the counts of a graph to the sum of its kind. Graphs of a kind have equal numbers of ops;
// `fusible` becomes absent once two of them disagree.
void add_graph(GraphCount& sum, const GraphCount& graph) {
  sum.rows = graph.rows;
  sum.ops = graph.ops;
  sum.cpu_ops = graph.cpu_ops;
  sum.splits = graph.splits;

  const bool is_first = sum.computed <= 0;
  if (is_first) {
    sum.fusible = graph.fusible;
  } else if (sum.fusible != graph.fusible) {
    sum.fusible.reset();
  }
  add_capped(sum.computed, graph.computed);
  for (const auto& [name, count] : graph.sums) add_capped(sum.sums[name], count);
}

// Groups a probe's graphs by kind (equal ops, backends and rows), and adds up how often each kind
// was computed.
std::map<GraphKey, GraphKind> group_graphs(const ProbeCounts& probe) {
  std::vector<std::map<OpKey, std::int64_t>> ops_of_graph(probe.graphs.size());
  std::vector<GraphKey> keys(probe.graphs.size());
  for (const OpCount& op : probe.ops) {
    const auto index = static_cast<std::size_t>(op.graph);
    if (op.graph < 0 || index >= ops_of_graph.size()) continue;
    add_capped(ops_of_graph[index][op_key(op)], op.count);
    add_capped(keys[index].made_of[{op.op, op.backend}], op.count);
  }
  std::map<GraphKey, GraphKind> kinds;
  for (std::size_t i = 0; i < ops_of_graph.size(); ++i) {
    const GraphCount& graph = probe.graphs[i];
    GraphKey& key = keys[i];
    key.rows = graph.rows;
    key.ops = graph.ops;
    key.cpu_ops = graph.cpu_ops;
    key.splits = graph.splits;
    // Graphs that were computed more or less often are of one kind, too.
    for (auto& [op, count] : key.made_of) count /= std::max<std::int64_t>(1, graph.computed);
    GraphKind& kind = kinds[key];
    add_graph(kind.sum, graph);
    for (const auto& [op, count] : ops_of_graph[i]) add_capped(kind.ops[op], count);
  }
  return kinds;
}

// Computes the difference of two readings, and remembers the first count that went back.
class Difference {
 public:
  Difference(const ProbeCounts& before, const ProbeCounts& after)
      : before_(before), after_(after) {}

  // Returns the difference; fails if a count went back.
  Result<ProbeCounts> make() {
    ProbeCounts result = after_;
    result.functions.clear();
    // Processes that still run are at different places.
    result.counts.erase("rank_differences");
    result.counts = subtract_all(result.counts, before_.counts, /*keep_zero=*/true);
    result.kernels = subtract_all(after_.kernels, before_.kernels, /*keep_zero=*/false);
    result.codes = subtract_all(after_.codes, before_.codes, /*keep_zero=*/false);
    result.code_groups = subtract_all(after_.code_groups, before_.code_groups, /*keep_zero=*/false);
    subtract_graphs(result);
    subtract_transfers(result);
    if (!went_back_.empty()) {
      return fail(Code::data,
                  "the {} probe's count of {} went back while the server ran: it is not the same "
                  "process that was counted",
                  after_.probe, text::printable(went_back_));
    }
    return result;
  }

 private:
  std::int64_t subtract(std::int64_t after, std::int64_t before, const std::string& what) {
    if (after < before && went_back_.empty()) went_back_ = what;
    return after - before;
  }

  Counts subtract_all(const Counts& after, const Counts& before, bool keep_zero) {
    Counts result;
    for (const auto& [name, count] : after) {
      const std::int64_t difference =
          is_level_or_peak(name) ? count : subtract(count, look_up(before, name, 0), name);
      if (keep_zero || difference != 0) result[name] = difference;
    }
    return result;
  }

  // Lists the graphs anew, without those that were not computed between the readings.
  void subtract_graphs(ProbeCounts& result) {
    std::map<GraphKey, GraphKind> earlier = group_graphs(before_);
    result.graphs.clear();
    result.ops.clear();
    for (const auto& [key, kind_after] : group_graphs(after_)) {
      GraphKind& kind_before = earlier[key];
      GraphCount graph = kind_after.sum;
      graph.computed = subtract(graph.computed, kind_before.sum.computed, "graphs");
      if (graph.computed == 0) continue;
      graph.sums = subtract_all(graph.sums, kind_before.sum.sums, /*keep_zero=*/true);
      const auto index = static_cast<std::int64_t>(result.graphs.size());
      result.graphs.push_back(std::move(graph));
      for (const auto& [op, count] : kind_after.ops) {
        const std::int64_t difference = subtract(count, count_before(kind_before.ops, op), op.op);
        if (difference == 0) continue;
        result.ops.push_back(
            {op.op, op.type, op.shape, op.backend, op.on_cpu, index, difference, op.api});
      }
    }
  }

  // Returns the earlier count of an op. A long list names ops of all shapes as one, so then all
  // shapes add up.
  static std::int64_t count_before(const std::map<OpKey, std::int64_t>& ops, const OpKey& key) {
    if (key.shape != k_any_shape) return look_up(ops, key, 0);
    std::int64_t sum = 0;
    for (const auto& [op, count] : ops) {
      OpKey any = op;
      any.shape = k_any_shape;
      if (any == key) add_capped(sum, count);
    }
    return sum;
  }

  // Subtracts transfers of the same kind, source and target; leaves out those that did not occur.
  void subtract_transfers(ProbeCounts& result) {
    result.transfers.clear();
    for (const TransferCount& transfer : after_.transfers) {
      TransferCount difference = transfer;
      const auto* earlier = find_first(before_.transfers, [&](const TransferCount& candidate) {
        return candidate.kind == transfer.kind && candidate.from == transfer.from &&
               candidate.to == transfer.to;
      });
      if (earlier != nullptr) {
        difference.calls = subtract(difference.calls, earlier->calls, transfer.kind);
        difference.bytes = subtract(difference.bytes, earlier->bytes, transfer.kind);
      }
      if (difference.calls != 0) result.transfers.push_back(std::move(difference));
    }
  }

  const ProbeCounts& before_;
  const ProbeCounts& after_;
  std::string went_back_;
};

}  // namespace

std::string_view function_of(std::string_view name) {
  for (const std::string_view prefix : {k_host_call, k_thread_call, k_host_wait, k_host_lines}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

bool counts_from_outside(std::string_view source) {
  constexpr std::string_view k_probes[] = {"ggml", "host", "perf", k_python, "valgrind"};
  return std::ranges::find(k_probes, source) != std::end(k_probes) ||
         std::ranges::any_of(unit::device_apis(), [&](const unit::DeviceApi& api) {
           return source == api.name || (!api.check.empty() && source == api.check);
         });
}

std::optional<std::vector<std::uint64_t>> sizes_of(std::string_view shape) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& part : text::split(shape, 'x')) {
    const auto size = text::to_int(part);
    if (!size || *size <= 0 || *size > (std::int64_t{1} << 40) || sizes.size() == 4) {
      return std::nullopt;
    }
    sizes.push_back(static_cast<std::uint64_t>(*size));
  }
  return sizes;
}

std::string probe_of_role(std::string_view probe, std::string_view role) {
  return fmt::format("{}@{}", probe, role);
}
std::string_view role_of_probe(std::string_view probe) {
  return probe.substr(std::min(probe.find('@'), probe.size() - 1) + 1);
}

std::string code_key(std::string_view kernel, std::uint64_t hash) {
  return fmt::format("{}@{}", kernel, code_hash(hash));
}
std::string code_hash(std::uint64_t hash) { return fmt::format("{:016x}", hash); }
std::string_view kernel_of_code(std::string_view key) {
  return key.substr(0, std::min(key.rfind('@'), key.size()));
}
std::string hash_of_code(std::string_view key) {
  return std::string(key.substr(std::min(key.rfind('@'), key.size() - 1) + 1));
}

// Returns the counts `after` - `before`, probe by probe. A probe that `before` lacks had counted
// nothing. An error if a count fell.
Result<std::vector<ProbeCounts>> counts_between(std::span<const ProbeCounts> before,
                                                std::span<const ProbeCounts> after) {
  std::vector<ProbeCounts> result;
  for (const ProbeCounts& probe : after) {
    const auto* earlier = find_first(
        before, [&](const ProbeCounts& candidate) { return candidate.probe == probe.probe; });
    const ProbeCounts nothing;
    const ProbeCounts& counts_before = earlier != nullptr ? *earlier : nothing;
    WEIR_TRY(ProbeCounts difference, Difference(counts_before, probe).make());
    result.push_back(std::move(difference));
  }
  return result;
}

}  // namespace weir::profile
