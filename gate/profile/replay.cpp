#include "gate/profile/replay.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_replay_schema = "weir.ops/1";
constexpr std::size_t k_replay_most_steps = 128;
constexpr std::size_t k_replay_most_nodes = 1U << 14;  // of a step, each different
constexpr std::size_t k_replay_most_seconds = 4096;
constexpr std::size_t k_replay_most_warnings = 100;
constexpr std::size_t k_replay_longest_text = 4096;
constexpr std::int64_t k_replay_most_count = 1 << 20;
constexpr std::int64_t k_replay_most_bytes = std::int64_t{1} << 42;
constexpr std::int64_t k_replay_most_types = 256;  // and of ops
constexpr std::int64_t k_replay_most_threads = 1024;

Json replay_root_to_json(const ReplayRoot& root) {
  Json json{{"bytes", root.bytes}};
  if (root.constant) json["constant"] = true;
  if (!root.memory.empty()) json["memory"] = root.memory;
  return json;
}

Json replay_tensor_to_json(const ReplayTensor& tensor) {
  return {{"slot", tensor.slot}, {"type", tensor.type}, {"type_number", tensor.type_number},
          {"ne", tensor.ne},     {"nb", tensor.nb},     {"offset", tensor.offset},
          {"root", tensor.root}};
}

Json replay_node_to_json(const ReplayNode& node) {
  Json json{{"op", node.op},
            {"description", node.description},
            {"number", node.op_number},
            {"params", node.params},
            {"flags", node.flags},
            {"backend", node.backend},
            {"name", node.name},
            {"count", node.count}};
  json["roots"] = Json::array();
  for (const ReplayRoot& root : node.roots) json["roots"].push_back(replay_root_to_json(root));
  json["tensors"] = Json::array();
  for (const ReplayTensor& tensor : node.tensors)
    json["tensors"].push_back(replay_tensor_to_json(tensor));
  return json;
}

Json replay_step_to_json(const ReplayStep& step) {
  Json json{{"rows", step.rows}, {"views", step.views}, {"seconds", step.seconds}};
  if (step.mask_open) json["mask_open"] = *step.mask_open;
  json["nodes"] = Json::array();
  for (const ReplayNode& node : step.nodes) json["nodes"].push_back(replay_node_to_json(node));
  return json;
}

// A reader of one object that also holds numbers to bounds.
class BoundedReader : public JsonReader {
 public:
  using JsonReader::JsonReader;

  std::int64_t within(const char* key, std::int64_t least, std::int64_t most) {
    return checked(key, integer(key), least, most);
  }
  std::string word(const char* key) {
    std::string text = string(key);
    if (text.size() > k_replay_longest_text) complain(fmt::format("\"{}\" is too long", key));
    return text::printable(text);
  }
  template <class Whole, std::size_t N>
  void list(const char* key, std::array<Whole, N>& out, std::int64_t least, std::int64_t most) {
    const Json& values = array(key);
    if (values.size() != N) return complain(fmt::format("\"{}\" does not hold {} numbers", key, N));
    for (std::size_t i = 0; i < N; ++i) {
      if (!values[i].is_number_integer() ||
          (values[i].is_number_unsigned() &&
           values[i].get<std::uint64_t>() > static_cast<std::uint64_t>(most))) {
        return complain(fmt::format("\"{}\" holds what is no number within bounds", key));
      }
      out[i] = static_cast<Whole>(checked(key, values[i].get<std::int64_t>(), least, most));
    }
  }

 private:
  std::int64_t checked(const char* key, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return value;
    complain(fmt::format("\"{}\" is {}, not {} to {}", key, value, least, most));
    return least;
  }
};

Result<ReplayTensor> replay_tensor_from_json(const Json& json, const std::string& path,
                                             std::size_t roots) {
  BoundedReader read(json, path);
  ReplayTensor tensor;
  tensor.slot = read.within("slot", 0, k_replay_sources);
  tensor.type = read.word("type");
  tensor.type_number = read.within("type_number", 0, k_replay_most_types - 1);
  read.list("ne", tensor.ne, 0, k_replay_most_bytes);
  read.list("nb", tensor.nb, 0, k_replay_most_bytes);
  tensor.offset = read.within("offset", 0, k_replay_most_bytes);
  tensor.root = read.within("root", 0, static_cast<std::int64_t>(roots) - 1);
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return tensor;
}

Result<ReplayNode> replay_node_from_json(const Json& json, const std::string& path) {
  BoundedReader read(json, path);
  ReplayNode node;
  node.op = read.word("op");
  node.description = read.word("description");
  node.op_number = read.within("number", 0, k_replay_most_types - 1);
  read.list("params", node.params, INT32_MIN, INT32_MAX);
  node.flags = read.within("flags", INT32_MIN, INT32_MAX);
  node.backend = read.word("backend");
  node.name = read.word("name");
  node.count = read.within("count", 1, k_replay_most_count);
  const Json& roots = read.array("roots");
  const Json& tensors = read.array("tensors");
  const auto most = static_cast<std::size_t>(k_replay_sources) + 1;
  if (roots.size() > most || tensors.size() > most) read.complain("has too many tensors");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  for (const Json& one : roots) {
    BoundedReader root(one, path + ".roots");
    node.roots.push_back({root.within("bytes", 0, k_replay_most_bytes),
                          root.optional_boolean("constant").value_or(false),
                          text::printable(root.optional_string("memory").value_or(""))});
    if (auto problem = root.problem()) return tl::unexpected(*problem);
  }
  std::array<bool, k_replay_sources + 1> seen{};
  for (const Json& one : tensors) {
    WEIR_TRY(ReplayTensor tensor, replay_tensor_from_json(one, path + ".tensors", roots.size()));
    if (std::exchange(seen.at(static_cast<std::size_t>(tensor.slot)), true)) {
      return fail(Code::data, "{}: slot {} stands twice", path, tensor.slot);
    }
    node.tensors.push_back(std::move(tensor));
  }
  if (!node.tensors.empty() && node.tensors.front().slot != 0) {
    return fail(Code::data, "{}: its tensors do not begin with the result", path);
  }
  return node;
}

