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

// What tells one kind of graph from others: its figures and the ops that it is made of.
struct GraphKey {
  std::int64_t rows = 0, ops = 0, cpu_ops = 0, splits = 0;
  std::map<OpKey, std::int64_t> made_of;  // op -> how often in one of its computations
  friend auto operator<=>(const GraphKey&, const GraphKey&) = default;
};

std::optional<std::size_t> place_of(const OpCount& op, const std::vector<GraphKey>& keys) {
  const auto place = static_cast<std::size_t>(op.graph);
  if (op.graph < 0 || place >= keys.size()) return std::nullopt;
  return place;
}

std::vector<GraphKey> keys_of(const ProbeCounts& probe) {
  std::vector<GraphKey> keys;
  for (const GraphCount& graph : probe.graphs) {
    keys.push_back({graph.rows, graph.ops, graph.cpu_ops, graph.splits, {}});
  }
  for (const OpCount& op : probe.ops) {
    const auto place = place_of(op, keys);
    const std::int64_t computed = place ? probe.graphs[*place].computed : 0;
    if (computed > 0) add_capped(keys[*place].made_of[key_of(op)], op.count / computed);
  }
  return keys;
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
    std::map<GraphKey, const GraphCount*> known;
    std::map<std::pair<GraphKey, OpKey>, std::int64_t> known_ops;
    const std::vector<GraphKey> before_keys = keys_of(before_), after_keys = keys_of(after_);
    for (std::size_t i = 0; i < before_keys.size(); ++i) known[before_keys[i]] = &before_.graphs[i];
    for (const OpCount& op : before_.ops) {
      if (const auto place = place_of(op, before_keys)) {
        add_capped(known_ops[{before_keys[*place], key_of(op)}], op.count);
      }
    }
    made.graphs.clear();
    made.ops.clear();
    std::vector<std::int64_t> places(after_keys.size(), -1);
    for (std::size_t i = 0; i < after_keys.size(); ++i) {
      GraphCount graph = after_.graphs[i];
      if (const GraphCount* earlier = look_up(known, after_keys[i], nullptr)) {
        graph.computed = less(graph.computed, earlier->computed, "graphs");
        graph.sums = minus(graph.sums, earlier->sums, true);
      }
      if (graph.computed == 0) continue;
      places[i] = static_cast<std::int64_t>(made.graphs.size());
      made.graphs.push_back(std::move(graph));
    }
    for (const OpCount& op : after_.ops) {
      const auto place = place_of(op, after_keys);
      if (!place || places[*place] < 0) continue;
      OpCount left = op;
      left.count =
          less(op.count, look_up(known_ops, std::pair(after_keys[*place], key_of(op)), 0), op.op);
      left.graph = places[*place];
      if (left.count != 0) made.ops.push_back(std::move(left));
    }
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
