// Builds a replay, the recorded ops of an engine, from the events of the ggml probe.
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
constexpr std::uint32_t k_replay_number = 255;  // for types and ops
constexpr std::uint32_t k_replay_threads = 1024;

// Stores the value, cut to k_replay_bytes; false where it was larger.
bool store_limited(std::uint64_t value, std::int64_t* out) {
  *out = static_cast<std::int64_t>(std::min<std::uint64_t>(value, k_replay_bytes));
  return value <= static_cast<std::uint64_t>(k_replay_bytes);
}

// Builds the replay of one process.
class ReplayBuilder {
 public:
  explicit ReplayBuilder(const ProbeRecord& record) : record_(record) {
    replay_.program = record.counts.process;
  }

  // Reads all events. The first run of a step warms up, so its time is dropped if there are more.
  profile::Replay build() {
    for (const EventThread& thread : record_.events.threads) {
      for (const ProbeEvent& event : thread.events) read_event(event);
    }
    for (auto& [index, step] : steps_) {
      const auto [open, all] = masks_[index];
      if (all > 0) step.visible_mask_share = std::min(open / all, 1.0);
      if (step.seconds.size() > 1) step.seconds.erase(step.seconds.begin());
      replay_.steps.push_back(std::move(step));
    }
    if (dropped_nodes_ != 0) {
      warn(fmt::format("{} records of graphs' nodes make no sense and were left out",
                       dropped_nodes_));
    }
    if (dropped_steps_ != 0) {
      warn(fmt::format("{} graphs came in more shapes than there is room for: not recorded",
                       dropped_steps_));
    }
    if ((record_.events.flags & WEIR_EVENTS_DROPPED) != 0) {
      warn("events found no room in the event file: the recording ends early");
    }
    return std::move(replay_);
  }

 private:
  void warn(std::string text) { replay_.warnings.push_back(std::move(text)); }

  void read_event(const ProbeEvent& event) {
    if (event.kind == WEIR_EVENT_ENGINE) return read_engine(event);
    if (event.kind == WEIR_EVENT_STEP) return read_step(event);
    if (event.kind == WEIR_EVENT_STEP_NODE && !read_node(event)) ++dropped_nodes_;
  }

  void read_engine(const ProbeEvent& event) {
    std::string* const facts[] = {&replay_.version, &replay_.commit, &replay_.library};
    if (event.index < std::size(facts)) *facts[event.index] = printable_text(event.body);
  }