Result<ReplayStep> replay_step_from_json(const Json& json, const std::string& path) {
  BoundedReader read(json, path);
  ReplayStep step;
  step.rows = read.within("rows", 0, k_replay_most_bytes);
  step.views = read.within("views", 0, k_replay_most_count);
  step.mask_open = read.optional_number("mask_open");
  if (step.mask_open && !(*step.mask_open >= 0 && *step.mask_open <= 1)) {
    read.complain("\"mask_open\" is no share");
  }
  const Json& seconds = read.array("seconds");
  const Json& nodes = read.array("nodes");
  if (seconds.size() > k_replay_most_seconds) read.complain("\"seconds\" are too many");
  if (nodes.size() > k_replay_most_nodes) read.complain("\"nodes\" are too many");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  for (const Json& one : seconds) {
    const double value = one.is_number() ? one.get<double>() : -1;
    if (!(value >= 0 && value < 1e9)) {
      return fail(Code::data, "{}: \"seconds\" holds what is no time", path);
    }
    step.seconds.push_back(value);
  }
  for (const Json& one : nodes) {
    WEIR_TRY(ReplayNode node,
             replay_node_from_json(one, fmt::format("{}.nodes[{}]", path, step.nodes.size())));
    step.nodes.push_back(std::move(node));
  }
  return step;
}

// The sources, then what becomes of them.
template <class TextOf>
std::string operands_text(const ReplayNode& node, TextOf text_of) {
  if (node.tensors.empty()) return "";
  std::string out;
  for (std::size_t i = 1; i < node.tensors.size(); ++i) {
    out += (i > 1 ? "," : "") + text_of(node.tensors[i]);
  }
  return out + "->" + text_of(node.tensors.front());
}

}  // namespace

Json to_json(const Replay& replay) {
  Json json{{"schema", k_replay_schema}, {"engine", "ggml"}, {"program", replay.program}};
  if (!replay.version.empty()) json["version"] = replay.version;
  if (!replay.commit.empty()) json["commit"] = replay.commit;
  if (!replay.library.empty()) json["library"] = replay.library;
  if (replay.threads) json["threads"] = *replay.threads;
  if (!replay.warnings.empty()) json["warnings"] = replay.warnings;
  json["steps"] = Json::array();
  for (const ReplayStep& step : replay.steps) json["steps"].push_back(replay_step_to_json(step));
  return json;
}

Result<Replay> replay_from_json(const Json& json) {
  if (!json.is_object() || json.value("schema", Json()) != k_replay_schema) {
    return fail(Code::data, "it is no recording of ops ({})", k_replay_schema);
  }
  BoundedReader read(json, "recording");
  Replay replay;
  if (read.string("engine") != "ggml") read.complain("\"engine\" is not ggml");
  replay.program = read.word("program");
  if (read.has("version")) replay.version = read.word("version");
  if (read.has("commit")) replay.commit = read.word("commit");
  if (read.has("library")) replay.library = read.word("library");
  if (read.has("threads")) replay.threads = read.within("threads", 1, k_replay_most_threads);
  replay.warnings = read.strings("warnings");
  if (replay.warnings.size() > k_replay_most_warnings)
    replay.warnings.resize(k_replay_most_warnings);
  for (std::string& warning : replay.warnings) warning = text::printable(warning.substr(0, 1000));
  const Json& steps = read.array("steps");
  if (steps.size() > k_replay_most_steps) read.complain("\"steps\" are too many");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  for (const Json& one : steps) {
    WEIR_TRY(ReplayStep step,
             replay_step_from_json(one, fmt::format("steps[{}]", replay.steps.size())));
    replay.steps.push_back(std::move(step));
  }
  return replay;
}

std::optional<std::size_t> main_step(const Replay& replay) {
  std::optional<std::size_t> best;
  const auto worth = [&](std::size_t i) {
    const ReplayStep& step = replay.steps[i];
    double sum = 0;
    for (const double each : step.seconds) sum += each;
    return std::pair(step.rows == 1,
                     step.rows == 1 ? static_cast<double>(step.seconds.size()) : sum);
  };
  for (std::size_t i = 0; i < replay.steps.size(); ++i) {
    if (!best || worth(i) > worth(*best)) best = i;
  }
  return best;
}

std::string sizes_text(const std::array<std::int64_t, 4>& ne) {
  auto end = ne.end();
  while (end - ne.begin() > 1 && *(end - 1) == 1) --end;
  return fmt::format("{}", fmt::join(ne.begin(), end, "x"));
}

std::string type_text(const ReplayNode& node) {
  return operands_text(node, [](const ReplayTensor& tensor) { return tensor.type; });
}

std::string shape_text(const ReplayNode& node) {
  return operands_text(node, [](const ReplayTensor& tensor) { return sizes_text(tensor.ne); });
}

}  // namespace weir::profile
