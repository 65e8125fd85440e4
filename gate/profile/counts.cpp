#include "gate/profile/counts.hpp"

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/unit/metric.hpp"

namespace weir::profile {
namespace {

using Counts = std::map<std::string, std::int64_t>;

// No count of what happened since: what is there, or was at most. Of those that are no metrics,
// too: "kv_cache_in_vulkan0_bytes".
bool is_there_at_once(std::string_view base) {
  return unit::is_level(base) || base.ends_with("_peak_bytes") ||
         (base.ends_with("_bytes") && base.find("_in_") != std::string_view::npos);
}

// What tells one kind of graph from others: its figures and the ops that it is made of. Not their
// shapes, nor how the list names them: both change as a context grows.
struct GraphKey {
  std::int64_t rows = 0, ops = 0, cpu_ops = 0, splits = 0;
  std::map<std::pair<std::string, std::string>, std::int64_t> made_of;  // op, backend -> each time
  friend auto operator<=>(const GraphKey&, const GraphKey&) = default;
};

// All graphs of one kind together, with their ops.
struct Graphs {
  GraphCount sum;
  std::map<OpKey, std::int64_t> ops;
};

std::map<GraphKey, Graphs> kinds_of(const ProbeCounts& probe) {
  std::vector<Graphs> graphs(probe.graphs.size());
  std::vector<GraphKey> keys(probe.graphs.size());
  for (const OpCount& op : probe.ops) {
    const auto place = static_cast<std::size_t>(op.graph);
    if (op.graph < 0 || place >= graphs.size()) continue;
    add_capped(graphs[place].ops[key_of(op)], op.count);
    add_capped(keys[place].made_of[{op.op, op.backend}], op.count);
  }
  std::map<GraphKey, Graphs> kinds;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const GraphCount& graph = probe.graphs[i];
    GraphKey& key = keys[i];
    key.rows = graph.rows;
    key.ops = graph.ops;
    key.cpu_ops = graph.cpu_ops;
    key.splits = graph.splits;
    for (auto& [op, count] : key.made_of) count /= std::max<std::int64_t>(1, graph.computed);
    Graphs& kind = kinds[key];
    const GraphCount before = std::exchange(kind.sum, graph);
    if (before.computed > 0 && before.fusible != graph.fusible) kind.sum.fusible.reset();
    add_capped(kind.sum.computed, before.computed);
    for (const auto& [name, count] : before.sums) add_capped(kind.sum.sums[name], count);
    for (const auto& [op, count] : graphs[i].ops) add_capped(kind.ops[op], count);
  }
  return kinds;
}

// The difference of two probes' counts; remembers whether one went back.
class Difference {
 public:
  Difference(const ProbeCounts& before, const ProbeCounts& after)
      : before_(before), after_(after) {}

  Result<ProbeCounts> make() {
    ProbeCounts made = after_;
    made.functions.clear();
    made.counts = minus(after_.counts, before_.counts, true);
    made.kernels = minus(after_.kernels, before_.kernels, false);
    made.codes = minus(after_.codes, before_.codes, false);
    made.code_groups = minus(after_.code_groups, before_.code_groups, false);
    graphs(made);
    transfers(made);
    if (!went_back_.empty()) {
      return fail(Code::data,
                  "the {} probe's count of {} went back while the server ran: it is not the same "
                  "process that was counted",
                  after_.probe, text::printable(went_back_));
    }
    return made;
  }

 private:
  std::int64_t less(std::int64_t after, std::int64_t before, const std::string& what) {
    if (after < before && went_back_.empty()) went_back_ = what;
    return after - before;
  }

  Counts minus(const Counts& after, const Counts& before, bool keep_zero) {
    Counts made;
    for (const auto& [name, count] : after) {
      const std::int64_t left =
          is_there_at_once(name) ? count : less(count, look_up(before, name, 0), name);
      if (keep_zero || left != 0) made[name] = left;
    }
    return made;
  }

  // Lists them anew, without those that were not computed in between.
  void graphs(ProbeCounts& made) {
    std::map<GraphKey, Graphs> earlier = kinds_of(before_);
    made.graphs.clear();
    made.ops.clear();
    for (const auto& [key, now] : kinds_of(after_)) {
      Graphs& was = earlier[key];
      GraphCount graph = now.sum;
      graph.computed = less(graph.computed, was.sum.computed, "graphs");
      if (graph.computed == 0) continue;
      graph.sums = minus(graph.sums, was.sum.sums, true);
      const auto place = static_cast<std::int64_t>(made.graphs.size());
      made.graphs.push_back(std::move(graph));
      for (const auto& [op, count] : now.ops) {
        const std::int64_t left = less(count, counted_before(was.ops, op), op.op);
        if (left == 0) continue;
        made.ops.push_back({op.op, op.type, op.shape, op.backend, op.on_cpu, place, left});
      }
    }
  }

  // A list that has grown long names ops of all shapes as one.
  static std::int64_t counted_before(const std::map<OpKey, std::int64_t>& ops, const OpKey& now) {
    if (now.shape != k_any_shape) return look_up(ops, now, 0);
    std::int64_t sum = 0;
    for (const auto& [op, count] : ops) {
      OpKey any = op;
      any.shape = k_any_shape;
      if (any == now) add_capped(sum, count);
    }
    return sum;
  }

  void transfers(ProbeCounts& made) {
    made.transfers.clear();
    for (const TransferCount& transfer : after_.transfers) {
      TransferCount left = transfer;
      const auto* earlier = first_of(before_.transfers, [&](const TransferCount& known) {
        return known.kind == transfer.kind && known.from == transfer.from &&
               known.to == transfer.to;
      });
      if (earlier != nullptr) {
        left.calls = less(left.calls, earlier->calls, transfer.kind);
        left.bytes = less(left.bytes, earlier->bytes, transfer.kind);
      }
      if (left.calls != 0) made.transfers.push_back(std::move(left));
    }
  }

  const ProbeCounts& before_;
  const ProbeCounts& after_;
  std::string went_back_;
};

}  // namespace

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

Result<std::vector<ProbeCounts>> counts_between(std::span<const ProbeCounts> before,
                                                std::span<const ProbeCounts> after) {
  std::vector<ProbeCounts> made;
  for (const ProbeCounts& probe : after) {
    const auto* earlier =
        first_of(before, [&](const ProbeCounts& one) { return one.probe == probe.probe; });
    const ProbeCounts nothing;
    WEIR_TRY(made.emplace_back(), Difference(earlier ? *earlier : nothing, probe).make());
  }
  return made;
}

}  // namespace weir::profile
