// Reads and writes recordings of an engine's ops (weir.ops/1).
#include "gate/profile/replay.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_replay_schema = "weir.ops/1";
constexpr std::size_t k_replay_max_steps = 128;
constexpr std::size_t k_replay_max_nodes = 1U << 14;  // different ones in a step
constexpr std::size_t k_replay_max_seconds = 4096;
constexpr std::size_t k_replay_max_warnings = 100;
constexpr std::size_t k_replay_longest_text = 4096;
constexpr std::int64_t k_replay_max_count = 1 << 20;
constexpr std::int64_t k_replay_max_bytes = std::int64_t{1} << 42;
constexpr std::int64_t k_replay_max_types = 256;  // and of ops
constexpr std::int64_t k_replay_max_threads = 1024;

// A text of another program. It must not be too long, and is made printable.
struct Word {
  std::string& value;
  std::size_t longest = k_replay_longest_text;
  void put(Json& slot) const { slot = value; }
  void take(const Json& json, Fields& io, const char* key) const {
    io.take(json, key, value);
    if (value.size() > longest) io.complain_about(key, "is too long");
    value = text::printable(value);
  }
};

// A list of exactly N whole numbers, each within bounds.
template <class Whole, std::size_t N>
struct WholeNumbers {
  std::array<Whole, N>& value;
  std::int64_t min_value, max_value;
  void put(Json& slot) const { slot = value; }
  void take(const Json& json, Fields& io, const char* key) const {
    if (!json.is_array()) return io.complain_about(key, "should be a list");
    if (json.size() != N) return io.complain_about(key, fmt::format("does not hold {} numbers", N));
    for (std::size_t i = 0; i < N; ++i) {
      const auto number = json[i].is_number() ? rational_from_json(json[i]) : std::nullopt;
      if (!number) return io.complain_about(key, "holds what is no number within bounds");
      std::int64_t number_in_bounds = 0;
      Within{number_in_bounds, min_value, max_value}.take(json[i], io, key);
      value[i] = static_cast<Whole>(number_in_bounds);
    }
  }
};
template <class Whole, std::size_t N>
WholeNumbers(std::array<Whole, N>&, std::int64_t, std::int64_t) -> WholeNumbers<Whole, N>;

// A list of times below 1e9 seconds.
struct Seconds {
  std::vector<double>& value;
  void put(Json& slot) const { slot = value; }
  void take(const Json& json, Fields& io, const char* key) const {
    if (!json.is_array()) return io.complain_about(key, "should be a list");
    for (const Json& item : json) {
      value.push_back(item.is_number() ? item.get<double>() : -1);
      if (value.back() >= 0 && value.back() < 1e9) continue;
      return io.refuse({Code::data, io.path() + ": \"seconds\" holds what is no time"});
    }
  }
};

// Returns "a,b->c": the sources, then the result.
template <class TextOf>
std::string join_operands(const ReplayNode& node, TextOf text_of) {
  if (node.tensors.empty()) return "";
  std::string result;
  for (std::size_t i = 1; i < node.tensors.size(); ++i) {
    result += (i > 1 ? "," : "") + text_of(node.tensors[i]);
  }
  return result + "->" + text_of(node.tensors.front());
}

}  // namespace

static void fields(Fields& io, ReplayRoot& root) {
  io("bytes", Within{root.bytes, 0, k_replay_max_bytes});
  io.optional("constant", root.constant);
  io.optional("memory", Word{root.memory, SIZE_MAX});
}

static void fields(Fields& io, ReplayTensor& tensor) {
  io("slot", Within{tensor.slot, 0, k_replay_sources});
  io("type", Word{tensor.type});
  io("type_number", Within{tensor.type_number, 0, k_replay_max_types - 1});
  io("ne", WholeNumbers{tensor.ne, 0, k_replay_max_bytes});
  io("nb", WholeNumbers{tensor.nb, 0, k_replay_max_bytes});
  io("offset", Within{tensor.offset, 0, k_replay_max_bytes});
  io("root", tensor.root);
}

// Refuses a node whose tensors do not fit together: a root that does not exist, a slot that occurs
// twice, or a first tensor that is not the result.
static void check_tensors(Fields& io, const ReplayNode& node) {
  const auto roots = static_cast<std::int64_t>(node.roots.size());
  std::array<bool, k_replay_sources + 1> used{};
  for (const ReplayTensor& tensor : node.tensors) {
    if (tensor.root < 0 || tensor.root >= roots) {
      io.refuse({Code::data, fmt::format("{}.tensors \"root\" is {}, not 0 to {}", io.path(),
                                         tensor.root, roots - 1)});
    }
    bool& is_used = used.at(static_cast<std::size_t>(tensor.slot));
    if (is_used) {
      io.refuse({Code::data, fmt::format("{}: slot {} stands twice", io.path(), tensor.slot)});
    }
    is_used = true;
  }
  if (!node.tensors.empty() && node.tensors.front().slot != 0) {
    io.refuse({Code::data, io.path() + ": its tensors do not begin with the result"});
  }
}

