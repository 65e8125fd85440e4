#include "gate/probes/read/replay_events.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "gate/base/text.hpp"
#include "gate/probes/read/bytes.hpp"

namespace weir::probes {
namespace {

constexpr std::int64_t k_replay_bytes = std::int64_t{1} << 42;
constexpr std::size_t k_replay_steps = 128;
constexpr std::size_t k_replay_seconds = 4096;
constexpr std::size_t k_replay_nodes = 1U << 14;
constexpr std::uint32_t k_replay_number = 255;  // of types and ops
constexpr std::uint32_t k_replay_threads = 1024;

bool replay_whole(std::uint64_t value, std::int64_t* out) {
  *out = static_cast<std::int64_t>(std::min<std::uint64_t>(value, k_replay_bytes));
  return value <= static_cast<std::uint64_t>(k_replay_bytes);
}

class ReplayBuilder {
 public:
  explicit ReplayBuilder(const ProbeRecord& record) : record_(record) {
    replay_.program = record.counts.process;
  }

  profile::Replay build() {
    for (const EventThread& thread : record_.events.threads) {
      for (const ProbeEvent& event : thread.events) take(event);
    }
    for (auto& [list, step] : lists_) {
      const auto [open, all] = masks_[list];
      if (all > 0) step.mask_open = std::min(open / all, 1.0);
      if (step.seconds.size() > 1) step.seconds.erase(step.seconds.begin());
      replay_.steps.push_back(std::move(step));
    }
    if (lost_ != 0) {
      warn(fmt::format("{} records of graphs' nodes make no sense and were left out", lost_));
    }
    if (unlisted_ != 0) {
      warn(fmt::format("{} graphs came in more shapes than there is room for: not recorded",
                       unlisted_));
    }
    if ((record_.events.flags & WEIR_EVENTS_DROPPED) != 0) {
      warn("events found no room in the event file: the recording ends early");
    }
    return std::move(replay_);
  }

 private:
  void warn(std::string what) { replay_.warnings.push_back(std::move(what)); }

  void take(const ProbeEvent& event) {
    if (event.kind == WEIR_EVENT_ENGINE) return take_engine(event);
    if (event.kind == WEIR_EVENT_STEP) return take_step(event);
    if (event.kind == WEIR_EVENT_STEP_NODE && !take_node(event)) ++lost_;
  }

  void take_engine(const ProbeEvent& event) {
    std::string* const places[] = {&replay_.version, &replay_.commit, &replay_.library};
    if (event.index < std::size(places)) *places[event.index] = text_of(event.body);
  }

  void take_step(const ProbeEvent& event) {
    if (event.index == UINT32_MAX || event.index >= k_replay_steps) {
      ++unlisted_;
      return;
    }
    const auto body = event.as<weir_event_step>();
    profile::ReplayStep& step = lists_[event.index];
    if (body.graph < record_.counts.graphs.size()) {
      (void)replay_whole(record_.counts.graphs[body.graph].rows, &step.rows);
    }
    auto& [open, all] = masks_[event.index];
    open += static_cast<double>(body.mask_open);
    all += static_cast<double>(body.mask_all);
    const std::uint32_t views = body.all_nodes - std::min(body.all_nodes, body.nodes);
    step.views = std::min<std::uint32_t>(views, 1U << 20);
    if (body.end >= body.begin && step.seconds.size() < k_replay_seconds) {
      step.seconds.push_back(static_cast<double>(body.end - body.begin) * 1e-9);
    }
    if (body.threads > 0 && body.threads <= k_replay_threads) replay_.threads = body.threads;
  }