  // Adds one run of a step: its time, threads, and the share of the attention mask that is open.
  void read_step(const ProbeEvent& event) {
    if (event.index == UINT32_MAX || event.index >= k_replay_steps) {
      ++dropped_steps_;
      return;
    }
    const auto body = event.as<weir_event_step>();
    profile::ReplayStep& step = steps_[event.index];
    if (body.graph < record_.counts.graphs.size()) {
      (void)store_limited(record_.counts.graphs[body.graph].rows, &step.rows);
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

  // Adds a tensor to the node. Tensors in one allocation share a root; `roots` maps the probe's
  // numbers to indices into node->roots. False where a value is out of range.
  bool read_tensor(const weir_event_step_tensor& body, profile::ReplayNode* node,
                   std::map<std::uint64_t, std::int64_t>* roots) {
    profile::ReplayTensor tensor;
    tensor.slot = body.slot;
    tensor.type = printable_text(body.type_name);
    tensor.type_number = body.type;
    bool is_valid = body.slot <= profile::k_replay_sources && body.type >= 0 &&
                    body.type <= static_cast<std::int32_t>(k_replay_number);
    for (std::size_t i = 0; i < 4; ++i) {
      is_valid = is_valid && body.ne[i] >= 0 &&
                 store_limited(static_cast<std::uint64_t>(body.ne[i]), &tensor.ne[i]);
      is_valid = is_valid && store_limited(body.nb[i], &tensor.nb[i]);
    }
    profile::ReplayRoot root;
    is_valid = is_valid && store_limited(body.offset, &tensor.offset) &&
               store_limited(body.root_bytes, &root.bytes);
    if (!is_valid) return false;
    const auto [entry, inserted] =
        roots->try_emplace(body.root, static_cast<std::int64_t>(node->roots.size()));
    tensor.root = entry->second;
    if (inserted) {
      root.constant = (body.root_flags & WEIR_ROOT_CONSTANT) != 0;
      root.memory = printable_text(body.memory);
      node->roots.push_back(std::move(root));
    }
    node->tensors.push_back(std::move(tensor));
    return true;
  }

  // Adds a node to its step. Nodes that differ only in their names become one, with a count. False
  // where the record makes no sense.
  bool read_node(const ProbeEvent& event) {
    const auto step = steps_.find(event.index);
    const auto body = event.as<weir_event_step_node>();
    if (step == steps_.end() || body.op > k_replay_number ||
        body.tensors > profile::k_replay_sources + 1 ||
        body.device >= record_.counts.devices.size()) {
      return false;
    }
    profile::ReplayNode node;
    node.op = printable_text(body.op_name);
    node.description = printable_text(body.op_desc);
    node.op_number = body.op;
    std::copy(std::begin(body.params), std::end(body.params), node.params.begin());
    node.flags = body.flags;
    node.backend = record_.counts.devices[body.device].name;
    ByteReader rest(event.behind<weir_event_step_node>());
    std::map<std::uint64_t, std::int64_t> roots;
    std::uint32_t used_slots = 0;  // as bits
    for (std::uint32_t i = 0; i < body.tensors; ++i) {
      weir_event_step_tensor tensor;
      if (!rest.read(&tensor) || !read_tensor(tensor, &node, &roots)) return false;
      // The result (slot 0) comes first, and each slot once.
      const std::uint32_t bit = 1U << tensor.slot;
      const bool is_first = i == 0, is_result = tensor.slot == 0;
      if (is_first != is_result || (used_slots & bit) != 0) return false;
      used_slots |= bit;
    }
    auto& nodes = step->second.nodes;
    for (profile::ReplayNode& other : nodes) {
      node.name = other.name;
      node.count = other.count;
      if (node != other) continue;
      ++other.count;
      return true;
    }
    node.name = printable_text(body.name);
    node.count = 1;
    if (nodes.size() >= k_replay_nodes) return false;
    nodes.push_back(std::move(node));
    return true;
  }

  const ProbeRecord& record_;
  profile::Replay replay_;
  std::map<std::uint32_t, profile::ReplayStep> steps_;
  std::map<std::uint32_t, std::pair<double, double>> masks_;  // by step: open places, all places
  std::uint64_t dropped_nodes_ = 0, dropped_steps_ = 0;
};

double total_seconds(const profile::Replay& replay) {
  double sum = 0;
  for (const profile::ReplayStep& step : replay.steps) {
    for (const double seconds : step.seconds) sum += seconds;
  }
  return sum;
}

}  // namespace

profile::Replay make_replay(const ProbeRecord& record) { return ReplayBuilder(record).build(); }

// Returns the replay of the process that computed longest, with warnings about the others.
Result<profile::Replay> collect_replay(const sys::Files& files, const std::string& folder) {
  std::optional<profile::Replay> longest;
  std::size_t replays = 0;
  WEIR_TRY(const ProbeRecords records, read_records(files, folder));
  const std::vector<std::string>& warnings = records.warnings;
  for (const ProbeRecord& record : records.records) {
    profile::Replay replay = make_replay(record);
    if (replay.steps.empty()) continue;
    ++replays;
    if (!longest || total_seconds(replay) > total_seconds(*longest)) longest = std::move(replay);
  }
  if (!longest) {
    return fail(Code::unavailable,
                "no graph was computed with a ggml that can be listened to{}{}\n"
                "  It has to be a library of its own (libggml-base.so): weir doctor PROGRAM says "
                "what probes see.",
                warnings.empty() ? "" : ": ", text::join(warnings, "; "));
  }
  if (replays > 1) {
    longest->warnings.push_back(
        fmt::format("{} processes computed graphs: this is the one that took longest", replays));
  }
  longest->warnings.insert(longest->warnings.end(), warnings.begin(), warnings.end());
  return std::move(*longest);
}

}  // namespace weir::probes
