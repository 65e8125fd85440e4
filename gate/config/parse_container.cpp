// `container` of an engine.
#include <algorithm>
#include <utility>

#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

const std::vector<std::string>& runtime_names() {
  static const std::vector<std::string> k_names{"docker", "podman", "srun"};
  return k_names;
}

std::optional<Runtime> read_runtime(const Node& node, Problems& problems) {
  const auto chosen = read_choice(node, "container", runtime_names(), problems);
  if (chosen == "docker") return Runtime::docker;
  if (chosen == "podman") return Runtime::podman;
  if (chosen == "srun") return Runtime::srun;
  return std::nullopt;
}

}  // namespace

void parse_container(const Node& node, EngineSettings& engine, Parsing& parsing) {
  Problems& problems = parsing.problems;
  ContainerSettings container;
  if (node.kind == Node::Kind::map) {
    Fields fields(node, "container", problems);
    const Node* runtime = fields.need("runtime");
    const Node* image = fields.take("image");
    const Node* args = fields.take("args");
    fields.finish();
    const auto chosen = runtime == nullptr ? std::nullopt : read_runtime(*runtime, problems);
    if (!chosen) return;
    container.runtime = *chosen;
    if (image != nullptr) container.image = read_text(*image, "image", problems).value_or("");
    if (args != nullptr) container.args = read_arguments(*args, "container's args", problems);
    if (std::find(container.args.begin(), container.args.end(), "{args}") != container.args.end()) {
      problems.add(args->at, "{args} can only stand in an engine's command");
    }
  } else {
    const auto chosen = read_runtime(node, problems);
    if (!chosen) return;
    container.runtime = *chosen;
  }
  engine.container = container;
  const std::string_view name = to_string(container.runtime);
  if (std::find(engine.probes.begin(), engine.probes.end(), "instructions") !=
      engine.probes.end()) {
    problems.add(node.at, fmt::format("instructions are counted from outside, where they would be "
                                      "those of {}: not of an engine in a container",
                                      name));
  }
  if (engine.command.empty() || engine.command.front().empty()) return;
  const bool whole = begins_with(engine.command, container.runtime);
  if (whole && (!container.image.empty() || !container.args.empty())) {
    problems.add(node.at,
                 fmt::format("the command begins with {}: image and args stand there", name));
    return;
  }
  if (!whole && container.image.empty() && container.runtime != Runtime::srun) {
    problems.add(
        node.at,
        fmt::format("the command does not begin with {0}: write {0} run … IMAGE before it, or\n"
                    "  container: {{runtime: {0}, image: IMAGE}}",
                    name));
    return;
  }
  // Options that come by {args}, from backends or prompts, are looked at when a cell is prepared.
  for (std::string& problem :
       problems_of(whole_command(container, engine.command), container.runtime)) {
    problems.add(node.at, std::move(problem));
  }
}

}  // namespace weir::config