  bool take_tensor(const weir_event_step_tensor& body, profile::ReplayNode* node,
                   std::map<std::uint64_t, std::int64_t>* roots) {
    profile::ReplayTensor tensor;
    tensor.slot = body.slot;
    tensor.type = text_of(body.type_name);
    tensor.type_number = body.type;
    bool sane = body.slot <= profile::k_replay_sources && body.type >= 0 &&
                body.type <= static_cast<std::int32_t>(k_replay_number);
    for (std::size_t i = 0; i < 4; ++i) {
      sane = sane && body.ne[i] >= 0 &&
             replay_whole(static_cast<std::uint64_t>(body.ne[i]), &tensor.ne[i]);
      sane = sane && replay_whole(body.nb[i], &tensor.nb[i]);
    }
    profile::ReplayRoot root;
    sane = sane && replay_whole(body.offset, &tensor.offset) &&
           replay_whole(body.root_bytes, &root.bytes);
    if (!sane) return false;
    const auto [place, fresh] =
        roots->try_emplace(body.root, static_cast<std::int64_t>(node->roots.size()));
    tensor.root = place->second;
    if (fresh) {
      root.constant = (body.root_flags & WEIR_ROOT_CONSTANT) != 0;
      root.memory = text_of(body.memory);
      node->roots.push_back(std::move(root));
    }
    node->tensors.push_back(std::move(tensor));
    return true;
  }

  bool take_node(const ProbeEvent& event) {
    const auto step = lists_.find(event.index);
    const auto body = event.as<weir_event_step_node>();
    if (step == lists_.end() || body.op > k_replay_number ||
        body.tensors > profile::k_replay_sources + 1 ||
        body.device >= record_.counts.devices.size()) {
      return false;
    }
    profile::ReplayNode node;
    node.op = text_of(body.op_name);
    node.description = text_of(body.op_desc);
    node.op_number = body.op;
    std::copy(std::begin(body.params), std::end(body.params), node.params.begin());
    node.flags = body.flags;
    node.backend = record_.counts.devices[body.device].name;
    Bytes rest(event.behind<weir_event_step_node>());
    std::map<std::uint64_t, std::int64_t> roots;
    std::uint32_t seen = 0;  // slots, as bits
    for (std::uint32_t i = 0; i < body.tensors; ++i) {
      weir_event_step_tensor tensor;
      if (!rest.take(&tensor) || !take_tensor(tensor, &node, &roots)) return false;
      // The result comes first, and no slot twice.
      if ((i == 0) != (tensor.slot == 0) || (seen & (1U << tensor.slot)) != 0) return false;
      seen |= 1U << tensor.slot;
    }
    // Alike in everything but their name: one, with a count.
    auto& nodes = step->second.nodes;
    for (profile::ReplayNode& known : nodes) {
      node.name = known.name;
      node.count = known.count;
      if (node != known) continue;
      ++known.count;
      return true;
    }
    node.name = text_of(body.name);
    node.count = 1;
    if (nodes.size() >= k_replay_nodes) return false;
    nodes.push_back(std::move(node));
    return true;
  }

  const ProbeRecord& record_;
  profile::Replay replay_;
  std::map<std::uint32_t, profile::ReplayStep> lists_;
  std::map<std::uint32_t, std::pair<double, double>> masks_;  // open places, all places
  std::uint64_t lost_ = 0, unlisted_ = 0;
};

double seconds_of(const profile::Replay& replay) {
  double sum = 0;
  for (const profile::ReplayStep& step : replay.steps) {
    for (const double each : step.seconds) sum += each;
  }
  return sum;
}

}  // namespace

profile::Replay make_replay(const ProbeRecord& record) { return ReplayBuilder(record).build(); }

Result<profile::Replay> collect_replay(const sys::Files& files, const std::string& folder) {
  std::optional<profile::Replay> longest;
  std::size_t computing = 0;
  WEIR_TRY(const ProbeRecords read, read_records(files, folder));
  const std::vector<std::string>& warnings = read.warnings;
  for (const ProbeRecord& record : read.records) {
    profile::Replay replay = make_replay(record);
    if (replay.steps.empty()) continue;
    ++computing;
    if (!longest || seconds_of(replay) > seconds_of(*longest)) longest = std::move(replay);
  }
  if (!longest) {
    return fail(Code::unavailable,
                "no graph was computed with a ggml that can be listened to{}{}\n"
                "  It has to be a library of its own (libggml-base.so): weir doctor PROGRAM says "
                "what probes see.",
                warnings.empty() ? "" : ": ", text::join(warnings, "; "));
  }
  if (computing > 1) {
    longest->warnings.push_back(
        fmt::format("{} processes computed graphs: this is the one that took longest", computing));
  }
  longest->warnings.insert(longest->warnings.end(), warnings.begin(), warnings.end());
  return std::move(*longest);
}

}  // namespace weir::probes