// Reads or writes a node of a recorded graph, one op to repeat. Tensors are checked when read.
static void fields(Fields& io, ReplayNode& node) {
  io("op", Word{node.op});
  io("description", Word{node.description});
  io("number", Within{node.op_number, 0, k_replay_max_types - 1});
  io("params", WholeNumbers{node.params, INT32_MIN, INT32_MAX});
  io("flags", Within{node.flags, INT32_MIN, INT32_MAX});
  io("backend", Word{node.backend});
  io("name", Word{node.name});
  io("count", Within{node.count, 1, k_replay_max_count});
  for (const char* list : {"roots", "tensors"}) {
    io.limit_items(list, static_cast<std::size_t>(k_replay_sources) + 1, "has too many tensors");
  }
  io("roots", node.roots, ".roots");
  io("tensors", node.tensors, ".tensors");
  if (io.is_reading()) check_tensors(io, node);
}

// Reads or writes a step of a recording, one computed graph with its times. Too long lists are
// refused.
static void fields(Fields& io, ReplayStep& step) {
  io("rows", Within{step.rows, 0, k_replay_max_bytes});
  io("views", Within{step.views, 0, k_replay_max_count});
  io.optional("mask_open", step.visible_mask_share);
  io.check(
      !step.visible_mask_share || (*step.visible_mask_share >= 0 && *step.visible_mask_share <= 1),
      "\"mask_open\" is no share");
  io.limit_items("seconds", k_replay_max_seconds, "\"seconds\" are too many");
  io.limit_items("nodes", k_replay_max_nodes, "\"nodes\" are too many");
  io("seconds", Seconds{step.seconds});
  io("nodes", step.nodes, ".nodes[]");
}

// Reads or writes a recording of graphs that can be replayed. Too many steps are refused; warnings
// are cut.
void fields(Fields& io, Replay& replay) {
  io.write_only("schema", k_replay_schema);
  std::string engine = "ggml";
  io("engine", engine);
  io.check(engine == "ggml", "\"engine\" is not ggml");
  io("program", Word{replay.program});
  io.optional("version", Word{replay.version});
  io.optional("commit", Word{replay.commit});
  io.optional("library", Word{replay.library});
  io.optional("threads", Within{replay.threads, 1, k_replay_max_threads});
  io.optional("warnings", replay.warnings);
  io.limit_items("steps", k_replay_max_steps, "\"steps\" are too many");
  io("steps", replay.steps, "steps[]");
  if (!io.is_reading()) return;
  if (replay.warnings.size() > k_replay_max_warnings) {
    replay.warnings.resize(k_replay_max_warnings);
  }
  for (std::string& warning : replay.warnings) warning = text::printable(warning.substr(0, 1000));
}

Result<Replay> replay_from_json(const Json& json) {
  if (!json.is_object() || json.value("schema", Json()) != k_replay_schema) {
    return fail(Code::data, "it is no recording of ops ({})", k_replay_schema);
  }
  return read_fields<Replay>(json, "recording");
}

// Returns the index of the step to replay: of those with one token the one with most timed graphs,
// or else the one that took longest. Nothing if there are no steps.
std::optional<std::size_t> main_step(const Replay& replay) {
  std::optional<std::size_t> best;
  const auto priority = [&](std::size_t i) {
    const ReplayStep& step = replay.steps[i];
    const bool is_one_token = step.rows == 1;
    if (is_one_token) return std::pair(true, static_cast<double>(step.seconds.size()));
    double total_seconds = 0;
    for (const double graph_seconds : step.seconds) total_seconds += graph_seconds;
    return std::pair(false, total_seconds);
  };
  for (std::size_t i = 0; i < replay.steps.size(); ++i) {
    if (!best || priority(i) > priority(*best)) best = i;
  }
  return best;
}

std::string sizes_text(const std::array<std::int64_t, 4>& ne) {
  auto end = ne.end();
  while (end - ne.begin() > 1 && *(end - 1) == 1) --end;
  return fmt::format("{}", fmt::join(ne.begin(), end, "x"));
}

std::string type_text(const ReplayNode& node) {
  return join_operands(node, [](const ReplayTensor& tensor) { return tensor.type; });
}

std::string shape_text(const ReplayNode& node) {
  return join_operands(node, [](const ReplayTensor& tensor) { return sizes_text(tensor.ne); });
}

}  // namespace weir::profile
